#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""lockstepd, lockstep-helper and lockstep-run are killed or stopped at any moment of an apply,
under a steady load: no request fails, and afterwards database, files and HAProxy agree."""
import http.client
import os
import random
import signal
import threading
import unittest

import node
from api import Api
from backend import Backend
from load import Load

ROUNDS = 40
SEED = int(os.environ.get("LOCKSTEP_SEED", "1"))
VICTIMS = ("lockstepd", "lockstep-helper", "lockstep-run")


class Kills(unittest.TestCase):
    def setUp(self):
        self.backend = Backend("one")
        self.addCleanup(self.backend.close)
        self.node = node.Node().set_up()
        self.addCleanup(self.node.close)
        self.api = self.node.api
        self.api.expect(200, "POST", "/api/v1/publish",
                        {"url": "http://app.test", "to": [self.backend.target]})
        self.assertEqual(self.api.apply()["state"], "ok")
        self.random = random.Random(SEED)
        self.moment = threading.Event()  # never set: how long is part of the input

    def get(self, path):
        """While the old daemon ends and the new one starts, nobody may answer."""
        return node.wait_for(lambda: self.api.get(path), path, 30)

    def strike(self, victim):
        pids = [self.node.process.pid] if victim == "lockstep-run" else self.node.pids(victim)
        stop_s = self.random.choice((0, 0, 0.1, 0.5))
        for pid in pids:
            os.kill(pid, signal.SIGSTOP if stop_s else signal.SIGKILL)
        if stop_s:
            self.moment.wait(stop_s)
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        elif victim == "lockstep-run":
            self.node.process.wait(10)
            self.node.start()

    def apply(self, note, told):
        try:
            told.append(Api("127.0.0.1", 8443, self.api.key).apply(note)["state"])
        except (OSError, http.client.HTTPException, AssertionError):
            pass  # cut off, or still running when it had to answer

    def change(self, value):
        self.api.call("DELETE", "/api/v1/draft")
        return self.api.patch("/api/v1/haproxy", maxconn=value)

    def agree(self, told, note, value):
        self.node.wait_ready()
        node.wait_for(lambda: self.get("/api/v1/verify")["ok"], "all agrees: " + note)
        status = node.wait_for(self.settled, "HAProxy runs the head: " + note)
        committed = status["head"]["summary"] == note
        if "ok" in told:
            self.assertTrue(committed, "an acknowledged change is lost: " + note)
        self.assertEqual(self.get("/api/v1/draft")["count"], 0 if committed else 1, note)
        self.assertEqual(self.get("/api/v1/haproxy")["maxconn"], value, note)
        self.assertEqual("maxconn %d\n" % value in self.node.config(), committed, note)

    def settled(self):
        status = self.api.get("/api/v1/status")
        agreed = status["running"]["commit"] == status["head"]["id"] and \
            status["running"]["digest"] == self.node.running_digest()
        return status if agreed else None

    def test_at_any_moment(self):
        load = Load("127.0.0.1", 80, "app.test").start()
        try:
            for number in range(ROUNDS):
                victim = self.random.choice(VICTIMS)
                note = "round %d of seed %d: %s" % (number, SEED, victim)
                node.wait_for(lambda value=2000 + number: self.change(value), "an edit")
                told = []
                caller = threading.Thread(target=self.apply, args=(note, told))
                caller.start()
                self.moment.wait(self.random.random() * 0.4)
                self.strike(victim)
                caller.join(60)
                self.assertFalse(caller.is_alive(), note)
                self.agree(told, note, 2000 + number)
        finally:
            load.stop()
        self.assertEqual(load.failures, [])
        self.assertEqual(os.listdir(os.path.join(self.node.state, "stage")), [])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
