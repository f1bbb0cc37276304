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
import threading
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


def run(*argv, check=True, text_in=None):
    return subprocess.run([str(a) for a in argv], check=check, capture_output=True, text=True,
                          input=text_in)


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


def end_descendants(processes, ns=None):
    """Kills all that this process started, orphans included, and waits until they are gone.
    processes: the Popen objects among them, whose status is theirs to take. ns: only those in
    this namespace."""
    def none_left():
        left = [pid for pid in descendants() if ns is None or ns.holds(pid)]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in processes:
            process.poll()
        if ns is None:
            reap()
        return not left
    wait_for(none_left, "all processes are gone")


class Netns:
    """A network namespace with its loopback up. Inside "with", sockets, processes and threads
    that this thread starts are in it. It has no name in the system and ends with the last
    process in it, however the test ends."""

    def __init__(self, name, fd=None):
        """fd: of one that is there, instead of a new one."""
        self.name = name
        self.address = None
        self.entered = threading.local()
        self.fd = self.made() if fd is None else fd

    @property
    def path(self):
        """For programs, as long as the test lives."""
        return "/proc/%d/fd/%d" % (os.getpid(), self.fd)

    @property
    def inode(self):
        return os.fstat(self.fd).st_ino

    def holds(self, pid):
        with contextlib.suppress(OSError):
            return os.stat("/proc/%d/ns/net" % pid).st_ino == self.inode
        return False

    def connect(self, outside, inside, address):
        """A pair of interfaces: outside where the caller is, inside, with this address and
        prefix length, in here."""
        self.address = address.split("/")[0]
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside,
            "netns", self.path)
        run("ip", "link", "set", outside, "up")
        with self:
            run("ip", "address", "add", address, "dev", inside)
            run("ip", "link", "set", inside, "up")

    def __enter__(self):
        if not hasattr(self.entered, "before"):
            self.entered.before = []
        self.entered.before.append(self.opened())
        self.switch(self.fd)
        return self

    def __exit__(self, *_exc):
        before = self.entered.before.pop()
        self.switch(before)
        os.close(before)

    @classmethod
    def made(cls):
        before = cls.opened()
        try:
            if LIBC.unshare(CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "unshare")
            run("ip", "link", "set", "lo", "up")
            return cls.opened()
        finally:
            cls.switch(before)
            os.close(before)

    @staticmethod
    def opened():
        """The one of this thread."""
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY)

    @staticmethod
    def switch(fd):
        if LIBC.setns(fd, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")

    def delete(self):
        os.close(self.fd)


class Lab:
    """Folders, namespaces and processes of one test; close() ends all of it."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-test-"))
        self.dir.chmod(0o755)
        self.namespaces = []
        self.processes = []

    def netns(self):
        ns = Netns("ns%d" % len(self.namespaces))
        self.namespaces.append(ns)
        return ns

    def start(self, *argv, ns=None, log=None, **options):
        """A process in the namespace; its outputs are appended to the file log."""
        sink = open(log or self.dir / "output", "ab")  # pylint: disable=consider-using-with
        with sink, ns or contextlib.nullcontext():
            process = subprocess.Popen(  # pylint: disable=consider-using-with
                [str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
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
