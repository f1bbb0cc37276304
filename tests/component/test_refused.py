#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Revisions that a peer with the right key hands on and that are not taken: each is refused with
its own status and code, and leaves the database, the files and HAProxy as they were."""
import concurrent.futures
import contextlib
import copy
import hashlib
import json
import os
import socket
import sqlite3
import subprocess
import unittest

import node
from authority import Authority
from backend import Backend
from held import Held
from made import OTHER, Made
from peer import Caller, objhash
from thief import Thief

TAKEN_PORT = 7070
BODY_MAX = 128 << 20
# Sign-ins of the test, which the node notes the use of.
VOLATILE = {"session"}


def nested(depth):
    return b'{"head":' + b"[" * depth + b"]" * depth + b"}"


class Refused(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.backend = Backend("one")
        cls.addClassCleanup(cls.backend.close)
        api = cls.node.api
        authority = Authority(cls.node.root, "authority")
        chain, key = authority.issue("site.test")
        api.create("certificates", name="site", chain=chain.read_text("ascii"),
                   key=key.read_text("ascii"))
        api.create("listeners", name="tls", port=8081, tls=True, certificates=["site"])
        api.create("listeners", name="spare", port=8082)
        api.create("pools", name="p1")
        api.create("pools", name="p2")
        api.expect(200, "POST", "/api/v1/publish",
                   {"url": "http://app.test", "to": [cls.backend.target]})
        assert api.apply()["state"] == "ok"
        api.patch("/api/v1/haproxy", maxconn=3000)
        assert api.apply()["state"] == "ok"
        api.create("pools", name="drafted")
        cls.caller = Caller(cls.node)
        cls.made = Made(cls.caller)

    # -- before and after --------------------------------------------------------------------

    def database(self):
        path = os.path.join(self.node.state, "data", "lockstep.db")
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
            tables = {t for (t,) in db.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table'")} - VOLATILE
            found = {t: sorted(map(repr, db.execute("SELECT * FROM %s" % t))) for t in tables}
            # The number of the last candidate, taken over or not.
            found["meta"] = [r[:5] + r[6:] for r in db.execute("SELECT * FROM meta")]
            found["generation"] = list(db.execute(
                "SELECT * FROM generation WHERE state = 'active' OR state = 'good'"))
            return found

    def files(self):
        """All but the database, and candidates: the newest five that were refused are kept."""
        found = {}
        generations = os.path.join(self.node.state, "generation")
        for folder, folders, names in os.walk(self.node.state):
            if folder == generations:
                linked = {os.path.basename(self.node.generation(n)) for n in ("current", "good")}
                folders[:] = [n for n in folders if n in linked or not n.isdigit()]
            for name in folders + names:
                path = os.path.join(folder, name)
                if name.startswith("lockstep.db"):
                    continue
                if os.path.islink(path):
                    found[path] = os.readlink(path)
                elif os.path.isfile(path):
                    with open(path, "rb") as file:
                        found[path] = hashlib.sha256(file.read()).hexdigest()
                else:
                    found[path] = None
        return found

    def haproxy(self):
        return (self.node.pids("haproxy"), self.node.running_digest(),
                self.node.generation(), self.node.generation("good"))

    def state(self):
        return {"database": self.database(), "files": self.files(), "haproxy": self.haproxy()}

    # -- the refusals ------------------------------------------------------------------------

    def documents(self):
        """(name, document, status, code, words of the detail[, object of the first error])"""
        for some in (self.behind, self.lineage, self.rows, self.objects, self.content,
                     self.bodies):
            yield from some()

    def behind(self):
        made = self.made
        commit = made.changed()["commits"][0]["commit"]
        parent = made.commits[made.commit["parents"][0]]
        grand = made.commits[parent["parents"][0]]
        both = ("%d@%.8s" % (made.commit["rev"], made.commit["fp"]),)
        for name, older in (("lower", parent), ("much lower", grand)):
            yield ("a revision that is " + name, {"head": older["id"], "commits": [],
                   "objects": []}, 409, "stale_push",
                   both + ("%d@%.8s" % (older["rev"], older["fp"]),))
        aside = made.changed(parent=parent)
        aside_commit = aside["commits"][0]["commit"]
        for name, document in (("beside the head", made.whole(aside)),
                               ("beside the head, far on", made.whole(made.changed(
                                   parent={**made.seal({**aside_commit, "at": 7})})))):
            if name.endswith("far on"):
                far = made.seal({**aside_commit, "at": 7})
                document["commits"].insert(0, {"commit": far, "entries": []})
            last = document["commits"][-1]["commit"]
            yield (name, document, 409, "diverged",
                   both + ("%d@%.8s" % (last["rev"], last["fp"]),))
        newer = made.changed(schema_version=made.commit["schema_version"] + 1)
        yield "of a newer release", newer, 409, "newer_release", both
        commit, entries = (newer["commits"][0][k] for k in ("commit", "entries"))
        yield ("of a newer release with a field of its own", {
            **newer, "objects": [["pool", made.id("pool", "p1"), {"name": "p1", "later": 1}]]},
            409, "newer_release", both)
        yield ("of a newer release with a kind of its own", {
            **newer, "commits": [{"commit": commit,
                                  "entries": entries + [["later", "0" * 16, OTHER]]}],
            "index": [["later", "0" * 16, OTHER]], "objects": [["later", "0" * 16, {}]]},
            409, "newer_release", both)
        yield "another head expected", made.with_("expected_head", OTHER), 409, "moved", both

        for name, fields in (
                ("equal", {"rev": made.commit["rev"]}), ("jumped", {"rev": commit["rev"] + 5}),
                ("of the far future", {"rev": 2 ** 53 - 1}),
                ("first", {"rev": 1}), ("zero", {"rev": 0}), ("negative", {"rev": -3})):
            yield "revision " + name, made.recommitted(**fields), (400, 422), None, ()
        for name, value in (("missing", None), ("a text", "7"), ("too great", 2 ** 53 + 1),
                            ("a real", 7.0), ("true", True)):
            document = made.changed(rev=value) if value is None else made.recommitted(rev=value)
            yield "revision " + name, document, (400, 422), None, ()
        yield "no schema_version", made.changed(schema_version=None), (400, 422), None, ()
        yield "schema_version 0", made.changed(schema_version=0), (400, 422), None, ()
        yield "another fingerprint", made.changed(fp=OTHER), 422, "invalid", ("fingerprint",)
        yield ("another fingerprint, with an index", made.whole(made.changed(fp=OTHER)), 422,
               "invalid", ("fingerprint",))

    def lineage(self):
        made, fine = self.made, self.made.changed()
        commit = fine["commits"][0]["commit"]
        parent = made.commits[made.commit["parents"][0]]
        yield "a parent that nobody has", made.changed(parents=[OTHER]), 422, "invalid", ("parent",)
        yield ("a second parent that nobody has", made.changed(parents=[made.head, OTHER]), 422,
               "invalid", ("parent",))
        yield ("a parent twice", made.changed(parents=[made.head, made.head]), 422, "invalid",
               ("parents",))
        yield "no parents", made.changed(parents=[]), 422, "invalid", ("parents",)
        yield ("too many parents", made.changed(parents=[made.head] + [
            "%064x" % n for n in range(16)]), 422, "invalid", ("parents",))
        yield ("a grandparent as parent of the next revision", made.whole(made.recommitted(
            parents=[parent["id"]])), (409, 422), None, ())
        yield ("another id than its fields give", {**fine, "head": OTHER, "commits": [
            {**fine["commits"][0], "commit": {**commit, "id": OTHER}}]}, 422, "invalid", ("id",))
        yield "a head that did not come along", made.with_("head", OTHER), 422, "invalid", ("head",)
        yield ("a commit with a field more", made.recommitted(more=1), (400, 422), None, ())
        second = made.child(made.row("pool", "p1", balance="first"), parent=commit)
        yield ("a child before its parent", {**second, "commits": second["commits"] +
               fine["commits"]}, 422, "invalid", ())
        yield ("a commit twice", made.with_("commits", 2 * fine["commits"]), 422, "invalid", ())

    def rows(self):
        made, fine = self.made, self.made.changed()
        row = made.row("pool", "p1", balance="source")
        yield ("another object than the entries say", made.with_("objects", [row]), 422,
               "invalid", ())
        yield ("an object that nothing names", made.with_("objects", fine["objects"] + [
            made.row("pool", "p2", balance="source")]), 422, "invalid", ())
        yield ("entries that do not lead there", made.whole(made.entries()), 422, "invalid", ())
        yield ("entries that say more", made.whole(made.entries(*fine["commits"][0]["entries"], [
            "pool", made.id("pool", "p2"), None])), 422, "invalid", ())
        yield ("an entry twice", made.entries(*2 * fine["commits"][0]["entries"]), 422,
               "invalid", ())
        whole = made.whole(fine)
        yield ("an index with a row twice", {**whole, "index": whole["index"] +
               whole["index"][:1]}, 422, "invalid", ("twice",))
        yield ("an index with a row without content", {**whole, "index": whole["index"] + [
            ["pool", "0" * 16, None]]}, 422, "invalid", ("content",))

        local = [["node", "node", {"name": "evil", "note": ""}],
                 ["admin", "0" * 16, {"name": "eve", "note": "", "password": "scrypt$"}]]
        for kind, i, body in local:
            yield ("an object of kind " + kind, made.with_("objects", fine["objects"] + [
                [kind, i, body]]), 422, "invalid", (kind,))
            yield ("an entry of kind " + kind, made.entries([kind, i, objhash(body)]), 422,
                   "invalid", (kind,))
            yield ("an index with kind " + kind,
                   made.with_("index", [[kind, i, objhash(body)]]), 422, "invalid", (kind,))

    def objects(self):
        made = self.made
        for name, bad in (("of no kind", ["nonsense", "0" * 16, {}]),
                          ("without id", ["pool", "", {}]), ("with a bad id", ["pool", "../x", {}]),
                          ("with a long id", ["pool", "0" * 400, {}]),
                          ("that is a text", ["pool", "0" * 16, "x"]),
                          ("of two fields", ["pool", "0" * 16]), ("that is no row", 7),
                          ("without its fields", ["pool", "0" * 16, {"name": "x"}]),
                          ("with a field more", made.row("pool", "p1", nonsense=1)),
                          ("with a wrong value", made.row("pool", "p1", balance="nonsense")),
                          ("with a value out of range", made.row("pool", "p1", retries=10 ** 9)),
                          ("with a written default of later", made.row("pool", "p1", enabled=True)),
                          ("with a line break in a text", made.row(
                              "haproxy", "haproxy", error_title="a\nbackend evil"))):
            yield "an object " + name, made.with_("objects", [bad]), (400, 422), None, ()

    def content(self):
        made = self.made
        tls = made.row("listener", "tls")
        yield ("a reference to nothing", made.child(made.row(
            "listener", "tls", certificates=["0" * 16])), 422, None, ())
        yield ("what others refer to removed", made.child(removed=[
            ("certificate", made.id("certificate", "site"))]), 422, None, ())
        yield ("the only object of its kind removed", made.child(removed=[
            ("haproxy", "haproxy")]), 422, None, ())
        yield ("a name twice", made.child(made.row("pool", "p1", name="p2")), 422, None, ())
        yield ("an address twice", made.child(made.row(
            "listener", "spare", port=tls[2]["port"])), 422, None, ())
        yield ("what haproxy -c refuses", made.child(made.row(
            "certificate", "site", **self.weak())), 422, "invalid", ("site",), "site")
        yield ("a port that is taken", made.child(made.row(
            "listener", "spare", port=TAKEN_PORT)), 422, "invalid", (str(TAKEN_PORT), "spare"),
               "spare")

    def bodies(self):
        made, fine = self.made, self.made.changed()
        text = json.dumps(fine).encode()
        for name, body in (
                ("cut in the middle", text[:len(text) // 2]), ("cut at its end", text[:-1]),
                ("with more behind it", text + b"{}"), ("empty", b""), ("no JSON", b"nonsense"),
                ("a list", b"[]"), ("null", b"null"), ("with a NUL", text[:-1] + b"\0}"),
                ("no UTF-8", text[:-1] + b',"x":"\xff"}'),
                ("with a key twice", text[:-1] + b',"head":"%s"}' % OTHER.encode()),
                ("deep", nested(200)), ("very deep", nested(10000))):
            yield "a body " + name, body, 400, None, ()
        yield "an empty object", {}, 422, None, ("head",)
        for key in ("commits", "objects"):
            yield "no " + key, {k: v for k, v in fine.items() if k != key}, (400, 422), None, ()
            for value in (None, {}, "x", 7):
                yield "%s is %r" % (key, value), made.with_(key, value), (400, 422), None, ()
        for value in (None, 7, "", OTHER.upper(), OTHER[:-1]):
            yield "head is %r" % (value,), made.with_("head", value), (400, 422), None, ()

    def weak(self):
        paths = [os.path.join(self.node.root, "weak." + end) for end in ("crt", "key")]
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:512", "-nodes", "-keyout", paths[1],
             "-out", paths[0], "-days", "90", "-subj", "/CN=weak.test"],
            check=True, capture_output=True)
        made = []
        for path in paths:
            with open(path, encoding="ascii") as file:
                made.append(file.read())
        return {"chain": made[0], "key": made[1]}

    def refused(self, answer, status, code, words, wrong=None):
        allowed = status if isinstance(status, tuple) else (status,)
        self.assertIn(answer.status, allowed, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        if code is not None:
            self.assertEqual(answer.json["code"], code, answer)
        for word in words:
            self.assertIn(word, answer.json["detail"])
        if wrong is not None:
            first = next(e for e in answer.json["errors"] if e["severity"] == "error")
            self.assertEqual(first["name"], wrong, answer)

    def test_each_is_refused_and_leaves_no_trace(self):
        with socket.create_server(("", TAKEN_PORT)):
            before = self.state()
            for name, document, *expected in self.documents():
                with self.subTest(name):
                    answer = self.caller.put(copy.deepcopy(document))
                    self.refused(answer, *expected)
                    after = self.state()
                    for part, was in before.items():
                        if after[part] != was:
                            before = after
                        self.assertEqual(after[part], was, part)

    def test_a_port_that_is_taken_at_the_last_moment(self):
        port = self.made.row("listener", "spare", port=8083)
        config, head = self.node.config(), self.node.api.get("/api/v1/status")["head"]
        with Thief(self.node, 8083):
            self.refused(self.caller.put(self.made.child(port)), 422, "not_serving",
                         ("8083", "spare"), "spare")
        self.assertEqual(self.node.config(), config)
        self.assertEqual(self.node.api.get("/api/v1/status")["head"], head)

    def test_a_head_that_moves_after_it_was_weighed(self):
        """Two that were both weighed at this head; the first one is taken."""
        fine = [self.made.child(self.made.row("pool", "p2", balance=how))
                for how in ("source", "random")]
        def begun(count):
            tasks = [t for t in self.node.api.get("/api/v1/tasks")["items"] if t["kind"] == "sync"
                     and t["state"] not in ("ok", "failed")]
            return len(tasks) == count
        with concurrent.futures.ThreadPoolExecutor(2) as pool, Held(self.node, "stage") as held:
            answers = [pool.submit(self.caller.put, fine[0])]
            self.assertTrue(held.came.wait(30))
            answers.append(pool.submit(self.caller.put, fine[1]))
            node.wait_for(lambda: begun(2), "both are weighed")
            held.released.set()
            first, second = (a.result() for a in answers)
        self.assertEqual((first.status, first.json["state"]), (200, "taken"), first)
        self.refused(second, 409, "moved", ())
        type(self).made = Made(self.caller)

    def test_a_helper_that_is_gone_is_no_fault_of_the_content(self):
        fine = self.made.child(self.made.row("pool", "p2", balance="source"))
        before = self.state()
        self.node.take_down("lockstep-helper")
        try:
            answer = self.caller.put(fine)
        finally:
            self.node.put_up()
        self.refused(answer, 503, "unavailable", ())
        self.assertTrue(answer.headers["Retry-After"])
        self.node.wait_ready()
        after = self.state()
        for part in ("database", "haproxy"):
            self.assertEqual(after[part], before[part], part)

    def test_a_key_comes_before_the_body(self):
        before = self.state()
        for key in ("A" * 43, self.node.api.key, self.caller.key[:-1], ""):
            caller = Caller(self.node, key or "x")
            caller.key = key
            for body in (b"{}", b"nonsense", nested(10000)):
                answer = caller.raw("PUT", "/peer/v1/config", body)
                self.refused(answer, 401, None, ())
            self.assertEqual(self.announced(key, 10 * BODY_MAX), 401)
        self.assertEqual(self.announced(self.caller.key, BODY_MAX + 1), 413)
        self.assertEqual(self.state(), before)

    def announced(self, key, size):
        """The status where a body of that size is only announced."""
        connection = self.node.api.open()
        try:
            connection.putrequest("PUT", "/peer/v1/config")
            if key:
                connection.putheader("Authorization", "Bearer " + key)
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(size))
            connection.endheaders()
            return connection.getresponse().status
        finally:
            connection.close()

    def test_a_body_that_is_cut_off_by_the_connection_leaves_no_trace(self):
        before = self.state()
        fine = json.dumps(self.made.child(self.made.row("pool", "p1", balance="random"))).encode()
        for part in (0, 1, len(fine) // 2, len(fine) - 1):
            connection = self.node.api.open()
            connection.putrequest("PUT", "/peer/v1/config")
            connection.putheader("Authorization", "Bearer " + self.caller.key)
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(fine)))
            connection.endheaders(fine[:part])
            connection.close()
        self.caller.get("/peer/v1/health")
        self.assertEqual(self.state(), before)

    def test_the_head_once_more_is_nothing_to_do(self):
        before = self.state()
        answer = self.caller.put({**self.caller.read(), "index": None} | self.caller.read())
        self.assertEqual((answer.status, answer.json["state"]), (200, "same"))
        self.assertEqual(self.state(), before)

    def test_what_is_right_is_taken_then(self):
        # Else all the refusals could be for a reason that they share.
        fine = self.made.child(self.made.row("pool", "p1", balance="leastconn"))
        answer = self.caller.put(fine)
        self.assertEqual((answer.status, answer.json["state"]), (200, "taken"), answer)
        self.assertEqual((answer.json["head"], answer.json["running"]), (fine["head"],) * 2)
        self.assertEqual(self.node.api.get("/api/v1/pools/p1")["balance"], "leastconn")
        self.refused(self.caller.put({**fine, "head": self.made.head}), 409, "stale_push", ())
        self.assertTrue(self.node.api.get("/api/v1/verify")["ok"])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
