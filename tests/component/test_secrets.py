#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""C262: a secret that the node was given, or gave out, is in no answer to a GET, in no event and in
no line of the log."""
import contextlib
import hashlib
import os
import threading
import unittest

import api as api_module
import node
from shapes import KINDS, Shapes

PASSWORD = "sentinel of a password %d"
SECRET = [(k, f) for k, kind in KINDS.items() for f in kind["fields"] if f.get("secret")]


def parts(pem):
    """The lines of a key that are its own: one of them is enough for a find."""
    return [line for line in pem.splitlines() if len(line) > 20 and not line.startswith("-")]


class Stream:
    """Collects what an event stream sends."""

    def __init__(self, caller):
        self.text = b""
        self.connection = caller.open()
        self.connection.request("GET", "/api/v1/events", headers=caller.headers())
        self.response = self.connection.getresponse()
        assert self.response.status == 200
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            while line := self.response.fp.readline():
                self.text += line


class Secrets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = node.Node()
        cls.addClassCleanup(cls.node.close)
        cls.found = {"setup token": [cls.node.token()]}
        cls.api = cls.node.set_up().api
        cls.admin = cls.node.session()
        cls.stream = Stream(cls.admin)
        cls.shapes = Shapes(cls.api, cls.node.root)
        cls.given_out()
        cls.objects()

    @classmethod
    def given_out(cls):
        cookie = cls.admin.cookie.split("=", 1)[1]
        cls.found["hash of a password"] = ["scrypt$"]
        for name, text in (("session", cookie), ("key", cls.api.key)):
            cls.found[name] = [text, hashlib.sha256(text.encode()).hexdigest()]
        data = os.path.join(cls.node.state, "data")
        for name in ("api.key", "placeholder.pem"):
            with open(os.path.join(data, name), encoding="ascii") as file:
                pem = file.read()
            cls.found[name] = parts(pem[pem.index("PRIVATE KEY"):])
        with open(os.path.join(data, "seal.key"), "rb") as file:
            cls.found["seal key"] = [file.read().hex()]

    @classmethod
    def sentinel(cls, field, version):
        """A value of a secret field, and what of it must not be found."""
        text_type = field["text_type"]
        if text_type in ("pem_key", "pem_key_or_none"):
            chain, key = cls.shapes.certificate(cls.node.root)
            return {"chain": chain, field["name"]: key}, parts(key)
        assert text_type == "password", "no sentinel for a secret of type " + text_type
        return {field["name"]: PASSWORD % version}, [PASSWORD % version]

    @classmethod
    def objects(cls):
        """One of every kind; the secrets are stored, changed, and changed in the draft."""
        for kind, schema in KINDS.items():
            if not schema["singleton"]:
                cls.shapes.target(kind)
        assert cls.api.apply()["state"] == "ok"
        for version in range(2):
            for kind, field in SECRET:
                if field.get("read_only"):  # the hash of a key
                    continue
                body, texts = cls.sentinel(field, version)
                cls.found["%s %s %d" % (kind, field["name"], version)] = texts
                answer = cls.shapes.patch(kind, "target", body)
                assert answer.status == 200, answer
            if version == 0:
                assert cls.api.apply()["state"] == "ok"
        cls.api.expect(200, "PUT", "/api/v1/servers/target/state", {"state": "drain"})

    def search(self, where, data):
        for name, texts in self.found.items():
            for text in texts:
                self.assertFalse(text.encode() in data, "%s is in %s" % (name, where))

    def targets(self):
        revs = [c["rev"] for c in self.admin.get("/api/v1/commits")["items"]]
        tasks = [t["id"] for t in self.admin.get("/api/v1/tasks")["items"]]
        for path, methods in api_module.DOCUMENT["paths"].items():
            # Nodes tell each other secrets; compared is with another node (test_conditions).
            if "get" not in methods or path.startswith("/peer/") or path in (
                    "/api/v1/events", "/api/v1/cluster/compare"):
                continue
            values = revs if "{rev}" in path else tasks if "{id}" in path else ["target"]
            for value in values:
                yield path.format(rev=value, id=value, name=value)
                if path.endswith("/diff") and "{rev}" in path:
                    yield path.format(rev=value) + "?to=%d" % revs[0]

    def test_no_get_no_event_and_no_line_of_the_log_holds_one(self):
        shown = set()
        chain = parts(self.shapes.pair[0])[1].encode()
        caller = api_module.Kept(self.admin)
        caller.key, caller.cookie, caller.csrf = None, self.admin.cookie, self.admin.csrf
        self.addCleanup(caller.close)
        for target in self.targets():
            answer = caller.raw("GET", target)
            self.assertEqual(answer.status, 200, target)
            self.search(target, answer.body + str(answer.headers).encode())
            if chain in answer.body:
                shown.add(target.split("/")[3])
        # What is no secret is found: the walk looks where it should.
        self.assertIn("commits", shown)
        node.wait_for(lambda: b"event: draft" in self.stream.text, "events came")
        self.search("events", self.stream.text)
        self.search("the log", self.node.log().encode())

    def test_every_secret_field_had_its_sentinel(self):
        self.assertGreaterEqual(len(SECRET), 3)
        for kind, field in SECRET:
            if not field.get("read_only"):
                self.assertTrue(self.found["%s %s 1" % (kind, field["name"])])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
