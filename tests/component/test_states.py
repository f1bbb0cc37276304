#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Operator state and statistics with a real HAProxy: what is decided holds through reloads and
restarts, and what is shown is what HAProxy says."""
import contextlib
import json
import os
import signal
import socket
import statistics
import threading
import time
import unittest

import node
from backend import Backend
from visit import visit

MONITOR = {"type": "http", "path": "/", "interval_ms": 200, "rise": 1, "fall": 1}


class Case(unittest.TestCase):
    """Service app.test with the servers s1, s2 and s3 in the pool app."""

    @classmethod
    def setUpClass(cls):
        cls.backends = [Backend("one"), Backend("two"), Backend("three")]
        cls.spare = Backend("spare")
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        api = cls.api = cls.node.api
        for n, backend in enumerate(cls.backends, 1):
            api.create("servers", name="s%d" % n, address="127.0.0.1", port=backend.port)
        api.create("monitors", name="ok", **MONITOR)
        api.create("pools", name="app", monitor="ok",
                   members=[{"server": "s%d" % n} for n in (1, 2, 3)])
        api.create("listeners", name="app", port=80)
        api.create("services", name="app", hosts=["app.test"], listeners=["app"], pool="app")
        task = api.apply()
        assert task["state"] == "ok", task
        cls.node.wait(lambda: all(s["state"] == "up" for s in cls.seen().values()), "all are up")

    @classmethod
    def seen(cls, pool="app"):
        pools = cls.api.get("/api/v1/stats?pool=" + pool)["pools"]
        return {s["name"]: s for s in pools[0]["servers"]}

    def put(self, server, **fields):
        return self.api.expect(200, "PUT", "/api/v1/servers/%s/state" % server, fields)

    def clear(self, server):
        return self.api.expect(200, "DELETE", "/api/v1/servers/%s/state" % server)

    def lines(self):
        """(admin state, weight, configured weight) by server, as HAProxy itself says."""
        rows = [line.split() for line in
                self.node.admin_socket("show servers state app").splitlines()[2:] if line]
        return {r[3]: (int(r[6]), int(r[7]), int(r[8])) for r in rows}

    def answered(self, count=12):
        return {visit("app.test").server for _ in range(count)}


class Operator(Case):
    def tearDown(self):
        for server in ("s1", "s2", "s3"):
            self.clear(server)
        self.assertEqual(set(self.lines().values()), {(0, 100, 100)})

    def test_drain_keeps_those_who_are_there_and_takes_no_new_ones(self):
        self.assertEqual(self.answered(), {"one", "two", "three"})
        answer = self.put("s1", state="drain", note="memory")
        self.assertEqual(answer["stored"],
                         {"set": True, "state": "drain", "weight": 100, "note": "memory"})
        self.assertEqual(answer["running"], "yes", answer)
        self.assertEqual(answer["reason"], None)
        pool = answer["pools"][0]
        self.assertEqual((pool["pool"], pool["server"]["state"], pool["server"]["taken_out_by"]),
                         ("app", "drain", "operator"))
        self.assertEqual(self.api.get("/api/v1/servers/s1/state")["running"], "yes")
        self.assertEqual(self.answered(), {"two", "three"})

    def test_a_session_with_a_drained_server_goes_on(self):
        for name in ("s2", "s3"):
            self.put(name, state="maint")
        with socket.create_connection(("127.0.0.1", 80), 5) as session:
            session.sendall(b"GET /ws HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\n"
                            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
            self.assertIn(b" 101 ", session.recv(65536))
            self.put("s1", state="drain")
            self.assertEqual(visit("app.test").status, 503, "a new visitor got to a drained server")
            session.sendall(b"still here")
            self.assertEqual(session.recv(65536), b"still here")

    def test_maint_weight_and_ready(self):
        answer = self.put("s2", state="maint")
        self.assertEqual(answer["pools"][0]["server"]["state"], "maint")
        self.assertEqual(self.answered(), {"one", "three"})
        answer = self.put("s3", weight=50)
        server = answer["pools"][0]["server"]
        self.assertEqual((server["weight"], server["configured_weight"]), (50, 100))
        self.assertEqual(self.lines(), {"s1": (0, 100, 100), "s2": (1, 100, 100),
                                        "s3": (0, 50, 100)})
        self.assertEqual(self.put("s2", state="ready")["running"], "yes")
        self.assertEqual(self.clear("s3")["stored"]["set"], False)
        self.assertEqual(set(self.lines().values()), {(0, 100, 100)})

    def decide(self):
        self.put("s1", state="drain")
        self.put("s2", state="maint")
        self.put("s3", weight=50)
        return {"s1": (8, 100, 100), "s2": (1, 100, 100), "s3": (0, 50, 100)}

    def test_it_survives_an_apply_that_reloads(self):
        wanted = self.decide()
        self.api.create("listeners", name="other", port=8090)
        self.assertEqual(self.api.apply()["state"], "ok")
        self.assertEqual(self.lines(), wanted)
        port = self.spare.port
        self.api.patch("/api/v1/servers/s2", port=port)
        self.assertEqual(self.api.apply()["state"], "ok")
        self.assertEqual(self.lines(), wanted)
        state = self.node.admin_socket("show servers state app")
        self.assertIn(" %d " % port, [x for x in state.splitlines() if " s2 " in x][0])

    def test_it_survives_a_restart_of_haproxy(self):
        wanted = self.decide()
        for pid in self.node.pids("haproxy"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

        def same():
            with contextlib.suppress(OSError):
                return self.lines() == wanted
            return False
        self.node.wait(same, "the states are back")
        self.node.wait_ready()

    def test_it_survives_a_restart_of_the_daemon(self):
        wanted = self.decide()
        os.kill(self.node.pid_of("lockstepd"), signal.SIGKILL)
        self.node.wait(self.node.answers, "the API answers")
        self.assertEqual(self.lines(), wanted)
        self.assertEqual(self.api.get("/api/v1/servers/s1/state")["stored"]["state"], "drain")

    def test_what_was_decided_while_haproxy_did_not_answer_follows(self):
        workers = self.node.pids("haproxy")
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        try:
            slow = threading.Thread(target=self.put, args=("s1",), kwargs={"state": "drain"})
            slow.start()
            begin = time.monotonic()
            self.api.get("/api/v1/status")
            self.assertLess(time.monotonic() - begin, 1, "the API waits for HAProxy")
            slow.join(30)
            answer = self.put("s2", state="maint")
            self.assertEqual((answer["stored"]["state"], answer["running"]),
                             ("maint", "unknown"))
            self.assertIn("HAProxy does not answer", answer["reason"])
            refused = self.api.call("GET", "/api/v1/stats")
            self.assertEqual(refused.status, 503)
            self.assertIn("unknown", refused.json["detail"])
        finally:
            for pid in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        wanted = {"s1": (8, 100, 100), "s2": (1, 100, 100), "s3": (0, 100, 100)}

        def same():
            with contextlib.suppress(OSError):
                return self.lines() == wanted
            return False
        self.node.wait(same, "the states follow")

    def test_the_kind_itself_takes_effect_too(self):
        made = self.api.create("server_states", name="s1", server="s1", state="maint")
        self.assertEqual(self.api.get("/api/v1/server_states")["items"], [made])
        self.node.wait(lambda: self.lines()["s1"] == (1, 100, 100), "it runs")
        self.api.patch("/api/v1/server_states/s1", state="drain")
        self.node.wait(lambda: self.lines()["s1"] == (8, 100, 100), "it runs")
        etag = self.api.etag("/api/v1/server_states/s1")
        body = {"name": "s1", "server": "s1"}
        # C263: what an operator took out does not come back because a PUT leaves it out.
        refused = self.api.expect(422, "PUT", "/api/v1/server_states/s1", body,
                                  {"If-Match": etag})
        self.assertEqual([e["pointer"] for e in refused["errors"]], ["/state"])
        self.api.expect(200, "PUT", "/api/v1/server_states/s1", dict(body, state="ready"),
                        {"If-Match": etag})
        self.node.wait(lambda: self.lines()["s1"] == (0, 100, 100), "it runs")
        self.api.delete("/api/v1/server_states/s1")
        self.api.expect(422, "POST", "/api/v1/server_states", {"name": "x", "server": "s1"})
        self.assertEqual(self.api.get("/api/v1/draft")["count"], 0)

    def test_bad_input_changes_nothing(self):
        head = self.api.get("/api/v1/status")["head"]["id"]
        for path, body, status in (
                ("s1", {"state": "off"}, 422), ("s1", {"weight": 101}, 422),
                ("s1", {"weight": -1}, 422), ("s1", {"colour": "red"}, 422),
                ("s1", [], 422), ("nobody", {}, 404), ("s1%3Bshow%20info", {}, 404)):
            answer = self.api.call("PUT", "/api/v1/servers/%s/state" % path, body)
            self.assertIn(answer.status, (status, 400), (path, body, answer))
        self.api.expect(404, "GET", "/api/v1/servers/nobody/state")
        self.api.expect(404, "DELETE", "/api/v1/servers/nobody/state")
        self.assertEqual(self.api.get("/api/v1/status")["head"]["id"], head)

    def test_what_is_not_named_stays(self):
        self.put("s1", state="drain", note="disk")
        self.put("s1", weight=50)
        stored = self.api.get("/api/v1/servers/s1/state")["stored"]
        self.assertEqual(stored, {"set": True, "state": "drain", "weight": 50, "note": "disk"})
        self.api.delete("/api/v1/server_states/s1")

    def test_put_is_quick(self):
        took = []
        for n in range(20):
            begin = time.monotonic()
            self.put("s1", state="ready", weight=50 + n)
            took.append(1000 * (time.monotonic() - begin))
        print("\nPUT state: median %.1f ms, most %.1f ms" % (statistics.median(took), max(took)))


class Names(Case):
    """A state goes where its server goes."""

    def test_1_it_follows_a_rename(self):
        self.put("s1", state="drain")
        self.api.patch("/api/v1/servers/s1", name="first")
        self.assertEqual([d["kind"] for d in self.api.get("/api/v1/draft")["changes"]],
                         ["server"])
        # The draft changes nothing yet.
        self.assertEqual(self.put("s1", state="maint")["running"], "yes")
        self.assertEqual(self.api.apply()["state"], "ok")
        self.assertEqual(self.lines()["first"], (1, 100, 100))
        self.assertEqual(self.lines()["s2"], (0, 100, 100))
        self.assertEqual(
            [s["name"] for s in self.api.get("/api/v1/server_states")["items"]], ["first"])
        self.api.expect(404, "GET", "/api/v1/servers/s1/state")
        self.assertEqual(self.api.get("/api/v1/servers/first/state")["stored"]["state"], "maint")

    def test_2_swapped_names(self):
        self.put("s2", state="drain")
        for old, new in (("first", "x"), ("s2", "first"), ("x", "s2")):
            self.api.patch("/api/v1/servers/" + old, name=new)
        self.assertEqual(self.api.apply()["state"], "ok")
        self.assertEqual(self.lines(), {"s2": (1, 100, 100), "first": (8, 100, 100),
                                        "s3": (0, 100, 100)})

    def test_3_it_goes_with_its_server(self):
        head = self.api.get("/api/v1/status")["head"]["id"]
        self.api.patch("/api/v1/pools/app", members=[{"server": "s2"}, {"server": "s3"}])
        self.api.delete("/api/v1/servers/first")
        self.assertEqual(self.api.get("/api/v1/servers/first/state")["stored"]["state"], "drain")
        self.assertEqual(self.api.apply()["state"], "ok")
        self.assertEqual(
            [s["name"] for s in self.api.get("/api/v1/server_states")["items"]], ["s2"])
        # A new server of that name begins anew.
        self.api.create("servers", name="first", address="127.0.0.1", port=9)
        self.api.patch("/api/v1/pools/app",
                       members=[{"server": "s2"}, {"server": "s3"}, {"server": "first"}])
        self.assertEqual(self.api.apply()["state"], "ok")
        self.assertEqual(self.lines()["first"], (0, 100, 100))
        # To go back brings servers back, not what was decided about them.
        self.api.expect(200, "POST", "/api/v1/commits/%s/restore" % head, {})
        self.assertEqual(self.api.apply()["state"], "ok")
        self.assertEqual(
            [s["name"] for s in self.api.get("/api/v1/server_states")["items"]], ["s2"])
        self.assertTrue(self.api.get("/api/v1/verify")["ok"])


    def test_4_a_new_server_of_equal_fields_begins_anew(self):
        """The files stay as they are, so HAProxy loads nothing."""
        pool = self.api.get("/api/v1/pools/app")["members"]
        self.put("s3", state="drain")
        self.api.patch("/api/v1/pools/app", members=[])
        self.api.delete("/api/v1/servers/s3")
        self.api.create("servers", name="s3", address="127.0.0.1",
                        port=self.backends[2].port)
        self.api.patch("/api/v1/pools/app", members=pool)
        task = self.api.apply()
        self.assertEqual([task["state"]] + [s["name"] for s in task["steps"]],
                         ["ok", "plan", "render", "commit", "settle"])
        self.assertEqual(self.lines()["s3"], (0, 100, 100))
        self.assertEqual(self.put("s3", state="maint")["running"], "yes")
        self.assertEqual(self.lines()["s3"], (1, 100, 100))


class Stats(Case):
    def test_1_nobody_came(self):
        stats = self.api.get("/api/v1/stats")
        text = json.dumps(stats)
        self.assertNotIn("lockstep.", text)
        self.assertEqual(stats["parse_errors"], 0)
        self.assertEqual([x["name"] for x in stats["listeners"]], ["app"])
        self.assertEqual(self.came(), (0, 0, 0), "the node asked it at the apply")
        self.assertEqual([p["name"] for p in stats["pools"]], ["app"])
        self.assertEqual(stats["pools"][0]["state"], "up")
        self.assertEqual(stats["pools"][0]["active"], 3)
        server = stats["pools"][0]["servers"][0]
        self.assertEqual((server["name"], server["state"], server["check"]["status"],
                          server["check"]["code"]), ("s1", "up", "L7OK", 200))
        self.assertTrue(server["since"])
        counts = self.api.get("/api/v1/status")["servers"]
        self.assertEqual((counts["up"], counts["down"], counts["maint"]), (3, 0, 0))

    def came(self):
        traffic = self.api.get("/api/v1/stats")["listeners"][0]["traffic"]
        return traffic["sessions"]["total"], traffic["requests"], traffic["responses"]["2xx"]

    def test_2_three_came(self):
        before = self.api.get("/api/v1/stats?pool=app")["pools"][0]["traffic"]["requests"]
        for _ in range(3):
            self.assertEqual(visit("app.test").status, 200)

        def counted():
            traffic = self.api.get("/api/v1/stats?pool=app")["pools"][0]["traffic"]
            return traffic["requests"] == before + 3 and traffic["bytes_out"] > 0
        node.wait_for(counted, "three visits are counted")
        node.wait_for(lambda: self.came() == (3, 3, 3), "three at the listener")
        self.api.patch("/api/v1/haproxy", maxconn=3000)
        self.assertEqual(self.api.apply()["state"], "ok")
        node.wait_for(lambda: self.came() == (0, 0, 0), "a new worker counts anew")

    def test_3_pages_and_pools(self):
        for name in ("empty", "more"):
            self.api.create("pools", name=name, members=[])
        self.assertEqual(self.api.apply()["state"], "ok")
        first = self.api.get("/api/v1/stats?limit=2")
        self.assertEqual([p["name"] for p in first["pools"]], ["app", "empty"])
        rest = self.api.get("/api/v1/stats?limit=2&after=" + first["next"])
        self.assertEqual([p["name"] for p in rest["pools"]], ["more"])
        self.assertEqual((rest["next"], rest["listeners"]), (None, []))
        self.assertEqual(self.api.get("/api/v1/stats?pool=empty")["pools"][0]["servers"], [])
        for bad in ("nobody", "app%3Bshow%20info", "lockstep.probe"):
            self.api.expect(404, "GET", "/api/v1/stats?pool=" + bad)
        self.api.expect(422, "GET", "/api/v1/stats?limit=0")

    def test_4_visitors_behind_a_proxy_are_counted(self):
        """HAProxy counts no session of a connection without the line that names the visitor."""
        self.api.create("listeners", name="proxied", port=81, accept_proxy=True)
        self.assertEqual(self.api.apply()["state"], "ok")

        def sessions():
            listeners = self.api.get("/api/v1/stats")["listeners"]
            return [x["traffic"]["sessions"]["total"] for x in listeners if x["name"] == "proxied"]
        for _ in range(4):
            with socket.create_connection(("127.0.0.1", 81), timeout=5) as visitor:
                visitor.sendall(b"PROXY UNKNOWN\r\nGET / HTTP/1.0\r\n\r\n")
                self.assertTrue(visitor.recv(1))
        node.wait_for(lambda: sessions() == [4], "four are counted")

    def test_5_a_server_that_fails_its_checks_is_down(self):
        self.backends[2].close()
        self.node.wait(lambda: self.seen()["s3"]["state"] == "down", "s3 is down")
        server = self.seen()["s3"]
        self.assertIsNone(server["taken_out_by"])
        # HAProxy sees the refusal at the connect, or a moment later at the socket.
        self.assertIn(server["check"]["status"], ("L4CON", "SOCKERR"))
        self.assertTrue(server["check"]["text"])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
