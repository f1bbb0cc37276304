#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who may edit what all nodes share: by the API, on the holder of the VIP, on the others, and
when nobody holds it."""
import itertools
import json
import os
import unittest

import api as api_module
import node
from cluster import TUNABLES, Cluster, head, in_step, join
from terminal import on_terminal

VIP = "10.77.0.200"
UNLOCK = {"Lockstep-Unlock": "no-holder"}

with open(os.path.join(api_module.SOURCE, "schema", "routes.json"), encoding="utf-8") as file:
    ROUTES = json.load(file)

# Bodies that change what all nodes share, of every call that can; {} where it takes none.
CHANGES = {
    "object_create": ("POST", "/api/v1/pools", {"name": "p9"}),
    "object_replace": ("PUT", "/api/v1/pools/p1", {"name": "p1", "balance": "leastconn"}),
    "object_merge": ("PATCH", "/api/v1/pools/p1", {"balance": "source"}),
    "object_delete": ("DELETE", "/api/v1/pools/p1", None),
    "singleton_replace": ("PUT", "/api/v1/haproxy", {"maxconn": 4001}),
    "singleton_merge": ("PATCH", "/api/v1/haproxy", {"maxconn": 4002}),
    "publish_create": ("POST", "/api/v1/publish", {"url": "http://l.test", "to": ["10.77.0.1:9"]}),
    "publish_delete": ("DELETE", "/api/v1/publish/s1.test", None),
    "changes_create": ("POST", "/api/v1/changes",
                       {"apply": True, "ops": [{"op": "create", "kind": "pool",
                                                "body": {"name": "p8"}}]}),
    "import_create": ("POST", "/api/v1/import",
                      {"publish": [{"url": "http://i.test", "to": ["10.77.0.1:9"]}]}),
    "commit_restore": ("POST", "/api/v1/commits/FORMER/restore", {}),
    "operator_put": ("PUT", "/api/v1/servers/v1/state", {"state": "maint"}),
    "operator_delete": ("DELETE", "/api/v1/servers/v1/state", None),
    "cluster_draft_take": ("POST", "/api/v1/cluster/drafts/take", {"node": "n1"}),
    "cluster_overwrite": ("POST", "/api/v1/cluster/overwrite", {}),
    "config_confirm": ("POST", "/api/v1/config/confirm", {}),
}
# Of the rest it is decided that they change nothing that all nodes share.
ELSE = {"pool_check", "draft_discard_all", "draft_discard", "config_apply"}


class Lock(unittest.TestCase):
    numbers = itertools.count(4100)

    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(2, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.a, cls.b = cls.lab.nodes
        api = cls.a.api
        api.create("vip_groups", name="public", addresses=[VIP + "/24"])
        api.create("servers", name="v1", address="10.77.0.1", port=9)
        api.create("pools", name="p1")
        api.expect(200, "POST", "/api/v1/publish", {"url": "http://s1.test", "to": ["10.77.0.1:9"]})
        task = api.apply()
        assert task["state"] == "ok", task
        api.expect(200, "PUT", "/api/v1/servers/v1/state", {"state": "drain"})
        join(cls.b, cls.a)
        cls.former = api.get("/api/v1/commits?limit=1000")["items"][-1]["id"]
        node.wait_for(lambda: head(cls.a) == head(cls.b), "in step")

    def tearDown(self):
        self.lab.vip(None, VIP)
        for one in self.lab.nodes:
            one.api.raw("DELETE", "/api/v1/draft")

    def settled(self, one, edit):
        node.wait_for(lambda: one.api.get("/api/v1/cluster")["edit"] == edit, edit)

    def call(self, api, name, headers=None):
        method, path, body = CHANGES[name]
        path = path.replace("FORMER", self.former)
        if name == "singleton_merge":  # another one each time: what changes nothing is no edit
            body = {"maxconn": next(self.numbers)}
        headers = dict(headers or {})
        if method in ("PUT", "PATCH", "DELETE") and "publish" not in path:
            headers["If-Match"] = api.etag(path) if "state" not in path else "*"
        if "state" in path:
            headers.pop("If-Match")
        return api.call(method, path, body, headers)

    def assert_locked(self, one, words, headers=None):
        before = head(one), one.api.get("/api/v1/draft")["count"]
        for name in CHANGES:
            with self.subTest(name):
                answer = self.call(one.api, name, headers)
                self.assertEqual((answer.status, answer.json["code"]), (423, "locked"), answer)
                self.assertIn(words, answer.json["detail"])
        self.assertEqual((head(one), one.api.get("/api/v1/draft")["count"]), before)

    def test_every_route_is_decided(self):
        mutating = {r["id"] for r in ROUTES
                    if r["method"] != "GET" and r["permission"] in ("operate", "edit")
                    and r["id"] != "render_create"}
        self.assertEqual(mutating - ELSE, set(CHANGES))

    def test_where_another_node_holds_the_vip(self):
        self.lab.vip(self.a, VIP)
        self.settled(self.b, "elsewhere")
        self.assert_locked(self.b, "n1 holds the VIP: edit there, at https://")
        self.assert_locked(self.b, "n1 holds the VIP", UNLOCK)
        self.settled(self.a, "here")
        self.assertEqual(self.call(self.a.api, "object_merge").status, 200)

    def on_terminal(self, one, command):
        """What it shows, of which nothing is cut or too long for 80 columns."""
        status, out, _ = on_terminal(one.cli_command(command))
        self.assertEqual(status, 0, out)
        self.assertNotIn("~", out)
        self.assertLessEqual(max(map(len, out.splitlines())), 80, out)
        return out

    def test_people_see_where_it_is(self):
        where = r"(?m)^edit +n1 holds the VIP: edit there, at https://10.77.0.11:"
        self.lab.vip(self.a, VIP)
        for one, edit in (self.a, "here"), (self.b, "elsewhere"):
            self.settled(one, edit)
        in_step(self.lab.nodes)
        for one, relations in (self.a, ("this node", "in step")), (self.b, ("in step", "this node")):
            shown = self.on_terminal(one, "cluster")
            self.assertRegex(shown, r"(?m)^n1 +%s +yes +\S+ +as stored " % relations[0])
            self.assertRegex(shown, r"(?m)^n2 +%s +- +\S+ +as stored " % relations[1])
            self.assertRegex(self.on_terminal(one, "status"),
                             r"(?m)^cluster +2 nodes, the VIP is on n1\r?$")
        for command in "cluster", "status":
            self.assertRegex(self.on_terminal(self.b, command), where)
            self.assertNotRegex(self.on_terminal(self.a, command), where)
        self.lab.vip(None, VIP)
        self.settled(self.b, "locked")
        node.wait_for(lambda: "; no_holder n2: " in self.on_terminal(self.b, "status"),
                      "it says so")
        self.assertIn("the VIP is on none of them", self.on_terminal(self.b, "status"))
        self.assertIn("--unlock", self.on_terminal(self.b, "status"))

    def test_what_is_of_this_node_alone_is_never_locked(self):
        self.lab.vip(self.a, VIP)
        self.settled(self.b, "elsewhere")
        self.b.api.patch("/api/v1/node", note="rack 4")
        self.assertEqual(self.b.api.apply()["state"], "ok")

    def test_where_nobody_holds_it(self):
        self.settled(self.b, "locked")
        self.assert_locked(self.b, "no node that answers holds the VIP")
        answer = self.call(self.b.api, "singleton_merge", UNLOCK)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(self.b.api.call("POST", "/api/v1/config/apply", {}).status, 423)

    def test_a_sign_in_is_unlocked_for_itself_and_until_somebody_holds_it(self):
        self.settled(self.b, "locked")
        one, other = self.b.session(), self.b.session()
        self.assertEqual(self.call(one, "singleton_merge").status, 423)
        one.expect(204, "POST", "/api/v1/session/unlock")
        self.assertEqual(self.call(one, "singleton_merge").status, 200)
        self.assertEqual(self.call(other, "singleton_merge").status, 423)
        self.lab.vip(self.a, VIP)
        self.settled(self.b, "elsewhere")
        self.assertEqual(self.call(one, "singleton_merge").status, 423)
        self.lab.vip(None, VIP)
        self.settled(self.b, "locked")
        self.assertEqual(self.call(one, "singleton_merge").status, 423, "it does not come back")

    def test_an_unlocked_sign_in_is_locked_after_a_restart(self):
        """C043: that it was unlocked is not stored, though the sign-in is."""
        self.settled(self.b, "locked")
        one = self.b.session()
        one.expect(204, "POST", "/api/v1/session/unlock")
        self.assertEqual(self.call(one, "singleton_merge").status, 200)
        self.b.stop()
        self.b.start()
        self.b.wait_ready()
        self.settled(self.b, "locked")
        self.assertEqual(one.get("/api/v1/session")["admin"], "maria")
        self.assertEqual(self.call(one, "singleton_merge").status, 423)
        one.expect(204, "POST", "/api/v1/session/unlock")
        self.assertEqual(self.call(one, "singleton_merge").status, 200)

    def test_two_holders_may_both(self):
        """C047: who has the address may edit, wherever it came from. Both are named by the condition
        two_holders, and what both edit at once is diverged: no edit is lost, a person decides."""
        self.lab.hold(self.a, VIP)
        self.lab.hold(self.b, VIP)
        for one in self.lab.nodes:
            self.settled(one, "here")
            self.assertEqual(self.call(one.api, "singleton_merge").status, 200)


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
