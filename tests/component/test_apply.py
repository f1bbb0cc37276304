#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Apply on a real node: refusals leave everything as it was, load does not notice."""
import contextlib
import os
import select
import socket
import unittest

import node
from backend import Backend
from checker import Checker
from load import Load
from thief import Thief
from visit import serves, visit


class Case(unittest.TestCase):
    """A node with one plain HTTP service for host app.test on port 80."""

    @classmethod
    def setUpClass(cls):
        cls.backend = Backend("one")
        cls.checker = Checker()
        cls.addClassCleanup(cls.checker.close)
        cls.node = node.Node(haproxy=cls.checker.path).set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        cls.api.expect(200, "POST", "/api/v1/publish",
                       {"url": "http://app.test", "to": [cls.backend.target]})
        task = cls.api.apply()
        assert task["state"] == "ok", task

    def setUp(self):
        self.api.call("DELETE", "/api/v1/draft")

    def state(self):
        """Everything that a refused change must leave alone."""
        status = self.api.get("/api/v1/status")
        return (status["head"]["id"], status["running"]["digest"], self.node.generation(),
                self.node.config(), self.node.pid_of("haproxy"))


class Refused(Case):
    def refused(self, task, state):
        self.assertEqual(task["state"], "failed", task)
        self.assertEqual(self.state(), state)
        self.assertTrue(serves())
        self.assertGreater(self.api.get("/api/v1/draft")["count"], 0, "the draft is lost")

    def test_a_port_that_another_program_holds_is_found_before_haproxy_is_touched(self):
        with socket.create_server(("127.0.0.1", 7070)):
            state = self.state()
            reloads = self.node.admin_socket("show info")
            self.api.expect(200, "POST", "/api/v1/publish",
                            {"url": "tcp://:7070", "to": [self.backend.target], "name": "taken"})
            task = self.api.apply()
            self.refused(task, state)
            text = str(task)
            self.assertIn("7070", text)
            self.assertIn("tcp-7070", text)
            self.assertIn("python", text, "the holder is not named")
            self.assertEqual(pid_line(reloads), pid_line(self.node.admin_socket("show info")))

    def test_an_address_that_no_interface_has_is_named(self):
        state = self.state()
        self.api.create("listeners", name="absent", addresses=["192.0.2.99"], port=8081)
        task = self.api.apply()
        self.refused(task, state)
        self.assertIn("192.0.2.99", str(task))
        self.assertIn("absent", str(task))

    def test_an_address_of_a_vip_group_may_be_absent_until_it_leaves_the_group(self):
        self.api.create("vip_groups", name="v", addresses=["192.0.2.98/24"])
        self.api.create("listeners", name="vip", addresses=["192.0.2.98"], port=8082)
        self.assertEqual(self.api.apply()["state"], "ok")
        state = self.state()
        self.api.delete("/api/v1/vip_groups/v")
        task = self.api.apply()
        self.refused(task, state)
        self.assertIn("192.0.2.98", str(task))
        self.api.call("DELETE", "/api/v1/draft")
        self.api.delete("/api/v1/listeners/vip")
        self.assertEqual(self.api.apply()["state"], "ok")

    def test_listeners_that_do_not_answer_this_node_are_confirmed_all_the_same(self):
        self.api.create("listeners", name="few", port=8083, allowed_networks=["192.0.2.0/24"])
        self.api.create("listeners", name="proxied", port=8084, accept_proxy=True)
        self.api.create("listeners", name="strict", port=8085, tls=True, strict_sni=True)
        task = self.api.apply()
        self.assertEqual(task["state"], "ok", task)

    def test_a_condition_in_use_cannot_be_deleted_nor_be_without_values(self):
        self.api.create("conditions", name="c", type="path", values=["/secret"])
        self.api.create("rules", name="r", service="app.test", action="deny",
                        conditions=[{"condition": "c"}])
        seen = {"If-Match": self.api.etag("/api/v1/conditions/c")}
        problems = self.api.expect(409, "DELETE", "/api/v1/conditions/c", None, seen)["errors"]
        self.assertEqual([(p["kind"], p["name"]) for p in problems], [("rule", "r")])
        body = self.api.get("/api/v1/conditions/c")
        self.api.expect(422, "PATCH", "/api/v1/conditions/c", {"values": []}, seen)
        self.assertEqual(self.api.get("/api/v1/conditions/c"), body)
        self.assertEqual(self.api.apply()["state"], "ok")

    def test_what_only_the_checker_knows_comes_back_at_its_object(self):
        state = self.state()
        self.api.patch("/api/v1/haproxy", maxconn=2999)
        with self.checker.refusing():
            task = self.api.apply()
        self.refused(task, state)
        self.assertEqual([(p["code"], p["kind"], p["pointer"]) for p in task["problems"]],
                         [("haproxy", "haproxy", "/maxconn")], task)

    def test_refusals_push_out_no_generation_that_served(self):
        served = set()
        for maxconn in range(3001, 3007):  # the one that runs, and five before it
            self.api.patch("/api/v1/haproxy", maxconn=maxconn)
            self.assertEqual(self.api.apply()["state"], "ok")
            served.add(os.path.basename(self.node.generation("good")))
        self.assertEqual((len(served), served - self.generations()), (6, set()))
        for number in range(6):
            state = self.state()
            self.api.patch("/api/v1/haproxy", maxconn=3100 + number)
            with self.checker.refusing():
                self.refused(self.api.apply(), state)
            self.assertEqual(served - self.generations(), set())
        self.assertLessEqual(len(self.generations()), 12, "refused ones do not pile up")

    def generations(self):
        return {n for n in os.listdir(os.path.join(self.node.state, "generation"))
                if n.isdigit()}

    def test_an_edit_made_during_an_apply_survives(self):
        self.api.create("monitors", name="before", interval_ms=7000)
        started = self.api.expect(202, "POST", "/api/v1/config/apply", {})
        self.api.create("monitors", name="during", interval_ms=8000)
        node.wait_for(lambda: self.api.get("/api/v1/tasks/%d" % started["id"])["state"]
                      in ("ok", "failed"), "the apply ended")
        self.assertEqual(self.api.get("/api/v1/tasks/%d" % started["id"])["state"], "ok")
        self.assertEqual(self.api.get("/api/v1/monitors/during")["interval_ms"], 8000)

    def test_an_apply_of_an_empty_draft_is_no_revision(self):
        head = self.api.get("/api/v1/status")["head"]["id"]
        self.assertEqual(self.api.apply()["state"], "ok")
        self.assertEqual(self.api.get("/api/v1/status")["head"]["id"], head)

    def test_a_change_without_effect_on_files_does_not_reload(self):
        worker = self.node.pid_of("haproxy"), pid_line(self.node.admin_socket("show info"))
        self.api.patch("/api/v1/services/app.test", note="nothing that HAProxy reads")
        task = self.api.apply()
        self.assertEqual(task["state"], "ok", task)
        self.assertEqual(
            worker, (self.node.pid_of("haproxy"), pid_line(self.node.admin_socket("show info"))))
        status = self.api.get("/api/v1/status")
        self.assertEqual(status["running"]["commit"], status["head"]["id"])


class AnyHost(Case):
    """A service for whatever host, whose server takes connections and never answers."""

    def test_the_node_asks_its_listeners_and_never_a_server(self):
        with socket.create_server(("127.0.0.1", 0)) as mute, \
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as log:
            log.bind(("127.0.0.1", 0))
            log.setblocking(False)
            self.api.patch("/api/v1/haproxy", log_target="127.0.0.1:%d" % log.getsockname()[1])
            self.api.create("servers", name="mute", address="127.0.0.1",
                            port=mute.getsockname()[1])
            self.api.create("pools", name="any", members=[{"server": "mute"}])
            self.api.create("listeners", name="any", port=8080)
            self.api.create("services", name="any", listeners=["any"], pool="any")
            for maxconn in (3001, 3002):
                task = self.api.apply()
                self.assertEqual(task["state"], "ok", task)
                self.api.patch("/api/v1/haproxy", maxconn=maxconn)
            mute.settimeout(0)
            self.assertRaises(BlockingIOError, mute.accept)
            self.assertTrue(serves())
            lines = []
            while not any("app.test" in line for line in lines):
                self.assertTrue(select.select([log], [], [], 10)[0], lines)
                lines.append(log.recv(65536).decode())
            self.assertFalse([line for line in lines if "lockstep.invalid" in line], lines)


class Stolen(Case):
    def test_reloads_that_fail_in_a_row_leave_what_served_also_for_a_cold_start(self):
        # C094: the port is free when it is tried, and taken when HAProxy loads.
        state, good = self.state(), self.node.generation("good")
        self.api.create("listeners", name="stolen", addresses=["127.0.0.1"], port=7071)
        for _ in range(2):
            with Thief(self.node, 7071):
                task = self.api.apply()
            self.assertEqual(task["state"], "failed", task)
            steps = {step["name"]: step["state"] for step in task["steps"]}
            self.assertEqual((steps["bind"], steps["load"], steps["back_verify"]),
                             ("ok", "failed", "ok"), task)
            self.assertEqual(self.state(), state)
            self.assertEqual(self.node.generation("good"), good)
            self.assertTrue(serves())
            self.assertEqual(self.api.get("/api/v1/draft")["count"], 1)
        self.node.kill()
        with socket.create_server(("127.0.0.1", 7071)):  # what failed could not start
            self.node.start()
            self.node.wait_ready()
            self.assertTrue(serves())
            self.assertEqual(self.state()[:4], state[:4])
        # The port is free again: the same draft is applied.
        self.assertEqual(self.api.apply()["state"], "ok")


class Paused(Case):
    """C123: while others are visited, one is paused and its servers are stopped."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.api.create("monitors", name="quick", type="http", path="/healthz", interval_ms=100,
                       rise=1, fall=1)
        assert cls.api.apply()["state"] == "ok"

    def servers(self, pool):
        return [s["state"] for p in self.api.get("/api/v1/stats")["pools"] if p["name"] == pool
                for s in p["servers"]]

    def pause_and_resume(self, plural, while_paused):
        host = plural + ".test"
        other = Backend(plural)
        self.api.expect(200, "POST", "/api/v1/publish",
                        {"url": "http://" + host, "name": host, "to": [other.target]})
        self.api.patch("/api/v1/pools/" + host, monitor="quick")
        self.assertEqual(self.api.apply()["state"], "ok")
        load = Load("127.0.0.1", 80, "app.test").start()
        try:
            self.api.patch("/api/v1/%s/%s" % (plural, host), enabled=False)
            self.assertEqual(self.api.apply()["state"], "ok")
            self.assertEqual(visit(host).status, 503)
            other.close()
            node.wait_for(lambda: self.servers(host) == while_paused, "its servers are stopped")
            other = Backend(plural, port=other.port)
            if while_paused:
                node.wait_for(lambda: self.servers(host) == ["up"], "its server is up again")
            self.assertEqual(visit(host).status, 503)
            self.api.patch("/api/v1/%s/%s" % (plural, host), enabled=True)
            self.assertEqual(self.api.apply()["state"], "ok")
            self.assertEqual([visit(host).status for _ in range(5)], [200] * 5)
        finally:
            load.stop()
            other.close()
        self.assertEqual(load.failures, [])

    def test_a_paused_service_is_back_at_once_and_no_other_notices(self):
        self.pause_and_resume("services", ["down"])

    def test_a_paused_pool_is_back_at_once_and_no_other_notices(self):
        # Its servers are not even checked, so that nothing has to find out that they are back.
        self.pause_and_resume("pools", [])


class Steady(Case):
    def test_twenty_applies_fail_no_request(self):
        load = Load("127.0.0.1", 80, "app.test").start()
        try:
            for n in range(20):
                self.api.patch("/api/v1/haproxy", maxconn=3000 + n)
                task = self.api.apply("apply %d" % n)
                self.assertEqual(task["state"], "ok", task)
        finally:
            load.stop()
        self.assertEqual(load.failures, [])
        for kind, count in load.counts.items():
            self.assertGreater(count, 20, "hardly any %s request" % kind)

    def test_haproxy_serves_while_lockstepd_is_dead(self):
        os.kill(self.node.pid_of("lockstepd"), node.signal.SIGKILL)
        self.assertTrue(serves())
        self.node.wait_ready()
        self.assertTrue(serves())

    def test_a_helper_that_is_being_restarted_is_waited_for(self):
        self.api.patch("/api/v1/haproxy", maxconn=2500)
        os.kill(self.node.pid_of("lockstep-helper"), node.signal.SIGKILL)
        task = self.api.apply("without a helper at first")
        self.assertEqual(task["state"], "ok", task)

    def test_a_helper_that_dies_while_it_switches_leaves_the_former_revision(self):
        before, digest = self.node.generation(), self.node.running_digest()
        helper = self.node.pid_of("lockstep-helper")
        self.api.patch("/api/v1/haproxy", maxconn=2600)
        started = self.api.expect(202, "POST", "/api/v1/config/apply", {})
        while self.node.generation() == before:
            self.assertIsNone(self.api.get("/api/v1/tasks/%d" % started["id"])["ended"])
        os.kill(helper, node.signal.SIGKILL)
        task = node.wait_for(lambda: self.ended(started["id"]), "the apply ended", 30)
        if task["state"] == "failed":  # else it was through before the kill
            self.assertEqual(self.node.generation(), before)
            self.assertEqual(self.node.running_digest(), digest, task)
        self.assertTrue(self.api.get("/api/v1/verify")["ok"])
        self.assertTrue(serves())

    def ended(self, number):
        task = self.api.get("/api/v1/tasks/%d" % number)
        return task if task["ended"] else None

    def test_a_killed_haproxy_is_back_with_the_stored_revision(self):
        digest = self.node.running_digest()
        for pid in self.node.pids("haproxy"):
            with contextlib.suppress(ProcessLookupError):  # the worker follows its master
                os.kill(pid, node.signal.SIGKILL)
        node.wait_for(lambda: self.node.running_digest() == digest, "HAProxy is back")
        self.node.wait_ready()
        self.assertTrue(serves())


def pid_line(info):
    return [line for line in info.splitlines() if line.startswith("Pid: ")]


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
