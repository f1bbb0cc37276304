#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every operation of openapi.json on a real node; each answer is held against the document."""
import concurrent.futures
import http.client
import json
import os
import socket
import ssl
import subprocess
import time
import unittest

import api as api_module
import node
from api import Api

SAMPLES = {
    "servers": {"address": "192.0.2.7", "port": 8080},
    "pools": {"members": []},
    "monitors": {"type": "http", "path": "/healthz"},
    "listeners": {"port": 8088, "addresses": ["127.0.0.1"]},
    "services": {"listeners": ["walk"], "pool": "walk", "hosts": ["walk.example.test"]},
    "conditions": {"type": "src", "values": ["192.0.2.0/24"]},
    "rules": {"service": "walk", "action": "deny", "conditions": [{"condition": "walk"}]},
    "vip_groups": {"addresses": ["192.0.2.10/24"]},
}
ORDER = ("servers", "monitors", "pools", "listeners", "services", "conditions", "rules",
         "vip_groups")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api


class Walk(Case):
    """In the order of their names."""

    def walk_object(self, plural):
        api, path = self.api, "/api/v1/%s/walk" % plural
        made = api.create(plural, name="walk", **SAMPLES[plural])
        read = api.call("GET", path)
        self.assertEqual(read.json, made)
        self.assertIn("walk", [i["name"] for i in api.get("/api/v1/%s?q=wal" % plural)["items"]])
        # Writing back what was read changes nothing.
        body = {k: v for k, v in made.items() if k not in ("id", "kind")}
        again = api.call("PUT", path, body, {"If-Match": read.headers["ETag"]})
        self.assertEqual((again.status, again.headers["ETag"]), (200, read.headers["ETag"]))
        api.expect(200, "PATCH", path, {}, {"If-Match": read.headers["ETag"]})
        for method, body in (("PUT", body), ("PATCH", {}), ("DELETE", None)):
            api.expect(428, method, path, body)
            api.expect(412, method, path, body, {"If-Match": '"%s"' % ("0" * 64)})
        api.expect(409, "POST", "/api/v1/" + plural, dict(SAMPLES[plural], name="walk"))
        api.expect(404, "GET", "/api/v1/%s/absent" % plural)

    def test_1_objects(self):
        for plural in ORDER:
            with self.subTest(plural=plural):
                self.walk_object(plural)

    def test_2_deletes_are_refused_while_in_use(self):
        answer = self.api.call("DELETE", "/api/v1/pools/walk", None,
                               {"If-Match": self.api.etag("/api/v1/pools/walk")})
        self.assertEqual(answer.status, 409)
        self.assertIn("walk", json.dumps(answer.json["errors"]))
        self.assertEqual(answer.json["errors"][0]["code"], "in_use")

    def test_2_a_clash_is_told_at_the_object_that_is_new(self):
        # "a" sorts before "walk": which of the two is told of must not hang on the name.
        for plural, change, code, pointer in (
                ("services", {}, "published_twice", "/hosts/0"),
                ("listeners", {}, "port_clash", "/addresses/0"),
                ("listeners", {"addresses": ["0.0.0.0"]}, "port_clash", "/addresses/0")):
            answer = self.api.call("POST", "/api/v1/" + plural,
                                   {**SAMPLES[plural], "name": "a", **change})
            self.assertEqual(answer.status, 422)
            error = answer.json["errors"][0]
            self.assertEqual((error["code"], error["name"], error["pointer"]),
                             (code, "a", pointer), error)
            self.assertIn('"walk"', error["message"])

    def test_3_draft_diff_check_render_apply(self):
        api = self.api
        self.assertEqual(api.get("/api/v1/draft")["count"], len(ORDER))
        diff = api.get("/api/v1/config/diff")
        self.assertIn("+backend walk", diff["haproxy_cfg"])
        self.assertEqual({o["change"] for o in diff["objects"]}, {"added"})
        self.assertTrue(api.expect(200, "POST", "/api/v1/config/check")["ok"])
        preview = api.expect(200, "POST", "/api/v1/render",
                             {"kind": "pool", "name": "walk", "body": {
                                 "name": "walk", "balance": "leastconn", "members": []}})
        line = preview["text"].splitlines().index("    balance leastconn") + 1
        origin = [found for found in preview["lines"] if found["n"] == line]
        self.assertEqual((origin[0]["kind"], origin[0]["name"], origin[0]["field"]),
                         ("pool", "walk", "balance"))
        task = api.apply("walk")
        self.assertEqual(task["state"], "ok", task)
        self.assertEqual(api.get("/api/v1/tasks/%d" % task["id"])["state"], "ok")
        self.assertIn("backend walk", self.api.call("GET", "/api/v1/config/haproxy.cfg")
                      .body.decode())
        self.assertEqual(self.node.config(),
                         self.api.call("GET", "/api/v1/config/haproxy.cfg").body.decode())
        api.get("/api/v1/tasks")

    def test_4_history_and_restore(self):
        api = self.api
        head = api.get("/api/v1/status")["head"]
        api.patch("/api/v1/monitors/walk", interval_ms=4321)
        api.apply("slower")
        commits = api.get("/api/v1/commits?limit=2")
        self.assertEqual(commits["items"][0]["summary"], "slower")
        self.assertEqual(commits["items"][0]["parents"], [head["id"]])
        api.get("/api/v1/commits/%d" % head["rev"])
        api.get("/api/v1/commits/%s" % head["id"])
        api.get("/api/v1/commits/%d@%s" % (head["rev"], head["fp8"]))
        diff = api.get("/api/v1/commits/%d/diff" % (head["rev"] + 1))
        self.assertEqual([f["field"] for f in diff["objects"][0]["fields"]], ["interval_ms"])
        api.get("/api/v1/commits/%d/diff?to=%d" % (head["rev"] + 1, head["rev"]))
        result = api.expect(200, "POST", "/api/v1/commits/%d/restore" % head["rev"], {})
        self.assertEqual([(o["name"], o["change"]) for o in result["objects"]],
                         [("walk", "changed")])
        self.assertEqual(api.get("/api/v1/monitors/walk")["interval_ms"], 5000)
        task = api.apply("restored")
        self.assertEqual(task["state"], "ok", task)
        self.assertEqual(api.get("/api/v1/status")["head"]["fp"], head["fp"])
        api.expect(404, "GET", "/api/v1/commits/999")

    def test_4_what_only_an_apply_takes_is_refused_without_it(self):
        for path, body in (("/api/v1/publish", {"url": "http://x.test", "to": ["192.0.2.1:80"]}),
                           ("/api/v1/commits/1/restore", {}), ("/api/v1/changes", {"ops": []})):
            for key, value in (("confirm", 60), ("note", "n")):
                refused = self.api.expect(422, "POST", path, dict(body, **{key: value}))
                self.assertEqual(refused["errors"][0]["pointer"], "/" + key)
                self.assertEqual(self.api.get("/api/v1/draft")["count"], 0)

    def test_5_deleting_and_discarding(self):
        api = self.api
        for plural in reversed(ORDER):
            api.delete("/api/v1/%s/walk" % plural)
        api.expect(409, "DELETE", "/api/v1/draft/service/walk")
        api.expect(204, "DELETE", "/api/v1/draft/monitor/walk")
        api.expect(204, "DELETE", "/api/v1/draft")
        self.assertEqual(api.get("/api/v1/draft")["count"], 0)

    def test_6_singletons(self):
        for path, change in (("haproxy", {"maxconn": 3210}), ("node", {"note": "rack 4"}),
                             ("webui", {"hosts": ["proxy1.test"]})):
            read = self.api.call("GET", "/api/v1/" + path)
            tag = {"If-Match": read.headers["ETag"]}
            body = {k: v for k, v in read.json.items() if k not in ("id", "kind")}
            self.api.expect(200, "PUT", "/api/v1/" + path, body, tag)
            self.api.expect(200, "PATCH", "/api/v1/" + path, change, tag)
        self.assertEqual(self.api.apply("settings")["state"], "ok")

    def test_7_secrets_never_come_back(self):
        api = self.api
        chain, key = certificate(self.node.root)
        secret = key.splitlines()[2]
        api.create("certificates", name="site", chain=chain, key=key)
        read = api.call("GET", "/api/v1/certificates/site")
        self.assertEqual(read.json["key"], {"set": True})
        tag = {"If-Match": read.headers["ETag"]}
        kept = api.call("PUT", "/api/v1/certificates/site", {"name": "site", "chain": chain}, tag)
        self.assertEqual((kept.status, kept.headers["ETag"]), (200, read.headers["ETag"]))
        api.expect(200, "PATCH", "/api/v1/certificates/site", {}, tag)
        api.create("listeners", name="tls", port=8444 + 1, addresses=["127.0.0.1"], tls=True,
                   certificates=["site"])
        self.assertEqual(api.apply("certificate")["state"], "ok")
        rev = api.get("/api/v1/status")["head"]["rev"]
        for target in ("certificates", "certificates/site", "draft", "config/diff", "commits",
                       "commits/%d/diff" % rev, "config/haproxy.cfg", "tasks", "status"):
            self.assertNotIn(secret.encode(), api.call("GET", "/api/v1/" + target).body, target)
        self.assertNotIn(secret, self.node.log())
        for folder, _, names in os.walk(os.path.join(self.node.state, "data")):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    self.assertNotIn(secret.encode(), file.read(), name)
        api.delete("/api/v1/listeners/tls")
        api.delete("/api/v1/certificates/site")
        self.assertEqual(api.apply("no certificate")["state"], "ok")

    def test_8_changes_at_once(self):
        api = self.api
        head = api.get("/api/v1/status")["head"]["id"]
        ops = [{"op": "create", "kind": "pool", "name": "p9", "body": {
                    "name": "p9", "members": [{"server": "s9"}]}},
               {"op": "create", "kind": "server", "name": "s9", "body": {
                   "name": "s9", "address": "192.0.2.9", "port": 9}}]
        self.assertEqual(api.expect(200, "POST", "/api/v1/changes?wait=1", {
            "base": head, "ops": ops, "note": "both", "apply": True,
            "confirm": 600})["state"], "ok")
        api.expect(200, "POST", "/api/v1/config/confirm")
        api.expect(409, "POST", "/api/v1/changes?wait=1",
                   {"base": head, "ops": [], "apply": True})
        api.expect(200, "POST", "/api/v1/changes", {"ops": [
            {"op": "merge", "kind": "server", "name": "s9", "body": {"port": 10}}]})
        self.assertEqual(api.get("/api/v1/servers/s9")["port"], 10)
        bad = api.call("POST", "/api/v1/changes", {"ops": [
            {"op": "create", "kind": "server", "name": "fine", "body": {
                "name": "fine", "address": "192.0.2.1", "port": 1}},
            {"op": "create", "kind": "pool", "name": "bad", "body": {
                "name": "bad", "members": [{"server": "nowhere"}]}}]})
        self.assertEqual(bad.status, 422)
        api.expect(404, "GET", "/api/v1/servers/fine")
        api.expect(204, "DELETE", "/api/v1/draft")

    def test_9_accounts_sessions_keys(self):
        api = self.api
        admin = self.node.session()
        self.assertEqual(admin.get("/api/v1/session")["admin"], "maria")
        made = admin.create("automation_keys", name="deploy")
        script = Api("127.0.0.1", 8443, made["key"])
        self.assertEqual(script.get("/api/v1/session")["key"], "deploy")
        for name in ("automation_keys/deploy",):
            read = admin.call("GET", "/api/v1/" + name)
            self.assertNotIn(made["key"], read.body.decode())
            tag = {"If-Match": read.headers["ETag"]}
            changed = admin.call("PATCH", "/api/v1/" + name, {"note": "ci"}, tag)
            body = {k: v for k, v in changed.json.items() if k not in ("id", "kind")}
            admin.expect(200, "PUT", "/api/v1/" + name, body,
                         {"If-Match": changed.headers["ETag"]})
        admin.get("/api/v1/automation_keys")
        script.get("/api/v1/status")
        admin.delete("/api/v1/automation_keys/deploy")
        script.expect(401, "GET", "/api/v1/status")
        self.walk_admins(admin)
        admin.expect(204, "DELETE", "/api/v1/session")
        admin.expect(401, "GET", "/api/v1/status")
        api.get("/api/v1/status")

    def walk_admins(self, admin):
        admin.create("admins", name="olga", password="another good one")
        olga = Api("127.0.0.1", 8443)
        olga.sign_in("olga", "another good one")
        olga.get("/api/v1/admins")
        read = olga.call("GET", "/api/v1/admins/olga")
        self.assertEqual(read.json["password"], {"set": True})
        olga.expect(200, "PUT", "/api/v1/admins/olga", {"name": "olga", "note": "on call"},
                    {"If-Match": read.headers["ETag"]})
        admin.patch("/api/v1/admins/olga", password="a new one for olga")
        olga.expect(401, "GET", "/api/v1/status")
        olga.cookie = olga.csrf = None
        olga.sign_in("olga", "a new one for olga")
        admin.delete("/api/v1/admins/olga")
        olga.expect(401, "GET", "/api/v1/status")
        admin.expect(409, "DELETE", "/api/v1/admins/maria", None,
                     {"If-Match": admin.etag("/api/v1/admins/maria")})

    def test_a_open_routes(self):
        anybody = Api("127.0.0.1", 8443)
        self.node.wait_ready()
        self.assertEqual(anybody.call("GET", "/api/v1/health").body, b"up\n")
        self.assertEqual(anybody.call("GET", "/api/v1/ready").body, b"ready\n")
        self.assertTrue(anybody.get("/api/v1/setup")["configured"])
        anybody.get("/api/v1/schema")
        self.assertEqual(anybody.get("/api/v1/openapi.json"), api_module.DOCUMENT)
        anybody.expect(409, "POST", "/api/v1/setup",
                       {"token": "x", "name": "eve", "password": "long enough to try"})
        self.assertTrue(self.api.get("/api/v1/verify")["ok"])

    def test_a_health_is_that_of_the_own_haproxy_now(self):
        anybody = Api("127.0.0.1", 8443)
        pids = self.node.pids("haproxy")
        try:
            for pid in pids:
                os.kill(pid, node.signal.SIGSTOP)
            node.wait_for(lambda: anybody.call("GET", "/api/v1/health").body == b"down\n", "down")
            ready = anybody.call("GET", "/api/v1/ready")
            self.assertEqual((ready.status, ready.body), (503, b"down\n"))
            self.assertTrue(ready.headers["Lockstep-Node"])
            node.wait_for(lambda: (self.api.get("/api/v1/status")["silent_s"] or 0) >= 1, "silence")
        finally:
            for pid in pids:
                os.kill(pid, node.signal.SIGCONT)
        node.wait_for(lambda: anybody.call("GET", "/api/v1/health").status == 200, "up")
        self.assertIsNone(self.api.get("/api/v1/status")["silent_s"])
        self.node.wait_ready()

    def test_b_publish(self):
        request = {"url": "http://p.example.test", "to": ["192.0.2.1:80"]}
        self.api.expect(200, "POST", "/api/v1/publish?plan=1", request)
        self.api.expect(200, "POST", "/api/v1/publish", request)
        self.api.expect(200, "POST", "/api/v1/pools/p.example.test/check")
        self.api.expect(200, "DELETE", "/api/v1/publish/p.example.test")
        wrong = self.api.call("POST", "/api/v1/publish", dict(request, helth="x"))
        self.assertIn(wrong.status, (400, 422))
        self.assertIn("helth", wrong.body.decode())
        self.api.expect(204, "DELETE", "/api/v1/draft")

    def test_b_import(self):
        document = {"publish": [{"url": "http://i.example.test", "to": ["192.0.2.1:80"]}],
                    "objects": [{"kind": "pool", "body": {
                        "name": "i.example.test", "retries": 7}}]}
        before = self.api.get("/api/v1/draft")
        plan = self.api.expect(200, "POST", "/api/v1/import?plan=1", document)
        self.assertIn("+backend i.example.test", plan["diff"]["haproxy_cfg"])
        self.assertEqual(self.api.get("/api/v1/draft"), before)
        document["objects"].append({"kind": "pool", "body": {
            "name": "i.example.test", "members": [{"server": "absent"}]}})
        error = self.api.expect(422, "POST", "/api/v1/import", document)["errors"][0]
        self.assertEqual((error["kind"], error["name"], error["pointer"]), (
            "pool", "i.example.test", "/objects/1/body/members/0/server"))
        self.assertEqual(self.api.get("/api/v1/draft"), before)
        document["objects"].pop()
        made = self.api.expect(200, "POST", "/api/v1/import", document)
        self.assertIn("i.example.test", [o["name"] for o in made["objects"]])
        self.assertEqual(self.api.get("/api/v1/pools/i.example.test")["retries"], 7)
        self.assertEqual(self.api.expect(200, "POST", "/api/v1/import", document)["objects"], [])
        self.api.expect(400, "POST", "/api/v1/import", {"objects": {}})
        self.api.expect(422, "POST", "/api/v1/import", {"objects": ["x"]})
        # Neither a long name nor many services take the daemon with them.
        pid = self.node.pid_of("lockstepd")
        one = {"url": "http://a.test", "to": ["192.0.2.1:1"]}
        for publish in ([{"name": "x" * 9000000, "url": "bad"}], [one] * 1001, [one] * 150000):
            self.api.expect(422, "POST", "/api/v1/import?plan=1", {"publish": publish})
        self.assertEqual(self.node.pid_of("lockstepd"), pid)
        self.api.expect(204, "DELETE", "/api/v1/draft")

    def test_c_events(self):
        connection = self.api.open()
        connection.request("GET", "/api/v1/events?topics=draft,task", headers=self.api.headers())
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        self.assertTrue(response.headers["Content-Type"].startswith("text/event-stream"))
        api_module.HITS.add(api_module.operation_of("GET", "/api/v1/events")["operationId"])
        self.api.create("monitors", name="event")
        text = b""
        while b"event: draft" not in text:
            text += response.fp.readline()
        connection.close()
        self.api.expect(204, "DELETE", "/api/v1/draft")

    def test_d_states_and_statistics(self):
        api = self.api
        api.create("servers", name="stated", address="127.0.0.1", port=9)
        # A state is decided at once, so that its server has to be there.
        api.expect(404, "PUT", "/api/v1/servers/stated/state", {"state": "drain"})
        self.assertEqual(api.apply()["state"], "ok")
        put = api.expect(200, "PUT", "/api/v1/servers/stated/state", {"state": "drain"})
        self.assertEqual((put["stored"]["state"], put["running"], put["pools"]),
                         ("drain", "no", []))
        self.assertEqual(api.get("/api/v1/servers/stated/state")["stored"], put["stored"])
        api.expect(200, "DELETE", "/api/v1/servers/stated/state")
        made = api.create("server_states", name="stated", server="stated", weight=50)
        path = "/api/v1/server_states/stated"
        self.assertEqual(api.get(path), made)
        self.assertEqual(api.get("/api/v1/server_states")["items"], [made])
        api.patch(path, note="n")
        # Maintenance does not end, and a weight does not rise, because a PUT leaves it out (C263).
        body = {"name": "stated", "server": "stated"}
        refused = api.expect(422, "PUT", path, body, {"If-Match": api.etag(path)})
        self.assertEqual([e["pointer"] for e in refused["errors"]], ["/weight"])
        body["weight"] = 100
        api.expect(200, "PUT", path, body, {"If-Match": api.etag(path)})
        api.delete(path)
        api.get("/api/v1/stats")

    def test_e_the_cluster_of_one_node(self):
        api = self.node.session()
        own = api.get("/api/v1/cluster/key")
        self.assertEqual([n["name"] for n in api.get("/api/v1/cluster")["nodes"]], ["n1"])
        absent = dict(own, url="https://127.0.0.1:1")
        plan = api.expect(200, "POST", "/api/v1/cluster/join?plan=1", absent)
        self.assertEqual([c["ok"] for c in plan["checks"]], [False])
        api.expect(409, "POST", "/api/v1/cluster/join", absent)
        self.assertIn("own address", api.expect(409, "POST", "/api/v1/cluster/join", own)["detail"])
        api.expect(404, "POST", "/api/v1/cluster/forget", {"node": "absent"})
        api.expect(404, "GET", "/api/v1/cluster/compare?node=absent")
        api.expect(409, "POST", "/api/v1/cluster/overwrite", {})
        for nodes in ("n2", {"n2": 1}, [], [7], 7, ["n"] * 65):  # none of these means all nodes
            api.expect(422, "POST", "/api/v1/cluster/overwrite", {"nodes": nodes})
        api.expect(404, "POST", "/api/v1/cluster/overwrite", {"nodes": ["absent"]})
        self.assertEqual(api.get("/api/v1/cluster/drafts")["nodes"][0]["changes"], [])
        api.expect(404, "POST", "/api/v1/cluster/drafts/take", {"node": "absent"})
        api.expect(204, "POST", "/api/v1/session/unlock")
        api.expect(204, "DELETE", "/api/v1/session/unlock")
        self.assertNotEqual(api.expect(200, "POST", "/api/v1/cluster/key")["key"], own["key"])
        api.expect(200, "POST", "/api/v1/cluster/leave")

    def test_e_what_another_node_asks(self):
        peer = Api("127.0.0.1", 8443, self.node.session().get("/api/v1/cluster/key")["key"])
        health = peer.get("/peer/v1/health?head=" + "0" * 64)
        self.assertLess(len(json.dumps(health)), 1024)
        members = peer.get("/peer/v1/members")
        self.assertEqual(peer.expect(200, "POST", "/peer/v1/members", members), members)
        self.assertTrue(peer.expect(200, "POST", "/peer/v1/admit", members["members"][0])["reached"])
        peer.expect(422, "POST", "/peer/v1/admit", dict(members["members"][0], id="x"))
        document = peer.expect(200, "POST", "/peer/v1/config/read", {"have": [], "objects": []})
        taken = peer.expect(200, "PUT", "/peer/v1/config", document)
        self.assertEqual((taken["state"], taken["head"]), ("same", health["head"]["id"]))
        for bad in ({}, dict(document, head="0" * 64), dict(document, commits=[{}]),
                    dict(document, objects=[["node", "node", {}]]),
                    dict(document, objects=[["pool", "x", {}]])):
            for method, path in (("PUT", "config"), ("POST", "check"), ("POST", "trial")):
                answer = peer.call(method, "/peer/v1/" + path, bad)
                self.assertIn(answer.status, (400, 422), (path, bad.keys()))
        piece = {"head": document["head"], "commits": document["commits"], "objects": [], "more": True}
        for method, path in (("PUT", "config"), ("POST", "check"), ("POST", "trial")):
            for bad in (piece, {**document, "more": True}):
                peer.expect(422, method, "/peer/v1/" + path, bad)
        piece["expected_head"] = document["head"]
        self.assertEqual(peer.expect(200, "PUT", "/peer/v1/config", piece)["state"], "stored")
        for status, ids in ((422, {}), (422, ["x"]), (422, ["0" * 64] * 129), (200, ["0" * 64] * 128)):
            peer.expect(status, "POST", "/peer/v1/config/read", {"have": [], "stored": ids, "objects": []})
        for path in ("check", "trial"):
            self.assertEqual(peer.expect(200, "POST", "/peer/v1/" + path, document)["state"],
                             "same")
        peer.expect(204, "DELETE", "/peer/v1/trial?commit=" + "0" * 64)
        peer.expect(422, "DELETE", "/peer/v1/trial?commit=" + "x" * 64)
        self.assertEqual(peer.get("/peer/v1/health")["head"], health["head"])
        self.assertEqual(peer.get("/peer/v1/draft?content=1")["rows"], [])
        self.assertEqual(peer.expect(200, "POST", "/peer/v1/draft/taken", {"taken": []})["left"], 0)
        peer.expect(422, "POST", "/peer/v1/draft/taken", {"taken": [["node", "x", None]]})
        login = {"name": "handed", "note": "", "password": "scrypt$15$8$1$%s$%s" % ("A" * 22, "A" * 43)}
        handed = {"admin": login, "overwrite": False, "who": "admin maria"}
        self.assertEqual(peer.expect(200, "POST", "/peer/v1/account", handed), {"state": "created"})
        self.node.session().delete("/api/v1/admins/handed")

    def test_z_no_operation_was_left_out(self):
        # These succeed with other nodes only.
        elsewhere = {"cluster_admin": "cluster/admin", "cluster_forget": "cluster/forget",
                     "cluster_overwrite": "cluster/overwrite",
                     "cluster_compare": "cluster/compare", "cluster_draft_take": "drafts/take"}
        tests = [read_text("test_%s.py" % f) for f in ("sync", "conditions", "copy_admin", "drafts")]
        for path in elsewhere.values():
            self.assertTrue(any(path in text for text in tests), path)
        self.assertEqual(sorted(api_module.ALL - api_module.HITS - set(elsewhere)), [])


def read_text(name):
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()


class Hostile(Case):
    def talk(self, data, reads=65536):
        """Raw bytes on a TLS connection -> what came back before it was closed."""
        with socket.create_connection(("127.0.0.1", 8443), timeout=20) as plain:
            with ssl._create_unverified_context().wrap_socket(plain) as client:
                client.sendall(data)
                out = b""
                try:
                    while piece := client.recv(reads):
                        out += piece
                        if b"\r\n\r\n" in out and b"Connection: close" not in out:
                            break
                except (ssl.SSLError, ConnectionResetError):
                    pass
                return out

    def status_of(self, request_line, *headers):
        data = "\r\n".join([request_line, "Host: x", "Authorization: Bearer " + self.api.key,
                            *headers, "", ""])
        found = self.talk(data.encode("latin-1"))
        return int(found.split(b" ")[1]) if found.startswith(b"HTTP/1.1 ") else 0

    def test_targets(self):
        for target, expected in (
                ("/api/v1/servers/a%2fb", (404,)), ("/api/v1/servers/a%00b", (400,)),
                ("/api/v1/servers/%zz", (400,)), ("/api/v1//servers", (400, 404)),
                ("/api/v1/../v1/status", (400, 404)), ("/api/v1/%2e%2e/status", (400, 404)),
                ("/api/v1/servers/%ff", (400,)), ("/api/v1/servers/" + "a" * 5000, (400, 404, 414)),
                ("/api/v1/status?x=1", (400,)), ("/api/v1/servers?limit=0", (400, 422)),
                ("/api/v1/servers?limit=99999999999999999999", (400, 422)),
                ("/api/v1/nothing", (404,)), ("/api/v1/status/", (404,)), ("*", (400, 404)),
                ("/api/v1/servers/'; DROP TABLE", (400, 404)), ("/API/v1/status", (404,))):
            with self.subTest(target=target):
                self.assertIn(self.status_of("GET %s HTTP/1.1" % target), expected)

    def test_messages(self):
        self.assertIn(b" 400 ", self.talk(b"GET /api/v1/health HTTP/1.1\r\n\r\n")[:20])
        self.assertEqual(self.status_of("POST /api/v1/servers HTTP/1.1", "Content-Length: 2",
                                        "Transfer-Encoding: chunked"), 400)
        self.assertEqual(self.status_of("DELETE /api/v1/status HTTP/1.1"), 405)
        self.assertIn(self.status_of("BREW /api/v1/status HTTP/1.1"), (405, 501))

    def test_bodies(self):
        json_type = {"Content-Type": "application/json"}
        def post(data, headers=None):
            return self.api.raw("POST", "/api/v1/servers", data, headers or json_type).status
        body = '{"name":"x","address":"192.0.2.1","port":%s}'
        self.assertEqual(post(body % '"80"'), 422)
        for number in ("0", "-1", "65536", "9007199254740993", "1e400", "80.5"):
            self.assertIn(post(body % number), (400, 422), number)
        self.assertEqual(post('{"name":"x","name":"y"}'), 400)
        self.assertEqual(post("[" * 10000), 400)
        self.assertEqual(post('{"name":"x\\u0000"}'), 400)
        self.assertEqual(post(""), 400)
        self.assertEqual(post("{}", {"Content-Type": "text/plain"}), 415)
        self.assertEqual(post(json.dumps({"name": "x", "address": "192.0.2.1", "port": 1,
                                          "surprise": 1})), 422)
        self.api.get("/api/v1/setup")

    def test_a_body_over_the_limit_is_not_taken(self):
        pid = self.node.pid_of("lockstepd")
        before = resident_kb(pid)
        big = b'{"name":"' + b"x" * (17 << 20) + b'"}'
        try:
            status = self.api.raw("POST", "/api/v1/servers", big,
                                  {"Content-Type": "application/json"}).status
        except OSError:
            status = 413  # closed while we were still sending
        self.assertEqual(status, 413)
        self.assertLess(resident_kb(pid) - before, 4096)  # AddressSanitizer keeps some, too
        self.api.get("/api/v1/setup")


class Slow(Case):
    @classmethod
    def setUpClass(cls):
        cls.node = node.Node(tunables={"header_ms": 1000, "idle_ms": 1000, "request_ms": 2000})
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.set_up().api

    def ended_within(self, seconds, trickle):
        """How long the server bears a client that sends one byte of trickle every 0.2 s."""
        start = time.monotonic()
        with socket.create_connection(("127.0.0.1", 8443), timeout=seconds) as plain:
            client = ssl._create_unverified_context().wrap_socket(plain)
            client.settimeout(0.2)
            for byte in trickle:
                try:
                    client.sendall(bytes([byte]))
                    if client.recv(4096) == b"":
                        break
                except TimeoutError:
                    pass
                except OSError:
                    break
                if time.monotonic() - start > seconds:
                    self.fail("still open after %d s" % seconds)
        return time.monotonic() - start

    def test_a_header_that_trickles_in(self):
        self.ended_within(5, b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n" + b"A" * 1000)

    def test_a_body_that_trickles_in(self):
        head = ("POST /api/v1/servers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                "Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n" % self.api.key)
        start = time.monotonic()
        with socket.create_connection(("127.0.0.1", 8443), timeout=8) as plain:
            with ssl._create_unverified_context().wrap_socket(plain) as client:
                client.sendall(head.encode())
                try:
                    while client.recv(4096):
                        pass
                except OSError:
                    pass
        self.assertLess(time.monotonic() - start, 7)

    def test_a_connection_that_says_nothing(self):
        with socket.create_connection(("127.0.0.1", 8443), timeout=8) as silent:
            self.assertEqual(silent.recv(10), b"")
        self.api.get("/api/v1/status")


class Parallel(Case):
    def test_fifty_writers_lose_nothing(self):
        def create(n):
            return Api("127.0.0.1", 8443, self.api.key).raw(
                "POST", "/api/v1/servers",
                json.dumps({"name": "w%d" % n, "address": "192.0.2.1", "port": n + 1}),
                {"Content-Type": "application/json"}).status
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            self.assertEqual(set(pool.map(create, range(50))), {201})
        self.assertEqual(self.api.get("/api/v1/draft")["count"], 50)

        tag = self.api.etag("/api/v1/haproxy")

        def update(n):
            return Api("127.0.0.1", 8443, self.api.key).raw(
                "PATCH", "/api/v1/haproxy", json.dumps({"maxconn": 2000 + n}),
                {"Content-Type": "application/json", "If-Match": tag}).status
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            answers = sorted(pool.map(update, range(50)))
        self.assertEqual(answers, [200] + [412] * 49)


def resident_kb(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return int([line for line in file if line.startswith("VmRSS")][0].split()[1])


def certificate(folder):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", folder + "/k", "-out", folder + "/c", "-days", "90", "-subj",
         "/CN=site.test", "-addext", "subjectAltName=DNS:site.test"],
        check=True, capture_output=True)
    with open(folder + "/k", encoding="ascii") as key, open(folder + "/c", encoding="ascii") as c:
        return c.read(), key.read()


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
