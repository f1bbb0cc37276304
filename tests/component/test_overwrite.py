#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Overwrites of three real nodes: two at once, of which one wins whoever is the lone one."""
import concurrent.futures
import threading
import unittest

import node
from cluster import TUNABLES, Cluster, head, in_step, join, seen
from lab import wait_for

PATH = "/api/v1/cluster/overwrite"


def publish(one, name):
    one.api.expect(200, "POST", "/api/v1/publish",
                   {"url": "http://%s.test" % name, "to": ["http://10.77.0.1:1"]})
    task = one.api.apply()
    assert task["state"] == "ok", task
    return task["result"]["commit"]


class Duel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(3, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.nodes = cls.lab.set_up().nodes
        for one in cls.nodes:
            one.api.unlock = True  # there is no VIP
        publish(cls.nodes[0], "first")
        for other in cls.nodes[1:]:
            join(other, cls.nodes[0])
        in_step(cls.nodes)

    def split(self, lone, rest, name):
        """Both sides are changed apart; their heads then."""
        for other in rest:
            self.lab.cut(lone, other)
        heads = [publish(lone, name + "lone"), publish(rest[0], name + "rest")]
        in_step(rest)
        self.lab.join_all()
        wait_for(lambda: all(seen(a, b)["relation"] == "diverged" for a, b in
                             [(lone, other) for other in rest] + [(other, lone) for other in rest]),
                 "all have seen that they diverged")
        return heads

    @staticmethod
    def press(both, late):
        """Their answers; the second one presses so many seconds later."""
        barrier = threading.Barrier(2)

        def one(which):
            barrier.wait()
            threading.Event().wait(late * which)
            return both[which].api.call("POST", PATH, {})
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(one, range(2)))

    def duel(self, lone, rival, late, name):
        rest = sorted((n for n in self.nodes if n is not lone), key=lambda n: n is not rival)
        heads = self.split(lone, rest, name)
        both = [lone, rival] if late % 2 == 0 else [rival, lone]
        answers = self.press(both, late * 0.03)
        self.assertEqual(sorted(a.status for a in answers), [200, 409], answers)
        won = next(i for i, a in enumerate(answers) if a.status == 200)
        loser = answers[1 - won].json
        self.assertIn(loser["code"], ("overwrite_in_progress", "moved", "conflict"), loser)
        in_step(self.nodes)
        # What the one had is there, and what the other had is in its history.
        commit = answers[won].json["commit"]
        self.assertEqual(head(lone), commit)
        side = "lone" if both[won] is lone else "rest"
        self.assertEqual(
            [s["name"] for s in lone.api.get("/api/v1/services?limit=1000")["items"]
             if s["name"].startswith(name)], ["%s%s.test" % (name, side)])
        for one in self.nodes:
            for discarded in heads:
                one.api.expect(200, "GET", "/api/v1/commits/" + discarded)

    def test_one_of_two_wins_whoever_is_the_lone_one(self):
        for late in range(3):
            for i, lone in enumerate(self.nodes):
                rival = self.nodes[(i + 1 + late % 2) % 3]
                with self.subTest(lone=lone.name, rival=rival.name, late=late):
                    self.duel(lone, rival, late, "d%d%d" % (late, i))


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
