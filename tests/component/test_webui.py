#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each node's own pages behind HAProxy, on a listener that all share: three real nodes, and a
client that asks for each by name. Cases C026, C028, C029, C030, C034, C035, C039 and C046."""
import contextlib
import http.client
import json
import pathlib
import re
import socket
import ssl
import tempfile
import unittest

import node
from authority import Authority
from backend import Backend
from cluster import HUB, TUNABLES, Cluster, head, in_step, join

VIP = "10.77.0.100"


def name_of(one):
    return "%s-ui.test" % one.name


def seen_certificate(to, name):
    """What HAProxy shows for a name, None: without a name; in DER form."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((to, 443), timeout=10) as plain, \
            context.wrap_socket(plain, server_hostname=name) as tls:
        return tls.getpeercert(binary_form=True)


class Named(http.client.HTTPSConnection):
    """Connects to an address, and asks there for a name by TLS and HTTP."""

    def __init__(self, to, name, context):
        super().__init__(name, 443, timeout=10, context=context)
        self.to = to

    def connect(self):
        plain = socket.create_connection((self.to, 443), timeout=10)
        self.sock = self._context.wrap_socket(plain, server_hostname=self.host)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.authority = Authority(folder.name, "authority")
        cls.context = ssl.create_default_context(cafile=cls.authority.path)
        cls.lab = Cluster(3, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.backend = Backend("one", HUB)
        cls.addClassCleanup(cls.backend.close)
        cls.a, cls.b, cls.c = cls.lab.nodes
        cls.a.api.create("vip_groups", name="public", addresses=[VIP + "/24"])
        assert cls.a.api.apply()["state"] == "ok"
        cls.lab.vip(cls.a, VIP)
        for other in (cls.b, cls.c):
            other.api.unlock = True
            join(other, cls.a)
            other.api.unlock = False
        in_step(cls.lab.nodes)
        cls.certificates = {}
        for one in cls.lab.nodes:
            chain, secret = cls.authority.issue(name_of(one))
            cls.certificates[one.name] = (chain.read_text(), secret.read_text())

    def apply(self, one):
        task = one.api.apply()
        self.assertEqual(task["state"], "ok", json.dumps(task, indent=1))
        return task

    def ask(self, one, name=None, path="/api/v1/health", source=None):
        connection = Named(one.api.address, name or name_of(one), self.context)
        with self.lab.client, contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.headers.get("Lockstep-Node"), answer.read()

    def publish(self, name):
        self.a.api.expect(200, "POST", "/api/v1/publish",
                          {"url": "https://%s.test" % name, "to": [self.backend.target]})
        self.apply(self.a)
        in_step(self.lab.nodes)

    def counts(self, one):
        files = [p.name for p in pathlib.Path(one.generation()).rglob("*") if "webui" in p.name]
        return (len(re.findall(r"^backend lockstep\.webui$", one.config(), re.M)), sorted(files),
                len(one.api.get("/api/v1/certificates")["items"]))

    def test_1_without_a_listener_it_is_said_and_nothing_is_refused(self):
        """C026, C034, C046: on a passive node, before there is any listener of the name."""
        for one in self.lab.nodes:
            chain, secret = self.certificates[one.name]
            position = "last" if one is self.a else "first"
            answer = one.api.call("PATCH", "/api/v1/webui", {
                "hosts": [name_of(one)], "position": position, "chain": chain, "key": secret},
                {"If-Match": one.api.etag("/api/v1/webui")})
            self.assertEqual(answer.status, 200, answer)
            before = head(one)
            self.apply(one)
            self.assertEqual(head(one), before)  # nothing shared
            self.assertNotIn("lockstep.webui", one.config())
            self.assertEqual(one.api.get("/api/v1/webui")["key"], {"set": True})

    def test_2_each_answers_its_own_name_once_there_is_a_listener(self):
        self.publish("app")
        for one in self.lab.nodes:
            self.assertEqual(self.ask(one)[:2], (200, one.name))
            others = [n for n in self.lab.nodes if n is not one]
            for other in others:  # C028, C029
                self.assertEqual(self.holding(one, name_of(other)), [])
            self.assertEqual(self.holding(one, name_of(one)), ["crt-list/https.list", "map/https.map"])
            self.assertEqual(head(one), head(self.a))

    @staticmethod
    def holding(one, text):
        """Names of the files that have a text, of the generation that runs."""
        top = pathlib.Path(one.generation())
        return sorted(str(p.relative_to(top)) for p in top.rglob("*")
                      if p.is_file() and text in p.read_text(encoding="utf-8"))

    def test_2b_keys_and_event_streams_pass(self):
        connection = Named(self.b.api.address, name_of(self.b), self.context)
        with self.lab.client, contextlib.closing(connection):
            connection.request("GET", "/api/v1/events", headers=self.b.api.headers())
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200)
            self.b.api.patch("/api/v1/webui", note="seen in the stream")
            self.assertTrue(any(line.startswith(b"event: ") for line in answer.fp))
        self.b.api.expect(204, "DELETE", "/api/v1/draft")

    def sign_in(self, password):
        connection = Named(self.c.api.address, name_of(self.c), self.context)
        with contextlib.closing(connection):
            connection.request("POST", "/api/v1/session",
                               json.dumps({"name": "maria", "password": password}),
                               {"Content-Type": "application/json"})
            return connection.getresponse().status

    def test_2c_failed_sign_ins_are_counted_by_visitor(self):
        with self.lab.client:
            tries = [self.sign_in("wrong password") for _ in range(30)]
            self.assertIn(429, tries)
            self.assertEqual(self.sign_in(node.PASSWORD), 429)
        self.assertEqual(self.sign_in(node.PASSWORD), 201)

    def test_3_position_is_kept(self):
        """C035: first and last, over a push, on the certificate without SNI."""
        for _ in range(2):
            with self.lab.client:
                shown = {n.name: seen_certificate(n.api.address, None) for n in self.lab.nodes}
                own = {n.name: seen_certificate(n.api.address, name_of(n))
                       for n in self.lab.nodes}
            self.assertNotEqual(shown["n1"], own["n1"])
            self.assertEqual(shown["n2"], own["n2"])
            self.assertEqual(shown["n3"], own["n3"])
            self.publish("again")
            self.a.api.patch("/api/v1/services/again.test", note="once more")
            self.apply(self.a)
            in_step(self.lab.nodes)

    def test_4_ten_pushes_change_no_counts(self):
        """C030."""
        before = [self.counts(n) for n in self.lab.nodes]
        local = [n.api.get("/api/v1/status")["local_rev"] for n in self.lab.nodes]
        self.assertEqual([c[0] for c in before], [1, 1, 1])
        for n in range(10):
            self.a.api.patch("/api/v1/services/app.test", note="push %d" % n)
            self.apply(self.a)
        in_step(self.lab.nodes)
        self.assertEqual([self.counts(n) for n in self.lab.nodes], before)
        self.assertEqual([n.api.get("/api/v1/status")["local_rev"] for n in self.lab.nodes],
                         local)
        for one in self.lab.nodes:
            self.assertEqual(self.ask(one)[:2], (200, one.name))

    def test_5_only_allowed_networks_are_answered(self):
        self.b.api.patch("/api/v1/webui", allowed_networks=["192.0.2.0/24"])
        self.apply(self.b)
        self.assertEqual(self.ask(self.b)[0], 403)
        self.b.api.patch("/api/v1/webui", allowed_networks=["10.77.0.0/24"])
        self.apply(self.b)
        self.assertEqual(self.ask(self.b)[:2], (200, "n2"))

    def test_6_whoever_takes_the_listener_away_is_warned(self):
        """C039; and a name that a service has."""
        answer = self.a.api.call("PATCH", "/api/v1/webui", {"hosts": ["app.test"]},
                                 {"If-Match": self.a.api.etag("/api/v1/webui")})
        self.assertEqual(answer.status, 422, answer)
        self.assertIn("app.test", json.dumps(answer.json))
        answer = self.a.api.call("PATCH", "/api/v1/listeners/https", {"enabled": False},
                                 {"If-Match": self.a.api.etag("/api/v1/listeners/https")})
        self.assertEqual(answer.status, 200, answer)
        self.assertIn("webui_listener", json.dumps(self.apply(self.a)))
        in_step(self.lab.nodes)
        for one in self.lab.nodes:
            self.assertNotIn("lockstep.webui", one.config())


if __name__ == "__main__":
    node.private_network()
    unittest.main()
