#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Servers with DNS names, and name servers that are alive, silent or not there."""
import subprocess
import time
import unittest

import node
from backend import Backend
from lab import wait_for
from resolver import Mute, use_name_servers
from visit import visit

NAME_SERVERS = ("127.0.0.53", "127.0.0.54")
SOON_S = 10  # far less than what libc waits for two names of silent servers


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        use_name_servers(cls, *NAME_SERVERS)
        cls.backend = Backend("one")
        cls.mute = []
        cls.addClassCleanup(cls.silence)
        cls.speak()
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        cls.maxconn = 3000
        cls.publish("literal", cls.backend.target)
        cls.publish("named", "db.example.test:%d" % cls.backend.port)
        cls.apply()

    @classmethod
    def speak(cls):
        """The name servers answer."""
        while cls.mute:
            cls.mute.pop().close()
        command = ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv",
                   "--no-hosts", "--user=root", "--bind-interfaces", "--pid-file=",
                   "--address=/example.test/127.0.0.1"]
        cls.dns = subprocess.Popen(command + ["--listen-address=%s" % a for a in NAME_SERVERS])

    @classmethod
    def silence(cls):
        """They take questions and answer none."""
        cls.dns.kill()
        cls.dns.wait()
        cls.mute.extend(Mute(address) for address in NAME_SERVERS)

    @classmethod
    def publish(cls, site, target):
        cls.api.expect(200, "POST", "/api/v1/publish?try=0",
                       {"url": "http://%s.test" % site, "to": [target]})

    @classmethod
    def apply(cls):
        began = time.monotonic()
        task = cls.api.apply()
        assert task["state"] == "ok", task
        assert time.monotonic() - began < SOON_S, task

    @classmethod
    def reload(cls):
        cls.maxconn += 1
        cls.api.patch("/api/v1/haproxy", maxconn=cls.maxconn)
        cls.apply()

    def ask(self, site):
        return visit(site + ".test").status

    def await_answer(self, site, status):
        wait_for(lambda: self.ask(site) == status, "%s answers %d" % (site, status), 30)

    def taken_out_by(self, site):
        pools = self.api.get("/api/v1/stats")["pools"]
        return [s["taken_out_by"] for p in pools if p["name"] == site + ".test"
                for s in p["servers"]]

    def test_a_name_is_found_and_kept_over_reloads(self):
        self.await_answer("named", 200)
        for _ in range(3):
            self.reload()
            self.assertEqual(self.ask("named"), 200)

    def test_silent_name_servers_hold_up_nobody(self):
        self.await_answer("named", 200)
        self.silence()
        self.reload()
        self.assertEqual([self.ask("named"), self.ask("literal")], [200, 200])
        for n in range(2):
            self.publish("new%d" % n, "new%d.example.test:%d" % (n, self.backend.port))
        self.apply()
        self.assertEqual([self.ask("named"), self.ask("literal"), self.ask("new0")],
                         [200, 200, 503])
        self.assertEqual(self.taken_out_by("new0"), ["dns"])
        self.node.kill()
        began = time.monotonic()
        self.node.start()
        self.await_answer("literal", 200)
        self.node.wait_ready()
        self.assertLess(time.monotonic() - began, SOON_S)
        self.assertEqual(self.ask("named"), 503)
        self.speak()
        for site in ("named", "new0", "new1"):
            self.await_answer(site, 200)


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
