#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A database of an earlier schema: each that is kept in tests/fixtures opens with the content
that it had, is copied first, and is whole when the start is cut short."""
import contextlib
import os
import sqlite3
import subprocess
import tempfile
import unittest

import node

FIXTURES = os.path.join(node.SOURCE, "tests", "fixtures")
# What tests/fixtures/schema-1.tar.xz holds: two publishes applied, a third, a fourth drafted.
REV, FP8 = 4, "e4d2ff01"
APPLIED = {"app.test", "tcp-5432", "other.test-shop"}
DRAFTED = "draft.test"


class Upgrade(unittest.TestCase):
    def open(self, **options):
        made = node.Node(data=os.path.join(FIXTURES, "schema-1.tar.xz"), **options)
        self.addCleanup(made.close)
        return made

    def version(self, made, name="lockstep.db"):
        path = os.path.join(made.state, "data", name)
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
            return db.execute("PRAGMA user_version").fetchone()[0]

    def holds_what_it_held(self, made):
        made.wait_ready()
        admin = made.session()
        head = admin.get("/api/v1/status")["head"]
        self.assertEqual((head["rev"], head["fp8"], head["schema_version"]), (REV, FP8, 1))
        names = {s["name"] for s in admin.get("/api/v1/services")["items"]}
        self.assertEqual(names, APPLIED | {DRAFTED})
        drafted = {c["name"] for c in admin.get("/api/v1/draft")["changes"]
                   if c["kind"] == "service"}
        self.assertEqual(drafted, {DRAFTED})
        self.assertEqual(admin.get("/api/v1/webui")["hosts"], [])  # came later
        self.assertTrue(admin.get("/api/v1/verify")["ok"])
        self.assertEqual(self.version(made, "lockstep.db.before-0002"), 1)
        self.assertEqual(self.version(made, "lockstep.db.before-0003"), 2)
        self.assertEqual(self.version(made, "lockstep.db.before-0004"), 3)
        return admin

    def test_schema_1_opens_with_its_content_and_goes_on(self):
        made = self.open()
        admin = self.holds_what_it_held(made)
        self.assertEqual(admin.apply()["state"], "ok")
        head = admin.get("/api/v1/status")["head"]
        self.assertEqual((head["rev"], head["schema_version"]), (REV + 1, 2))
        self.assertTrue(admin.get("/api/v1/verify")["ok"])
        # A revision of before is content as any other.
        admin.expect(200, "POST", "/api/v1/commits/3/restore", {})
        self.assertEqual(admin.apply()["state"], "ok")
        names = {s["name"] for s in admin.get("/api/v1/services")["items"]}
        self.assertEqual(names, {"app.test", "tcp-5432"})

    def test_a_second_start_changes_nothing(self):
        made = self.open()
        self.holds_what_it_held(made)
        made.stop()
        made.start()
        self.holds_what_it_held(made)

    def test_a_start_that_is_cut_short_leaves_old_or_new(self):
        made = self.open(crash_file=True, dies_at="migrate_before_commit")
        node.wait_for(lambda: not os.path.exists(made.crash_path), "it dies")
        self.holds_what_it_held(made)


class Offline(unittest.TestCase):
    def test_verify_of_an_older_database_is_refused_and_writes_nothing(self):
        with tempfile.TemporaryDirectory(prefix="lockstep-test-%d-" % os.getpid()) as state:
            data = os.path.join(state, "data")
            os.mkdir(data, 0o700)
            archive = os.path.join(FIXTURES, "schema-1.tar.xz")
            subprocess.run(["tar", "-C", data, "-xf", archive], check=True)
            with open(os.path.join(data, "lockstep.db"), "rb") as file:
                before = file.read()
            said = subprocess.run(
                [os.path.join(node.BUILD, "lockstepd"), "--state-dir", state, "--verify"],
                capture_output=True, text=True, check=False)
            self.assertEqual(said.returncode, 1, said)
            self.assertIn("older release", said.stdout + said.stderr)
            with open(os.path.join(data, "lockstep.db"), "rb") as file:
                self.assertEqual(file.read(), before)
            self.assertNotIn("lockstep.db.before-0002", os.listdir(data))


if __name__ == "__main__":
    node.private_network()
    unittest.main()
