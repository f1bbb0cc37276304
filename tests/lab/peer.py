# SPDX-License-Identifier: Apache-2.0
"""Another node as the test plays it: calls a node as its peer, and is called by it."""
import base64
import hashlib
import http.client
import http.server
import json
import os
import ssl
import subprocess
import tempfile
import threading
import time

import api as api_module
from api import Answer

RELEASE = "0.1.0"
PARTED = "/peer/v1/config/parted"
SCHEMA_VERSION = int(api_module.DOCUMENT["info"]["version"].split(".")[1])


def canonical(value):
    """As the product hashes it."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def commit_id(commit):
    """Of a commit with or without its id."""
    return hashlib.sha256(canonical({k: v for k, v in commit.items() if k != "id"})).hexdigest()


def objhash(content):
    return hashlib.sha256(canonical(content)).hexdigest()


def fingerprint(schema_version, entries):
    """entries: (kind, id, objhash) of all that a commit holds."""
    lines = sorted("%s %s %s" % tuple(e) for e in entries)
    text = "%d\n" % schema_version + "".join(line + "\n" for line in lines)
    return hashlib.sha256(text.encode()).hexdigest()


class Caller:
    """Calls a node with a peer key."""

    def __init__(self, one, key=None, node_id=None):
        self.api = one.api
        self.key = key or one.api.get("/api/v1/cluster/key")["key"]
        self.node_id = node_id

    def raw(self, method, path, body=None, timeout=60):
        """body: bytes, or what becomes JSON."""
        headers = {"Authorization": "Bearer " + self.key} if self.key else {}
        if self.node_id:
            headers["Lockstep-Node-Id"] = self.node_id
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = self.api.open(timeout)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response, response.read())
        finally:
            connection.close()

    def get(self, path):
        answer = self.raw("GET", path)
        assert answer.status == 200, answer
        return answer.json

    def read(self, have=(), objects=()):
        """What a node that has these commits lacks."""
        answer = self.raw("POST", "/peer/v1/config/read",
                          {"have": list(have), "objects": list(objects)})
        assert answer.status == 200, answer
        return answer.json

    def put(self, document):
        return self.raw("PUT", "/peer/v1/config", document)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        peer = self.server.peer
        peer.note(self, body)
        said = json.dumps(peer.reply(self.command, self.path, body)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_args):
        """Requests are kept by the peer."""


class FakePeer:
    """A member that takes whatever it is handed, and keeps all that it was sent: self.heard.
    options: what it says of itself, as release and schema_version."""

    def __init__(self, name, address, **options):
        self.name = name
        self.id, self.key = os.urandom(16).hex(), base64.urlsafe_b64encode(os.urandom(24)).decode()
        self.lock = threading.Lock()
        self.heard, self.requests, self.pushed = b"", [], []
        self.health, self.head = None, None
        self.shared, self.asked = None, []  # where its history parts, and what asked for that
        self.ahead_ms = 0  # its clock
        self.admitted = {"reached": True, "detail": "", "vips": [], "binds": []}
        with tempfile.TemporaryDirectory() as folder:
            pair = [os.path.join(folder, n) for n in ("key", "crt")]
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:P-256", "-nodes", "-keyout", pair[0], "-out", pair[1],
                 "-days", "90", "-subj", "/CN=" + name], check=True, capture_output=True)
            public = subprocess.run(["openssl", "pkey", "-in", pair[0], "-pubout", "-outform",
                                     "DER"], check=True, capture_output=True).stdout
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair[1], pair[0])
        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        self.server.peer = self
        self.server.handle_error = lambda *_: None  # a node that ends leaves its connections
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True, do_handshake_on_connect=False)
        pin = "sha256//" + base64.b64encode(hashlib.sha256(public).digest()).decode()
        self.record = {"id": self.id, "seq": 1, "gone": False, "name": name, "pin": pin,
                       "url": "https://%s:%d" % (address, self.server.server_address[1]),
                       "release": RELEASE, "schema_version": SCHEMA_VERSION, "key": self.key, **options}
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def enter(self, one):
        """Becomes a member, in step with this node as it is now."""
        caller = Caller(one, node_id=self.id)
        self.health = caller.get("/peer/v1/health")
        self.head = self.health["head"]
        answer = caller.raw("POST", "/peer/v1/members", {"members": [self.record]})
        assert answer.status == 200, answer
        return caller

    def note(self, request, body):
        with self.lock:
            self.heard += b"%s\n%s\n%s\n" % (
                request.requestline.encode(), str(request.headers).encode(), body)
            self.requests.append((request.command, request.path.split("?")[0]))
            if request.path == PARTED:
                self.asked.append(json.loads(body))
            if request.command == "PUT":
                self.pushed.append(json.loads(body))

    def reply(self, method, path, _body):
        if method == "PUT":
            pushed = self.pushed[-1]
            commit = next(c["commit"] for c in pushed["commits"]
                          if c["commit"]["id"] == pushed["head"])
            self.head = {k: commit[k] for k in ("id", "fp", "rev", "schema_version")}
            return {"state": "taken", "head": self.head["id"], "rev": self.head["rev"],
                    "fp": self.head["fp"], "running": self.head["id"]}
        if path.startswith("/peer/v1/health"):
            return {**self.health, "id": self.id, "name": self.record["name"],
                    "release": self.record["release"], "head": self.head, "leads": False,
                    "have": False, "running": self.head["id"], "serving": "yes",
                    "members": "0" * 64, "holds": False,
                    "time_ms": int(time.time() * 1000) + self.ahead_ms}
        if path == PARTED:
            return {"shared": self.shared}
        if path == "/peer/v1/admit":
            return self.admitted
        if path == "/peer/v1/config/read":
            return self.pushed[-1]
        return {"members": [self.record]}
