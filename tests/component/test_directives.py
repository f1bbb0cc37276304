#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lines that people add to HAProxy's sections: of every keyword, values that fit pass here and
in HAProxy without a word, and others are refused where they stand (C087, C102)."""
import json
import os
import shutil
import subprocess
import unittest

import node
from authority import Authority

HAPROXY_30 = "/var/cache/lockstep/haproxy30/haproxy"
PROGRAMS = [p for p in ("/usr/sbin/haproxy", HAPROXY_30) if os.path.exists(p)]

with open(os.path.join(node.SOURCE, "schema", "types.json"), encoding="ascii") as file:
    TYPES = json.load(file)
# type of text -> (kind, field)
PLACES = {"global_directive": ("haproxy", "extra_global"),
          "defaults_directive": ("haproxy", "extra_defaults"),
          "listener_directive": ("listener", "extra")}
MS = {"ms": 1, "s": 1000}


def good(takes):
    """Values that fit, the limits among them."""
    low, high = takes.get("min"), takes.get("max")
    words = takes.get("words", [])
    alone = [w for w in words if w == takes.get("alone")]
    others = [w for w in words if w not in alone]
    return {
        "flag": lambda: [""],
        "int": lambda: ["%d" % low, "%d" % high],
        "time": lambda: ["%dms" % low, "%dms" % high, "%d" % (high // MS[takes["unit"]]), "30s",
                         *words],
        "words": lambda: [" ".join(others)] + alone if high > 1 else words,
        "text": lambda: ["lb1"] + ([""] if low == 0 else []),
        "ciphers": lambda: ["ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384",
                            "ECDHE+AESGCM:ECDHE+CHACHA20"],
        "ciphersuites": lambda: ["TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384"],
    }[takes["type"]]()


def bad(takes):
    low, high = takes.get("min"), takes.get("max")
    return {
        "flag": lambda: ["on", "1"],
        "int": lambda: ["", "abc", "%d" % (low - 1), "%d" % (high + 1), "1k", "5 5",
                        "9" * 30, "-"],
        "time": lambda: ["", "abc", "10x", "-1", "%dms" % (high + 1), "30s 30s", "9" * 11 + "d"]
                        + (["%dms" % (low - 1)] if low > 0 else []),
        "words": lambda: ["", "abc", "%s abc" % takes["words"][0]]
                         + (["%s 500" % takes["alone"]] if "alone" in takes else []),
        "text": lambda: ["a b"] + ([""] if low > 0 else []),
        "ciphers": lambda: ["", "abc", "ECDHE+AESGCM ECDHE+CHACHA20"],
        "ciphersuites": lambda: ["", "abc", "abc:def"],
    }[takes["type"]]()


def lines(name, values):
    """For each keyword of a type of text the lines with these values of it."""
    return [["%s %s" % (word, v) if v else word for v in values(takes)]
            for word, takes in TYPES[name]["keywords"].items()]


def rounds(name, values):
    """Lists with a line of each keyword, until every line was in one."""
    table = lines(name, values)
    for n in range(max(map(len, table))):
        yield [row[min(n, len(row) - 1)] for row in table]


class Directives(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        chain, key = Authority(cls.node.root, "ca").issue("app.test")
        cls.api.create("certificates", name="c", chain=chain.read_text(), key=key.read_text())
        cls.api.create("servers", name="s", address="127.0.0.1", port=9)
        cls.api.create("pools", name="p", members=[{"server": "s"}])
        cls.api.create("listeners", name="l", port=443, tls=True, certificates=["c"])
        cls.api.create("pools", name="t", mode="tcp", members=[{"server": "s"}])
        cls.api.create("listeners", name="t", port=444, mode="tcp")
        cls.api.create("services", name="t", listeners=["t"], pool="t")
        cls.api.create("services", name="app", listeners=["l"], pool="p", hosts=["app.test"])
        if cls.api.apply()["state"] != "ok":
            raise AssertionError("the base cannot be applied")

    def put(self, name, values):
        kind, field = PLACES[name]
        path = "/api/v1/haproxy" if kind == "haproxy" else "/api/v1/listeners/l"
        return self.api.call("PATCH", path, {field: values}, {"If-Match": self.api.etag(path)})

    def checks(self, text):
        """With the files of the generation that runs beside it."""
        folder = os.path.join(self.node.root, "copy")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.node.generation(), folder)
        path = os.path.join(folder, "haproxy.cfg")
        with open(path, "w", encoding="utf-8") as config:
            config.write(text.replace(self.node.run_dir, folder))
        with open(os.path.join(folder, "server-state"), "w", encoding="ascii") as states:
            states.write("1\n")
        for program in PROGRAMS:
            done = subprocess.run([program, "-c", "-f", path], check=False, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, (program, done.stdout))
            self.assertIn(done.stdout.strip(), ("", "Configuration file is valid"), program)

    def test_what_fits_is_accepted_by_haproxy_without_a_warning(self):
        for name in PLACES:
            for values in rounds(name, good):
                answer = self.put(name, values)
                self.assertEqual(answer.status, 200, answer)
                preview = self.api.expect(200, "POST", "/api/v1/render", {})
                for line in values:
                    self.assertIn("\n    %s\n" % line, preview["text"])
                self.checks(preview["text"])
            self.assertEqual(self.put(name, []).status, 200)

    def test_what_does_not_fit_is_refused_where_it_stands(self):
        for name, (kind, field) in PLACES.items():
            for values in rounds(name, bad):
                answer = self.put(name, values)
                self.assertEqual(answer.status, 422, values)
                self.assertEqual(
                    [(e["code"], e["kind"], e["pointer"]) for e in answer.json["errors"]],
                    [("directive", kind, "/%s/%d" % (field, n)) for n in range(len(values))],
                    values)
        path = "/api/v1/listeners/t"
        for option in ("http-buffer-request", "http-ignore-probes", "http-no-delay"):
            answer = self.api.call("PATCH", path, {"extra": ["option " + option]},
                                   {"If-Match": self.api.etag(path)})
            self.assertEqual((answer.status, answer.json["errors"][0]["code"]),
                             (422, "not_applicable"))
        told = self.put("global_directive", ["busy-polling", "tune.bufsize 1"]).json["errors"][0]
        self.assertEqual(
            told["message"],
            "tune.bufsize takes a whole number from 16384 to 1048576, not \"tune.bufsize 1\".")


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
