#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a start does with a data directory that is not as it was left: HAProxy serves on, and
nothing is made anew in the place of what was lost."""
import os
import shutil
import sqlite3
import subprocess
import sys
import unittest

import node
from backend import Backend
from visit import serves

# Without a log beside it the database is locked for readers too.
HOLD = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode=DELETE")
database.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


class Start(unittest.TestCase):
    def setUp(self):
        self.backend = Backend("one")
        self.addCleanup(self.backend.close)
        self.node = node.Node().set_up()
        self.addCleanup(self.node.close)
        self.node.api.expect(200, "POST", "/api/v1/publish",
                             {"url": "http://app.test", "to": [self.backend.target]})
        self.assertEqual(self.node.api.apply()["state"], "ok")
        self.data = os.path.join(self.node.state, "data")

    def files(self):
        """All but SQLite's working files, which come and go with each look at the database."""
        found = {}
        for name in os.listdir(self.data):
            if name.endswith(("-wal", "-shm")):
                continue
            with open(os.path.join(self.data, name), "rb") as file:
                found[name] = file.read()
        return found

    def starts_without_daemon(self, reason, told=True):
        """HAProxy serves, lockstepd says why it does not, and writes nothing."""
        before = self.files()
        config = self.node.config()
        self.node.start()
        node.wait_for(serves, "HAProxy serves")
        node.wait_for(lambda: reason in self.node.log(), "the log says: " + reason)
        self.assertTrue(serves())
        if told:
            self.is_told(reason)
        self.assertEqual(self.files(), before)
        self.assertEqual(self.node.config(), config)

    def is_told(self, reason):
        api = self.node.api
        node.wait_for(self.node.tells_why, "it answers")
        for method, path in (("GET", "/api/v1/status"), ("POST", "/api/v1/setup"),
                             ("POST", "/api/v1/apply"), ("GET", "/nothing/here")):
            answer = api.raw(method, path, "{}" if method == "POST" else None)
            self.assertEqual(answer.status, 503, path)
            self.assertIn(reason, answer.json["detail"])
        self.assertEqual(self.node.log().count("lockstepd: error"), 1, self.node.log())

    def task_numbers(self):
        return [task["id"] for task in self.node.api.get("/api/v1/tasks")["items"]]

    def test_an_orderly_restart_serves_the_same(self):
        head = self.node.api.get("/api/v1/status")["head"]
        tasks = self.task_numbers()
        self.node.stop()
        self.node.start()
        self.node.wait_ready()
        self.assertEqual(self.node.api.get("/api/v1/status")["head"], head)
        self.assertTrue(serves())
        # A number that was told before the restart leads to no other task.
        self.assertGreater(min(self.task_numbers()), max(tasks))
        gone = self.node.api.call("GET", "/api/v1/tasks/%d" % max(tasks))
        self.assertEqual(gone.status, 404)
        self.assertIn("restarted since", gone.json["detail"])

    def test_a_second_daemon_on_the_same_data_is_refused(self):
        with open("/proc/%d/cmdline" % self.node.pid_of("lockstepd"), encoding="utf-8") as file:
            command = file.read().replace(":8443", ":9443").split("\0")[:-1]
        second = subprocess.run(
            ["setpriv", "--reuid", str(node.UID), "--clear-groups", *command],
            capture_output=True, text=True, timeout=10, check=False)
        self.assertEqual(second.returncode, 1, second)
        self.assertIn("another lockstepd", second.stderr)
        self.assertTrue(self.node.api.get("/api/v1/verify")["ok"])

    def test_what_a_killed_daemon_left_on_its_way_to_the_helper_is_removed(self):
        self.node.kill()
        left = os.path.join(self.node.state, "stage", "77", "tls")
        os.makedirs(left)
        with open(os.path.join(left, "site.pem"), "w", encoding="ascii") as file:
            file.write("a private key")
        os.chown(os.path.dirname(left), node.UID, node.UID)
        os.chown(left, node.UID, node.UID)
        self.node.start()
        self.node.wait_ready()
        self.assertEqual(os.listdir(os.path.join(self.node.state, "stage")), [])

    def test_after_a_power_cut_everything_is_back(self):
        head = self.node.api.get("/api/v1/status")["head"]
        self.node.kill()
        self.node.start()
        self.node.wait_ready()
        self.assertEqual(self.node.api.get("/api/v1/status")["head"], head)
        self.assertTrue(serves())

    def test_a_lost_data_directory_is_not_a_first_start(self):
        self.node.stop()
        shutil.rmtree(self.data)
        os.mkdir(self.data, 0o700)
        os.chown(self.data, node.UID, node.UID)
        self.starts_without_daemon("holds no database", told=False)

    def test_a_lost_database_is_not_a_first_start(self):
        self.node.stop()
        for name in os.listdir(self.data):
            if name.startswith("lockstep.db"):
                os.unlink(os.path.join(self.data, name))
        self.starts_without_daemon("no database")
        said = self.node.api.raw("GET", "/api/v1/status").json["detail"]
        for advice in ("restore it from a backup", "or take it from another node: move data/ and "
                       "generation/ away, set up, then lockstep join"):
            self.assertIn(advice, said)
        self.node.stop()
        for name in ("data", "generation"):
            shutil.move(os.path.join(self.node.state, name), os.path.join(self.node.root, name))
        self.node.start()
        self.node.wait(self.node.answers, "it begins anew")
        self.assertTrue(self.node.token())

    def test_a_lost_key_is_named(self):
        self.node.stop()
        os.unlink(os.path.join(self.data, "seal.key"))
        self.starts_without_daemon("seal.key")

    def test_a_damaged_database_is_left_alone(self):
        self.node.stop()
        with open(os.path.join(self.data, "lockstep.db"), "r+b") as file:
            file.seek(4096)
            file.write(b"\xa5" * 20000)
        self.starts_without_daemon("damaged")

    def test_a_database_that_another_program_holds_is_waited_for(self):
        self.node.stop()
        # A process of its own: this one loses its locks with each file that it reads and closes.
        with subprocess.Popen(
                [sys.executable, "-c", HOLD, os.path.join(self.data, "lockstep.db")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            self.addCleanup(holder.kill)
            self.assertEqual(holder.stdout.readline(), "held\n")
            self.starts_without_daemon("in use by another program")
            holder.stdin.close()
        self.node.wait_ready()
        self.assertTrue(self.node.api.get("/api/v1/verify")["ok"])

    def test_a_database_of_a_newer_release_is_left_alone(self):
        self.node.stop()
        database = sqlite3.connect(os.path.join(self.data, "lockstep.db"))
        database.execute("PRAGMA journal_mode=DELETE")
        database.execute("PRAGMA user_version=9999")
        database.close()
        self.starts_without_daemon("newer")

    def test_verify_offline_finds_what_was_changed_by_hand(self):
        self.node.stop()
        command = [os.path.join(node.BUILD, "lockstepd"), "--state-dir", self.node.state,
                   "--verify"]
        good = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(good.returncode, 0, good)
        database = sqlite3.connect(os.path.join(self.data, "lockstep.db"))
        database.execute("PRAGMA writable_schema=ON")
        database.execute("DELETE FROM sqlite_master WHERE type='trigger'")
        database.commit()
        database.close()
        database = sqlite3.connect(os.path.join(self.data, "lockstep.db"))
        database.execute("UPDATE commit_log SET summary='nothing happened' WHERE rev=2")
        database.commit()
        database.close()
        bad = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(bad.returncode, 1, bad)
        self.assertIn("2", bad.stdout + bad.stderr)


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
