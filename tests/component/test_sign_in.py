#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Signing in: what the cookie may be used for, names of any kind, and what the log says of it."""
import json
import re
import unittest

import node
from api import Api

JSON = {"Content-Type": "application/json"}
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
ESCAPED = re.compile(r"\\x[0-9a-f]{2}")
# C161, and what would be more than one line or more than text on a terminal.
NAMES = ["a|b", "a,b", "a;b", 'a"b', "maria ", "\u00fc" * 32, "x" * 64, "x" * 65, "a.b-c_d:e",
         "nul\0", "cr\r\nlockstepd: info: sign-in of maria", "esc\x1b[31mred", "c1\x9b31m",
         "x" * 5000, "\ud800"]


class SignIn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)

    def sign_in(self, name, password):
        return Api("127.0.0.1", 8443).raw(
            "POST", "/api/v1/session", json.dumps({"name": name, "password": password}), JSON)

    def test_the_cookie_is_for_https_and_this_site_and_no_script(self):
        cookie = self.sign_in("maria", node.PASSWORD).headers["Set-Cookie"]
        value, *attributes = cookie.split("; ")
        self.assertRegex(value, "^lockstep_session_[0-9a-f]{8}=[A-Za-z0-9_-]{40,}$")
        self.assertEqual(sorted(a.lower() for a in attributes),
                         ["httponly", "path=/", "samesite=strict", "secure"])
        # Whatever a proxy says of the way to it: C165.
        for scheme in ("http", "https"):
            answer = Api("127.0.0.1", 8443).raw(
                "POST", "/api/v1/session",
                json.dumps({"name": "maria", "password": node.PASSWORD}),
                {**JSON, "X-Forwarded-Proto": scheme})
            self.assertEqual(answer.headers["Set-Cookie"].split("; ")[1:], attributes)

    def refused(self, name):
        """With a wrong password: one line of the log that tells it, or none for what is no
        name at all."""
        before = self.node.log()
        status = self.sign_in(name, "wrong wrong wrong").status
        added = self.node.log()[len(before):]
        self.assertIn(status, (400, 401, 413, 422), name[:70])
        self.assertEqual(added.count("\n"), 1 if status == 401 else 0, (name[:70], added))
        if status == 401:
            self.assertRegex(added, "^lockstepd: warning: sign-in of .* refused\n$")
            self.assertFalse(CONTROL.search(added[:-1]), added)
            self.assertEqual(bool(ESCAPED.search(added)), bool(CONTROL.search(name)), added)

    def test_a_name_is_refused_or_works_and_the_log_holds_one_line_of_it(self):
        admin, made = self.node.session(), []
        for name in NAMES:
            body = json.dumps({"name": name, "password": node.PASSWORD})
            answer = admin.raw("POST", "/api/v1/admins", body, JSON)
            self.assertIn(answer.status, (201, 400, 422), (name[:70], answer))
            self.refused(name)
            if answer.status == 201:
                made.append(name)
                caller = Api("127.0.0.1", 8443)
                caller.sign_in(name, node.PASSWORD)
                self.assertEqual(caller.get("/api/v1/session")["admin"], name)
        self.assertEqual(made, ["x" * 64, "a.b-c_d:e"])


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
