# SPDX-License-Identifier: Apache-2.0
"""A real HAProxy on loopback that serves rendered objects, and requests to it."""
import json
import os
import pathlib
import socket
import ssl
import unittest

import backend
import lab

TOOL = lab.BUILD / "tests" / "render_objects"
GOLDEN = pathlib.Path(os.environ["LOCKSTEP_SOURCE"]) / "tests" / "golden" / "render"
PLACEHOLDER = GOLDEN / "placeholder.pem"


def private_network():
    """Every port is free in here, and no name server answers."""
    if lab.LIBC.unshare(lab.CLONE_NEWNET) != 0:
        raise OSError("unshare")
    lab.run("ip", "link", "set", "lo", "up")


def listener(name, port, **fields):
    return dict(kind="listener", name=name, port=port, addresses=["127.0.0.1"], **fields)


def server(name, port, address="127.0.0.1"):
    return dict(kind="server", name=name, address=address, port=port)


def pool(name, *servers, **fields):
    return dict(kind="pool", name=name, members=[{"server": s} for s in servers], **fields)


def service(name, listeners, to, **fields):
    return dict(kind="service", name=name, listeners=listeners, pool=to, **fields)


def der(certificate):
    return ssl.PEM_cert_to_DER_cert(certificate["chain"])


def raw(port, request, tls=None, name=None):
    """All bytes that come back for a request sent as it is."""
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        sock = tls.wrap_socket(plain, server_hostname=name) if tls else plain
        sock.sendall(request.encode("latin-1"))
        answer = b""
        while True:
            try:
                data = sock.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                return answer.decode("latin-1")
            answer += data


class Answer:
    def __init__(self, text):
        self.head, _, self.body = text.partition("\r\n\r\n")
        lines = self.head.split("\r\n")
        self.status = int(lines[0].split()[1]) if text else 0
        self.headers = [tuple(line.split(": ", 1)) for line in lines[1:]]

    def header(self, name):
        return [v for k, v in self.headers if k.lower() == name.lower()]

    @property
    def seen(self):
        """What the server behind was asked, as it tells."""
        return json.loads(self.body)


def get(port, path="/", host="a.x.test", extra="", tls=None):
    line = "GET %s HTTP/1.1\r\n" % path
    if host is not None:
        line += "Host: %s\r\n" % host
    return Answer(raw(port, line + extra + "Connection: close\r\n\r\n", tls))


def any_tls():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Proxy(unittest.TestCase):
    """One HAProxy for the objects of a class."""
    OBJECTS = ()
    BACKENDS = ()

    @classmethod
    def setUpClass(cls):
        cls.lab = lab.Lab()
        cls.addClassCleanup(cls.lab.close)
        cls.backends = {}
        for label in cls.BACKENDS:
            cls.backends[label] = backend.Backend(label)
            cls.backends[label].server.handle_error = lambda *_: None  # a reset is no fault
            cls.addClassCleanup(cls.backends[label].close)
        (cls.lab.dir / "server-state").write_text("1\n")
        cls.render()
        cls.start()

    @classmethod
    def render(cls, folder="files"):
        cls.files = cls.lab.dir / folder
        cls.files.mkdir()
        servers = [server(b, cls.backends[b].port) for b in cls.BACKENDS]
        pools = [pool(b, b) for b in cls.BACKENDS]
        objects = cls.lab.dir / "objects.json"
        objects.write_text(json.dumps({"shared": [*servers, *pools, *cls.objects()]}))
        cls.digest = lab.run(TOOL, objects, cls.files, cls.lab.dir, "haproxy",
                             PLACEHOLDER).stdout.strip()
        cls.config = cls.files / "haproxy.cfg"
        checked = lab.run(lab.HAPROXY, "-c", "-f", cls.config, check=False)
        if checked.returncode != 0:
            raise AssertionError(checked.stderr)
        cls.checked = checked.stderr

    @classmethod
    def start(cls):
        cls.haproxy = cls.lab.start(lab.HAPROXY, "-db", "-f", cls.config)
        lab.wait_for(lambda: " 200 " in cls.probe(), "HAProxy")

    @classmethod
    def objects(cls):
        return cls.OBJECTS

    @classmethod
    def ask(cls, name, text):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(10)
            sock.connect(str(cls.lab.dir / name))
            sock.sendall(text.encode())
            return sock.makefile(encoding="latin-1").read()

    @classmethod
    def probe(cls):
        return cls.ask("probe.sock", "GET / HTTP/1.0\r\n\r\n")

    def assert_server(self, answer, label):
        self.assertEqual(answer.status, 200, answer.head)
        self.assertEqual(answer.seen["server"], label)
