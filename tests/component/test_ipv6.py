#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""IPv6 everywhere: listeners, servers, networks, the log and the API, bound and answering."""
import json
import socket
import unittest

import node
from api import Api
from backend import Backend
from visit import visit

OWN = "2001:db8::1"
OTHER = "2001:db8::2"


class IPv6(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.backend = Backend("six", "::1")
        cls.node = node.Node(address="::1")
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.set_up().api
        cls.api.expect(200, "POST", "/api/v1/publish", {
            "url": "http://six.test", "to": ["[::1]:%d" % cls.backend.port], "name": "six"})
        cls.api.patch("/api/v1/listeners/http", addresses=["::1", "2001:DB8:0:0::1"])
        task = cls.api.apply()
        assert task["state"] == "ok", task

    def test_listeners_and_servers_answer_on_their_addresses_and_no_other(self):
        self.assertEqual(self.api.get("/api/v1/listeners/http")["addresses"], [OWN, "::1"])
        for address in ("::1", OWN):
            self.assertEqual(visit("six.test", to=address).server, "six")
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, OTHER)):
            with socket.socket(family) as client:
                self.assertNotEqual(client.connect_ex((address, 80)), 0, address)
        self.assertEqual(visit("[::1]:80", to="::1").status, 404)

    def test_networks_and_the_log_are_those_of_the_visitor(self):
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as log:
            log.bind(("::1", 0))
            log.settimeout(10)
            self.api.create("listeners", name="few", port=81, addresses=["::"],
                            allowed_networks=[OTHER + "/128"])
            self.api.patch("/api/v1/services/six", listeners=["few", "http"])
            self.api.patch("/api/v1/haproxy", log_target="[::1]:%d" % log.getsockname()[1])
            self.assertEqual(self.api.apply()["state"], "ok")
            self.assertEqual(visit("six.test", port=81, to=OWN, source=OTHER).status, 200)
            with self.assertRaises(OSError):
                visit("six.test", port=81, to=OWN, source=OWN)
            self.assertIn(OTHER.encode() + b":", log.recv(65536))

    def test_an_address_in_use_and_one_that_is_absent_are_named(self):
        with socket.socket(socket.AF_INET6) as holder:
            holder.bind((OTHER, 82))
            holder.listen(1)
            self.api.create("listeners", name="used", port=82, addresses=[OTHER])
            self.api.create("listeners", name="absent", port=83, addresses=["2001:db8::99"])
            task = self.api.apply()
        self.api.expect(204, "DELETE", "/api/v1/draft")
        self.assertEqual(task["state"], "failed", task)
        told = {p["name"]: p["message"] for p in task["problems"]}
        self.assertIn("%s port 82 cannot be used" % OTHER, told["used"])
        self.assertIn("python", told["used"])
        self.assertIn("2001:db8::99", told["absent"])

    def test_what_is_no_address_to_bind_is_refused(self):
        for address in ("[::1]", "::1/128", "fe80::1%", "1::2::3", "::1%lo%lo", "::g"):
            answer = self.api.call("POST", "/api/v1/listeners",
                                   {"name": "x", "port": 84, "addresses": [address]})
            self.assertEqual(answer.status, 422, address)
            self.assertEqual(answer.json["errors"][0]["pointer"], "/addresses/0")

    def test_the_api_is_there_and_only_there(self):
        status = Api("::1", 8443).raw("GET", "/api/v1/setup").status
        self.assertEqual(status, 200)
        with self.assertRaises(OSError):
            Api("127.0.0.1", 8443).raw("GET", "/api/v1/setup")
        # A failed sign-in is told with the address.
        Api("::1", 8443).raw("POST", "/api/v1/session", json.dumps(
            {"name": "eve", "password": "wrong wrong wrong"}),
            {"Content-Type": "application/json"})
        self.assertIn("sign-in of eve from ::1 refused", self.node.log())


if __name__ == "__main__":
    node.private_network(OWN + "/128", OTHER + "/128")
    unittest.main(verbosity=2)
