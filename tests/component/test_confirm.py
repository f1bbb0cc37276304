#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Apply with confirm and with only, on a real node with real traffic."""
import json
import os
import time
import unittest

import node
from backend import Backend
from lab import wait_for
from visit import visit

CONFIRM_S = 10


class Case(unittest.TestCase):
    """Host app.test on port 80 is answered by server one."""

    @classmethod
    def setUpClass(cls):
        cls.one, cls.two = Backend("one"), Backend("two")
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        cls.publish(cls.one)
        task = cls.api.apply()
        assert task["state"] == "ok", task

    def setUp(self):
        self.api.call("DELETE", "/api/v1/draft")

    @classmethod
    def publish(cls, backend):
        cls.api.expect(200, "POST", "/api/v1/publish",
                       {"url": "http://app.test", "to": [backend.target], "name": "app"})

    def apply(self, status=200, **body):
        return self.api.expect(status, "POST", "/api/v1/config/apply?wait=1", body)


class Confirm(Case):
    def waiting(self):
        return self.api.get("/api/v1/status")["confirm"]

    def next_event(self, response):
        """Data of the next event that tells of a confirmation."""
        while True:
            line = response.fp.readline()
            assert line, "the stream ended"
            if line.startswith(b"data: ") and "confirm" in (data := json.loads(line[6:])):
                return data["confirm"]

    def drained_server(self):
        """Server extra of the pool app, which is in maintenance."""
        self.api.create("servers", name="extra", address="127.0.0.1", port=9)
        members = self.api.get("/api/v1/pools/app")["members"]
        self.api.patch("/api/v1/pools/app", members=[*members, {"server": "extra"}])
        self.assertEqual(self.apply()["state"], "ok")
        self.api.expect(200, "PUT", "/api/v1/servers/extra/state", {"state": "maint"})

    def extra_is_in_maintenance(self):
        rows = [line.split() for line in
                self.node.admin_socket("show servers state app").splitlines()[2:] if line]
        return [row[6] for row in rows if row[3] == "extra"] == ["1"]

    def test_a_revision_that_nobody_confirms_goes_back_also_over_a_restart(self):
        self.drained_server()
        stream = self.api.open()
        stream.request("GET", "/api/v1/events?topics=status", headers=self.api.headers())
        events = stream.getresponse()
        before = self.api.get("/api/v1/status")["head"]
        start = time.monotonic()
        self.publish(self.two)
        members = self.api.get("/api/v1/pools/app")["members"]
        self.api.patch("/api/v1/pools/app",
                       members=[m for m in members if m["server"] != "extra"])
        self.api.delete("/api/v1/servers/extra")
        task = self.apply(confirm=CONFIRM_S)
        self.api.expect(404, "GET", "/api/v1/servers/extra")
        self.assertEqual((task["state"], visit("app.test").server), ("ok", "two"))
        waiting = self.waiting()
        self.assertEqual((waiting["rev"], waiting["back_to"], waiting["until"]),
                         (before["rev"] + 1, before["rev"], task["result"]["confirm_until"]))
        self.assertTrue(0 < waiting["seconds_left"] <= CONFIRM_S)
        self.assertEqual(self.next_event(events)["rev"], waiting["rev"])
        stream.close()
        self.api.patch("/api/v1/haproxy", error_title="Later")
        self.assertIn("/api/v1/config/confirm", self.apply(409)["detail"])
        self.api.expect(409, "POST", "/api/v1/changes?wait=1", {"ops": [], "apply": True})
        self.api.expect(409, "POST", "/api/v1/commits/%d/restore" % before["rev"],
                        {"apply": True})

        os.kill(self.node.pid_of("lockstepd"), node.signal.SIGKILL)
        self.node.wait(self.node.answers, "lockstepd is back")
        wait_for(lambda: visit("app.test").server == "one", "what was before serves again", CONFIRM_S + 20)
        self.assertGreaterEqual(time.monotonic() - start, CONFIRM_S - 1)
        wait_for(lambda: self.waiting() is None, "nothing waits")
        head = self.api.get("/api/v1/status")["head"]
        self.assertEqual((head["rev"], head["author"], head["fp"], head["summary"]),
                         (before["rev"] + 2, "lockstep", before["fp"],
                          "not confirmed: back to revision %d" % before["rev"]))
        self.assertTrue(self.extra_is_in_maintenance(), "a server came back with visitors")
        self.assertEqual(self.api.get("/api/v1/draft")["count"], 1, "the draft is lost")
        self.api.expect(409, "POST", "/api/v1/config/confirm")

    def test_a_confirmed_revision_stays(self):
        self.api.patch("/api/v1/haproxy", error_title="Kept")
        self.apply(confirm=3600)
        head = self.api.get("/api/v1/status")["head"]
        self.api.expect(409, "POST", "/api/v1/config/confirm", {"commit": "0" * 64})
        confirmed = self.api.expect(200, "POST", "/api/v1/config/confirm",
                                    {"commit": head["id"]})
        self.assertEqual(confirmed["id"], head["id"])
        self.assertIsNone(self.waiting())
        self.api.patch("/api/v1/haproxy", error_title="Next")
        self.assertEqual(self.apply()["state"], "ok")

    def test_seconds_that_are_none(self):
        for value in (9, 86401, -1, 0, 10.5, "60", True, [60], 9007199254740993):
            answer = self.api.raw("POST", "/api/v1/config/apply",
                                  json.dumps({"confirm": value}),
                                  {"Content-Type": "application/json"})
            self.assertIn(answer.status, (400, 422), value)
            if answer.status == 422:
                self.assertEqual(answer.json["errors"][0]["pointer"], "/confirm", value)


class Only(Case):
    def test_chosen_objects_and_authors(self):
        api = self.api
        admin = self.node.session()
        admin.create("servers", name="s1", address="192.0.2.1", port=81)
        api.create("pools", name="p1", members=[{"server": "s1"}])
        api.create("servers", name="s2", address="192.0.2.2", port=82)
        refused = self.apply(422, only={"objects": [{"kind": "pool", "name": "p1"}]})
        error = refused["errors"][0]
        self.assertEqual((error["code"], error["kind"], error["name"], error["pointer"]),
                         ("needs_draft", "pool", "p1", "/members/0/server"))
        self.assertIn('"s1"', error["message"])
        task = self.apply(only={"objects": [{"kind": "pool", "name": "p1"}],
                                "authors": ["admin maria"]})
        self.assertEqual(task["state"], "ok", task)
        self.assertEqual([c["name"] for c in api.get("/api/v1/draft")["changes"]], ["s2"])
        text = api.call("GET", "/api/v1/config/haproxy.cfg").body.decode()
        self.assertIn("backend p1", text)
        self.assertEqual(self.apply()["state"], "ok")
        self.assertEqual(api.get("/api/v1/draft")["count"], 0)

    def test_a_choice_that_is_none(self):
        for only, pointer in (
                ({}, "/only"), ({"objects": []}, "/only"), ([], "/only"), ("x", "/only"),
                ({"names": []}, "/only"), ({"objects": {}}, "/only/objects"),
                ({"objects": ["app"]}, "/only/objects/0"),
                ({"objects": [{"kind": "pool"}]}, "/only/objects/0"),
                ({"objects": [{"kind": "pol", "name": "app"}]}, "/only/objects/0/kind"),
                ({"objects": [{"kind": "pool", "name": "app"}]}, "/only/objects/0"),
                ({"authors": [7]}, "/only/authors/0"),
                ({"authors": ["admin nobody"]}, "/only/authors/0")):
            with self.subTest(only=only):
                errors = self.apply(422, only=only)["errors"]
                self.assertEqual(errors[0]["pointer"], pointer)


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
