#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks tried before anything is stored: what the node finds, that it is what HAProxy finds,
and what the command line asks."""
import base64
import concurrent.futures
import contextlib
import os
import re
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import node
from authority import Authority, tls_context
from backend import Backend, Talk
from terminal import on_terminal

FAST = {"interval_ms": 100, "timeout_ms": 1000, "rise": 1, "fall": 1}
DEADLINE_S = 4
WEB = {"type": "http", "path": "/healthz"}
WITHIN_1_S = r"^no answer within (1|0\.\d+) s$"  # counted from the request on


def closed_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Silent:
    """Accepts connections and says nothing until it is let go or closed."""

    def __init__(self):
        self.end = threading.Event()
        self.asked = threading.Semaphore(0)  # released once for each connection
        self.server = Talk(self.hold)
        self.target = "127.0.0.1:%d" % self.server.port

    def hold(self, _sock):
        self.asked.release()
        self.end.wait(60)

    def close(self):
        self.end.set()
        self.server.close()


def know_nothing(server):
    """Says of each name that there is none, until something empty comes."""
    while (asked := server.recvfrom(4096))[0]:
        server.sendto(asked[0][:2] + b"\x81\x83" + asked[0][4:], asked[1])


@contextlib.contextmanager
def dns(answers):
    """The name servers of this machine are there, and never answer or know no name."""
    with open("/etc/resolv.conf", encoding="utf-8") as file:
        addresses = re.findall(r"(?m)^nameserver\s+([\d.]+)", file.read()) or ["127.0.0.1"]
    with contextlib.ExitStack() as stack:
        for address in addresses:
            subprocess.run(["ip", "address", "replace", address, "dev", "lo"], check=False)
            server = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            server.bind((address, 53))
            if answers:
                thread = threading.Thread(target=know_nothing, args=(server,))
                thread.start()
                stack.callback(thread.join)
                stack.callback(server.sendto, b"", (address, 53))
        yield


class Case(unittest.TestCase):
    TUNABLES = {}

    @classmethod
    def setUpClass(cls):
        cls.node = node.Node(tunables=cls.TUNABLES).set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        cls.one, cls.two = cls.keep(Backend("one")), cls.keep(Backend("two"))
        cls.silent = cls.keep(Silent())

    @classmethod
    def keep(cls, server):
        cls.addClassCleanup(server.close)
        return server

    @classmethod
    def pool(cls, name, port, monitor, **fields):
        cls.api.create("servers", name=name, address="127.0.0.1", port=port)
        cls.api.create("monitors", name=name, **monitor)
        cls.api.create("pools", name=name, monitor=name, members=[{"server": name}], **fields)

    @classmethod
    def many(cls, name, count, monitor, address="127.0.0.1"):
        """A pool of many servers."""
        ops = [("server", {"name": "%s%d" % (name, i), "port": i + 1,
                           "address": address % i if "%d" in address else address})
               for i in range(count)]
        ops.append(("monitor", dict(monitor, name=name)))
        ops.append(("pool", {"name": name, "monitor": name,
                             "members": [{"server": "%s%d" % (name, i)} for i in range(count)]}))
        cls.api.expect(200, "POST", "/api/v1/changes", {"ops": [
            {"op": "create", "kind": kind, "body": body} for kind, body in ops]})

    def check(self, name):
        return self.api.expect(200, "POST", "/api/v1/pools/%s/check" % name)

    def only(self, name):
        """(result, detail) of a pool with one server."""
        trial = self.check(name)
        self.assertEqual(len(trial["servers"]), 1, trial)
        server = trial["servers"][0]
        self.assertEqual(trial["would_pass"], int(server["result"] == "pass"))
        return server["result"], server["detail"]


class Publish(Case):
    TUNABLES = {"try_ms": 1000}

    def publish(self, *to, query="?plan=1", check="http:/healthz", **more):
        return self.api.expect(200, "POST", "/api/v1/publish" + query, dict(
            {"url": "http://app.test", "to": list(to), "check": check}, **more))

    def trial(self, *to, **more):
        checks = self.publish(*to, **more)["checks"]
        self.assertEqual(len(checks), 1)
        self.assertEqual((checks[0]["pool"], checks[0]["monitor"]), ("app.test", "app.test"))
        return checks[0]

    def test_a_path_that_answers_404_would_pass_nowhere(self):
        self.one.server.health = self.two.server.health = 404
        try:
            trial = self.trial(self.one.target, self.two.target)
        finally:
            self.one.server.health = self.two.server.health = 200
        self.assertEqual((trial["would_pass"], trial["of"]), (0, 2))
        for backend, server in zip((self.one, self.two), trial["servers"]):
            self.assertEqual(server["address"], "127.0.0.1")
            self.assertEqual(server["port"], backend.port)
            self.assertEqual(server["result"], "fail")
            self.assertEqual(server["detail"], "HTTP 404 (expected 200-399)")
        self.assertEqual(self.api.get("/api/v1/draft")["count"], 0)

    def test_publishing_tells_it_too_also_when_nothing_changes(self):
        try:
            for _ in range(2):
                trial = self.trial(self.one.target, self.two.target, query="")
                self.assertEqual((trial["would_pass"], trial["of"]), (2, 2))
                self.assertEqual(trial["servers"][0]["detail"], "HTTP 200")
            self.assertEqual(self.publish(self.one.target, query="?try=0")["checks"], [])
        finally:
            self.api.call("DELETE", "/api/v1/draft")

    def test_an_apply_at_once_tells_it_beside_its_task(self):
        result = self.publish(self.one.target, query="?wait=1", apply=True, check="tcp")
        self.assertEqual(result["task"]["state"], "ok")
        self.assertEqual(result["checks"][0]["servers"][0]["detail"], "connected")
        result = self.api.expect(202, "POST", "/api/v1/publish", {
            "url": "http://app.test", "to": [self.two.target], "apply": True})
        self.assertEqual(result["checks"][0]["would_pass"], 1)

    def test_who_is_refused_or_not_answered_fails_before_the_deadline(self):
        begin = time.monotonic()
        trial = self.trial(self.one.target, "127.0.0.1:%d" % closed_port(), self.silent.target)
        self.assertLess(time.monotonic() - begin, DEADLINE_S)
        self.assertEqual((trial["would_pass"], trial["of"]), (1, 3))
        self.assertEqual([s["detail"] for s in trial["servers"]][:2],
                         ["HTTP 200", "connection refused"])
        self.assertRegex(trial["servers"][2]["detail"], WITHIN_1_S)

    def test_names_are_looked_up_and_unknown_ones_fail(self):
        unknown = "DNS does not answer about its name"
        for servers, why in ((dns(True), "its name is not in DNS$"),
                             (dns(False), unknown + r" within (1|0\.\d+) s$"),
                             (contextlib.nullcontext(), unknown + "$")):
            with servers:
                trial = self.trial("localhost:%d" % self.one.port, "none.invalid:80")
            self.assertEqual([s["result"] for s in trial["servers"]], ["pass", "fail"])
            self.assertRegex(trial["servers"][1]["detail"], why)

    def test_what_cannot_be_published_is_not_tried(self):
        self.api.expect(422, "POST", "/api/v1/publish?plan=1", {"url": "x", "to": ["y"]})
        self.api.expect(422, "POST", "/api/v1/publish?try=2",
                        {"url": "http://app.test", "to": [self.one.target]})
        self.trial(self.one.target)

    def test_who_waits_for_others_is_not_answered_later_for_that(self):
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            tries = [pool.submit(self.trial, self.silent.target) for _ in range(8)]
        self.assertLess(time.monotonic() - begin, 3)  # two at a time: one after the other is 4
        for trial in [t.result() for t in tries]:
            self.assertRegex(trial["servers"][0]["detail"],
                             "no answer within |too many checks are being tried")


class Held(Case):
    """What happens while servers do not answer, for as long as the test wants."""
    TUNABLES = {"try_ms": 60000}
    PLACES, AT_ONCE = 8, 2

    def setUp(self):
        self.held = Silent()
        self.addCleanup(self.held.close)
        self.addCleanup(self.api.call, "DELETE", "/api/v1/draft")
        self.pool("held", self.held.server.port, {**WEB, "timeout_ms": 60000})
        self.pool("redis", self.one.port, {"type": "redis"})

    def hold(self, pool, count):
        tries = [pool.submit(self.api.call, "POST", "/api/v1/pools/held/check")
                 for _ in range(count)]
        for _ in range(min(count, self.AT_ONCE)):
            self.assertTrue(self.held.asked.acquire(timeout=30))
        return tries

    def publish(self):
        return self.api.expect(200, "POST", "/api/v1/publish", {
            "url": "http://app.test", "to": [self.one.target]})["checks"][0]

    def test_too_many_at_once_are_refused_but_no_publish_is(self):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            tries = self.hold(pool, self.PLACES + 4)
            try:
                done = concurrent.futures.as_completed(tries, 30)
                refused = [next(done) for _ in range(4)]
                for reply in [t.result() for t in refused]:
                    self.assertEqual((reply.status, reply.headers["Retry-After"]), (503, "1"))
                    self.assertIn("try again", reply.json["detail"])
                trial = self.publish()
                self.assertEqual((trial["of"], trial["servers"][0]["result"]), (0, "not_tried"))
                self.assertEqual(trial["servers"][0]["detail"], "too many checks are being tried")
                self.assertGreater(self.api.get("/api/v1/draft")["count"], 0)
                self.assertEqual(self.check("redis")["of"], 0)  # needs no place
            finally:
                self.held.end.set()
        self.assertEqual([t.result().status for t in tries if t not in refused],
                         [200] * self.PLACES)
        self.assertEqual(self.publish()["would_pass"], 1)

    def test_lookups_that_hang_are_not_heaped_up(self):
        self.many("name", 64, {"type": "tcp", "timeout_ms": 500}, "name%d.test")
        with dns(False):
            for _ in range(2):
                trial = self.check("name")
                self.assertEqual(trial["of"], 64)
                self.assertEqual({s["detail"] for s in trial["servers"]},
                                 {"DNS does not answer about its name within 0.5 s"})
            trial = self.check("name")
        self.assertEqual(trial["of"], 0)
        self.assertEqual({(s["result"], s["detail"]) for s in trial["servers"]},
                         {("not_tried", "too many names are being looked up")})
        self.assertEqual(self.publish()["would_pass"], 1)  # an address needs no lookup

    def test_the_engine_answers_while_servers_are_silent(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            tries = self.hold(pool, self.AT_ONCE)
            try:
                self.api.create("servers", name="meanwhile", address="127.0.0.1", port=1)
                self.assertFalse(any(t.done() for t in tries))
            finally:
                self.held.end.set()


class Kinds(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.one.server.health_body = b'{"status":"UP"}\n'
        cls.moved = cls.keep(Talk(cls.redirect))
        cls.asked = []
        for name, port, monitor in (
                ("string", cls.one.port, {"body_match": "string", "expect_body": '"UP"'}),
                ("nostring", cls.one.port, {"body_match": "string", "expect_body": "DOWN"}),
                ("regex", cls.one.port, {"body_match": "regex", "expect_body": "UP.}\\s"}),
                ("noregex", cls.one.port, {"body_match": "regex", "expect_body": "^UP"}),
                ("status", cls.one.port, {"expect_status": "204,300-399"}),
                ("head", cls.one.port, {"method": "HEAD"}),
                ("options", cls.one.port, {"method": "OPTIONS", "host": "app.test"}),
                ("moved", cls.moved.port, {"host": "moved.test", "path": "/a?b=1"}),
                ("silent", cls.silent.server.port, {"timeout_ms": 300}),
                ("patient", cls.silent.server.port, {"timeout_ms": 60000})):
            cls.pool(name, port, {**WEB, **FAST, **monitor})
        cls.pool("tcp", cls.one.port, {**FAST, "type": "tcp"})
        cls.pool("closed", closed_port(), {**FAST, "type": "tcp"})
        cls.pool("redis", cls.one.port, {**FAST, "type": "redis"})

    @classmethod
    def redirect(cls, sock):
        cls.asked.append(sock.recv(4096))
        sock.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/away\r\n"
                     b"Content-Length: 1000000\r\n\r\n" % cls.moved.port)

    def test_what_is_expected_decides(self):
        for name, expected in {
                "string": ("pass", "HTTP 200"), "regex": ("pass", "HTTP 200"),
                "nostring": ("fail", "HTTP 200, but the body does not hold what is expected"),
                "noregex": ("fail", "HTTP 200, but the body does not hold what is expected"),
                "status": ("fail", "HTTP 200 (expected 204,300-399)"),
                "head": ("pass", "HTTP 200"), "options": ("pass", "HTTP 200"),
                "silent": ("fail", "no answer within 0.3 s"),
                "tcp": ("pass", "connected"), "closed": ("fail", "connection refused")}.items():
            with self.subTest(name):
                self.assertEqual(self.only(name), expected)

    def test_no_check_is_waited_for_longer_than_three_seconds(self):
        begin = time.monotonic()
        result, detail = self.only("patient")
        self.assertEqual(result, "fail")
        self.assertRegex(detail, r"^no answer within (3|2\.\d) s$")
        self.assertLess(time.monotonic() - begin, DEADLINE_S)

    def test_a_redirect_is_an_answer_and_the_request_has_nothing_of_libcurl(self):
        self.asked.clear()
        self.assertEqual(self.only("moved"), ("pass", "HTTP 302"))
        request = b"GET /a?b=1 HTTP/1.1\r\nHost: moved.test\r\nConnection: close\r\n\r\n"
        self.assertIn(request, self.asked)
        # HAProxy may check it by now, too, with names in small letters.
        self.assertEqual({r.lower() for r in self.asked}, {request.lower()})

    def test_other_types_say_that_they_are_not_tried(self):
        trial = self.check("redis")
        self.assertEqual((trial["would_pass"], trial["of"]), (0, 0))
        self.assertEqual(trial["servers"][0]["result"], "not_tried")
        self.assertEqual(trial["servers"][0]["detail"], "a check of type redis is not tried")

    def test_a_pool_without_a_check_and_none_at_all(self):
        self.api.create("pools", name="bare")
        self.assertIn("no check", self.api.expect(
            409, "POST", "/api/v1/pools/bare/check")["detail"])
        self.api.expect(404, "POST", "/api/v1/pools/none/check")

    def test_of_many_servers_the_first_64_are_tried(self):
        self.many("many", 70, {"port": self.one.port})
        trial = self.check("many")
        self.assertEqual((trial["would_pass"], trial["of"], len(trial["servers"])), (64, 64, 70))
        self.assertEqual(trial["servers"][69]["detail"], "only 64 servers are tried")

    def test_a_key_bound_to_pools_tries_no_other(self):
        for name in ("mine", "theirs"):
            self.pool(name, self.one.port, {"type": "tcp"})
        self.assertEqual(self.api.apply()["state"], "ok")
        made = self.node.session().create("automation_keys", name="bound", scope="operate",
                                          pools=["mine"])
        bound = node.Api("127.0.0.1", 8443, made["key"])
        bound.expect(200, "POST", "/api/v1/pools/mine/check")
        bound.expect(403, "POST", "/api/v1/pools/theirs/check")


class Encrypted(Case):
    """What is found is held against HAProxy's own checks."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.addClassCleanup(folder.cleanup)
        good, other = (Authority(folder.name, name) for name in ("good", "other"))
        chain, key = good.issue("host.test")
        cls.context = tls_context(chain, key)
        server = cls.keep(Backend("tls", tls=cls.context))
        strict = cls.keep(Backend("strict", tls=tls_context(chain, key, client_ca=other.path)))
        proxied = cls.keep(Backend("proxied", proxy=True))
        own, own_key = other.issue("client.test")
        cls.api.create("certificates", name="client", chain=own.read_text("ascii"),
                       key=own_key.read_text("ascii"))
        tls = {"tls": True, "ca": good.text()}
        named = {"verifyhost": "host.test", **tls}
        web = {**WEB, **FAST}
        cls.api.create("listeners", name="http", port=80, addresses=["127.0.0.1"])
        for name, at, fields, monitor in (
                ("named", server, named, {}),
                ("wrongname", server, {"verifyhost": "else.test", **tls}, {}),
                ("wrongca", server, {"verifyhost": "host.test", "tls": True,
                                     "ca": other.text()}, {}),
                ("sni", server, {"sni": "name", "sni_name": "host.test", **tls}, {}),
                ("wrongsni", server, {"sni": "name", "sni_name": "else.test", **tls}, {}),
                ("anybody", server, {"tls": True, "tls_verify": "none"}, {}),
                ("off", server, named, {"tls": "off"}),
                ("alone", server, {}, {"tls": "on", "sni": "asked.test"}),
                ("client", strict, {"client_certificate": "client", **named}, {}),
                ("noclient", strict, named, {}),
                ("noh2", server, {"alpn": "h2", **named}, {}),
                ("begin", server, {}, {"type": "tls"}),
                ("cannot", cls.one, {}, {"type": "tls"}),
                ("beside", server, named, {"port": cls.one.port}),
                ("proxy", proxied, {"send_proxy": "v2"}, {})):
            cls.pool(name, at.port, {**web, **monitor}, **fields)
            cls.api.create("services", name=name, hosts=[name + ".test"], pool=name,
                           listeners=["http"])
        task = cls.api.apply()
        assert task["state"] == "ok", task
        cls.tried = ("named", "wrongname", "wrongca", "sni", "wrongsni", "anybody", "off", "alone",
                     "client", "noclient", "noh2", "begin", "cannot", "beside")

    def running(self, name):
        """pass or fail once HAProxy has checked, else None."""
        stats = self.api.get("/api/v1/stats?pool=" + name)["pools"][0]["servers"][0]
        status = stats["check"]["status"] if stats["check"] else "INI"
        status = status.removeprefix("* ")  # the next check is under way
        if status in ("UNK", "INI", ""):
            return None
        return "pass" if status in ("L4OK", "L6OK", "L7OK") else "fail"

    def test_haproxy_finds_the_same(self):
        for name in self.tried:
            with self.subTest(name):
                # A busy machine may miss the time for one of HAProxy's checks.
                node.wait_for(lambda n=name: self.running(n) == self.only(n)[0],
                              "both find the same of " + name, 10)
        self.assertIn("asked.test", self.context.asked)
        results = {self.only(name)[0] for name in self.tried}
        self.assertEqual(results, {"pass", "fail"})

    def test_why_it_fails_is_told(self):
        self.assertEqual(self.only("wrongname")[1], "its certificate does not verify")
        self.assertEqual(self.only("cannot")[1], "TLS does not begin")
        self.assertEqual(self.only("begin")[1], "TLS began")
        self.assertEqual(self.only("proxy")[0], "not_tried")


class Cli(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.config = os.path.join(cls.node.root, "cli.json")
        with open(cls.config, "w", encoding="ascii") as file:
            file.write('{"url": "https://127.0.0.1:8443", "key": "%s", "pin": "%s"}'
                       % (cls.api.key, pin()))
        os.chmod(cls.config, 0o600)
        cls.program = os.path.join(node.BUILD, "lockstep")

    def setUp(self):
        self.api.call("DELETE", "/api/v1/draft")
        self.one.server.health = 404
        self.addCleanup(setattr, self.one.server, "health", 200)

    def arguments(self, *more):
        return [self.program, "--config", self.config, "publish", "http://app.test", "--to",
                "%s,%s" % (self.one.target, self.two.target), "--check", "http:/healthz", *more]

    def run_cli(self, *command):
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                              stdin=subprocess.DEVNULL)

    def on_terminal(self, answer, *more):
        return on_terminal(self.arguments(*more), answer=answer)

    def draft(self):
        return self.api.get("/api/v1/draft")["count"]

    def test_a_terminal_is_asked_before_anything_is_stored(self):
        status, out, asked = self.on_terminal(b"n\n")
        self.assertTrue(asked, out)
        self.assertEqual((status, self.draft()), (1, 0), out)
        self.assertIn("check: 1 of 2 servers would pass", out)
        self.assertIn("%s: HTTP 404 (expected 200-399)" % self.one.target, out)
        self.assertNotIn(self.two.target, out)
        self.assertIn("nothing was published", out)
        status, out, asked = self.on_terminal(b"y\n")
        self.assertTrue(asked, out)
        self.assertEqual(status, 0, out)
        self.assertGreater(self.draft(), 0)

    def test_nobody_is_asked_when_all_would_pass_or_with_yes(self):
        status, out, asked = self.on_terminal(b"", "--yes")
        self.assertEqual((status, asked), (0, False), out)
        self.assertIn("check: 1 of 2 servers would pass", out)
        self.one.server.health = 200
        status, out, asked = self.on_terminal(b"")
        self.assertEqual((status, asked), (0, False), out)
        self.assertIn("check: 2 of 2 servers would pass", out)

    def test_a_script_goes_on_and_is_warned(self):
        done = self.run_cli(*self.arguments())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("check: 1 of 2 servers would pass", done.stderr)
        self.assertGreater(self.draft(), 0)
        self.one.server.health = 200
        done = self.run_cli(*self.arguments())
        self.assertIn("check: 2 of 2 servers would pass", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_a_plan_shows_it(self):
        done = self.run_cli(*self.arguments("--plan"))
        self.assertIn("check: 1 of 2 servers would pass", done.stdout)
        self.assertEqual(self.draft(), 0)

    def test_it_can_be_left_out(self):
        status, out, asked = self.on_terminal(b"", "--no-try")
        self.assertEqual((status, asked), (0, False), out)
        self.assertNotIn("check: ", out)
        self.assertNotIn("check: ", self.run_cli(*self.arguments("--plan", "--no-try")).stdout)
        for other in ("--plan", "--no-try"):
            self.assertEqual(self.run_cli(*self.arguments(other, "--yes")).returncode, 2)

    def test_a_pool_can_be_tried_alone(self):
        self.assertEqual(self.run_cli(*self.arguments()).returncode, 0)
        command = [self.program, "--config", self.config, "try", "app.test"]
        done = self.run_cli(*command)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("check: 1 of 2 servers would pass", done.stdout)
        self.one.server.health = 200
        done = self.run_cli(*command)
        self.assertEqual((done.returncode, done.stdout),
                         (0, "check: 2 of 2 servers would pass\n"))

    def test_servers_that_were_not_tried_did_not_fail(self):
        self.many("many", 70, {"port": self.one.port})
        done = self.run_cli(self.program, "--config", self.config, "try", "many")
        self.assertEqual((done.returncode, done.stdout), (
            0, "check: 64 of 64 servers would pass\n"
            "  6 servers were not tried: only 64 servers are tried\n"))


def pin():
    """What the configuration of the command line holds the node's certificate against."""
    pem = ssl.get_server_certificate(("127.0.0.1", 8443))
    key = subprocess.run(["openssl", "x509", "-pubkey", "-noout"], input=pem.encode(), check=True,
                         capture_output=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=key, check=True,
                         capture_output=True).stdout
    digest = subprocess.run(["openssl", "dgst", "-sha256", "-binary"], input=der, check=True,
                            capture_output=True).stdout
    return "sha256//" + base64.b64encode(digest).decode()


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
