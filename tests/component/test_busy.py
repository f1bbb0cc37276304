#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads while a hundred drafts a second are written, and a database that another program locks."""
import contextlib
import json
import os
import sqlite3
import statistics
import threading
import time
import unittest

import node
from api import Kept

JSON = {"Content-Type": "application/json"}
REVISIONS = 10
WRITES = 200
PACE_S = 0.01
MEDIAN_S = 0.05
LONGEST_S = 2  # of a machine that does other things, too


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        cls.api.create("monitors", name="m")
        for revision in range(REVISIONS):  # no reload, so that they are made fast
            cls.api.patch("/api/v1/monitors/m", interval_ms=1000 + revision)
            assert cls.api.apply()["state"] == "ok"

    def setUp(self):
        self.api.expect(204, "DELETE", "/api/v1/draft")


class Writer(threading.Thread):
    """A hundred changes of the draft a second."""

    def __init__(self, api):
        super().__init__()
        self.api, self.statuses, self.ended = Kept(api), [], threading.Event()

    def run(self):
        begin = time.monotonic()
        for number in range(WRITES):
            answer = self.api.raw("POST", "/api/v1/changes", json.dumps({"ops": [
                {"op": "merge", "kind": "monitor", "name": "m",
                 "body": {"interval_ms": 2000 + number}}]}), JSON)
            self.statuses.append(answer.status)
            self.ended.wait(max(0, begin + PACE_S * (number + 1) - time.monotonic()))
        self.api.close()


class Reads(Case):
    """C098, C226."""

    def test_lists_and_differences_do_not_wait_for_writers(self):
        reader = Kept(self.api)
        self.addCleanup(reader.close)
        head = self.api.get("/api/v1/status")["head"]["rev"]
        targets = ["commits?limit=50", "commits/%d/diff" % head, "commits/%d/diff?to=1" % head,
                   "commits/%d" % (head - 1), "config/diff", "draft", "monitors", "tasks"]
        took = {target: [] for target in targets}
        writer = Writer(self.api)
        writer.start()
        while writer.is_alive():
            for target in targets:
                begin = time.monotonic()
                self.assertEqual(reader.raw("GET", "/api/v1/" + target).status, 200, target)
                took[target].append(time.monotonic() - begin)
        writer.join()
        self.assertEqual(set(writer.statuses), {200})
        for target, times in took.items():
            self.assertLess(statistics.median(times), MEDIAN_S, target)
            self.assertLess(max(times), LONGEST_S, target)


class Locked(Case):
    """Fifty writers: another program holds the database."""

    @contextlib.contextmanager
    def locked(self):
        path = os.path.join(self.node.state, "data", "lockstep.db")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")

    def write(self, name):
        return self.api.raw("POST", "/api/v1/monitors", json.dumps({"name": name}), JSON)

    def test_a_write_is_told_to_come_again_and_objects_can_be_read(self):
        with self.locked():
            begin = time.monotonic()
            answers = []
            writer = threading.Thread(target=lambda: answers.append(self.write("long")))
            writer.start()
            while writer.is_alive():
                # History is in the database, behind the writers.
                for target in ("monitors", "draft", "status", "tasks"):
                    asked = time.monotonic()
                    self.assertEqual(self.api.raw("GET", "/api/v1/" + target).status, 200)
                    self.assertLess(time.monotonic() - asked, LONGEST_S, target)
            self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(answers[0].status, 503, answers)
        self.assertIn("in use by another program", answers[0].json["detail"])
        self.assertGreaterEqual(int(answers[0].headers["Retry-After"]), 1)
        self.assertEqual(self.api.get("/api/v1/draft")["count"], 0)
        self.assertEqual(self.write("long").status, 201)
        self.assertEqual(self.api.apply()["state"], "ok")

    def test_a_short_lock_is_waited_for(self):
        done = []
        with self.locked():
            writer = threading.Thread(target=lambda: done.append(self.write("short")))
            writer.start()
            writer.join(0.5)
            self.assertEqual(done, [])
        writer.join()
        self.assertEqual(done[0].status, 201)


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
