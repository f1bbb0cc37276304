#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each node's own pages behind HAProxy, on a listener that all share: three real nodes, and a
client that asks for each by name. Cases C026, C028, C029, C030, C034, C035, C039 and C046.

C038 cannot happen: there is no rule of the own pages that could be recorded or left over. The
render makes it anew each time, of the names in webui and of the listener, which it knows by name."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import ssl
import subprocess
import tempfile
import unittest

import node
from authority import Authority
from backend import Backend
from cluster import HUB, TUNABLES, Cluster, head, in_step, join
from lab import HAPROXY, run

VIP = "10.77.0.100"
REPAIR = "Publish this node's own pages again"


def worker(one):
    return re.search(r"^Pid: (\d+)$", one.admin_socket("show info"), re.M).group(1)


def name_of(one):
    return "%s-ui.test" % one.name


def seen_certificate(to, name):
    """What HAProxy shows for a name, None: without a name; in DER form."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((to, 443), timeout=10) as plain, \
            context.wrap_socket(plain, server_hostname=name) as tls:
        return tls.getpeercert(binary_form=True)


def rounds(one, count=4):
    """Of its watcher."""
    for _ in range(count):
        seen = one.api.get("/api/v1/status")["haproxy"]["seen_at"]
        node.wait_for(lambda s=seen: one.api.get("/api/v1/status")["haproxy"]["seen_at"] != s,
                      "another round")


def repairs(one):
    return [t for t in one.api.get("/api/v1/tasks")["items"] if t["title"] == REPAIR]


def lost(one, about):
    """What a node says of another one's pages, or of its own."""
    found = [c for c in one.api.get("/api/v1/cluster")["conditions"]
             if (c["name"], c["node"]) == ("pages_lost", about.name)]
    return found[0]["cause"] if found else None


def take_out_of_the_map(one):
    path = next(line.split("(")[1].split(")")[0] for line in
                one.admin_socket("show map").splitlines() if "map/https.map" in line)
    answer = one.admin_socket("del map %s %s/" % (path, name_of(one)))
    assert answer.strip() == "", answer


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

    def test_1b_a_certificate_that_haproxy_refuses_is_refused_when_it_is_given(self):
        """Of whatever kind, though no listener shows it yet."""
        chain, secret = (os.path.join(self.a.root, name) for name in ("weak.crt", "weak.key"))
        run("openssl", "req", "-x509", "-newkey", "rsa:1024", "-nodes", "-subj", "/CN=weak.test",
            "-keyout", secret, "-out", chain)
        given = {"chain": pathlib.Path(chain).read_text(), "key": pathlib.Path(secret).read_text()}
        for answer in (self.edit(self.a, "/api/v1/webui", **given),
                       self.a.api.call("POST", "/api/v1/certificates", {"name": "weak", **given})):
            self.assertEqual(answer.status, 422, answer)
            told = answer.json["errors"][0]
            self.assertEqual((told["code"], told["pointer"]), ("certificate_refused", "/chain"))
            self.assertIn("ee key too small", told["message"])
        pem, config = (os.path.join(self.a.root, name) for name in ("weak.pem", "weak.cfg"))
        pathlib.Path(pem).write_text(given["chain"] + given["key"])
        pathlib.Path(config).write_text("frontend f\n    bind :443 ssl crt %s\n" % pem)
        checked = subprocess.run([HAPROXY, "-c", "-f", config], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 1)
        self.assertIn("unable to load SSL certificate", checked.stderr)

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
        """C030. C031 cannot happen: nothing is stored of what somebody pressed. A certificate is an
        object that was given, or the one file of the node itself; what is taken over makes none."""
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

    def edit(self, one, target, **fields):
        return one.api.call("PATCH", target, fields, {"If-Match": one.api.etag(target)})

    def reached(self, one):
        return self.ask(one)[:2] == (200, one.name)

    def repaired(self, one, count):
        node.wait_for(lambda: len(repairs(one)) == count, "it is repaired")
        node.wait_for(lambda: repairs(one)[0]["state"] == "ok", "and ends")
        self.assertTrue(self.reached(one))

    def audited(self, one):
        path = os.path.join(one.state, "data", "lockstep.db")
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as base:
            return base.execute("SELECT author, text FROM audit "
                                "WHERE action = 'webui_repair'").fetchall()

    def test_5b_lost_in_haproxy_it_is_repaired_once_and_then_told_only(self):
        """C039."""
        self.assertEqual(repairs(self.b), [])
        rounds(self.b)  # it is seen with these files
        before = worker(self.b)
        take_out_of_the_map(self.b)
        self.repaired(self.b, 1)
        self.assertNotEqual(worker(self.b), before)
        self.assertEqual([author for author, _ in self.audited(self.b)], ["lockstepd"])
        self.assertIn(name_of(self.b), self.audited(self.b)[0][1])
        rounds(self.b)
        self.assertIsNone(lost(self.b, self.b))
        before = worker(self.b)
        take_out_of_the_map(self.b)
        node.wait_for(lambda: lost(self.b, self.b), "it says so")
        self.assertIn(name_of(self.b) + ": the listener https answers with status 404",
                      lost(self.b, self.b))
        node.wait_for(lambda: lost(self.a, self.b), "and to others")
        self.assertNotIn(name_of(self.b), lost(self.a, self.b))  # C028
        rounds(self.b)
        self.assertEqual(len(repairs(self.b)), 1)
        self.assertEqual(worker(self.b), before)
        self.assertFalse(self.reached(self.b))
        self.b.api.patch("/api/v1/webui", allowed_networks=["10.77.0.0/24", "192.0.2.0/24"])
        self.apply(self.b)
        node.wait_for(lambda: not lost(self.b, self.b), "it is reached")
        node.wait_for(lambda: not lost(self.a, self.b), "and said to be")

    def test_5c_lost_in_the_files_it_is_repaired_by_new_ones(self):
        """C039."""
        rounds(self.c)
        before = self.c.generation()
        path = os.path.join(before, "map", "https.map")
        with open(path, encoding="ascii") as file:
            lines = file.readlines()
        with open(path, "w", encoding="ascii") as file:
            file.writelines(line for line in lines if name_of(self.c) not in line)
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as master:
            master.connect(os.path.join(self.c.run_dir, "master.sock"))
            master.sendall(b"reload\n")
        self.repaired(self.c, 1)
        self.assertNotEqual(self.c.generation(), before)
        self.assertIn("map/https.map", self.holding(self.c, name_of(self.c)))

    def test_6_what_would_take_them_away_is_refused(self):
        """C039, on the node whose pages they are, when it is edited; and a name that a service
        has."""
        answer = self.edit(self.a, "/api/v1/webui", hosts=["app.test"])
        self.assertEqual(answer.status, 422, answer)
        self.assertIn("app.test", json.dumps(answer.json))
        for target, kind, fields, pointer in (
                ("listeners/https", "listener", {"enabled": False}, "/enabled"),
                ("listeners/https", "listener", {"name": "other"}, "/name"),
                ("services/app.test", "service", {"hosts": ["app.test", name_of(self.a)]},
                 "/hosts/1"),
                ("webui", "webui", {"listener": "other"}, "/listener")):
            answer = self.edit(self.a, "/api/v1/" + target, **fields)
            self.assertEqual(answer.status, 422, answer)
            told = answer.json["errors"][0]
            self.assertEqual((told["kind"], told["pointer"]), (kind, pointer), told)
        self.assertEqual(self.a.api.get("/api/v1/draft")["count"], 0)

    def test_7_other_nodes_refuse_what_would_take_theirs_away(self):
        self.a.api.patch("/api/v1/webui", hosts=[])
        self.apply(self.a)
        self.a.api.patch("/api/v1/listeners/https", enabled=False)
        task = self.a.api.apply()
        self.assertEqual(task["state"], "failed", task)
        told = [p for p in task["problems"] if p["severity"] == "error"]
        self.assertTrue(any(p["kind"] == "listener" and p["pointer"] == "/enabled" and
                            p["name"] == "https" for p in told), told)
        self.assertNotIn("-ui.test", json.dumps(task))  # C028
        self.assertTrue(self.reached(self.b))

    def test_8_decided_all_the_same_it_is_taken_over_and_told(self):
        task = self.a.api.expect(200, "POST", "/api/v1/config/apply?wait=1",
                                 {"skip_nodes": ["n2", "n3"]})
        self.assertEqual(task["state"], "ok", task)
        in_step(self.lab.nodes)
        counts = [len(repairs(one)) for one in self.lab.nodes]
        for one in (self.b, self.c):
            node.wait_for(lambda o=one: lost(o, o), one.name + " says so")
            self.assertIn("https: the listener is off", lost(one, one))
            self.assertNotIn("lockstep.webui", one.config())
        rounds(self.b)
        self.assertEqual([len(repairs(one)) for one in self.lab.nodes], counts)
        self.a.api.patch("/api/v1/listeners/https", enabled=True)
        self.apply(self.a)
        in_step(self.lab.nodes)
        for one in (self.b, self.c):
            node.wait_for(lambda o=one: not lost(o, o), "they are back")
            self.assertTrue(self.reached(one))

    def test_9_lost_in_the_database_nothing_follows_it(self):
        """C039: the daemon sees that it is not what was stored, and HAProxy goes on."""
        path = os.path.join(self.c.state, "data", "lockstep.db")
        with contextlib.closing(sqlite3.connect(path)) as base, base:
            for table in ("local_unique", "local_object"):
                changed = base.execute("DELETE FROM %s WHERE kind = 'webui'" % table).rowcount
                self.assertGreater(changed, 0)
        before = worker(self.c)
        os.kill(self.c.pid_of("lockstepd"), signal.SIGKILL)
        node.wait_for(lambda: "the local objects are not those last committed" in self.c.log(),
                      "it is refused")
        self.assertEqual(worker(self.c), before)
        self.assertIn("map/https.map", self.holding(self.c, name_of(self.c)))
        with self.lab.client:
            self.assertEqual(seen_certificate(self.c.api.address, "n3-ui.test"),
                             ssl.PEM_cert_to_DER_cert(self.certificates["n3"][0]))


class Alone(unittest.TestCase):
    """How the node asks listeners of all kinds; half an hour is a moment here."""

    @classmethod
    def setUpClass(cls):
        cls.node = node.Node(tunables={"webui_again_ms": 100}).set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        cls.api.create("listeners", name="https", port=8080)
        cls.api.patch("/api/v1/webui", hosts=[name_of(cls.node)])

    def apply(self, **fields):
        self.api.patch("/api/v1/listeners/https", **fields)
        task = self.api.apply()
        self.assertEqual(task["state"], "ok", task)
        rounds(self.node)
        self.assertIsNone(lost(self.node, self.node))

    def repaired(self):
        count = len(repairs(self.node))
        take_out_of_the_map(self.node)
        node.wait_for(lambda: len(repairs(self.node)) == count + 1, "it is repaired")
        node.wait_for(lambda: repairs(self.node)[0]["state"] == "ok", "and ends")
        rounds(self.node)
        self.assertIsNone(lost(self.node, self.node))

    def test_1_each_loss_is_repaired_when_its_time_has_come(self):
        self.apply(client_timeout_ms=31000)
        self.repaired()
        self.repaired()

    def test_2_by_the_proxy_protocol(self):
        self.apply(accept_proxy=True)
        self.repaired()
        self.apply(accept_proxy=False)

    def test_3_as_what_is_behind_a_trusted_proxy(self):
        self.apply(trusted_proxies=["127.0.0.0/8"])
        self.repaired()
        self.apply(trusted_proxies=[])

    def test_4_where_only_some_are_allowed(self):
        self.api.patch("/api/v1/webui", allowed_networks=["192.0.2.0/24"])
        self.apply(client_timeout_ms=32000)
        self.repaired()

    def test_5_by_ipv6(self):
        self.apply(addresses=["::"])
        self.repaired()
        self.apply(addresses=["0.0.0.0"])

    def test_6_where_the_node_itself_is_not_let_in_nothing_is_known(self):
        self.apply(allowed_networks=["192.0.2.0/24"])
        count = len(repairs(self.node))
        take_out_of_the_map(self.node)
        rounds(self.node)
        self.assertIsNone(lost(self.node, self.node))
        self.assertEqual(len(repairs(self.node)), count)
        self.apply(allowed_networks=[])

    def test_7_what_a_rule_takes_away_is_told_and_no_reload_follows(self):
        self.apply(client_timeout_ms=33000)
        self.api.create("conditions", name="all", type="path", match="prefix", values=["/"])
        self.api.create("rules", name="none", listener="https", action="deny",
                        conditions=[{"condition": "all"}])
        before = worker(self.node)
        task = self.api.apply()
        self.assertEqual(task["state"], "ok", task)
        node.wait_for(lambda: lost(self.node, self.node), "it says so")
        self.assertIn("status 403", lost(self.node, self.node))
        applied = worker(self.node)
        self.assertNotEqual(applied, before)
        rounds(self.node)
        self.assertEqual(worker(self.node), applied)


if __name__ == "__main__":
    node.private_network()
    unittest.main()
