#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""lockstepd dies at each step of the apply machine, going forward and going back. After the
restart database, files and HAProxy agree, the service answers, and no acknowledged change is
lost. Needs a build with test hooks."""
import os
import re
import unittest

import node
from api import Api
from backend import Backend
from cluster import ASKING, PUSHING, edges
from thief import Thief
from visit import visit

FORWARD = ("plan", "render", "check", "bind", "activate", "load", "verify", "commit", "settle")
BACK = ("back", "back_load", "back_verify")
WITH_OTHERS = ASKING + PUSHING  # these are walked where there are other nodes
# Where a change by the admin socket is half made, and where it is made and not yet said.
SOCKET = ("apply_load_before", "apply_runtime_change", "apply_runtime_end", "apply_load_after",
          "apply_verify_after", "apply_commit_after")
UNCHECKED = ("apply_check_before", "apply_check_after", "apply_activate_after",
             "apply_runtime_end", "apply_commit_after")


def machine_states():
    """The states with an action, from the table itself: a new one must be tested here."""
    path = os.path.join(node.SOURCE, "appliance", "engine", "apply_fsm.h")
    with open(path, encoding="ascii") as file:
        return re.findall(r'X\([A-Z_]+, "[^"]+", ([a-z_]+)\)', file.read())


class Crash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.backend = Backend("one")
        cls.node = node.Node(crash_file=True).set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        cls.api.expect(200, "POST", "/api/v1/publish",
                       {"url": "http://app.test", "to": [cls.backend.target]})
        assert cls.api.apply()["state"] == "ok"
        cls.value = 1000

    def apply_and_die(self, place):
        """Returns what the caller was told: the ended task, or None when the answer was cut."""
        caller = Api("127.0.0.1", 8443, self.api.key)
        task = self.node.dies_at(place, lambda: caller.apply("dies at " + place))
        self.node.wait_ready()
        return task

    def agree(self, place):
        """Database, files, HAProxy: one revision, and the service answers."""
        status = self.api.get("/api/v1/status")
        self.assertEqual(status["running"]["commit"], status["head"]["id"], (place, status))
        self.assertEqual(status["running"]["digest"], self.node.running_digest(), place)
        self.assertIn("lockstep " + self.node.running_digest(), self.node.config(), place)
        maxconn = self.api.get("/api/v1/draft")["count"] == 0 and \
            self.api.get("/api/v1/haproxy")["maxconn"]
        if maxconn:
            self.assertIn("maxconn %d\n" % maxconn, self.node.config(), place)
        self.assertTrue(self.api.get("/api/v1/verify")["ok"], place)
        self.assertEqual(visit("app.test").status, 200, place)
        return status

    def change(self):
        type(self).value += 1
        self.api.patch("/api/v1/haproxy", maxconn=self.value)

    def test_all_states_of_the_machine_are_walked(self):
        self.assertEqual(sorted(s for s in machine_states() if s != "none"),
                         sorted([*FORWARD, *WITH_OTHERS, *BACK]))

    def test_going_forward(self):
        for place in edges(FORWARD):
            with self.subTest(place=place):
                self.api.call("DELETE", "/api/v1/draft")
                self.change()
                head = self.api.get("/api/v1/status")["head"]["rev"]
                task = self.apply_and_die(place)
                status = self.agree(place)
                draft = self.api.get("/api/v1/draft")["count"]
                committed = status["head"]["rev"] == head + 1
                # Saved or still in the draft: one of the two, never none, never both.
                self.assertEqual(draft, 0 if committed else 1, place)
                if task is not None and task["state"] == "ok":
                    self.assertTrue(committed, "an acknowledged change is lost")
                self.assertEqual(self.api.get("/api/v1/haproxy")["maxconn"], self.value)

    def weight(self, pool):
        """Of its first server; the eighth column, srv_uweight. The tenth holds seconds."""
        lines = self.node.admin_socket("show servers state " + pool).splitlines()
        return int(lines[2].split()[7])

    def test_by_the_admin_socket(self):
        """The visitors' view is that of the database, whatever was half made."""
        for place in SOCKET:
            with self.subTest(place=place):
                self.api.call("DELETE", "/api/v1/draft")
                host = place.replace("_", "-") + ".test"
                self.api.patch("/api/v1/services/app.test", hosts=["app.test", host])
                pool = self.api.get("/api/v1/services/app.test")["pool"]
                members = self.api.get("/api/v1/pools/" + pool)["members"]
                members[0]["weight"] = 10 + SOCKET.index(place)
                self.api.patch("/api/v1/pools/" + pool, members=members)
                head = self.api.get("/api/v1/status")["head"]["rev"]
                self.apply_and_die(place)
                status = self.agree(place)
                committed = status["head"]["rev"] == head + 1
                self.assertEqual(committed, place == "apply_commit_after")
                self.assertEqual(visit(host).status, 200 if committed else 404, place)
                self.assertEqual(self.weight(pool) == members[0]["weight"], committed, place)

    def test_of_a_weight_that_is_not_checked(self):
        """What was published without the checker is as good as what it accepted."""
        pool = self.api.get("/api/v1/services/app.test")["pool"]
        members = self.api.get("/api/v1/pools/" + pool)["members"]
        for weight, place in enumerate(UNCHECKED, 50):
            with self.subTest(place=place):
                self.api.call("DELETE", "/api/v1/draft")
                members[0]["weight"] = weight
                self.api.patch("/api/v1/pools/" + pool, members=members)
                head = self.api.get("/api/v1/status")["head"]["rev"]
                self.apply_and_die(place)
                committed = self.agree(place)["head"]["rev"] == head + 1
                self.assertEqual(committed, place == "apply_commit_after")
                self.assertEqual(self.weight(pool) == weight, committed, place)
                task = self.api.apply()
                self.assertEqual(task["state"], "ok", task)
                self.agree(place)
                members[0]["weight"] = weight + 100
                self.api.patch("/api/v1/pools/" + pool, members=members)
                self.assertIn("only weights", str(self.api.apply()))

    def test_around_the_transaction_itself(self):
        for place, committed in (("store_before_commit", False), ("store_after_commit", True)):
            with self.subTest(place=place):
                self.api.call("DELETE", "/api/v1/draft")
                self.change()
                head = self.api.get("/api/v1/status")["head"]["rev"]
                self.apply_and_die(place)
                status = self.agree(place)
                self.assertEqual(status["head"]["rev"] == head + 1, committed, place)

    def test_going_back(self):
        """The port is taken between the bind test and the reload: the load fails."""
        for place in edges(BACK):
            with self.subTest(place=place):
                self.api.call("DELETE", "/api/v1/draft")
                head = self.api.get("/api/v1/status")["head"]["id"]
                with Thief(self.node, 7071):
                    self.api.create("listeners", name="stolen", addresses=["127.0.0.1"],
                                    port=7071)
                    self.apply_and_die(place)
                    status = self.agree(place)
                self.assertEqual(status["head"]["id"], head, place)
                self.assertEqual(self.api.get("/api/v1/draft")["count"], 1, place)
        self.api.call("DELETE", "/api/v1/draft")


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
