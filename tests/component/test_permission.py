#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who may call what: every route, every kind, every caller."""
import http.client
import json
import os
import time
import unittest

import api as api_module
import node
from api import Api

with open(os.path.join(api_module.SOURCE, "schema", "routes.json"), encoding="utf-8") as file:
    ROUTES = json.load(file)

# The decision about each route, written down a second time: a new route fails until somebody
# has decided here, too, who may call it.
DECIDED = {
    "none": "health_get ready_get setup_get session_create schema_get openapi_get",
    "setup": "setup_create",
    "signed_in": "session_get session_delete status_get object_list object_get singleton_get"
                 " draft_get config_diff config_check config_text commit_list commit_get"
                 " commit_diff render_create task_list task_get event_stream verify_get"
                 " stats_get operator_get cluster_get cluster_compare cluster_drafts"
                 " session_unlock session_lock",
    "operate": "operator_put operator_delete pool_check",
    "edit": "object_create object_replace object_merge object_delete singleton_replace"
            " singleton_merge draft_discard_all draft_discard config_apply config_confirm"
            " changes_create publish_create publish_delete import_create commit_restore"
            " cluster_overwrite cluster_draft_take",
    "manage": "cluster_key_get cluster_key_create cluster_join cluster_leave cluster_forget"
               " cluster_admin",
    "peer": "peer_health peer_members_get peer_members_create peer_admit",
    "member": "peer_config_read peer_config_parted peer_config_replace peer_draft_get"
              " peer_draft_taken peer_account_create peer_check peer_trial peer_trial_end",
}
BY_PEERS = ("peer", "member")
OUTSIDE = "192.0.2.50"  # an address of the test that is not of the loopback range
MANAGED = ("admins", "automation_keys")  # of these, edit means manage
NEEDS = {name: need for need, names in DECIDED.items() for name in names.split()}
RANK = {"signed_in": 0, "operate": 1, "edit": 2, "manage": 3}
SCOPES = {"read": 0, "operate": 1, "write": 2, "full": 3}


def plurals(singleton):
    found = {p.split("/")[3] for p in api_module.DOCUMENT["paths"] if p.endswith("/{name}")
             and p.count("/") == 4 and p.startswith("/api/")}
    if not singleton:
        return sorted(found)
    return sorted(p.split("/")[3] for p, at in api_module.DOCUMENT["paths"].items()
                  if p.count("/") == 3 and "put" in at and p.startswith("/api/"))


def calls():
    """(route, path, least permission) of each row, for each kind of a family."""
    for route in ROUTES:
        family = route.get("family")
        words = plurals(family == "singleton") if family else [None]
        for word in words:
            path = route["path"]
            if family:
                path = path.replace("{kind}", word).replace("{singleton}", word)
            path = (path.replace("{kind}", "server").replace("{name}", "absent")
                    .replace("{service}", "absent").replace("{rev}", "1").replace("{id}", "1"))
            need = NEEDS[route["id"]]
            yield route, path, "manage" if need == "edit" and word in MANAGED else need


def expected(need, method, caller):
    """Statuses of a refusal, or () when the caller gets past it."""
    if need in ("none", "setup"):
        return ()
    if need in BY_PEERS or caller == "peer":
        return () if need in BY_PEERS and caller == "peer" else (401,)
    if caller in ("nobody", "wrong", "ended"):
        return (401,)
    if caller == "session":
        return ()
    if caller == "no_csrf":
        return () if method == "GET" else (403,)
    return () if SCOPES[caller] >= RANK[need] else (403,)


class Case(unittest.TestCase):
    """Hundreds of calls: one connection for all of a caller, and no look into the answers."""

    def call(self, client, route, path):
        headers = {}
        body = None
        if "request" in route:
            body, headers = "{}", {"Content-Type": "application/json"}
        if "If-Match" in route.get("headers", ()):
            headers["If-Match"] = '"%s"' % ("0" * 64)
        connection = self.connection(client)
        connection.request(route["method"], path, body=body, headers=client.headers(headers))
        response = connection.getresponse()
        if response.status == 200 and route["id"] == "event_stream":  # it has no end
            connection.close()
            return response.status
        response.read()
        self.assertTrue(response.headers["Lockstep-Node"])
        if response.status >= 400 and route["id"] not in ("health_get", "ready_get"):
            self.assertEqual(response.headers["Content-Type"], "application/problem+json")
        return response.status

    def connection(self, client):
        if not hasattr(self, "opened"):
            self.opened = client.open()
            self.addCleanup(self.opened.close)
        return self.opened


class Decided(unittest.TestCase):
    def test_somebody_has_decided_about_every_route(self):
        self.assertEqual({r["id"]: r["permission"] for r in ROUTES}, NEEDS)


class Walk(Case):
    @classmethod
    def setUpClass(cls):
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        admin = cls.node.session()
        cls.keys = {scope: admin.create("automation_keys", name=scope, scope=scope)["key"]
                    for scope in SCOPES}

    def callers(self):
        for scope, key in self.keys.items():
            yield scope, lambda key=key: Api("127.0.0.1", 8443, key)
        yield "nobody", lambda: Api("127.0.0.1", 8443)
        yield "wrong", lambda: Api("127.0.0.1", 8443, "lsk_" + "A" * 43)
        ended = self.node.session()
        ended.expect(204, "DELETE", "/api/v1/session")
        yield "ended", lambda: ended
        no_csrf = self.node.session()
        no_csrf.csrf = None
        yield "no_csrf", lambda: no_csrf
        yield "session", self.kept_session
        peer = self.node.session().get("/api/v1/cluster/key")["key"]
        yield "peer", lambda: Api("127.0.0.1", 8443, peer)

    def kept_session(self):
        """One of its calls signs out."""
        if not hasattr(self, "kept") or self.kept.raw("GET", "/api/v1/session").status == 401:
            self.kept = self.node.session()
        return self.kept

    def test_every_route_for_every_caller(self):
        for caller, client in self.callers():
            for route, path, need in calls():
                with self.subTest(caller=caller, route=route["id"], path=path):
                    status = self.call(client(), route, path)
                    refusal = expected(need, route["method"], caller)
                    if refusal:
                        self.assertIn(status, refusal)
                    else:
                        self.assertNotIn(status, (401, 403, 500))

    def test_a_session_says_what_its_caller_may(self):
        for scope, key in self.keys.items():
            session = Api("127.0.0.1", 8443, key).get("/api/v1/session")
            self.assertEqual((session["key"], session["scope"], session["pools"]),
                             (scope, scope, []))
        self.assertEqual(self.node.session().get("/api/v1/session")["scope"], "full")

    def test_a_key_is_bound_to_its_pools_and_those_stay(self):
        admin = self.node.session()
        admin.create("pools", name="bound")
        admin.apply()
        made = admin.create("automation_keys", name="ops", scope="operate", pools=["bound"])
        bound = Api("127.0.0.1", 8443, made["key"])
        self.assertEqual(bound.get("/api/v1/session")["pools"], ["bound"])
        refused = admin.call("DELETE", "/api/v1/pools/bound", None,
                             {"If-Match": admin.etag("/api/v1/pools/bound")})
        self.assertEqual((refused.status, refused.json["code"]), (409, "in_use"))
        # A PUT that says nothing of scope and pools must not make it a key for everything.
        tag = {"If-Match": admin.etag("/api/v1/automation_keys/ops")}
        refused = admin.call("PUT", "/api/v1/automation_keys/ops", {"name": "ops"}, tag)
        self.assertEqual(refused.status, 422)
        self.assertEqual([e["pointer"] for e in refused.json["errors"]], ["/scope", "/pools"])
        admin.expect(200, "PUT", "/api/v1/automation_keys/ops",
                     {"name": "ops", "scope": "read", "pools": []}, tag)

    def test_a_key_counts_only_as_a_whole_and_only_in_its_header(self):
        key = self.keys["full"]
        for other in (key[:-1], key + "A", key.upper(), key[4:], key.swapcase(), ""):
            self.assertEqual(Api("127.0.0.1", 8443, other or " ").raw(
                "GET", "/api/v1/status").status, 401, other)
        self.assertEqual(Api("127.0.0.1", 8443).raw(
            "GET", "/api/v1/status?key=" + key).status, 401)
        session = self.node.session()
        session.key = key
        self.assertEqual(session.raw("GET", "/api/v1/status").status, 400)

    def test_bad_sign_ins_slow_down_their_client_and_lock_nobody_out(self):
        bad = Api("127.0.0.1", 8443)
        seen = [bad.raw("POST", "/api/v1/session", json.dumps(
            {"name": "eve", "password": "wrong wrong wrong"}),
            {"Content-Type": "application/json"}) for _ in range(8)]
        self.assertEqual(seen[0].status, 401)
        self.assertEqual(seen[-1].status, 429)
        self.assertGreaterEqual(int(seen[-1].headers["Retry-After"]), 1)
        start = time.monotonic()
        self.node.session()
        self.assertLess(time.monotonic() - start, 5)


    def test_of_clients_behind_the_own_proxy_none_locks_out_another(self):
        # C148: all of them come from 127.0.0.1.
        def sign_in(client, password):
            return Api("127.0.0.1", 8443).raw(
                "POST", "/api/v1/session", json.dumps({"name": "maria", "password": password}),
                {"Content-Type": "application/json",
                 "X-Forwarded-For": "203.0.113.9, " + client}).status
        seen = [sign_in("198.51.100.1", "wrong wrong wrong") for _ in range(8)]
        self.assertEqual((seen[0], seen[-1]), (401, 429))
        self.assertEqual(sign_in("198.51.100.1", node.PASSWORD), 429)
        self.assertEqual(sign_in("198.51.100.2", node.PASSWORD), 201)

    def test_a_client_from_elsewhere_cannot_say_who_it_is(self):
        def sign_in(client):
            connection = http.client.HTTPSConnection(
                "127.0.0.1", 8443, timeout=20, context=api_module.CONTEXT,
                source_address=(OUTSIDE, 0))
            try:
                connection.request("POST", "/api/v1/session", json.dumps(
                    {"name": "eve", "password": "wrong wrong wrong"}),
                    {"Content-Type": "application/json", "X-Forwarded-For": client})
                return connection.getresponse().status
            finally:
                connection.close()
        self.assertEqual([sign_in("198.51.100.%d" % n) for n in range(8)][-1], 429)


class Fresh(Case):
    def test_a_node_without_an_administrator_serves_nothing_but_the_way_in(self):
        with node.Node() as fresh:
            fresh.wait(fresh.answers, "the API answers")
            for route, path, need in calls():
                with self.subTest(route=route["id"], path=path):
                    status = self.call(fresh.api, route, path)
                    if need in ("none", "setup"):
                        self.assertNotIn(status, (401, 500))
                    else:
                        self.assertEqual(status, 401)


if __name__ == "__main__":
    node.private_network(OUTSIDE + "/32")
    unittest.main(verbosity=2)
