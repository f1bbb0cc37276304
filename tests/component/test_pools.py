#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pools, servers and checks on a real node: stickiness over a reload, TLS and the PROXY protocol
to servers, checks of every kind against stand-ins, long silences, compression."""
import contextlib
import csv
import json
import re
import socket
import tempfile
import unittest

import node
from authority import Authority, tls_context
from backend import Backend, Talk
from lab import wait_for
from visit import visit

FAST = {"interval_ms": 100, "timeout_ms": 100, "rise": 1, "fall": 1}
SILENCE_S = 0.9  # longer than the short timeouts of the listeners here
SHORT_MS = 400


class Case(unittest.TestCase):
    """A node; what a class lists in objects() is created and applied before its tests."""

    @classmethod
    def setUpClass(cls):
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        cls.create("listeners", "http", port=80, addresses=["127.0.0.1"])
        cls.objects()
        cls.apply()

    @classmethod
    def create(cls, plural, name, **fields):
        cls.api.create(plural, name=name, **fields)

    @classmethod
    def apply(cls):
        task = cls.api.apply()
        assert task["state"] == "ok", task

    @classmethod
    def keep(cls, server):
        cls.addClassCleanup(server.close)
        return server

    @classmethod
    def pool(cls, name, *backends, listener="http", **fields):
        """A pool with one server for each backend, and a service NAME.test for it."""
        members = []
        for i, backend in enumerate(backends):
            members.append({"server": "%s.%d" % (name, i)})
            cls.create("servers", members[-1]["server"], address="127.0.0.1", port=backend.port)
        cls.create("pools", name, members=members, **fields)
        hosts = [] if fields.get("mode") == "tcp" else [name + ".test"]
        cls.create("services", name, listeners=[listener], pool=name, hosts=hosts)

    @classmethod
    def checked(cls, name, backend, pool=None, **fields):
        """A pool of which only the check of its server matters."""
        cls.create("monitors", name, **{**FAST, **fields})
        cls.create("servers", name, address="127.0.0.1", port=backend.port)
        cls.create("pools", name, members=[{"server": name}], monitor=name, **(pool or {}))

    def state_of(self, pool):
        """(status, check_status) of the only server of a pool."""
        rows = csv.DictReader(self.node.admin_socket("show stat").lstrip("# ").splitlines())
        return next((r["status"].split()[0], r["check_status"].lstrip("* ")) for r in rows
                    if r["pxname"] == pool and r["svname"] not in ("FRONTEND", "BACKEND"))

    def wait_state(self, pool, status, check=None):
        def seen():
            now = self.state_of(pool)
            assert now[0] == status and check in (None, now[1]), now
            return True
        wait_for(seen, "%s is %s %s" % (pool, status, check))


class Sticky(Case):
    @classmethod
    def objects(cls):
        cls.one, cls.two = (cls.keep(Backend(label)) for label in ("one", "two"))
        cls.pool("cookie", cls.one, cls.two, stick="cookie", cookie_name="WHERE",
                 cookie_samesite="lax")
        cls.pool("source", cls.one, cls.two, stick="source")
        cls.pool("other", cls.one)

    def test_a_visitor_with_the_cookie_stays_with_its_server(self):
        for wanted in ("one", "two", "one", "two"):
            first = next(a for a in iter(lambda: visit("cookie.test"), None) if a.server == wanted)
            cookie = first.headers["Set-Cookie"]
            self.assertRegex(cookie, "^WHERE=[0-9a-f]{16}; path=/; HttpOnly; SameSite=Lax$")
            self.assertNotIn("cookie.0", cookie)
            for _ in range(3):
                again = visit("cookie.test", headers={"Cookie": cookie.split(";")[0]})
                self.assertEqual(again.server, wanted)
                self.assertNotIn("WHERE", again.body.decode(), "the server sees the cookie")

    def test_an_address_stays_with_its_server_over_reloads(self):
        visitors = ["127.0.1.%d" % i for i in range(1, 7)]
        before = {v: visit("source.test", source=v).server for v in visitors}
        self.assertEqual(set(before.values()), {"one", "two"})
        for retries in (1, 2):
            worker = self.node.admin_socket("show info").split("\nPid: ")[1].split()[0]
            self.wait_learned()
            self.api.patch("/api/v1/pools/other", retries=retries)
            self.apply()
            self.assertNotIn("\nPid: %s\n" % worker, self.node.admin_socket("show info"))
            wait_for(lambda: "used:%d" % len(visitors) in self.table(), "the table is there", 5)
            self.assertEqual({v: visit("source.test", source=v).server for v in visitors}, before)

    def test_a_limit_of_rate_counts_on_over_a_reload(self):
        self.api.create("services", name="limited", listeners=["http"], pool="other",
                        hosts=["limited.test"], rate_limit=3, rate_limit_period_s=60)
        self.apply()
        visits = [visit("limited.test", source="127.0.1.9").status for _ in range(4)]
        self.assertEqual(visits, [200, 200, 200, 429])
        self.wait_learned()
        self.api.patch("/api/v1/pools/other", retries=5)
        self.apply()
        wait_for(lambda: "used:1" in self.node.admin_socket("show table lockstep.rate.limited"),
                 "the table is there", 5)
        self.assertEqual(visit("limited.test", source="127.0.1.9").status, 429)
        self.api.delete("/api/v1/services/limited")
        self.apply()

    def table(self):
        return self.node.admin_socket("show table source")

    def wait_learned(self):
        """HAProxy hands its tables on when it was taught itself or, after about ten seconds, gave
        up waiting for that: both low bits of the flags are set."""
        wait_for(lambda: re.search(r"lockstep\.tables disabled=0 flags=0x\w*[37bf] ",
                                   self.node.admin_socket("show peers")), "the worker teaches")

    def test_the_port_of_the_tables_is_refused_for_listeners_and_held_on_loopback(self):
        answer = self.api.call("POST", "/api/v1/listeners", {"name": "x", "port": 8444})
        self.assertEqual(answer.status, 422, answer)
        self.assertIn("peers_port", repr(answer))
        socket.create_connection(("127.0.0.1", 8444), 5).close()

    def test_a_port_of_the_tables_that_is_taken_is_found_before_the_reload(self):
        with socket.create_server(("127.0.0.1", 7070)):
            self.api.patch("/api/v1/node", peers_port=7070)
            task = self.api.apply()
        self.assertEqual(task["state"], "failed", task)
        self.assertIn("/peers_port", json.dumps(task))
        self.api.call("DELETE", "/api/v1/draft")

    def test_a_pool_that_is_off_answers_503_and_the_others_serve(self):
        self.api.patch("/api/v1/pools/cookie", enabled=False)
        self.apply()
        self.assertEqual(visit("cookie.test").status, 503)
        self.assertEqual(visit("other.test").server, "one")
        self.api.patch("/api/v1/pools/cookie", enabled=True)
        self.apply()
        self.assertEqual(visit("cookie.test").status, 200)


class Encrypted(Case):
    @classmethod
    def objects(cls):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.addClassCleanup(folder.cleanup)
        good, other = (Authority(folder.name, name) for name in ("good", "other"))
        chain, key = good.issue("host.test")
        cls.context = tls_context(chain, key)
        cls.strict = tls_context(chain, key, client_ca=other.path)
        server = cls.keep(Backend("tls", tls=cls.context))
        strict = cls.keep(Backend("strict", tls=cls.strict))
        own, own_key = other.issue("client.test")
        cls.create("certificates", "client", chain=own.read_text("ascii"),
                   key=own_key.read_text("ascii"))
        tls = {"tls": True, "ca": good.text()}
        cls.pool("good", server, verifyhost="host.test", **tls)
        cls.pool("host", server, sni="host", **tls)
        cls.pool("fixed", server, sni="name", sni_name="host.test", alpn="h2-h1", **tls)
        cls.pool("wrongname", server, verifyhost="else.test", **tls)
        cls.pool("wrongca", server, verifyhost="host.test", tls=True, ca=other.text())
        cls.pool("system", server, verifyhost="host.test", tls=True)
        cls.pool("anybody", server, tls=True, tls_verify="none")
        cls.pool("client", strict, client_certificate="client", **tls)
        cls.pool("noclient", strict, **tls)
        web = {"type": "http", "path": "/healthz"}
        cls.checked("auto", server, {"verifyhost": "host.test", **tls}, **web)
        cls.checked("plain", server, {"verifyhost": "host.test", **tls}, tls="off", **web)
        cls.checked("refused", server, {"verifyhost": "else.test", **tls}, **web)
        cls.checked("alone", server, {}, tls="on", sni="asked.test", **web)
        cls.checked("begin", server, {"mode": "tcp"}, type="tls")
        clear = cls.keep(Backend("clear"))
        cls.checked("cannot", clear, {"mode": "tcp"}, type="tls")
        cls.checked("beside", server, {"verifyhost": "host.test", **tls}, port=clear.port, **web)

    def test_a_server_with_a_good_certificate_answers(self):
        for name in ("good", "host", "fixed", "anybody", "client"):
            with self.subTest(name):
                answer = visit(name + ".test")
                self.assertEqual(answer.status, 200, answer.body)
        self.assertIn("host.test", self.context.asked)

    def test_a_server_with_a_bad_certificate_gets_no_request(self):
        for name in ("wrongname", "wrongca", "system", "noclient"):
            with self.subTest(name):
                self.assertIn(visit(name + ".test").status, (502, 503))

    def test_a_check_uses_tls_when_the_pool_does_unless_told_otherwise(self):
        self.wait_state("auto", "UP", "L7OK")
        self.wait_state("plain", "DOWN")
        self.wait_state("refused", "DOWN", "L6RSP")
        self.wait_state("alone", "UP", "L7OK")
        self.assertIn("asked.test", self.context.asked)
        self.wait_state("beside", "UP", "L7OK")

    def test_the_check_tls_is_content_when_tls_begins(self):
        self.wait_state("begin", "UP", "L6OK")
        self.wait_state("cannot", "DOWN", "L6RSP")


def redis(server):
    def talk(sock):
        assert b"PING" in sock.recv(100)
        sock.sendall(server["answer"])
    return talk


def smtp(server):
    def talk(sock):
        sock.sendall(b"220 mail.test ESMTP\r\n")
        server["said"] = sock.recv(200)
        sock.sendall(server["answer"])
        assert sock.recv(200) == b"QUIT\r\n"
        sock.sendall(b"221 bye\r\n")
    return talk


def banner(server):
    def talk(sock):
        sock.sendall(b"# v1 \"x\" ready\r\n")
        server["said"] = sock.recv(200)
        sock.sendall(server["answer"])
        server["bytes"] = sock.recv(200)
        sock.sendall(b"\x00\xff")
    return talk


def agent(server):
    def talk(sock):
        server["said"] = sock.recv(200)
        sock.sendall(server["answer"])
    return talk


def start_up(server):
    """The first packets of PostgreSQL, or of MySQL when the server speaks first."""
    def talk(sock):
        sock.sendall(server["greeting"])
        server["said"] = sock.recv(200)
        sock.sendall(server["answer"])
    return talk


class Checked(Case):
    TALKS = {
        "redis": (redis, {"answer": b"+PONG\r\n"}, {"type": "redis"}, b"-NOAUTH\r\n"),
        "smtp": (smtp, {"answer": b"250 mail.test\r\n"},
                 {"type": "smtp", "domain": "lb.test"}, b"550 no\r\n"),
        "pgsql": (start_up, {"greeting": b"", "answer": b"R\0\0\0\x08\0\0\0\x05"},
                  {"type": "pgsql", "user": "a \"b"}, b"E\0\0\0\x08\0\0\0\0"),
        "script": (banner, {"answer": b"+OK 17\r\n"},
                   {"type": "tcp-script", "steps": [
                       {"action": "expect", "data": "# v1 \"x\" ready\\r\\n"},
                       {"action": "send", "data": "PING \\x41 # $HOME\\r\\n"},
                       {"action": "expect-regex", "data": "^\\+OK [0-9]+"},
                       {"action": "send-hex", "data": "00ff"},
                       {"action": "expect-hex", "data": "00ff"}]}, b"-ERR\r\n"),
    }

    @classmethod
    def objects(cls):
        cls.said = {}
        for name, (talk, server, fields, _bad) in cls.TALKS.items():
            cls.said[name] = dict(server)
            cls.checked(name, cls.keep(Talk(talk(cls.said[name]))), {"mode": "tcp"}, **fields)
        cls.web = cls.keep(Backend("web"))
        cls.replica = cls.keep(Backend("replica"))
        cls.checked("body", cls.web, type="http", path="/healthz", host="b.test",
                    body_match="regex", expect_body="^he(al|ll)th\\s")
        cls.checked("text", cls.web, type="http", path="/healthz", http_version="http1_0",
                    body_match="string", expect_body="alth")
        cls.checked("beside", cls.keep(Talk(lambda sock: sock.recv(1))), {"mode": "tcp"},
                    type="http", path="/healthz", port=cls.replica.port, expect_status="200")
        cls.said["agent"] = {"answer": b"50%\n"}
        cls.checked("agent", cls.web, type="agent",
                    port=cls.keep(Talk(agent(cls.said["agent"]))).port, agent_send="web\\n")

    def test_servers_that_talk_as_they_should_are_up_until_they_do_not(self):
        for name, (_talk, server, _fields, bad) in self.TALKS.items():
            with self.subTest(name):
                self.wait_state(name, "UP", "L7OK")
                self.said[name]["answer"] = bad
                self.wait_state(name, "DOWN")
                self.said[name]["answer"] = server["answer"]
                self.wait_state(name, "UP", "L7OK")

    def test_what_is_sent_is_what_was_typed(self):
        self.wait_state("script", "UP", "L7OK")
        self.assertEqual(self.said["script"]["said"], b"PING A # $HOME\r\n")
        self.assertEqual(self.said["script"]["bytes"], b"\0\xff")
        self.wait_state("smtp", "UP", "L7OK")
        self.assertEqual(self.said["smtp"]["said"], b"EHLO lb.test\r\n")
        self.wait_state("pgsql", "UP", "L7OK")
        self.assertIn(b"user\0a \"b\0", self.said["pgsql"]["said"])

    def test_a_body_that_does_not_match_takes_the_server_out(self):
        for name in ("body", "text"):
            self.wait_state(name, "UP", "L7OK")
        self.web.server.health_body = b"ill\n"
        for name in ("body", "text"):
            self.wait_state(name, "DOWN", "L7RSP")
        self.web.server.health_body = b"health\n"
        for name in ("body", "text"):
            self.wait_state(name, "UP", "L7OK")

    def test_an_http_check_of_another_port_of_a_tcp_pool_asks_by_http(self):
        self.wait_state("beside", "UP", "L7OK")
        self.replica.server.health = 503
        self.wait_state("beside", "DOWN", "L7STS")
        self.replica.server.health = 200

    def test_the_agent_sets_the_weight_and_takes_the_server_out(self):
        def weight():
            return "agent 50 (initial 100)" if self.said["agent"].get("said") else ""
        wait_for(weight, "the agent was asked")
        self.assertEqual(self.said["agent"]["said"], b"web\n")
        wait_for(lambda: self.node.admin_socket("get weight agent/agent").startswith("50 "),
                 "the weight")
        self.said["agent"]["answer"] = b"down\n"
        self.wait_state("agent", "DOWN")
        self.said["agent"]["answer"] = b"up 100%\n"
        self.wait_state("agent", "UP")


def echo(sock):
    while data := sock.recv(4096):
        sock.sendall(data)


class Passed(Case):
    """How bytes and requests get to the servers and back."""

    @classmethod
    def objects(cls):
        cls.web = cls.keep(Backend("web"))
        cls.proxied = cls.keep(Backend("proxied", proxy=True))
        echoes = cls.keep(Talk(echo))
        short = {"addresses": ["127.0.0.1"], "client_timeout_ms": SHORT_MS}
        cls.create("listeners", "short", port=81, **short)
        cls.create("listeners", "idle", port=82, mode="tcp", **short)
        cls.create("listeners", "strict", port=83, mode="tcp", **short)
        cls.pool("ws", cls.web, listener="short", server_timeout_ms=SHORT_MS,
                 idle_timeout_ms=60000)
        cls.pool("idle", echoes, listener="idle", mode="tcp", idle_timeout_ms=60000)
        cls.pool("strict", echoes, listener="strict", mode="tcp", server_timeout_ms=SHORT_MS)
        cls.create("monitors", "health", type="http", path="/healthz", **FAST)
        cls.pool("proxied", cls.proxied, send_proxy="v2", monitor="health")
        cls.pool("gzip", cls.web, compression=True)
        cls.pool("plain", cls.web)
        for rule, more in (("uri", {"uri_depth": 1}), ("url_param", {"url_param": "user"}),
                           ("hdr", {"hdr_name": "X-Tenant"})):
            cls.pool(rule.replace("_", ""), cls.web, cls.keep(Backend("second")), balance=rule,
                     hash_type="consistent", hash_function="wt6", **more)

    @staticmethod
    def is_silent(sock):
        sock.settimeout(SILENCE_S)
        with contextlib.suppress(TimeoutError):
            return sock.recv(1) is None
        return True

    def test_a_silent_tcp_session_lives_as_long_as_its_pool_says(self):
        with socket.create_connection(("127.0.0.1", 82), 5) as sock:
            sock.sendall(b"a")
            self.assertEqual(sock.recv(1), b"a")
            self.assertTrue(self.is_silent(sock), "closed after the listener's client timeout")
            sock.settimeout(5)
            sock.sendall(b"b")
            self.assertEqual(sock.recv(1), b"b")

    def test_without_an_idle_time_the_short_timeouts_hold(self):
        with socket.create_connection(("127.0.0.1", 83), 5) as sock:
            sock.sendall(b"a")
            self.assertEqual(sock.recv(1), b"a")
            sock.settimeout(5)
            self.assertEqual(sock.recv(1), b"")

    def test_a_silent_websocket_lives_as_long_as_its_pool_says(self):
        with socket.create_connection(("127.0.0.1", 81), 5) as sock:
            sock.sendall(b"GET /ws HTTP/1.1\r\nHost: ws.test\r\nConnection: Upgrade\r\n"
                         b"Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            head = b""
            while b"\r\n\r\n" not in head:
                head += sock.recv(4096)
            self.assertIn(b" 101 ", head)
            self.assertTrue(self.is_silent(sock))
            sock.sendall(b"x")
            self.assertEqual(sock.recv(1), b"x")

    def test_the_server_is_told_the_address_of_the_visitor(self):
        self.assertEqual(visit("proxied.test", source="127.0.2.7").status, 200)
        headers = list(self.proxied.server.proxied)
        self.assertTrue(any(h[12:14] == b"\x21\x11" and h[16:20] == bytes([127, 0, 2, 7])
                            for h in headers), headers)
        wait_for(lambda: any(h[12] == 0x20 for h in self.proxied.server.proxied),
                 "a check with the PROXY protocol")

    def test_answers_are_compressed_for_those_who_take_it(self):
        asked = {"Accept-Encoding": "gzip"}
        self.assertEqual(visit("gzip.test", headers=asked).headers["Content-Encoding"], "gzip")
        self.assertIsNone(visit("gzip.test").headers["Content-Encoding"])
        self.assertIsNone(visit("plain.test", headers=asked).headers["Content-Encoding"])

    def test_what_the_rule_looks_at_decides_on_the_server(self):
        def servers(host, how):
            return [visit(host, **how(i % 8)).server for i in range(24)]
        for host, how in (("uri.test", lambda i: {"path": "/f%d/x" % i}),
                          ("urlparam.test", lambda i: {"path": "/?user=u%d" % i}),
                          ("hdr.test", lambda i: {"headers": {"X-Tenant": "t%d" % i}})):
            with self.subTest(host):
                seen = servers(host, how)
                self.assertEqual(seen[:8] * 3, seen)
                self.assertEqual(set(seen), {"web", "second"})


if __name__ == "__main__":
    node.private_network()
    unittest.main()
