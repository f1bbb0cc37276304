# SPDX-License-Identifier: Apache-2.0
"""One real node: lockstep-run with lockstepd, lockstep-helper and HAProxy, in the network
namespace of the test process or in one of its own."""
import atexit
import contextlib
import ctypes
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from api import Api
from lab import HAPROXY, descendants, end_descendants, is_alive, wait_for

BUILD = os.environ["LOCKSTEP_BUILD"]
SOURCE = os.environ["LOCKSTEP_SOURCE"]
CLONE_NEWNET = 0x40000000
CLONE_NEWNS = 0x00020000
MS_BIND = 4096
UID = 61184 + os.getpid() % 4000  # of systemd's dynamic range: no entry in /etc/passwd
PASSWORD = "correct horse battery"

# Shorter than in the product, so that a test does not wait for what it does not test.
TUNABLES = {"status_round_ms": 200, "restart_first_ms": 50, "restart_max_ms": 500,
            "stop_ms": 5000, "event_ping_ms": 500,
            "tables_turn_ms": 50}


def private_network(*addresses):
    """The test process and its children get a network of their own: every port is free, and
    nothing is left behind when it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in addresses:
        subprocess.run(["ip", "address", "add", address, "dev", "lo"], check=True)


def private_folders(*folders):
    """The test process and its children find these folders empty, but for the programs under
    test: nobody else writes there meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for folder in folders:
        kept = [p for p in (SOURCE, BUILD) if os.path.realpath(p).startswith(folder + "/")]
        opened = [os.open(p, os.O_RDONLY) for p in kept]
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", folder], check=True)
        for path, descriptor in zip(kept, opened):
            os.makedirs(path, exist_ok=True)
            # Not by mount(8), which would look the path up again.
            if libc.mount(b"/proc/self/fd/%d" % descriptor, path.encode(), None, MS_BIND, None):
                raise OSError(ctypes.get_errno(), "mount", path)
            os.close(descriptor)


def program_of(pid):
    try:
        return os.path.basename(os.readlink("/proc/%d/exe" % pid))
    except OSError:
        return ""


def joined(address, port):
    return ("[%s]:%d" if ":" in address else "%s:%d") % (address, port)


class Node:
    def __init__(self, name="n1", crash_file=False, tunables=None, data=None, dies_at=None,
                 ns=None, address="127.0.0.1", haproxy=HAPROXY):
        """data: a tar file with what the node finds as its data directory. dies_at: where the
        first lockstepd dies, with crash_file and data. ns: where it runs. address: of its
        API. haproxy: the program."""
        self.name = name
        self.haproxy = haproxy
        self.build = BUILD  # whose programs the next start() takes
        self.ns = ns
        self.root = tempfile.mkdtemp(prefix="lockstep-test-%d-" % os.getpid())
        os.chmod(self.root, 0o755)
        atexit.register(self.sweep)  # a class whose preparation fails is never closed
        self.state = os.path.join(self.root, "state")
        self.run_dir = os.path.join(self.root, "run")
        self.log_path = os.path.join(self.root, "log")
        self.api = Api(address, 8443)
        self.process = None
        self.tunables = dict(TUNABLES, **(tunables or {}))
        self.tune()
        self.crash_path = os.path.join(self.state, "data", "crash") if crash_file else None
        if data is not None:
            self.unpack(data)
        if dies_at is not None:
            self.arm(dies_at)
        self.start()

    def tune(self, **values):
        """For what is started from now on."""
        self.tunables.update(values)
        with open(os.path.join(self.root, "tunables.json"), "w", encoding="ascii") as file:
            json.dump(self.tunables, file)

    def unpack(self, data):
        os.makedirs(self.state, 0o755)
        target = os.path.join(self.state, "data")
        os.mkdir(target, 0o700)
        subprocess.run(["tar", "-C", target, "-xf", data], check=True)
        for name in [target] + [os.path.join(target, n) for n in os.listdir(target)]:
            os.chown(name, UID, UID)

    def arm(self, place):
        """The next lockstepd to pass this place dies there, once."""
        with open(self.crash_path, "w", encoding="ascii") as file:
            file.write(place)
        os.chown(self.crash_path, UID, UID)

    def dies_at(self, place, call):
        """call makes this node's lockstepd pass the place, where it dies; another one is started.
        Returns what call returned: None when it was cut off."""
        before = self.pid_of("lockstepd")
        answer = None
        self.arm(place)
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = call()
        wait_for(lambda: not os.path.exists(self.crash_path), "%s dies at %s" % (self.name, place))
        wait_for(lambda: self.pids("lockstepd") not in ([], [before]), "a new lockstepd")
        return answer

    def command(self):
        command = [os.path.join(self.build, "lockstep-run"), "--state-dir", self.state,
                   "--run-dir", self.run_dir, "--user", str(UID), "--libexec", self.build,
                   "--haproxy", self.haproxy,
                   "--node-name", self.name,
                   "--listen", joined(self.api.address, self.api.port),
                   "--tunables", os.path.join(self.root, "tunables.json")]
        if self.crash_path:
            command += ["--lockstepd-arg", "--crash", "--lockstepd-arg", "@" + self.crash_path]
        return command

    def start(self):
        with open(self.log_path, "ab") as log, self.ns or contextlib.nullcontext():
            self.process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def tells_why(self):
        """That, and why, it cannot work."""
        try:
            answer = self.api.raw("GET", "/api/v1/status")
        except OSError:
            return None
        return answer.json["detail"] if answer.status == 503 else None

    def answers(self):
        try:
            return self.api.raw("GET", "/api/v1/setup").status == 200
        except OSError:
            assert self.process.poll() is None, "the node ended:\n" + self.log()[-4000:]
            return False

    def ready(self):
        try:
            return self.api.raw("GET", "/api/v1/ready").status == 200
        except OSError:
            assert self.process.poll() is None, "the node ended:\n" + self.log()[-4000:]
            return False

    def wait(self, condition, what):
        try:
            return wait_for(condition, what, 30)
        except AssertionError as error:
            raise AssertionError("%s\n%s" % (error, self.log()[-4000:])) from None

    def wait_ready(self):
        self.wait(self.ready, "the node is ready")

    def token(self):
        path = os.path.join(self.state, "data", "setup-token")
        wait_for(lambda: os.path.exists(path), "the setup token")
        with open(path, encoding="ascii") as file:
            return file.read().strip()

    def set_up(self):
        """First administrator and an automation key; self.api uses the key from then on."""
        self.wait(self.answers, "the API answers")
        self.api.expect(201, "POST", "/api/v1/setup",
                        {"token": self.token(), "name": "maria", "password": PASSWORD})
        admin = self.session()
        made = admin.create("automation_keys", name="test")
        self.api.key = made["key"]
        return self

    def cli_command(self, *words):
        """The command line with this node's key."""
        config = os.path.join(self.root, "cli.json")
        if not os.path.exists(config):
            own = self.api.get("/api/v1/cluster/key")
            with open(config, "w", encoding="ascii",
                      opener=lambda p, f: os.open(p, f, 0o600)) as file:
                json.dump({"url": own["url"], "key": self.api.key, "pin": own["pin"]}, file)
        return [os.path.join(BUILD, "lockstep"), "--config", config, *words]

    def cli(self, *words):
        """The ended process."""
        return subprocess.run(self.cli_command(*words), capture_output=True, text=True,
                              timeout=60, check=False)

    def session(self):
        admin = Api(self.api.address, self.api.port)
        admin.sign_in("maria", PASSWORD)
        return admin

    def pids(self, program):
        return [p for p in sorted(descendants(self.process.pid)) if program_of(p) == program]

    def pid_of(self, program):
        return wait_for(lambda: self.pids(program), program + " runs")[0]

    def take_down(self, program):
        """Kills it; lockstep-run is held meanwhile, so that it stays down until put_up()."""
        pids = self.pids(program)
        assert pids, program + " does not run"
        self.process.send_signal(signal.SIGSTOP)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not self.pids(program), program + " is down")

    def put_up(self):
        self.process.send_signal(signal.SIGCONT)

    def generation(self, link="current"):
        return os.path.realpath(os.path.join(self.state, "generation", link))

    def config(self):
        with open(os.path.join(self.generation(), "haproxy.cfg"), encoding="utf-8") as file:
            return file.read()

    def admin_socket(self, command):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(os.path.join(self.run_dir, "haproxy.sock"))
            client.sendall(command.encode() + b"\n")
            client.shutdown(socket.SHUT_WR)
            out = b""
            while piece := client.recv(65536):
                out += piece
            return out.decode()

    def running_digest(self):
        running = self.admin_socket("show map map/lockstep.running.map")
        return re.search(r"^0x[0-9a-f]+ digest ([0-9a-f]{16})$", running, re.MULTILINE)[1]

    def stop(self):
        """Ends it in order. Nothing of it may be left; what is, is killed."""
        if self.process is not None and self.process.poll() is None:
            self.put_up()
            family = descendants(self.process.pid)
            self.process.send_signal(signal.SIGTERM)
            status = self.process.wait(30)
            left = {p: line for p, line in family.items() if is_alive(p)}
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            assert not left, "left running: %s" % left
            assert status == 0, "lockstep-run ended with %d:\n%s" % (status, self.log()[-4000:])

    def kill(self):
        """As a power cut would: all processes of the test, or of the node's namespace, orphans
        included."""
        end_descendants([self.process], self.ns)

    def close(self):
        try:
            if self.process.poll() is None:
                self.stop()
        finally:
            if self.ns is not None or self.process.poll() is None:
                self.kill()
            shutil.rmtree(self.root, ignore_errors=True)
            atexit.unregister(self.sweep)

    def sweep(self):
        """At the end of the test process: nothing that it started lives on."""
        end_descendants([self.process] if self.process is not None else [])
        shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()
