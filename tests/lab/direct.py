# SPDX-License-Identifier: Apache-2.0
"""One node in direct mode: lockstep-run with a real HAProxy in a network namespace."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import threading

from lab import BUILD, HAPROXY, Lab, is_alive, run, wait_for

UID = 64123  # of lockstepd; nobody else has it
GROUP = "nogroup"

CONFIG = """\
global
    description "lockstep {digest}"
    default-path config
    user haproxy
    group haproxy
    chroot /var/lib/haproxy
    stats socket {run}/haproxy.sock mode 660 level admin expose-fd listeners group {group}
    maxconn 200
    hard-stop-after 30s
defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 2s
frontend web
{binds}
    http-request return status 200 content-type text/plain string "{body}"
"""


def call(path, request, timeout_s=60):
    """One JSON line there, one back."""
    line = request if isinstance(request, bytes) else json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(timeout_s)
        s.connect(str(path))
        s.sendall(line + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            chunk = s.recv(65536)
            if not chunk:
                break
            answer += chunk
    return json.loads(answer)


class Direct:
    def __init__(self, tunables=None):
        self.lab = Lab()
        self.ns = self.lab.netns()
        self.state = self.lab.dir / "state"
        self.run_dir = self.lab.dir / "run"
        self.log = self.lab.dir / "log"
        self.tunables = self.lab.dir / "tunables.json"
        self.tunables.write_text(json.dumps(tunables or {}), encoding="ascii")
        self.process = None

    def close(self):
        self.lab.close()

    def start(self, *options, wait=True):
        self.process = self.lab.start(
            BUILD / "lockstep-run", "--state-dir", self.state, "--run-dir", self.run_dir,
            "--user", UID, "--group", GROUP, "--tunables", self.tunables, "--haproxy", HAPROXY,
            "--no-lockstepd",
            *options, ns=self.ns, log=self.log)
        if wait:
            wait_for(lambda: self.helper(verb="status")["ok"], "the helper answers")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)

    def log_text(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def helper(self, **request):
        return call(self.run_dir / "helper.sock", request)

    def service(self, verb, **more):
        return call(self.run_dir / "run.sock", {"verb": verb, "service": "haproxy", **more})

    def record(self):
        return json.loads((self.run_dir / "run.json").read_text(encoding="ascii"))

    # -- generations ---------------------------------------------------------------------------

    def config(self, body="one", ports=(8080,), digest=None, address="127.0.0.1"):
        binds = "\n".join("    bind %s:%d" % (address, p) for p in ports)
        return CONFIG.format(
            digest=digest or body, run=self.run_dir, group=GROUP, binds=binds, body=body)

    def write_stage(self, number, files):
        """files: {relative name: text}; owned by lockstepd, as lockstepd writes them."""
        top = self.state / "stage" / str(number)
        for name, text in files.items():
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="ascii")
        self.give_away(top)
        return top

    @staticmethod
    def give_away(top):
        os.chown(top, UID, -1, follow_symlinks=False)
        for path in pathlib.Path(top).rglob("*"):
            os.chown(path, UID, -1, follow_symlinks=False)

    def stage(self, number, **config):
        self.write_stage(number, {"haproxy.cfg": self.config(**config)})
        return self.helper(verb="stage", generation=number)

    def install(self, number, **config):
        """Stages, checks and installs; returns nothing, all must succeed."""
        answer = self.stage(number, **config)
        assert answer.get("exit_status") == 0, answer
        answer = self.helper(verb="install", generation=number)
        assert answer["ok"], answer

    def serve(self, number=1, **config):
        """From nothing to a serving, settled generation."""
        self.install(number, **config)
        answer = self.helper(verb="reload")
        assert answer.get("loaded"), (answer, self.log_text())
        assert self.helper(verb="settle", generation=number)["ok"]
        return answer

    # -- traffic -------------------------------------------------------------------------------

    def get(self, port=8080, timeout_s=5.0):
        """Body of one HTTP request."""
        with self.ns:
            s = socket.socket()
        with s:
            s.settimeout(timeout_s)
            s.connect(("127.0.0.1", port))
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            answer = b""
            while chunk := s.recv(65536):
                answer += chunk
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), answer
        return body.decode()

    def listen(self, port, address="127.0.0.1"):
        """Somebody else's listener, a process of its own; returns it."""
        code = ("import socket,signal;s=socket.socket();"
                "s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1);"
                "s.bind((%r,%d));s.listen(5);signal.pause()" % (address, port))
        process = self.lab.start("/usr/bin/python3", "-c", code, ns=self.ns)

        def listening():
            with self.ns:
                return "%s:%d " % (address, port) in run("ss", "-Hltn").stdout
        wait_for(listening, "somebody listens on port %d" % port)
        return process

    def haproxy_pids(self):
        """(master, workers) by the master's own word."""
        answer = self.helper(verb="status")
        return answer["master"], answer["worker"]


class Traffic(threading.Thread):
    """Requests one after the other until stopped; counts bodies and failures."""

    def __init__(self, node, port=8080):
        super().__init__(daemon=True)
        self.node = node
        self.port = port
        self.bodies = {}
        self.failures = []
        self.end = threading.Event()

    def run(self):
        while not self.end.is_set():
            try:
                body = self.node.get(self.port, timeout_s=10)
                self.bodies[body] = self.bodies.get(body, 0) + 1
            except (OSError, AssertionError) as error:
                self.failures.append(repr(error))

    def __enter__(self):
        self.start()
        wait_for(lambda: sum(self.bodies.values()) > 20, "traffic flows")
        return self

    def __exit__(self, *_exc):
        self.end.set()
        self.join(20)


@contextlib.contextmanager
def stopped(pid):
    """SIGSTOP for as long as the block lasts."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGCONT)
