#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every kind and every field, from the schema: round trip, hostile and wrong values, filters."""
import contextlib
import json
import os
import random
import re
import threading
import time
import unittest

import node
from api import Kept, quote
from shapes import KINDS, Shapes, is_text, writable

SEED = 20240611
FUZZ_S = 5
HOSTILE = ["a b", 'a"b', "a'b", "a\\b", "a#b", "$HOME", "${X}", "%[src]", "{}", ";", "-i",
           "\u00fc", "x" * 300, "", "x\n    http-request deny", "a\r\nb", "tab\there", "nul\0",
           "'; DROP TABLE shared_object", "$(touch /tmp/x)", "`id`", "| id", "../../etc/passwd",
           "..%2f", "a\nbackend evil", "external-check command /bin/sh", "lua-load /tmp/x.lua",
           "program evil", "stats socket /evil", "insecure-fork-wanted", "a,b", "!a", "a\u2028b",
           "\u202ea", "[::1]", "::1", "fe80::1%eth0", "8000-8010", "https://u:p@a.test/x?y=z"]
WRONG = [None, True, False, 0, 1, -1, 2 ** 53 - 1, 1.5, "", "x", "80", [], {}, [[]], [{}], [None],
         {"a": 1}, ["x", "x"], {"set": True}]
FORBIDDEN = re.compile(r"(?m)^\s*(backend evil|program|external-check|insecure-fork-wanted|"
                       r"lua-load|http-request deny\s*$|stats socket /evil)")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = Kept(cls.node.api)
        cls.addClassCleanup(cls.api.close)
        cls.shapes = Shapes(cls.api, cls.node.root)
        for kind in KINDS:  # so that objects that take effect at once find theirs at head
            if not KINDS[kind]["singleton"]:
                cls.shapes.target(kind)
        task = cls.api.apply()
        assert task["state"] == "ok", task

    def setUp(self):
        self.api.expect(204, "DELETE", "/api/v1/draft")

    def read(self, kind, name):
        answer = self.api.call("GET", self.shapes.path(kind, name))
        self.assertEqual(answer.status, 200)
        return answer


def body_of(read):
    return {k: v for k, v in read.items() if k not in ("id", "kind")}


def other_order(value, fields):
    """The same object, keys and lists without order the other way round."""
    known = {f["name"]: f for f in fields}
    out = {}
    for key, item in reversed(list(value.items())):
        field = known.get(key, {})
        if field.get("list") and not field["ordered"]:
            item = list(reversed(item))
        out[key] = item
    return out


class RoundTrip(Case):
    """What is written is read; writing that back changes nothing."""

    def walk(self, kind):
        name = self.shapes.create(kind)
        refused = self.shapes.fill(kind, name)
        self.assertEqual({f: repr(a) for f, a in refused.items()}, {}, "fields of no value")
        read = self.read(kind, name)
        body, tag = body_of(read.json), read.headers["ETag"]
        draft = self.api.get("/api/v1/draft")
        fields = KINDS[kind]["fields"]
        spaced = json.dumps(other_order(body, fields), indent=3)
        for text in (json.dumps(body), spaced):
            again = self.api.raw("PUT", self.shapes.path(kind, name), text, {
                "If-Match": tag, "Content-Type": "application/json"})
            self.assertEqual((again.status, again.headers["ETag"]), (200, tag), again)
        self.assertEqual(self.api.get("/api/v1/draft"), draft)
        self.unknown_fields(kind, name, body, tag)
        self.filters(kind, name, read.json)

    def unknown_fields(self, kind, name, body, tag):
        for method in ("PUT", "PATCH"):
            answer = self.api.call(method, self.shapes.path(kind, name),
                                   {**body, "surprise": 1}, {"If-Match": tag})
            self.assertEqual(answer.status, 422)
            self.assertEqual([e["pointer"] for e in answer.json["errors"]], ["/surprise"])

    def filters(self, kind, name, read):
        if KINDS[kind]["singleton"]:
            return
        for field in KINDS[kind]["fields"]:
            value = read[field["name"]]
            if field["type"] == "record" or field.get("secret") or value in (None, []):
                continue
            value = value[0] if field.get("list") else value
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if len(text) > 300 or "\n" in text:  # what a request line does not take
                continue
            found = self.api.get("%s?limit=1000&%s=%s" % (
                self.shapes.path(kind), field["name"], quote(text)))["items"]
            self.assertIn(name, [o["name"] for o in found], field["name"])
            for item in found:
                held = item[field["name"]]
                self.assertIn(value, held if field.get("list") else [held])
            if is_text(field):
                found = self.api.get("%s?limit=1000&q=%s" % (
                    self.shapes.path(kind), quote(text.upper()[:60])))["items"]
                self.assertIn(name, [o["name"] for o in found], field["name"])

    def test_every_kind(self):
        for kind in KINDS:
            with self.subTest(kind=kind):
                self.walk(kind)

    def test_filters_that_are_none(self):
        for query, status in (("nothing=1", 400), ("key=x", 400), ("port=x", 422),
                              ("tls=yes", 422), ("mode=udp", 422), ("certificates=none", 200)):
            plural = "certificates" if query == "key=x" else "listeners"
            self.api.expect(status, "GET", "/api/v1/%s?%s" % (plural, query))

    def test_pages_have_one_order_and_miss_nothing(self):
        names = [self.shapes.create("server") for _ in range(25)]
        seen, after = [], ""
        while after is not None:
            page = self.api.get("/api/v1/servers?limit=7&q=shape-%s" % (
                "&after=" + after if after else ""))
            self.assertLessEqual(len(page["items"]), 7)
            seen += [o["name"] for o in page["items"]]
            after = page["next"]
        self.assertEqual(seen, sorted(names))


# Where a command, a path or a template in a value could leave something. Of the first nobody else
# has a part, see private_folders.
OWN_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
FOLDERS = (*OWN_FOLDERS, "/", "/etc", "/etc/haproxy", "/etc/lockstep", "/var/lib/haproxy",
           "/usr/local/bin")
PROGRAMS = {"lockstepd", "lockstep-helper", os.path.basename(node.HAPROXY)}


def traces(of):
    """What is in FOLDERS, and the names beside the node's directories."""
    found = {name: None for name in os.listdir(of.root)}
    for folder in FOLDERS:
        with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                size = status.st_size if entry.is_file(follow_symlinks=False) else None
                found[entry.path] = (status.st_ino, status.st_mode, size)
    return found


class Watch(threading.Thread):
    """Which programs run below a node."""

    def __init__(self, of):
        super().__init__(daemon=True)
        self.node, self.seen, self.end = of, set(), threading.Event()

    def run(self):
        while not self.end.is_set():
            self.seen |= {node.program_of(p) for p in node.descendants(self.node.process.pid)}
            self.end.wait(0.02)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_error):
        self.end.set()
        self.join()


class Hostile(Case):
    """Refused at its field, or kept as data: no value gets beyond its place."""

    def accepted(self, kind, field):
        """Hostile values that the field takes; the others are refused with its pointer."""
        name = self.shapes.create(kind)
        path = self.shapes.path(kind, name)
        tag = self.api.etag(path)
        taken = []
        for value in HOSTILE:
            sent = [value] if field.get("list") else value
            answer = self.api.call("PATCH", path, {field["name"]: sent}, {"If-Match": tag})
            self.assertIn(answer.status, (200, 400, 409, 422), (field["name"], value))
            if answer.status == 200:
                tag = answer.headers["ETag"]
                if field.get("text_type") != "body":
                    self.assertNotRegex(value, "[\r\n\t\0]", field["name"])
                taken.append(sent)
                if field["name"] == "name" and not KINDS[kind]["singleton"]:
                    path = self.shapes.path(kind, answer.json["name"])
            elif answer.status == 422 and value.isprintable():
                pointers = [e["pointer"] for e in answer.json["errors"]]
                self.assertTrue(any(p.startswith("/" + field["name"]) for p in pointers)
                                or field["type"] != "text", (field["name"], value, pointers))
        return taken

    def used(self, kind, name):
        """An object by which it gets into the file."""
        for other, schema in KINDS.items():
            for field in schema["fields"]:
                fits = field["type"] == "ref" and field["ref"]["kind"] == kind
                if not fits or schema["direct"] or schema["singleton"]:
                    continue
                body = self.shapes.sample(other)
                body[field["name"]] = [name] if field.get("list") else name
                if self.api.call("POST", self.shapes.path(other), body).status == 201:
                    return

    def check(self):
        result = self.api.expect(200, "POST", "/api/v1/render")
        self.assertTrue(result["check"]["ok"], result["check"])
        self.assertEqual(FORBIDDEN.findall(result["text"]), [])

    def one_kind(self, kind):
        texts = [f for f in writable(kind) if is_text(f) and f.get("text_type") != "pem_chain"]
        taken = {f["name"]: self.accepted(kind, f) for f in texts}
        for i in range(max(len(v) for v in taken.values())):
            name = self.shapes.create(kind)
            for field, values in taken.items():
                if i < len(values) and field != "name":
                    answer = self.shapes.patch(kind, name, {field: values[i]})
                    self.assertIn(answer.status, (200, 422), (field, values[i]))
            self.used(kind, name)
            if KINDS[kind]["singleton"]:
                self.check()
        self.check()

    def test_hostile_texts(self):
        before = traces(self.node)
        with Watch(self.node) as watch:
            for kind in KINDS:
                if KINDS[kind].get("permission") != "manage":
                    with self.subTest(kind=kind):
                        self.one_kind(kind)
                        task = self.api.apply()
                        self.assertEqual(task["state"], "ok", task["message"])
                        self.assertEqual(FORBIDDEN.findall(self.node.config()), [])
                        self.setUp()
        # Applied and running, they leave no file, and no process but our own.
        self.assertEqual(traces(self.node), before)
        self.assertEqual(watch.seen - {""}, PROGRAMS)

    def test_values_of_a_wrong_type(self):
        for kind in KINDS:
            name = self.shapes.create(kind)
            path = self.shapes.path(kind, name)
            for field in KINDS[kind]["fields"]:
                for value in WRONG:
                    answer = self.api.raw("PATCH", path, json.dumps({field["name"]: value}), {
                        "If-Match": self.read(kind, name).headers["ETag"],
                        "Content-Type": "application/json"})
                    where = (kind, field["name"], value, answer)
                    self.assertIn(answer.status, (200, 400, 409, 422), where)
                    if answer.status == 422:
                        self.assertTrue(answer.json["errors"], where)
                    elif answer.status == 200:
                        name = answer.json["name"]
                        path = self.shapes.path(kind, name)

    def test_names_in_paths(self):
        for value in HOSTILE:
            for kind in KINDS:
                if not KINDS[kind]["singleton"]:
                    target = "/api/v1/%s/%s" % (KINDS[kind]["plural"], quote(value))
                    answer = self.api.raw("GET", target)
                    if answer.status == 200:  # a name of an object, and nothing else
                        self.assertEqual(answer.json["name"], value)
                    else:
                        self.assertIn(answer.status, (400, 404, 405, 414), (target, answer))


class Fuzz(Case):
    def value(self, rng, field):
        roll = rng.random()
        if roll < 0.25:
            return rng.choice(HOSTILE)
        if roll < 0.5:
            return rng.choice(WRONG)
        if roll < 0.6:
            return [rng.choice(HOSTILE + WRONG) for _ in range(rng.randrange(4))]
        if field["type"] == "record":
            return [{f["name"]: self.value(rng, f) for f in field["fields"]
                     if rng.random() < 0.8} for _ in range(rng.randrange(3))]
        return rng.choice(self.shapes.candidates("", field))

    def body(self, rng, kind):
        body = {} if rng.random() < 0.2 else self.shapes.sample(kind)
        for field in rng.sample(KINDS[kind]["fields"], rng.randrange(4)):
            body[field["name"]] = self.value(rng, field)
        if rng.random() < 0.1:
            body[rng.choice(HOSTILE)] = rng.choice(WRONG)
        return body

    def test_no_request_is_answered_with_500(self):
        rng = random.Random(SEED)
        kinds = [k for k in KINDS if KINDS[k].get("permission") != "manage"]
        pid = self.node.pid_of("lockstepd")
        names = {kind: self.shapes.create(kind) for kind in kinds}
        count, seen = 0, set()
        end = time.monotonic() + FUZZ_S
        while time.monotonic() < end:
            kind = rng.choice(kinds)
            method = rng.choice(("POST", "PUT", "PATCH"))
            if method == "POST" and KINDS[kind]["singleton"]:
                method = "PUT"
            path = self.shapes.path(kind, None if method == "POST" else names[kind])
            text = json.dumps(self.body(rng, kind))
            if rng.random() < 0.05:
                text = text[:rng.randrange(len(text))]
            headers = {"Content-Type": "application/json"}
            if method != "POST":
                present = self.api.raw("GET", path)
                if present.status == 404:  # it was renamed
                    names[kind] = self.shapes.create(kind)
                    continue
                headers["If-Match"] = present.headers["ETag"]
            answer = self.api.raw(method, path, text.encode(), headers)
            self.assertIn(answer.status, (200, 201, 400, 409, 422), (method, path, text, answer))
            seen.add(answer.status)
            count += 1
        self.assertGreater(count, 100)
        self.assertGreaterEqual(seen, {200, 201, 400, 422})
        self.assertEqual(self.node.pid_of("lockstepd"), pid)
        # Whatever was taken can be rendered, and the checker accepts it.
        result = self.api.expect(200, "POST", "/api/v1/render")
        self.assertTrue(result["check"]["ok"], result["check"])
        self.assertEqual(FORBIDDEN.findall(result["text"]), [])


if __name__ == "__main__":
    node.private_network()
    node.private_folders(*OWN_FOLDERS)
    unittest.main(verbosity=2)
