# SPDX-License-Identifier: Apache-2.0
"""Valid objects of every kind, made from schema/kinds: a new kind or field is covered without a
change here, unless its own checks ask for something that the schema does not say (HINTS)."""
import json
import os
import subprocess

SOURCE = os.environ["LOCKSTEP_SOURCE"]
FOLDER = os.path.join(SOURCE, "schema", "kinds")

# Values that fit beside any number of objects of the kind; n: another number for each object.
HINTS = {
    ("listener", "addresses"): lambda n: ["127.0.0.1"],
    ("listener", "port"): lambda n: 20000 + n,
    ("service", "hosts"): lambda n: ["h%d.example.test" % n],
    ("server", "address"): lambda n: "192.0.2.%d" % (1 + n % 250),
    ("server", "port"): lambda n: 1000 + n,
    ("condition", "type"): lambda n: "header",
    ("condition", "key"): lambda n: "X-Shape",
    ("condition", "values"): lambda n: ["v%d" % n],
    ("rule", "action"): lambda n: "set_header",
    ("rule", "header"): lambda n: "X-Shape",
    ("rule", "value"): lambda n: "v%d" % n,
    ("rule", "service"): None,  # what is referred to
    ("vip_group", "addresses"): lambda n: ["198.18.%d.%d/32" % (n // 250 % 250, 1 + n % 250)],
}
# What has to change together with a field.
TOGETHER = {
    ("rule", "listener"): {"service": None},
    ("listener", "trusted_proxies"): {"mode": "http"},
    ("monitor", "body_match"): {"expect_body": "ready"},
    ("pool", "tls"): {"verifyhost": "app.example.test"},
    ("pool", "sni"): {"sni_name": "app.example.test"},
}


def is_part(kind):
    """Of another object: it has that one's name, and tests of its own."""
    return any(f.get("ref", {}).get("on_delete") == "cascade" for f in kind["fields"])


def load():
    found = {}
    for name in sorted(os.listdir(FOLDER)):
        with open(os.path.join(FOLDER, name), encoding="ascii") as file:
            kind = json.load(file)
        if not is_part(kind):
            found[kind["kind"]] = kind
    return found


KINDS = load()


def writable(kind):
    return [f for f in KINDS[kind]["fields"] if not f.get("read_only")]


def is_text(field):
    return field["type"] == "text" and not field.get("secret")


class Shapes:
    """Makes objects by an Api; what they refer to is made once and shared."""

    def __init__(self, api, folder):
        self.api = api
        self.count = 0
        self.made = {}
        self.pair = self.certificate(folder)
        self.together = {**TOGETHER, ("webui", "chain"): {"key": self.pair[1]}}

    @staticmethod
    def certificate(folder):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-keyout", folder + "/shape.key", "-out", folder + "/shape.crt", "-days",
             "90", "-subj", "/CN=site.test", "-addext", "subjectAltName=DNS:site.test"],
            check=True, capture_output=True)
        out = []
        for name in ("shape.crt", "shape.key"):
            with open(os.path.join(folder, name), encoding="ascii") as file:
                out.append(file.read())
        return out

    def path(self, kind, name=None):
        plural = KINDS[kind]["plural"]
        if name is None or KINDS[kind]["singleton"]:
            return "/api/v1/" + plural
        return "/api/v1/%s/%s" % (plural, name)

    def target(self, kind):
        """Name of an object that others refer to."""
        if kind not in self.made:
            self.made[kind] = "target"
            self.api.expect(201, "POST", self.path(kind), self.sample(kind, "target"))
        return self.made[kind]

    def value(self, kind, field, n):
        """One that fits a new object."""
        hint = HINTS.get((kind, field["name"]))
        if hint is not None:
            return hint(n)
        return self.candidates(kind, field)[0]

    def element(self, kind, field):
        if field["type"] == "ref":
            return self.target(field["ref"]["kind"])
        if field["type"] == "record":
            return {f["name"]: self.value(kind, f, 0) for f in field["fields"]
                    if f.get("required")}
        return None

    def candidates(self, kind, field):
        """Valid values, those that are no default first."""
        kinds = {"bool": lambda: [not field.get("default"), field.get("default")],
                 "enum": lambda: [v for v in field["values"] if v != field.get("default")],
                 "int": lambda: [*field.get("examples", ()), field["min"], field["max"],
                                 min(field["min"] + 1, field["max"])]}
        if field.get("text_type", "").startswith("pem_"):
            found = [self.pair[field["text_type"].startswith("pem_key")]]
        elif field["type"] in ("ref", "record"):
            found = [self.element(kind, field)]
            found = [found] if field.get("list") else found
        elif field["type"] in kinds:
            found = kinds[field["type"]]()
            found = [[v] for v in found] if field.get("list") and field["type"] != "int" else found
        else:
            found = list(field.get("examples", ()))
        default = field.get("default")
        return [v for v in found if v != default] or [*found, default]

    def sample(self, kind, name=None):
        """A body with the required fields, and those that HINTS names."""
        self.count += 1
        body = {f["name"]: self.value(kind, f, self.count) for f in writable(kind)
                if f.get("required") or (kind, f["name"]) in HINTS}
        body["name"] = name or "shape-%d" % self.count
        return body

    def create(self, kind):
        """A new object -> its name; of a singleton the one that there is."""
        if KINDS[kind]["singleton"]:
            return kind
        body = self.sample(kind)
        answer = self.api.call("POST", self.path(kind), body)
        assert answer.status == 201, "no valid sample of %s, see HINTS: %r" % (kind, answer)
        return body["name"]

    def patch(self, kind, name, body, tag=None):
        path = self.path(kind, name)
        return self.api.call("PATCH", path, body, {"If-Match": tag or self.api.etag(path)})

    def fill(self, kind, name):
        """Sets every field to a value that is not its default -> what was refused, by field."""
        refused = {}
        for field in writable(kind):
            if field["name"] == "name" or (kind, field["name"]) in HINTS or field.get("secret"):
                continue
            for value in self.candidates(kind, field):
                answer = self.patch(kind, name, {
                    field["name"]: value, **self.together.get((kind, field["name"]), {})})
                if answer.status == 200:
                    refused.pop(field["name"], None)
                    break
                refused[field["name"]] = answer
        return refused
