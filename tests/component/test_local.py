#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What only one node has stays there: a marker in every field of the local container, and every
secret of the node's own files, is found in no other node's files, database, log or answers, and
in nothing that a peer is sent.

C037 cannot happen: what is taken over is hashed before it is loaded, and refused where it has not
the fingerprint of its commit (test_refused.py); there is no local field in a shared object that
could be filled in behind that, and a database that was changed by hand does not open."""
import contextlib
import json
import os
import re
import sqlite3
import unittest
import zlib

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import api as api_module
import node
from api import Api
from backend import Backend
from cluster import HUB, TUNABLES, Cluster, head, join, seen
from peer import PARTED, Caller, FakePeer
from shapes import FOLDER, Shapes
from test_secrets import Stream, parts

# What the member record says of a node.
CARRIED = {("node", "name"), ("node", "url"), ("node", "peers_address"), ("node", "peers_port")}
SEALED, DEFLATED = 2, 1  # forms of a stored body
NONCE = 12


def local_kinds():
    for name in sorted(os.listdir(FOLDER)):
        with open(os.path.join(FOLDER, name), encoding="ascii") as file:
            kind = json.load(file)
        if kind["scope"] == "local":
            yield kind


def pattern(text):
    """A number is found as a number only, not as digits of a hash."""
    text = re.escape(str(text).encode())
    return re.compile(rb"(?<![0-9A-Za-z.])%s(?![0-9A-Za-z.])" % text if text.isdigit() else text)


class Markers:
    """Values for the local fields of one node, and what of it must not be found elsewhere."""

    def __init__(self, one, number):
        self.one, self.number, self.count = one, number, 0
        self.found = {}  # what -> patterns
        self.pair = Shapes.certificate(one.root)
        self.unmarked = set()

    def text(self, *words):
        self.count += 1
        return "-".join(("mark", self.one.name, *words, str(self.count)))

    def value(self, kind, field):
        """None: the field has too few values to tell one from another."""
        where = "%s.%s" % (kind, field["name"])
        text_type = field.get("text_type")
        if field["type"] in ("bool", "enum", "ref"):
            self.unmarked.add((kind, field["name"]))
            return None
        if field["type"] == "record":
            made = {f["name"]: self.value(kind, f) for f in field["fields"]}
            made = {k: v for k, v in made.items() if v is not None}
            return [made] if field.get("list") else made
        if field["type"] == "int":
            assert field["max"] - field["min"] > 10000, "no marker for " + where
            self.count += 1
            value = field["max"] - 1000 * self.number - 7 * self.count
        elif text_type == "url":
            value = "https://%s.test:8443" % self.text(field["name"]).replace("_", "-")
        elif text_type == "dns_name":
            value = "%s.test" % self.text(field["name"]).replace("_", "-")
        elif text_type == "network":
            self.count += 1
            value = "10.%d.%d.0/24" % (200 + self.number, self.count)
        elif text_type in ("pem_chain_or_none", "pem_key_or_none"):
            pem = self.pair[text_type == "pem_key_or_none"]
            own = parts(pem)[-2:]  # the others may be those of any certificate of that day
            self.found[where] = [pattern(line) for line in own]
            return pem
        else:
            assert text_type in ("name", "note", "password"), "no marker for " + where
            value = self.text(field["name"])
        self.found.setdefault(where, []).append(pattern(value))
        return [value] if field.get("list") else value

    def body(self, kind):
        made = {f["name"]: self.value(kind["kind"], f) for f in kind["fields"]
                if not f.get("read_only") and (kind["kind"], f["name"]) not in CARRIED}
        return {k: v for k, v in made.items() if v is not None}

    def plant(self):
        """One object of every local kind; -> the administrator, signed in."""
        made = {}
        for kind in local_kinds():
            body = made[kind["kind"]] = self.body(kind)
            path = "/api/v1/" + kind["plural"]
            if kind["singleton"]:
                self.one.api.patch(path, **body)
            else:
                self.one.api.expect(201, "POST", path, body)
        assert self.one.api.apply()["state"] == "ok"
        person = Api(self.one.api.address, self.one.api.port)
        person.sign_in(made["admin"]["name"], made["admin"]["password"])
        self.found["session"] = [pattern(person.cookie.split("=", 1)[1]), pattern(person.csrf)]
        data = os.path.join(self.one.state, "data")
        for name in ("api.key", "placeholder.pem"):
            with open(os.path.join(data, name), encoding="ascii") as file:
                text = file.read()
            self.found[name] = [pattern(p) for p in parts(text[text.index("PRIVATE KEY"):])]
        with open(os.path.join(data, "seal.key"), "rb") as file:
            key = file.read()
        self.found["seal.key"] = [re.compile(re.escape(key)), pattern(key.hex())]
        return person


def stored(path):
    """Every row of the database, with its bodies as they were before they were packed."""
    with open(os.path.join(os.path.dirname(path), "seal.key"), "rb") as file:
        cipher = AESGCM(file.read())
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
        tables = [t for (t,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            for row in db.execute("SELECT * FROM %s" % table):
                yield table, repr(row).encode()
        for objhash, kind, form, data in db.execute("SELECT objhash, kind, form, data FROM body"):
            if form & SEALED:
                data = cipher.decrypt(data[:NONCE], data[NONCE:], kind.encode() + b"\0" + objhash)
            yield "body", zlib.decompress(data) if form & DEFLATED else data


def answered(caller, target):
    """What needs another node is refused while that did not answer in the last round."""
    answer = caller.raw("GET", target)
    return answer if answer.status != 503 else None


class Local(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.lab.set_up()
        cls.backend = Backend("one", HUB)
        cls.addClassCleanup(cls.backend.close)
        cls.fake = FakePeer("fake", HUB)
        cls.addClassCleanup(cls.fake.close)
        cls.a, cls.b, cls.c = cls.lab.nodes
        cls.marks = [Markers(one, n) for n, one in enumerate(cls.lab.nodes)]
        cls.people = [m.plant() for m in cls.marks]
        for one in cls.lab.nodes:
            one.api.unlock = True  # there is no VIP
        cls.live()

    @classmethod
    def publish(cls, one, name):
        one.api.expect(200, "POST", "/api/v1/publish",
                       {"url": "http://%s.test" % name, "to": [cls.backend.target]})
        assert one.api.apply()["state"] == "ok"

    @classmethod
    def live(cls):
        """All ways on which something travels from node to node."""
        cls.publish(cls.a, "first")
        for other in (cls.b, cls.c):
            join(other, cls.a)
        cls.fake.enter(cls.a)
        cls.streams = [Stream(person) for person in cls.people]
        node.wait_for(lambda: len(cls.c.api.get("/api/v1/cluster")["nodes"]) == 4, "four")
        cls.publish(cls.a, "second")
        for mark in cls.marks:  # other markers, of which the newest stay in the draft
            for apply in (True, False):
                for kind in local_kinds():
                    if kind["singleton"]:
                        mark.one.api.patch("/api/v1/" + kind["plural"], **mark.body(kind))
                if apply:
                    assert mark.one.api.apply()["state"] == "ok"
        only = {"objects": [{"kind": "pool", "name": "cut"}]}
        for one in (cls.a, cls.c):
            cls.lab.cut(one, cls.b)
        for one in (cls.a, cls.b):
            one.api.create("pools", name="cut", balance=("leastconn", "source")[one is cls.a])
            task = one.api.expect(200, "POST", "/api/v1/config/apply?wait=1", {"only": only})
            assert task["state"] == "ok", task
        cls.lab.join_all()
        for one, other in ((cls.a, cls.b), (cls.b, cls.a)):
            node.wait_for(lambda o=one, p=other: seen(o, p)["relation"] == "diverged", "diverged")
        # Which is in step with one of them, or none.
        node.wait_for(lambda: cls.fake.asked, "the peer was asked where the histories parted")
        for one, other in ((cls.a, "n2"), (cls.b, "n1")):
            one.api.get("/api/v1/cluster/compare?node=" + other)
        cls.a.api.expect(200, "POST", "/api/v1/cluster/overwrite", {})
        cls.lab.cut(cls.a, cls.b)
        cls.lab.cut(cls.c, cls.b)
        cls.a.api.create("pools", name="heal")
        cls.a.api.expect(200, "POST", "/api/v1/config/apply?wait=1",
                         {"only": {"objects": [{"kind": "pool", "name": "heal"}]}})
        cls.lab.join_all()
        node.wait_for(lambda: len({head(n) for n in cls.lab.nodes}) == 1, "one head")

    # -- where it could be -----------------------------------------------------------------------

    @staticmethod
    def files(one):
        for folder, _, names in os.walk(one.root):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        yield "file " + os.path.relpath(path, one.root), file.read()

    @staticmethod
    def rows(one):
        for table, text in stored(os.path.join(one.state, "data", "lockstep.db")):
            yield "table " + table, text

    def answers(self, number):
        person = self.people[number]
        caller = api_module.Kept(person)
        caller.cookie, caller.csrf = person.cookie, person.csrf
        self.addCleanup(caller.close)
        others = [m.one.name for m in self.marks if m.one is not self.lab.nodes[number]]

        def targets(path):
            if path.endswith("/compare"):
                return [path + "?node=" + name for name in others]
            if "{rev}" in path:
                ids = [c["id"] for c in person.get("/api/v1/commits?limit=1000")["items"]]
                return [path.format(rev=i) for i in ids]
            if "{id}" in path:
                return [path.format(id=t["id"]) for t in person.get("/api/v1/tasks")["items"]]
            if "{name}" in path:
                of = person.get("/".join(path.split("/")[:4]))
                return [path.format(name=o["name"]) for o in of["items"]]
            return [path]
        for path, methods in api_module.DOCUMENT["paths"].items():
            if "get" not in methods or path.startswith("/peer/") or path == "/api/v1/events":
                continue
            for target in targets(path):
                answer = node.wait_for(lambda t=target: answered(caller, t), target + " is answered")
                self.assertEqual(answer.status, 200, (target, answer))
                yield "GET " + target, str(answer.headers).encode() + answer.body
        yield "events", self.streams[number].text

    def told(self, one):
        """What a peer gets of it."""
        caller = Caller(one, node_id=self.fake.id)
        for path in ("/peer/v1/health", "/peer/v1/health?head=" + head(one), "/peer/v1/members",
                     "/peer/v1/draft", "/peer/v1/draft?content=1"):
            answer = caller.raw("GET", path)
            self.assertEqual(answer.status, 200, (path, answer))
            yield path, answer.body
        for have in ([], [head(one)]):
            yield "/peer/v1/config/read", json.dumps(caller.read(have)).encode()
        with self.fake.lock:
            yield "what the peer was sent", self.fake.heard

    def all_of(self, number):
        one = self.lab.nodes[number]
        for source in (self.files(one), self.rows(one), self.answers(number)):
            yield from source

    # -- the tests -------------------------------------------------------------------------------

    def search(self, mark, where, pieces):
        for place, text in pieces:
            for what, patterns in mark.found.items():
                for one in patterns:
                    found = one.search(text)
                    self.assertIsNone(found, "%s of %s is in %s of %s: %r" % (
                        what, mark.one.name, place, where, found))

    def test_no_other_node_and_no_peer_has_a_marker(self):
        for number, one in enumerate(self.lab.nodes):
            pieces = list(self.all_of(number))
            for mark in self.marks:
                if mark.one is not one:
                    self.search(mark, one.name, pieces)
        for mark in self.marks:
            self.search(mark, mark.one.name, self.told(mark.one))

    def test_the_node_itself_has_each_where_it_belongs(self):
        # Else the search looks where nothing could be.
        for number, mark in enumerate(self.marks):
            pieces = {kind: b"\n".join(t for p, t in self.all_of(number) if p.startswith(kind))
                      for kind in ("file", "table body", "GET")}
            for kind in local_kinds():
                sealed = any(f.get("secret") for f in kind["fields"])
                for field in kind["fields"]:
                    patterns = mark.found.get("%s.%s" % (kind["kind"], field["name"]), ())
                    if field.get("secret"):
                        continue
                    for place, text in pieces.items():
                        for newest in patterns[-1:] if place != "file" or not sealed else ():
                            self.assertTrue(newest.search(text), (place, newest))

    def test_a_peer_learns_of_a_draft_how_much_of_it_is_local(self):
        # Else the search in what it is told would look at drafts of shared objects only.
        for mark in self.marks:
            draft = Caller(mark.one, node_id=self.fake.id).get("/peer/v1/draft?content=1")
            self.assertEqual(draft["local"], sum(k["singleton"] for k in local_kinds()), draft)
            self.assertEqual({row["kind"] for row in draft["rows"]}
                             & {k["kind"] for k in local_kinds()}, set())

    def test_every_local_field_had_one(self):
        fields = {(k["kind"], f["name"]) for k in local_kinds() for f in k["fields"]
                  if not f.get("read_only")}
        for mark in self.marks:
            marked = {tuple(w.split(".")) for w in mark.found if "." in w}
            self.assertEqual(fields - CARRIED - mark.unmarked, marked & fields)

    def test_the_peer_was_asked_told_and_pushed_to(self):
        self.assertEqual(set(self.fake.requests), {
            ("GET", "/peer/v1/health"), ("POST", "/peer/v1/members"), ("PUT", "/peer/v1/config"),
            ("POST", "/peer/v1/check"), ("POST", "/peer/v1/config/read"),
            ("POST", PARTED), ("GET", "/peer/v1/draft")})
        self.assertIn(b'"balance":"source"', self.fake.heard)


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
