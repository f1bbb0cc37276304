#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Changes that the admin socket brings: no reload, and the running worker is what a fresh start
of the same files would be."""
import contextlib
import http.client
import os
import random
import re
import shutil
import socket
import ssl
import subprocess
import unittest

import node
from backend import Backend
from direct import call
from load import Load
from visit import visit

SEEDS = 20
APPLIES = 50


def certificate(folder, name, days=30):
    """Self-signed, for NAME.test; each call makes a new one."""
    key, chain = os.path.join(folder, "key"), os.path.join(folder, "chain")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", chain, "-days", str(days), "-subj",
         "/CN=%s.test" % name,
         "-addext", "subjectAltName=DNS:%s.test" % name], check=True, capture_output=True)
    with open(key, encoding="ascii") as a, open(chain, encoding="ascii") as b:
        return {"key": a.read(), "chain": b.read()}


def facts(ask):
    """What a HAProxy does with requests, as its admin socket tells it."""
    servers = sorted(
        (w[1], w[3], w[4], w[7], w[18]) for w in map(
            str.split, ask("show servers state").splitlines()[2:]) if w)
    maps = {}
    for line in ask("show map").splitlines():
        if "(map/" in line:
            name = line.split("(")[1].split(")")[0]
            entries = ask("show map " + name).splitlines()
            maps[name] = sorted(" ".join(e.split()[1:]) for e in entries if e)
    serials = {}
    for name in ask("show ssl cert").split():
        if name.endswith(".pem"):
            serials[name] = [line for line in ask("show ssl cert " + name).splitlines()
                             if line.startswith(("Serial", "SHA1", "Subject Alt"))]
    return {"servers": servers, "maps": maps, "certificates": serials}


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.backends = [Backend("one"), Backend("two")]
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        cls.rev = 3000
        for n, backend in enumerate(cls.backends):
            cls.api.create("servers", name="s%d" % n, address="127.0.0.1", port=backend.port)
        cls.api.create("servers", name="t0", address="127.0.0.1", port=cls.backends[0].port)
        cls.api.create("pools", name="p0", members=[{"server": "t0"}])
        cls.api.create("pools", name="p1", members=[{"server": "s1"}])
        cls.api.create("pools", name="both", members=[{"server": "s0"}, {"server": "s1"}])
        cls.api.create("certificates", name="tls", **certificate(cls.node.root, "tls"))
        cls.api.create("listeners", name="http", port=80)
        cls.api.create("listeners", name="https", port=443, tls=True, certificates=["tls"])
        cls.api.create("services", name="app", listeners=["http"], pool="p0",
                       hosts=["app.test"])
        cls.api.create("services", name="web", listeners=["http"], pool="p1",
                       hosts=["web.test", "www.web.test"], path="/x")
        cls.api.create("services", name="tls", listeners=["https"], pool="both",
                       hosts=["tls.test"])
        cls.apply()

    @classmethod
    def apply(cls):
        task = cls.api.apply()
        assert task["state"] == "ok", task
        return task

    def process(self):
        status = call(os.path.join(self.node.run_dir, "helper.sock"), {"verb": "status"})
        return status["master"], status["worker"], status["reloads"]

    def by_socket(self):
        """Applies the draft; the process must not notice."""
        before = self.process()
        task = self.apply()
        self.assertEqual(self.process(), before, task)
        self.assertIn("by the admin socket", str(task))
        self.settled()
        return task

    def settled(self):
        status = self.api.get("/api/v1/status")
        self.assertEqual(status["running"]["commit"], status["head"]["id"])
        self.assertEqual(status["running"]["digest"], self.node.running_digest())
        self.assertIn(self.node.running_digest(), self.node.config())

    def by_reload(self):
        before = self.process()
        type(self).rev += 1
        self.api.patch("/api/v1/haproxy", maxconn=self.rev)
        task = self.apply()
        self.assertNotEqual(self.process(), before)
        self.assertIn("reload: haproxy.cfg line", str(task))
        return task

    def get(self, host, path="/"):
        answer = visit(host, path)
        return answer.server if answer.status == 200 else answer.status

    def fresh(self):
        """Facts of a HAProxy that starts with the current files, in a network of its own."""
        folder = os.path.join(self.node.root, "fresh")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.node.generation(), folder)
        path = os.path.join(folder, "haproxy.cfg")
        text = self.node.config().replace(self.node.run_dir, folder)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        with open(os.path.join(folder, "server-state"), "w", encoding="ascii") as file:
            file.write("1\n")
        process = subprocess.Popen(
            ["unshare", "-n", "/usr/sbin/haproxy", "-db", "-f", path],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def ask(command):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(5)
                client.connect(os.path.join(folder, "haproxy.sock"))
                client.sendall(command.encode() + b"\n")
                client.shutdown(socket.SHUT_WR)
                return client.makefile(encoding="utf-8").read()

        def answers():
            try:
                return ask("show info")
            except OSError:
                return None
        try:
            node.wait_for(answers, "the fresh HAProxy")
            return facts(ask)
        finally:
            process.kill()
            process.wait()

    def agrees(self, note=""):
        self.assertEqual(facts(self.node.admin_socket), self.fresh(), note)


class Changes(Case):
    def tearDown(self):
        self.agrees()

    def serial(self):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", 443), 5) as plain:
            with context.wrap_socket(plain, server_hostname="tls.test") as tls:
                return tls.getpeercert(True)

    def test_a_weight(self):
        for weight in (1, 0, 200):
            self.api.patch("/api/v1/pools/both", members=[
                {"server": "s0", "weight": weight}, {"server": "s1"}])
            self.by_socket()
            self.agrees()
        # What the socket brought, and what went before it, leave no trace in a reload.
        self.by_reload()
        self.agrees()
        self.api.patch("/api/v1/pools/both", members=[{"server": "s0", "weight": 7},
                                                      {"server": "s1"}])
        self.by_socket()
        self.api.patch("/api/v1/pools/both", members=[{"server": "s0", "weight": 200},
                                                      {"server": "s1"}])
        self.by_reload()

    def weigh(self, weight):
        """The step "check" of an apply of one weight."""
        self.api.patch("/api/v1/pools/both", members=[
            {"server": "s0", "weight": weight}, {"server": "s1"}])
        task = self.by_socket()
        return str([step for step in task["steps"] if step["name"] == "check"])

    def test_weights_alone_are_not_checked_again(self):
        said = "only weights differ from what the checker accepted"
        self.by_reload()
        self.assertIn(said, self.weigh(31))
        self.assertIn(said, self.weigh(32))
        self.agrees()
        # Anything else is checked, on top of files that were not.
        task = self.by_reload()
        self.assertNotIn(said, str(task))
        self.assertIn("0 warnings", str(task))
        self.agrees()
        self.api.patch("/api/v1/servers/s1", maxconn=77)
        self.assertNotIn(said, self.weigh(33))
        self.assertIn(said, self.weigh(34))
        # HAProxy starts with such files.
        answer = call(os.path.join(self.node.run_dir, "helper.sock"), {"verb": "restart"})
        self.assertTrue(answer["loaded"], answer)
        self.agrees()
        self.node.wait(lambda: self.api.get("/api/v1/status")["serving"], "it serves")
        self.settled()
        self.assertIn(" 34 ", self.node.admin_socket("show servers state both"))

    def test_an_address_and_a_port(self):
        self.assertEqual(self.get("app.test"), "one")
        self.api.patch("/api/v1/servers/t0", port=self.backends[1].port)
        self.by_socket()
        self.assertEqual(self.get("app.test"), "two")
        self.by_reload()
        self.assertEqual(self.get("app.test"), "two")
        self.api.patch("/api/v1/servers/t0", port=self.backends[0].port)
        self.by_socket()
        self.assertEqual(self.get("app.test"), "one")

    def test_a_kept_connection_follows_the_address(self):
        connection = http.client.HTTPConnection("127.0.0.1", 80, timeout=5)
        self.addCleanup(connection.close)
        seen = []
        for port in (self.backends[0].port, self.backends[1].port, self.backends[0].port):
            self.api.patch("/api/v1/servers/t0", port=port)
            self.apply()
            connection.request("GET", "/", headers={"Host": "app.test"})
            seen.append(connection.getresponse().read().decode().split('"')[3])
        self.assertEqual(seen, ["one", "two", "one"])

    def test_hosts_paths_and_switches_of_services(self):
        self.assertEqual(self.get("web.test", "/x/y"), "two")
        self.api.patch("/api/v1/services/web", hosts=["new.test"], path="/n")
        self.by_socket()
        self.assertEqual(self.get("web.test", "/x/y"), 404)
        self.assertEqual(self.get("new.test", "/n"), "two")
        self.api.patch("/api/v1/services/web", enabled=False)
        self.by_socket()
        self.assertEqual(self.get("new.test", "/n"), 503)
        self.by_reload()
        self.assertEqual(self.get("new.test", "/n"), 503)
        self.api.patch("/api/v1/services/web", enabled=True, pool="p0")
        self.by_socket()
        self.assertEqual(self.get("new.test", "/n"), "one")
        self.api.create("services", name="more", listeners=["http"], pool="p1",
                        hosts=["more.test"])
        self.by_socket()
        self.assertEqual(self.get("more.test"), "two")
        self.api.patch("/api/v1/services/web", pool="p1", path="/x",
                       hosts=["web.test", "www.web.test"])
        self.api.delete("/api/v1/services/more")
        self.by_socket()
        self.assertEqual(self.get("more.test"), 404)

    def test_many_entries_fill_more_than_one_payload(self):
        names = ["many%d" % n for n in range(5)]
        for name in names:
            self.api.create("services", name=name, listeners=["http"], pool="p1", hosts=[
                "%s%d.%s.test" % ("long" * 12, n, name) for n in range(100)])
        self.by_socket()
        asked = ["%s%d.%s.test" % ("long" * 12, n, names[n % 5]) for n in (0, 51, 99)]
        self.assertEqual([self.get(host) for host in asked], ["two"] * 3)
        for name in names:
            self.api.delete("/api/v1/services/" + name)
        self.by_socket()
        self.assertEqual([self.get(host) for host in asked], [404] * 3)

    def test_a_certificate(self):
        before = self.serial()
        self.api.patch("/api/v1/certificates/tls", **certificate(self.node.root, "tls"))
        self.by_socket()
        after = self.serial()
        self.assertNotEqual(before, after)
        self.by_reload()
        self.assertEqual(self.serial(), after)

    def restore(self, rev, **options):
        return self.api.expect(200, "POST", "/api/v1/commits/%d/restore?wait=1" % rev,
                               dict(options, apply=True))

    def test_a_restore_keeps_a_renewed_certificate(self):
        """C225: the state of before the renewal comes back, the expiring certificate does not."""
        old, rev = self.serial(), self.api.get("/api/v1/status")["head"]["rev"]
        self.api.patch("/api/v1/certificates/tls", **certificate(self.node.root, "tls", 60))
        self.api.patch("/api/v1/services/tls", note="renewed")
        self.assertEqual(self.api.apply()["state"], "ok")
        new = self.serial()
        self.assertNotEqual(new, old)
        result = self.restore(rev)
        self.assertEqual(result["task"]["state"], "ok", result)
        self.assertEqual([(o["kind"], o["name"]) for o in result["objects"]], [("service", "tls")])
        self.assertEqual([(p["code"], p["severity"], p["name"]) for p in result["problems"]],
                         [("kept", "warning", "tls")])
        self.assertEqual(self.serial(), new)
        result = self.restore(rev, old_certificates=True)
        self.assertEqual((result["problems"], result["task"]["state"]), ([], "ok"))
        self.assertEqual(self.serial(), old)
        # Going forth to the renewed one needs no word.
        self.assertEqual(self.restore(rev + 1)["problems"], [])
        self.assertEqual(self.serial(), new)

    @contextlib.contextmanager
    def websocket(self):
        with socket.create_connection(("127.0.0.1", 80), 5) as session:
            session.sendall(b"GET /ws HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\n"
                            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            self.assertIn(b" 101 ", session.recv(65536))
            yield session

    def connections(self):
        info = self.node.admin_socket("show info")
        return int(re.search(r"^CurrConns: (\d+)$", info, re.MULTILINE)[1])

    def test_a_reload_tells_which_sessions_it_leaves_to_the_old_worker(self):
        self.api.patch("/api/v1/haproxy", hard_stop_after_s=900)
        self.by_reload()
        node.wait_for(lambda: self.connections() == 0, "no connection is left")
        task = self.by_reload()
        self.assertNotIn("open connection", str(task))
        with self.websocket() as first, self.websocket() as second:
            node.wait_for(lambda: self.api.get("/api/v1/status")["haproxy"]["connections"] == 2,
                          "two connections are seen")
            self.assertIsNone(self.api.get("/api/v1/config/diff")["sessions"])
            self.api.patch("/api/v1/haproxy", hard_stop_after_s=1800)
            self.assertEqual(self.api.get("/api/v1/config/diff")["sessions"],
                             {"open": 2, "at_most_s": 900})
            steps = {s["name"]: s["text"] for s in self.by_reload()["steps"]}
            self.assertRegex(
                steps["load"], "reload: haproxy.cfg line .*; 2 open connections go on for at "
                "most 15m$")
            for session in (first, second):
                session.sendall(b"still here")
                self.assertEqual(session.recv(65536), b"still here")

    def test_what_the_socket_refuses_is_brought_by_a_reload(self):
        self.api.patch("/api/v1/pools/both", balance="source")
        self.apply()
        self.api.patch("/api/v1/pools/both", members=[{"server": "s0", "weight": 33},
                                                      {"server": "s1"}])
        before = self.process()
        task = self.apply()
        self.assertNotEqual(self.process(), before)
        self.assertIn("static LB algorithm", str(task))
        self.settled()
        self.agrees()
        self.api.patch("/api/v1/pools/both", balance="roundrobin")
        self.apply()

    def test_a_worker_that_is_half_changed_is_brought_back(self):
        head = self.api.get("/api/v1/status")["head"]["id"]
        before = self.process()
        self.node.admin_socket("set server p0/t0 weight 3")
        self.node.admin_socket("set map map/lockstep.running.map digest changing")
        node.wait_for(lambda: self.process() != before, "a reload", 20)
        self.node.wait(lambda: self.api.get("/api/v1/status")["running"]["commit"] == head,
                       "the head runs")


class Random(Case):
    def edit(self, r):
        """Changes that the socket can bring, one to four of them."""
        for _ in range(r.randint(1, 4)):
            what = r.randrange(6)
            if what == 0:
                self.api.patch("/api/v1/pools/both", members=[
                    {"server": "s0", "weight": r.randint(0, 256)},
                    {"server": "s1", "weight": r.randint(0, 256)}])
            elif what == 1:
                self.api.patch("/api/v1/servers/s%d" % r.randrange(2), port=r.randint(1, 65535),
                               address=r.choice(["127.0.0.1", "127.0.0.9", "::1", "10.1.2.3"]))
            elif what == 2:
                self.api.patch("/api/v1/services/web", enabled=r.random() < 0.5,
                               path="/" + r.choice("abc,=+%").replace("%", "%20"))
            elif what == 3:
                hosts = ["h%d.test" % n for n in r.sample(range(40), r.randint(1, 20))]
                self.api.patch("/api/v1/services/app", hosts=hosts,
                               pool=r.choice(["p0", "p1", "both"]))
            elif what == 4:
                self.api.patch("/api/v1/certificates/tls",
                               **certificate(self.node.root, "tls"))
            else:
                self.api.patch("/api/v1/servers/s1", maxconn=r.randint(1, 99))

    def test_any_edits_end_where_a_fresh_start_does(self):
        for seed in range(SEEDS):
            r = random.Random(seed)
            self.edit(r)
            task = self.apply()
            self.assertNotIn("the admin socket failed", str(task), seed)
            self.settled()
            self.agrees("seed %d" % seed)


class Steady(Case):
    def test_fifty_applies_fail_no_request(self):
        load = Load("127.0.0.1", 80, "app.test").start()
        reloads = self.process()[2]
        try:
            for n in range(APPLIES):
                if n % 2 == 0:
                    self.api.patch("/api/v1/services/web", path="/p%d" % n)
                    self.api.patch("/api/v1/pools/p0", members=[
                        {"server": "t0", "weight": n + 1}])
                else:
                    type(self).rev += 1
                    self.api.patch("/api/v1/haproxy", maxconn=self.rev)
                self.apply()
        finally:
            load.stop()
        self.assertEqual(load.failures, [])
        self.assertEqual(self.process()[2], reloads + APPLIES // 2)
        for kind, count in load.counts.items():
            self.assertGreater(count, 20, "hardly any %s request" % kind)


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
