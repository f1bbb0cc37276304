# SPDX-License-Identifier: Apache-2.0
"""What scenario tests need: folders, network namespaces and processes that are gone afterwards,
whatever happened, and waiting for a condition with a deadline."""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

BUILD = pathlib.Path(os.environ["LOCKSTEP_BUILD"])
# packaging/test --long runs the scenarios with a second version.
HAPROXY = os.environ.get("LOCKSTEP_HAPROXY", "/usr/sbin/haproxy")
DEADLINE_S = 20.0
CLONE_NEWNET = 0x40000000
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)

# What the test writes as root is read by programs without root, whatever the machine's umask.
os.umask(0o022)

# Orphans of what a test kills become children of the test, which ends them by pid.
if LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
    raise OSError(ctypes.get_errno(), "prctl")


def wait_for(condition, what, deadline_s=DEADLINE_S):
    """Returns the first true value of condition(); an exception of its counts as false."""
    end = time.monotonic() + deadline_s
    last = None
    while True:
        try:
            value = condition()
            if value:
                return value
        except (OSError, AssertionError, KeyError, ValueError) as error:
            last = error
        if time.monotonic() > end:
            raise AssertionError("not in %g s: %s (last: %r)" % (deadline_s, what, last))
        time.sleep(0.01)


def run(*argv, check=True):
    return subprocess.run([str(a) for a in argv], check=check, capture_output=True, text=True)


def stat_fields(pid):
    """/proc/PID/stat from the state on, or None."""
    try:
        text = pathlib.Path("/proc/%d/stat" % pid).read_text(encoding="latin-1")
    except OSError:
        return None
    return text.rsplit(")", 1)[1].split()


def is_alive(pid):
    fields = stat_fields(pid)
    return fields is not None and fields[0] != "Z"


def descendants(root=None):
    """Living processes below root (this process), as {pid: command line}."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = stat_fields(int(entry))
            if fields is not None and fields[0] != "Z":
                parents[int(entry)] = int(fields[1])
    known = {root or os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in known} - known
        if not more:
            break
        known |= more
    return {pid: command_line(pid) for pid in known - {root or os.getpid()}}


def command_line(pid):
    try:
        raw = pathlib.Path("/proc/%d/cmdline" % pid).read_bytes()
    except OSError:
        return ""
    return raw.replace(b"\0", b" ").decode("utf-8", "replace").strip()


def reap():
    """Takes the status of orphans that ended. Not of children that a Popen waits for: those are
    polled first by their owner."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def end_descendants(processes):
    """Kills all that this process started, orphans included, and waits until they are gone.
    processes: the Popen objects among them, whose status is theirs to take."""
    def none_left():
        left = descendants()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in processes:
            process.poll()
        reap()
        return not left
    wait_for(none_left, "all processes are gone")


class Netns:
    """A network namespace with its loopback up; inside "with", sockets of this thread are made
    in it."""

    def __init__(self, name):
        self.name = name
        self.before = None
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")

    def __enter__(self):
        self.before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        fd = os.open("/run/netns/" + self.name, os.O_RDONLY)
        try:
            self.switch(fd)
        finally:
            os.close(fd)
        return self

    def __exit__(self, *_exc):
        self.switch(self.before)
        os.close(self.before)

    @staticmethod
    def switch(fd):
        if LIBC.setns(fd, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")

    def delete(self):
        run("ip", "netns", "delete", self.name, check=False)


class Lab:
    """Folders, namespaces and processes of one test; close() ends all of it."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-test-"))
        self.dir.chmod(0o755)
        self.namespaces = []
        self.processes = []

    def netns(self):
        ns = Netns("lockstep-%d-%d" % (os.getpid(), len(self.namespaces)))
        self.namespaces.append(ns)
        return ns

    def start(self, *argv, ns=None, log=None, **options):
        """A process in the namespace; its outputs are appended to the file log."""
        command = [str(a) for a in argv]
        if ns is not None:
            command = ["ip", "netns", "exec", ns.name, *command]
        sink = open(log or self.dir / "output", "ab")  # pylint: disable=consider-using-with
        with sink:
            process = subprocess.Popen(  # pylint: disable=consider-using-with
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
                start_new_session=True, **options)
        self.processes.append(process)
        return process

    def close(self):
        try:
            end_descendants(self.processes)
        finally:
            for ns in self.namespaces:
                ns.delete()
            shutil.rmtree(self.dir, ignore_errors=True)
