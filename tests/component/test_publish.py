#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A service from the API to a client's answer, through every layer."""
import http.client
import json
import ssl
import unittest

import node
from backend import Backend


def fetch(address, port, host, path="/", tls=False, method="GET", headers=None):
    if tls:
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(host, port, timeout=5, context=context)
        connection._create_connection = lambda _target, *rest: node.socket.create_connection(
            (address, port), *rest)
    else:
        connection = http.client.HTTPConnection(address, port, timeout=5)
    try:
        connection.request(method, path, headers=dict({"Host": host}, **(headers or {})))
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def seen(answer):
    status, _headers, body = answer
    assert status == 200, answer
    return json.loads(body)


class Publish(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.one, cls.two = Backend("one"), Backend("two")
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api

    def publish(self, url, *to, status=200, **more):
        return self.api.expect(
            status, "POST", "/api/v1/publish", dict({"url": url, "to": list(to)}, **more))

    def test_1_https_service_answers_with_a_placeholder_and_redirects_http(self):
        self.publish("https://app.example.test", self.one.target, self.two.target,
                     check="http:/healthz")
        self.assertEqual(fetch_status(self.api, "draft"), 8)
        task = self.api.apply("first service")
        self.assertEqual(task["state"], "ok", task)
        servers = {seen(fetch("127.0.0.1", 443, "app.example.test", tls=True))["server"]
                   for _ in range(4)}
        self.assertEqual(servers, {"one", "two"})
        status, headers, _ = fetch("127.0.0.1", 80, "app.example.test", "/a?b=c")
        self.assertIn(status, (301, 302, 307, 308))
        self.assertEqual(headers["Location"], "https://app.example.test/a?b=c")
        status, _, _ = fetch("127.0.0.1", 80, "other.example.test")
        self.assertEqual(status, 404)

    def test_2_forwarding_headers_of_the_client_are_replaced(self):
        answer = seen(fetch("127.0.0.1", 443, "app.example.test", tls=True,
                            headers={"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "gopher"}))
        got = [(k.lower(), v) for k, v in answer["headers"] if k.lower().startswith("x-forwarded")]
        self.assertIn(("x-forwarded-for", "127.0.0.1"), got)
        self.assertIn(("x-forwarded-proto", "https"), got)
        self.assertNotIn("6.6.6.6", str(got))
        self.assertNotIn("gopher", str(got))

    def test_3_publishing_again_changes_nothing(self):
        result = self.publish("https://app.example.test", self.one.target, self.two.target,
                              check="http:/healthz")
        self.assertEqual(result["objects"], [])
        self.assertEqual(self.api.get("/api/v1/draft")["count"], 0)

    def test_3_a_check_that_is_left_out_stays(self):
        url = "https://app.example.test"
        for servers in ([self.one.target, self.two.target], [self.one.target]):
            changed = self.api.expect(200, "POST", "/api/v1/publish?plan=1",
                                      {"url": url, "to": servers})["objects"]
            self.assertNotIn("monitor", [o["kind"] for o in changed])

    def test_4_plan_shows_objects_and_lines_and_changes_nothing(self):
        before = self.api.get("/api/v1/status")["head"]
        result = self.api.expect(200, "POST", "/api/v1/publish?plan=1",
                                 {"url": "http://plan.example.test", "to": [self.one.target]})
        self.assertIn("+backend plan.example.test", result["diff"]["haproxy_cfg"])
        self.assertEqual(self.api.get("/api/v1/draft")["count"], 0)
        self.assertEqual(self.api.get("/api/v1/status")["head"], before)

    def test_4_a_plan_is_refused_as_its_apply_would_be(self):
        request = {"url": "http://plan.example.test", "to": [self.one.target], "apply": True}
        self.assertEqual(self.api.apply()["state"], "ok")
        self.api.patch("/api/v1/haproxy", maxconn=2500)
        self.api.expect(202, "POST", "/api/v1/config/apply", {"confirm": 60})
        node.wait_for(lambda: self.api.get("/api/v1/status")["confirm"], "it waits")
        for query in ("?plan=1", ""):
            self.api.expect(409, "POST", "/api/v1/publish" + query, request)
        self.api.expect(200, "POST", "/api/v1/config/confirm", {})
        self.api.expect(200, "POST", "/api/v1/publish?plan=1", request)

    def test_5_a_server_that_fails_its_check_gets_no_traffic(self):
        self.two.server.health = 503
        try:
            node.wait_for(lambda: "DOWN" in self.node.admin_socket("show stat"), "two is down", 40)
            servers = {seen(fetch("127.0.0.1", 443, "app.example.test", tls=True))["server"]
                       for _ in range(6)}
            self.assertEqual(servers, {"one"})
        finally:
            self.two.server.health = 200

    def test_6_tcp_service(self):
        self.publish("tcp://:5432", self.one.target, name="db")
        task = self.api.apply()
        self.assertEqual(task["state"], "ok", task)
        self.assertEqual(seen(fetch("127.0.0.1", 5432, "any"))["server"], "one")

    def test_7_disabled_service_answers_503_with_the_error_page(self):
        self.api.patch("/api/v1/services/app.example.test", enabled=False)
        self.assertEqual(self.api.apply()["state"], "ok")
        status, headers, body = fetch("127.0.0.1", 443, "app.example.test", tls=True)
        self.assertEqual(status, 503)
        self.assertIn(b"not available", body)
        self.assertEqual(headers["Cache-Control"], "no-store")
        self.api.patch("/api/v1/services/app.example.test", enabled=True)
        self.assertEqual(self.api.apply()["state"], "ok")

    def test_8_unpublish_removes_what_only_the_service_owns(self):
        self.api.expect(200, "DELETE", "/api/v1/publish/db")
        self.assertEqual(self.api.apply()["state"], "ok")
        with self.assertRaises(ConnectionRefusedError):
            fetch("127.0.0.1", 5432, "any")
        names = [s["name"] for s in self.api.get("/api/v1/servers")["items"]]
        self.assertNotIn("db.s1", names)
        self.assertEqual(seen(fetch("127.0.0.1", 443, "app.example.test", tls=True))["path"], "/")


def fetch_status(api, what):
    return api.get("/api/v1/" + what)["count"]


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
