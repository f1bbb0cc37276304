#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""docs/examples/thirty-services.json through the command line: every service is asked as its
visitors would, and the right stand-in answers. The servers' addresses exist in a network
namespace of their own."""
import http.client
import json
import os
import re
import ssl
import subprocess
import threading
import unittest

import lab
import node
from backend import Handler, Server

EXAMPLE = os.path.join(node.SOURCE, "docs", "examples", "thirty-services.json")
LEADER = "10.20.23.1:5432"  # of the PostgreSQL cluster: only it answers 200 to /primary


class StandIn(Handler):
    """Every address of a port: says which one was asked, and is healthy at its check's path."""

    def do_GET(self):
        address, port = self.connection.getsockname()[:2]
        if self.path == "/who":
            self.answer(200, b"%s:%d" % (address.encode(), port), "text/plain")
            return
        status = self.server.health.get(self.path, 404)
        if self.path in ("/primary", "/replica") and status == 200:
            is_leader = LEADER.startswith(address + ":")
            status = 200 if is_leader == (self.path == "/primary") else 503
        self.answer(status, b"", "text/plain")


class Service:
    """One publish request of the example."""

    def __init__(self, request, pool):
        self.name = request["name"]
        self.targets = set(request["to"])
        self.tls = pool.get("tls", False)
        scheme, _, rest = request["url"].partition("://")
        self.host = rest if scheme == "https" else None
        self.port = 443 if self.host else int(rest[1:])
        self.ports = {int(t.rsplit(":", 1)[1]) for t in self.targets}
        check = re.fullmatch(r"http:([0-9]*)(/.*)", request["check"])
        self.check_ports = {int(check[1])} if check and check[1] else self.ports
        self.check_path = check[2] if check else None

    def expected(self):
        if self.name == "patroni-primary":
            return {LEADER}
        return self.targets - ({LEADER} if self.name == "patroni-replicas" else set())

    def ask(self):
        """The server that answers a visitor."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        if self.host:
            context = ssl._create_unverified_context()
            plain = node.socket.create_connection(("127.0.0.1", 443), 5)
            connection.sock = context.wrap_socket(plain, server_hostname=self.host)
        try:
            connection.request("GET", "/who", headers={"Host": self.host or "any"})
            response = connection.getresponse()
            body = response.read().decode()
            assert response.status == 200, "%s: %d %s" % (self.name, response.status, body[:200])
            return body
        finally:
            connection.close()


def services():
    with open(EXAMPLE, encoding="utf-8") as file:
        document = json.load(file)
    pools = {o["body"]["name"]: o["body"] for o in document["objects"] if o["kind"] == "pool"}
    return [Service(request, pools.get(request["name"], {})) for request in document["publish"]]


class Thirty(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.services = services()
        cls.lab = lab.Lab()
        cls.addClassCleanup(cls.lab.close)
        cls.node = node.Node()
        cls.addClassCleanup(cls.node.close)
        cls.servers = cls.lab.netns()
        cls.connect()
        cls.start_stand_ins()
        node.wait_for(cls.node.answers, "the API answers", 30)
        cls.cli("setup", "--state-dir", cls.node.state, "--url", "https://127.0.0.1:8443")

    @classmethod
    def connect(cls):
        """Every address of 10.20.0.0/16 is one of the other namespace."""
        cls.servers.connect("servers", "node", "10.21.0.2/30")
        lab.run("ip", "address", "add", "10.21.0.1/30", "dev", "servers")
        with cls.servers:
            lab.run("ip", "route", "add", "local", "10.20.0.0/16", "dev", "lo")
        lab.run("ip", "route", "add", "10.20.0.0/16", "via", "10.21.0.2")

    @classmethod
    def start_stand_ins(cls):
        health, encrypted = {}, set()
        for service in cls.services:
            for port in service.ports | service.check_ports:
                health.setdefault(port, {})
            for port in service.check_ports if service.check_path else ():
                health[port][service.check_path] = 200
            encrypted |= service.ports if service.tls else set()
        for port, paths in health.items():
            with cls.servers:
                server = Server(("0.0.0.0", port), StandIn)
            server.health = paths
            if port in encrypted:
                server.socket = cls.context().wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, args=(0.5,), daemon=True).start()

    @classmethod
    def context(cls):
        key = os.path.join(cls.lab.dir, "key.pem")
        certificate = os.path.join(cls.lab.dir, "crt.pem")
        if not os.path.exists(key):
            lab.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=stand-in", "-days", "2",
                    "-keyout", key, "-out", certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context

    @classmethod
    def cli(cls, *arguments):
        done = subprocess.run(
            [os.path.join(node.BUILD, "lockstep"), "--config",
             os.path.join(cls.node.root, "home", "cli.json"), *arguments],
            capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def checked(self):
        """Whether each server had its first check, and the leader is told from the others."""
        rows = [line.split(",") for line in self.node.admin_socket("show stat").splitlines()]
        heads = rows[0]
        servers = [dict(zip(heads, row)) for row in rows[1:]]
        servers = [s for s in servers if s.get("type") == "2"]
        states = {(s["# pxname"], s["addr"]): s["status"] for s in servers}
        wrong = [(s.name, target, states.get((s.name, target))) for s in self.services
                 for target in s.targets
                 if states.get((s.name, target)) != ("UP" if target in s.expected() else "DOWN")]
        wrong += [(s["# pxname"], s["addr"], s["check_status"]) for s in servers
                  if s["check_status"] in ("INI", "")]
        assert not wrong, wrong
        return True

    def test_1_a_dry_run_shows_and_changes_nothing(self):
        shown = self.cli("import", "--dry-run", EXAMPLE)
        self.assertIn("+ service patroni-primary", shown)
        self.assertIn("+backend keycloak", shown)
        self.assertIn("The draft is empty.", self.cli("diff"))

    def test_2_every_service_answers_from_its_servers(self):
        self.assertEqual(len(self.services), 30)
        self.assertIn("lockstep apply", self.cli("import", EXAMPLE))
        self.assertIn("See that it answers", self.cli("apply", "--note", "thirty services"))
        node.wait_for(self.checked, "every server is checked", 30)
        for service in self.services:
            with self.subTest(service=service.name):
                answered = {service.ask() for _ in range(3)}
                self.assertLessEqual(answered, service.expected())

    def test_3_importing_again_changes_nothing(self):
        self.assertIn("Nothing to change", self.cli("import", EXAMPLE))


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
