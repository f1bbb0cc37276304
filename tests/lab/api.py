# SPDX-License-Identifier: Apache-2.0
"""A client of the REST API that holds every answer against docs/openapi.json."""
import http.client
import json
import os
import ssl
import time
import urllib.parse

import jsonschema

SOURCE = os.environ["LOCKSTEP_SOURCE"]

with open(os.path.join(SOURCE, "docs", "openapi.json"), encoding="utf-8") as file:
    DOCUMENT = json.load(file)

# One for all: loading the machine's certificates takes 0.1 s, and nobody's is verified.
CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
CONTEXT.check_hostname = False
CONTEXT.verify_mode = ssl.CERT_NONE

HITS = set()  # ids of the operations that were answered with success


def operations():
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if method in ("get", "post", "put", "patch", "delete"):
                yield method.upper(), path, operation


ALL = {operation["operationId"] for _, _, operation in operations()}


def resolve(node):
    while "$ref" in node:
        target = DOCUMENT
        for part in node["$ref"][2:].split("/"):
            target = target[part]
        node = target
    return node


def fits(template, path):
    """How many literal segments fit; None when the path is another one."""
    ours, theirs = template.split("/"), path.split("/")
    if len(ours) != len(theirs):
        return None
    literal = 0
    for own, their in zip(ours, theirs):
        if own.startswith("{"):
            continue
        if own != their:
            return None
        literal += 1
    return literal


def operation_of(method, target):
    path = target.split("?")[0]
    best, found = -1, None
    for its_method, template, operation in operations():
        score = fits(template, path) if its_method == method else None
        if score is not None and score > best:
            best, found = score, operation
    return found


CHECKERS = {}  # making one takes as long as many checks


def checker(name, status, schema):
    if (name, status) not in CHECKERS:
        whole = dict(schema, components=DOCUMENT["components"])
        CHECKERS[name, status] = jsonschema.Draft202012Validator(whole)
    return CHECKERS[name, status]


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body
        self.json = None
        kind = (self.headers.get("Content-Type") or "").split(";")[0]
        if kind.endswith("json"):
            self.json = json.loads(body)

    def __repr__(self):
        return "%d %r" % (self.status, self.body[:2000])


def check(method, target, answer):
    """AssertionError when the answer is not what the document says."""
    operation = operation_of(method, target)
    assert operation is not None, "%s %s is not in openapi.json" % (method, target)
    name = operation["operationId"]
    listed = operation["responses"].get(str(answer.status))
    assert listed is not None, "%s: status %r is not listed" % (name, answer)
    listed = resolve(listed)
    assert answer.headers.get("Lockstep-Node"), "%s: no header Lockstep-Node" % name
    assert answer.headers.get("Content-Security-Policy"), "%s: no CSP" % name
    content = listed.get("content", {})
    if not content:
        assert answer.body == b"", "%s: a body where none is due: %r" % (name, answer)
    else:
        kind = (answer.headers.get("Content-Type") or "").split(";")[0]
        assert kind in content, "%s: content type %r is not listed" % (name, kind)
        if kind.endswith("json"):
            validator = checker(name, answer.status, content[kind]["schema"])
            errors = sorted(validator.iter_errors(answer.json), key=str)
            assert not errors, "%s: %s in %r" % (name, errors[0].message, answer)
    if answer.status < 400:
        HITS.add(name)


class Api:
    """One caller. key: an automation key; cookie and csrf: those of a session."""

    def __init__(self, address, port, key=None):
        self.address, self.port, self.key = address, port, key
        self.unlock = False  # edits where nobody holds the VIP
        self.cookie = self.csrf = None

    def open(self, timeout=60):
        return http.client.HTTPSConnection(
            self.address, self.port, timeout=timeout, context=CONTEXT)

    def headers(self, extra=None):
        out = {}
        if self.unlock:
            out["Lockstep-Unlock"] = "no-holder"
        if self.key:
            out["Authorization"] = "Bearer " + self.key
        if self.cookie:
            out["Cookie"] = self.cookie
        if self.csrf:
            out["Lockstep-CSRF"] = self.csrf
        out.update(extra or {})
        return out

    def raw(self, method, target, body=None, headers=None):
        """One request, no check of the answer."""
        connection = self.open()
        try:
            connection.request(method, target, body=body, headers=self.headers(headers))
            response = connection.getresponse()
            return Answer(response, response.read())
        finally:
            connection.close()

    def call(self, method, target, body=None, headers=None):
        headers = dict(headers or {})
        data = None
        if body is not None:
            data = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        answer = self.raw(method, target, data, headers)
        check(method, target, answer)
        return answer

    def expect(self, status, method, target, body=None, headers=None):
        answer = self.call(method, target, body, headers)
        assert answer.status == status, "%s %s: %r" % (method, target, answer)
        return answer.json

    def get(self, target):
        return self.expect(200, "GET", target)

    def create(self, plural, **fields):
        return self.expect(201, "POST", "/api/v1/" + plural, fields)

    def etag(self, target):
        return self.call("GET", target).headers["ETag"]

    def patch(self, target, **fields):
        return self.expect(
            200, "PATCH", target, fields, {"If-Match": self.etag(target)})

    def delete(self, target):
        return self.expect(204, "DELETE", target, None, {"If-Match": self.etag(target)})

    def apply(self, note=None):
        task = self.expect(
            200, "POST", "/api/v1/config/apply?wait=1", {"note": note} if note else {})
        return task

    def sign_in(self, name, password):
        answer = self.call("POST", "/api/v1/session", {"name": name, "password": password})
        assert answer.status == 201, answer
        self.cookie = answer.headers["Set-Cookie"].split(";")[0]
        self.csrf = answer.json["csrf"]
        return answer


class Kept(Api):
    """The same over one connection, for thousands of requests: handshakes take most of their
    time. A pause longer than the server bears opens another one."""
    PAUSE_S = 5

    def __init__(self, other):
        super().__init__(other.address, other.port, other.key)
        self.connection, self.used = None, 0.0

    def raw(self, method, target, body=None, headers=None):
        if self.connection is None or time.monotonic() - self.used > self.PAUSE_S:
            self.close()
            self.connection = self.open()
        self.connection.request(method, target, body=body, headers=self.headers(headers))
        response = self.connection.getresponse()
        answer = Answer(response, response.read())
        self.used = time.monotonic()
        return answer

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def quote(text):
    return urllib.parse.quote(text, safe="")
