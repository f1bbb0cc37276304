#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An administrator copied to another node: who may, what becomes of it there, and what the
other node refuses."""
import contextlib
import http.server
import json
import os
import sqlite3
import ssl
import threading
import unittest

import node
from api import Api
from backend import Server
from cluster import TUNABLES, Cluster, join
from peer import Caller

COPY = "/api/v1/cluster/admin"
TAKE = "/peer/v1/account"
FIRST, SECOND = "the first password of nina", "the second password of nina"
HASH = "scrypt$15$8$1$" + "A" * 22 + "$" + "B" * 42 + "A"


class Older(http.server.BaseHTTPRequestHandler):
    """What a release without the route answers; its health as that of the node it stands for."""

    def answer(self, status, said):
        body = json.dumps(said).encode()
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.answer(404, {"status": 404, "code": "not_found", "detail": "no such path"})

    def do_GET(self):
        self.answer(200, self.server.health)

    def log_message(self, *_args):
        """Requests are not logged."""


@contextlib.contextmanager
def older_release(one):
    """Ends the node and stands where it stood, with its key."""
    health = Caller(one).get("/peer/v1/health")
    one.stop()
    data = os.path.join(one.state, "data")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(os.path.join(data, "api.crt"), os.path.join(data, "api.key"))
    with one.ns:
        server = Server((one.api.address, one.api.port), Older)
    server.health = health
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def audit(one):
    """(author, text) of the copies that its audit tells of."""
    path = os.path.join(one.state, "data", "lockstep.db")
    with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % path, uri=True)) as db:
        return db.execute(
            "SELECT author, text FROM audit WHERE action = 'admin_copy' ORDER BY seq").fetchall()


def admins(one):
    return {a["name"] for a in one.api.get("/api/v1/admins")["items"]}


class Copy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Cluster(2, tunables=TUNABLES)
        cls.addClassCleanup(cls.lab.close)
        cls.a, cls.b = cls.lab.set_up().nodes
        join(cls.b, cls.a)
        cls.a.api.unlock = True  # there is no VIP
        cls.a.api.create("admins", name="nina", password=FIRST, note="on call")
        cls.peer = Api(cls.b.api.address, cls.b.api.port,
                       cls.b.api.get("/api/v1/cluster/key")["key"])

    def copy(self, status=200, caller=None, **body):
        return (caller or self.a.api).expect(status, "POST", COPY, body)

    def sees_b(self):
        nodes = self.a.api.get("/api/v1/cluster")["nodes"]
        return next(n for n in nodes if n["name"] == "n2")

    def signs_in(self, one, password):
        there = Api(one.api.address, one.api.port)
        answer = there.call("POST", "/api/v1/session", {"name": "nina", "password": password})
        if answer.status == 201:
            there.cookie = answer.headers["Set-Cookie"].split(";")[0]
            there.csrf = answer.json["csrf"]
            return there
        return None

    def is_refused(self, **changed):
        body = {"admin": {"name": "eve", "password": HASH, "note": ""}, "overwrite": True,
                "who": "admin maria"}
        answer = self.peer.call("POST", TAKE, dict(body, **changed))
        self.assertIn(answer.status, (400, 422), (changed, answer))

    def test_1_who_is_copied_can_sign_in_and_both_nodes_tell_of_it(self):
        done = self.copy(node="n2", admin="nina")
        self.assertEqual(done, {"node": "n2", "admin": "nina", "state": "created"})
        self.assertIsNotNone(self.signs_in(self.b, FIRST))
        self.assertIsNone(self.signs_in(self.b, SECOND))
        self.assertEqual(self.b.api.get("/api/v1/admins/nina")["note"], "on call")
        self.assertEqual(audit(self.a), [("key test", "administrator nina to n2: created")])
        self.assertEqual(audit(self.b), [("key test on n1", "created administrator nina")])
        # Again is no change.
        self.assertEqual(self.copy(node="n2", admin="nina")["state"], "same")
        self.assertEqual(len(audit(self.b)), 1)

    def test_2_one_of_that_name_is_replaced_only_on_request_and_its_sessions_end(self):
        there = self.signs_in(self.b, FIRST)
        other = self.b.session()
        self.a.api.patch("/api/v1/admins/nina", password=SECOND)
        refused = self.copy(409, node="n2", admin="nina")
        self.assertIn('n2: there is an administrator "nina" already', refused["detail"])
        self.assertIsNotNone(self.signs_in(self.b, FIRST))
        self.assertEqual(there.call("GET", "/api/v1/session").status, 200)
        done = self.copy(node="n2", admin="nina", overwrite=True)
        self.assertEqual(done["state"], "replaced")
        self.assertEqual(there.call("GET", "/api/v1/session").status, 401)
        self.assertEqual(other.call("GET", "/api/v1/session").status, 200)
        self.assertIsNone(self.signs_in(self.b, FIRST))
        self.assertIsNotNone(self.signs_in(self.b, SECOND))
        self.assertEqual(audit(self.b)[-1], ("key test on n1", "replaced administrator nina"))

    def test_3_who_may(self):
        nina = self.signs_in(self.a, SECOND)
        self.assertEqual(nina.expect(200, "POST", COPY, {"node": "n2"})["admin"], "nina")
        csrf, nina.csrf = nina.csrf, None
        self.assertEqual(nina.expect(403, "POST", COPY, {"node": "n2"})["code"], "csrf")
        nina.csrf = csrf
        for scope in ("read", "operate", "write"):
            made = self.a.api.create("automation_keys", name=scope, scope=scope)
            weak = Api(self.a.api.address, self.a.api.port, made["key"])
            self.assertEqual(self.copy(403, weak, node="n2", admin="nina")["code"], "scope")
        nobody = Api(self.a.api.address, self.a.api.port)
        self.copy(401, nobody, node="n2", admin="nina")
        peer = Api(self.a.api.address, self.a.api.port,
                   self.a.api.get("/api/v1/cluster/key")["key"])
        self.copy(401, peer, node="n2", admin="nina")
        # With a key, nobody is meant by leaving the name out.
        self.assertIn("name one", json.dumps(self.copy(422, node="n2")))

    def test_4_what_cannot_be_asked_for(self):
        self.copy(404, node="absent", admin="nina")
        self.copy(404, node="n1", admin="nina")
        self.copy(404, node="n2", admin="absent")
        self.copy(400, admin="nina")
        self.copy(400, node="n2", admin=7)
        self.copy(400, node="n2", admin="nina", overwrite="yes")
        self.assertIn(self.a.api.call("POST", COPY, {"node": "n2", "password": FIRST}).status,
                      (400, 422))

    def test_5_what_the_other_node_refuses_leaves_nothing(self):
        before = admins(self.b), audit(self.b)
        good = {"name": "eve", "password": HASH, "note": ""}
        for name in ("", "two words", "lockstep", "x" * 65, "a\nb", None, 7):
            self.is_refused(admin=dict(good, name=name))
        for text in ("", FIRST, "scrypt$", HASH[:-1], HASH + "B", HASH + "$", None, 7,
                     HASH.replace("$15$", "$1$"), HASH.replace("$15$", "$31$"),
                     HASH.replace("$8$", "$9$"), HASH.replace("A", "*"), "x" * 3000):
            self.is_refused(admin=dict(good, password=text))
        self.is_refused(admin=dict(good, note="x" * 2000))
        self.is_refused(admin=dict(good, scope="full"))
        self.is_refused(admin=dict(good, id="0" * 16))
        for bad in ([], None, "eve", {}, {"name": "eve"}):
            self.is_refused(admin=bad)
        for bad in ("", "maria", "admin ", "admin a b", "admin a\nb", "root x", "admin " + "x" * 65,
                    None, 7, ["admin maria"]):
            self.is_refused(who=bad)
        for bad in (None, 0, "true"):
            self.is_refused(overwrite=bad)
        self.is_refused(more=1)
        self.assertEqual(self.peer.raw("POST", TAKE, "{", {"Content-Type": "application/json"}).status,
                         400)
        self.assertEqual(self.peer.raw("POST", TAKE, json.dumps({"who": "x" * 5000}),
                                       {"Content-Type": "application/json"}).status, 413)
        self.b.api.expect(401, "POST", TAKE, {})
        self.b.session().expect(401, "POST", TAKE, {})
        self.assertEqual((admins(self.b), audit(self.b)), before)
        # Without a fault it is taken, also from a node that is not known.
        taken = self.peer.expect(200, "POST", TAKE, {"admin": good, "overwrite": False,
                                                     "who": "key backup"})
        self.assertEqual(taken, {"state": "created"})
        self.assertEqual(audit(self.b)[-1],
                         ("key backup on another node", "created administrator eve"))

    def test_6_the_command(self):
        def run_cli(status, *words):
            done = self.a.cli("admin", *words)
            self.assertEqual(done.returncode, status, done)
            return done.stdout + done.stderr
        self.a.api.patch("/api/v1/admins/nina", password=FIRST)
        self.assertIn("already", run_cli(1, "copy-to", "n2", "--name", "nina"))
        self.assertEqual(run_cli(0, "copy-to", "n2", "--name", "nina", "--overwrite"),
                         "nina was replaced on n2.\n")
        self.assertIsNotNone(self.signs_in(self.b, FIRST))
        self.assertEqual(run_cli(0, "copy-to", "n2", "--name", "nina"),
                         "nina was already so on n2.\n")
        run_cli(2, "copy-from", "n2")
        run_cli(2, "copy-to")

    def test_7_an_older_release_and_a_node_that_is_away(self):
        with older_release(self.b):
            node.wait_for(lambda: self.sees_b()["answers"], "it is seen to answer")
            refused = self.copy(409, node="n2", admin="nina")
            self.assertIn("update it first", refused["detail"])
        node.wait_for(lambda: not self.sees_b()["answers"], "it is seen to be away")
        self.assertIn("n2", self.copy(503, node="n2", admin="nina")["detail"])
        self.assertEqual(audit(self.a)[-1][1], "administrator nina to n2: same")


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
