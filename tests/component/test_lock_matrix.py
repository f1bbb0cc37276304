#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every call that changes something, by every kind of caller, wherever the VIP is: who may is
worked out here from what the routes are about, and held against what the API answers."""
import itertools
import json
import unittest

import node
from api import Api, Kept
from cluster import TUNABLES, Cluster, head, join
from peer import Caller
from shapes import KINDS, Shapes
from test_permission import BY_PEERS, MANAGED, NEEDS, RANK, ROUTES, SCOPES, plurals

VIP = "10.77.0.200"
UNLOCK = {"Lockstep-Unlock": "no-holder"}
LOCAL = {"node", "admins", "webui"}  # what is of this node alone, by its plural
# Of the routes that are of no kind, those that change what all nodes share.
SHARED = {"publish_create", "publish_delete", "changes_create", "import_create", "commit_restore",
          "operator_put", "operator_delete", "cluster_overwrite", "cluster_draft_take",
          "config_confirm"}
# Their answer would end what the other calls need: each has a test of its own, as it says.
ALONE = {
    "session_delete": "test_7", "session_unlock": "test_7", "session_lock": "test_7",
    "cluster_leave": "test_8", "cluster_key_create": "test_8",
}
BODIES = {
    "publish_create": {"url": "http://l.test", "to": ["10.77.0.1:9"]},
    "changes_create": {"ops": [{"op": "create", "kind": "pool", "body": {"name": "made"}}]},
    "import_create": {"publish": [{"url": "http://i.test", "to": ["10.77.0.1:9"]}]},
    "operator_put": {"state": "maint"},
    "cluster_forget": {"node": "absent"},
    "cluster_draft_take": {"node": "n1"},
}
# Where it stands, and who may edit what is shared: the callers that ask for no more, and those
# that say that nobody holds the VIP.
CHANGES = {  # fields of kinds whose sample is the same each time
    "pool": lambda n: {"queue_timeout_ms": 30000 + n},
    "monitor": lambda n: {"interval_ms": 5000 + n},
    "automation_key": lambda n: {"scope": "read", "pools": [], "note": str(n)},
}
RIGHTS = {
    "standalone": ("plain", "unlocked"), "active": ("plain", "unlocked"), "passive": (),
    "no holder": ("unlocked",), "two holders": ("plain", "unlocked"),
}


def calls():
    """(route, words of its path, plural) of each that changes something."""
    for route in ROUTES:
        if route["method"] == "GET" or route["permission"] == "setup":
            continue
        for plural in plurals(route["family"] == "singleton") if "family" in route else [None]:
            if plural != "draft":
                yield route, plural


def expected(route, plural, caller, way, right):
    """What it has to answer: a status, or None where it gets past all of that."""
    need = NEEDS[route["id"]]
    if need == "none":
        return None
    if need in BY_PEERS or caller == "peer":
        return None if need in BY_PEERS and caller == "peer" else 401
    if caller != "session":
        least = "manage" if need == "edit" and plural in MANAGED else need
        if SCOPES[caller] < RANK[least]:
            return 403
    shared = plural not in LOCAL if plural else route["id"] in SHARED
    return 423 if shared and way not in right else None


class Matrix(unittest.TestCase):
    numbers = itertools.count(1)

    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(2, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.a, cls.b = cls.lab.nodes
        api = cls.a.api
        api.create("vip_groups", name="first", addresses=[VIP + "/24"], primary=True)
        cls.shapes = Shapes(Kept(api), cls.a.root)
        cls.addClassCleanup(cls.shapes.api.close)
        for kind, schema in KINDS.items():
            if not schema["singleton"] and schema["plural"] not in LOCAL:
                cls.shapes.target(kind)
                api.expect(201, "POST", cls.shapes.path(kind), cls.body(kind, "lone"))
        api.expect(200, "POST", "/api/v1/publish",
                   {"url": "http://s1.test", "to": ["10.77.0.1:9"]})
        assert api.apply()["state"] == "ok"
        api.expect(200, "PUT", "/api/v1/servers/lone/state", {"state": "drain"})
        cls.a.api.create("admins", name="lone", password=node.PASSWORD)
        cls.b.api.create("admins", name="lone", password=node.PASSWORD)
        cls.keys = {scope: api.create("automation_keys", name=scope, scope=scope)["key"]
                    for scope in SCOPES}
        cls.shapes.pair = cls.shapes.certificate(cls.a.root)  # another one than what is stored
        cls.former = api.get("/api/v1/commits?limit=1000")["items"][-1]["id"]

    @classmethod
    def body(cls, kind, name):
        made = {**cls.shapes.sample(kind, name), "name": name}
        if kind in CHANGES:
            made.update(CHANGES[kind](next(cls.numbers)))
        return made

    # -- callers -----------------------------------------------------------------------------

    def callers(self, one):
        """(scope, way, its connection)"""
        for way in ("plain", "unlocked"):
            person = one.session()
            if way == "unlocked":
                person.expect(204, "POST", "/api/v1/session/unlock")
            yield "session", way, self.kept(person)
            for scope, key in self.keys.items():
                made = self.kept(Api(one.api.address, one.api.port, key))
                made.unlock = way == "unlocked"
                yield scope, way, made
        yield "peer", "plain", self.kept(
            Api(one.api.address, one.api.port, Caller(one, self.peer_key(one)).key))

    @staticmethod
    def peer_key(one):
        return one.session().get("/api/v1/cluster/key")["key"]

    def kept(self, api):
        made = Kept(api)
        made.cookie, made.csrf = api.cookie, api.csrf
        self.addCleanup(made.close)
        return made

    # -- calls -------------------------------------------------------------------------------

    def request(self, route, plural):
        """(path, body) that would change something."""
        path = route["path"]
        values = {"{kind}": "server", "{name}": "lone", "{service}": "s1.test",
                  "{rev}": self.former, "{id}": "1"}
        if plural is None:
            for word, value in values.items():
                path = path.replace(word, value)
            return path, BODIES.get(route["id"], {}) if "request" in route else None
        path = (path.replace("{kind}", plural).replace("{singleton}", plural)
                .replace("{name}", "lone"))
        if "request" not in route:
            return path, None
        if plural == "server_states":  # it is a part of its server
            server = "target" if route["method"] == "POST" else "lone"
            return path, {"name": server, "server": server, "state": "drain", "weight": 100,
                          "note": str(next(self.numbers))}
        kind = next(k for k, s in KINDS.items() if s["plural"] == plural)
        if plural == "haproxy":
            return path, {"maxconn": 4000 + next(self.numbers)}
        if plural == "node":
            return path, {"note": str(next(self.numbers)), **self.node_name}
        name = "lone" if route["method"] != "POST" else "new-%d" % next(self.numbers)
        return path, self.body(kind, name)

    def call(self, client, route, plural, full):
        path, body = self.request(route, plural)
        headers = {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if "If-Match" in route.get("headers", ()):
            tag = full.raw("GET", path).headers.get("ETag")
            headers["If-Match"] = tag or '"%s"' % ("0" * 64)
        return client.raw(route["method"], path + ("?wait=1" if route["id"] == "config_apply"
                          else ""), None if body is None else json.dumps(body), headers)

    def walk(self, where, one, full):
        """full: who may do everything here, and tidies up."""
        self.node_name = {"name": one.name, "url": full.get("/api/v1/node")["url"]}
        right = RIGHTS[where]
        was = head(one)
        for (caller, way, client), (route, plural) in itertools.product(
                self.callers(one), list(calls())):
            wanted = expected(route, plural, caller, way, right)
            if wanted is None and route["id"] in ALONE:
                continue
            with self.subTest(where, caller=caller, way=way, route=route["id"], kind=plural):
                answer = self.call(client, route, plural, full)
                if wanted is not None:
                    self.assertEqual(answer.status, wanted, answer)
                    continue
                self.assertNotIn(answer.status, (401, 403, 423) if NEEDS[route["id"]] != "none"
                                 else (403, 423), answer)
                self.assertLess(answer.status, 500, answer)
                if plural:
                    self.assertIn(answer.status, (200, 201, 204), answer)
                self.tidy(full, route, plural)
        return was

    def tidy(self, full, route, plural):
        full.raw("DELETE", "/api/v1/draft")
        if route["method"] == "DELETE" and plural in ("admins", "automation_keys"):
            kind = next(k for k, s in KINDS.items() if s["plural"] == plural)
            full.expect(201, "POST", "/api/v1/" + plural, self.body(kind, "lone"))
        if (route["method"], plural) == ("POST", "server_states"):
            full.expect(200, "DELETE", "/api/v1/servers/target/state")
        if route["id"] == "operator_delete" or (route["method"], plural) == (
                "DELETE", "server_states"):
            full.expect(200, "PUT", "/api/v1/servers/lone/state", {"state": "drain"})

    def settled(self, one, edit):
        node.wait_for(lambda: one.api.get("/api/v1/cluster")["edit"] == edit, edit)

    def full(self, one, unlock=False):
        made = self.kept(Api(one.api.address, one.api.port, self.keys["full"]))
        made.unlock = unlock
        return made

    # -- the walks ---------------------------------------------------------------------------

    def test_0_every_route_is_decided(self):
        self.assertLessEqual(SHARED | set(ALONE) | set(BODIES), set(NEEDS))
        self.assertEqual(LOCAL, {k["plural"] for k in KINDS.values() if k["scope"] == "local"})

    def test_1_standalone(self):
        self.walk("standalone", self.a, self.full(self.a))

    def test_2_passive(self):
        join(self.b, self.a)
        node.wait_for(lambda: head(self.a) == head(self.b), "in step")
        self.lab.vip(self.a, VIP)
        self.settled(self.b, "elsewhere")
        was = self.walk("passive", self.b, self.full(self.b))
        self.assertEqual(head(self.b), was)

    def test_3_active(self):
        self.settled(self.a, "here")
        self.walk("active", self.a, self.full(self.a))

    def test_4_two_holders(self):
        self.lab.hold(self.b, VIP)
        self.settled(self.b, "here")
        self.walk("two holders", self.b, self.full(self.b))

    def test_5_no_holder(self):
        self.lab.vip(None, VIP)
        self.settled(self.b, "locked")
        self.walk("no holder", self.b, self.full(self.b, unlock=True))

    # -- what ends an unlocked sign-in -------------------------------------------------------

    def edit(self, person):
        return person.call("PATCH", "/api/v1/haproxy", {"maxconn": 5000 + next(self.numbers)},
                           {"If-Match": person.etag("/api/v1/haproxy")}).status

    def test_7_an_unlocked_sign_in_ends(self):
        self.settled(self.b, "locked")
        self.full(self.b).expect(422, "POST", "/api/v1/session/unlock")
        person = self.b.session()
        self.assertEqual(self.edit(person), 423)
        person.expect(204, "POST", "/api/v1/session/unlock")
        self.assertEqual(self.edit(person), 200)
        person.expect(204, "DELETE", "/api/v1/session/unlock")
        self.assertEqual(self.edit(person), 423)
        person.expect(204, "POST", "/api/v1/session/unlock")
        cookie, csrf = person.cookie, person.csrf
        person.expect(204, "DELETE", "/api/v1/session")
        person.cookie, person.csrf = cookie, csrf
        self.assertEqual(person.raw("GET", "/api/v1/session").status, 401)
        person.cookie = person.csrf = None
        person.sign_in("maria", node.PASSWORD)
        self.assertEqual(self.edit(person), 423)
        person.expect(204, "POST", "/api/v1/session/unlock")
        self.lab.vip(self.a, VIP)
        self.settled(self.b, "elsewhere")
        self.lab.vip(None, VIP)
        self.settled(self.b, "locked")
        self.assertEqual(self.edit(person), 423)

    def test_8_keys_and_membership_are_not_locked(self):
        self.lab.vip(self.a, VIP)
        self.settled(self.b, "elsewhere")
        full = self.full(self.b)
        full.expect(200, "POST", "/api/v1/cluster/key")
        full.expect(200, "POST", "/api/v1/cluster/leave")


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
