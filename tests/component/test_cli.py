#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The command line against a real node, from setup to restore and verify."""
import contextlib
import http.server
import json
import os
import signal
import subprocess
import threading
import unittest

import node
from backend import Backend
from terminal import on_terminal


class Cli(unittest.TestCase):
    """In the order of their names."""

    @classmethod
    def setUpClass(cls):
        cls.backend = Backend("one")
        cls.node = node.Node()
        cls.addClassCleanup(cls.node.close)
        node.wait_for(cls.node.answers, "the API answers", 30)
        cls.config = os.path.join(cls.node.root, "home", "cli.json")

    def run_cli(self, *arguments, status=0, text=None, config=None):
        done = subprocess.run(
            [os.path.join(node.BUILD, "lockstep"), "--config", config or self.config, *arguments],
            input=text, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, status, (arguments, done.stdout, done.stderr))
        return done.stdout if status == 0 else done.stderr

    def run_json(self, *arguments):
        return json.loads(self.run_cli("--json", *arguments))

    def ask(self, answer, *arguments, width=80):
        program = os.path.join(node.BUILD, "lockstep")
        return on_terminal([program, "--config", self.config, *arguments], width, answer)

    def on_terminal(self, width, *arguments):
        return self.ask(b"", *arguments, width=width)[1]

    def test_1_setup_prints_a_password_and_keeps_a_key(self):
        password = self.run_cli("setup", "--state-dir", self.node.state, "--url",
                                "https://127.0.0.1:8443", "--name", "admin").strip()
        self.assertGreaterEqual(len(password), 16)
        self.assertEqual(os.stat(self.config).st_mode & 0o777, 0o600)
        admin = node.Api("127.0.0.1", 8443)
        admin.sign_in("admin", password)
        self.assertIn("administrator", self.run_cli(
            "setup", "--state-dir", self.node.state, "--url", "https://127.0.0.1:8443", status=1))

    def test_2_publish_diff_apply_status(self):
        out = self.run_cli("publish", "http://app.test", "--to", self.backend.target,
                           "--check", "http:/healthz")
        self.assertIn("+ service app.test", out)
        diff = self.run_cli("diff")
        self.assertIn("+ pool app.test", diff)
        self.assertIn("+backend app.test", diff)
        self.assertIn("can be applied", self.run_cli("check"))
        out = self.run_cli("apply", "--note", "first")
        self.assertIn("  + service app.test\n", out)
        self.assertIn("See that it answers", out)
        self.node.wait_ready()
        status = self.run_cli("status")
        self.assertRegex(status, r"(?m)^stored +revision 3@[0-9a-f]{8}")
        self.assertRegex(status, r"(?m)^running +revision 3, as stored$")
        self.assertRegex(status, r"(?m)^serving +yes")
        self.assertRegex(status, r"(?m)^measured +\d s ago$")
        self.assertIn("draft is empty", self.run_cli("diff"))
        self.assertEqual(self.run_cli("ready"), "ready\n")
        self.assertEqual(self.run_json("ready"), {"ready": True})
        self.assertRegex(self.run_cli("whoami"), r"(?m)^key +cli$")

    def test_3_objects(self):
        self.run_cli("create", "server", "extra", "address=192.0.2.5", "port=81")
        self.assertEqual(self.run_json("get", "server", "extra")["port"], 81)
        self.assertIn("  ~ server extra\n      port: 81 -> 82\n",
                      self.run_cli("set", "server", "extra", "port=82"))
        self.run_cli("set", "server", "extra", "--file", "-", text='{"maxqueue": 7}')
        shown = self.run_cli("get", "server", "extra")
        self.assertRegex(shown, r"(?m)^port +82$")
        self.assertRegex(shown, r"(?m)^maxqueue +7$")
        self.assertIn("extra", self.run_cli("list", "servers"))
        self.assertEqual(self.run_cli("list", "server", "--names", "--match", "XTR"), "extra\n")
        self.assertRegex(self.run_cli("draft"), r"(?m)^\+ +server +extra +key cli ")
        self.run_cli("replace", "server", "extra", "address=192.0.2.6", "port=83")
        self.assertEqual(self.run_json("get", "server", "extra")["maxqueue"], 0)
        self.run_cli("create", "server", "other", "address=192.0.2.5", "port=81")
        self.run_cli("discard", "server", "other")
        self.assertEqual(self.run_cli("list", "server", "--names", "--match", "other"), "")
        self.assertRegex(self.run_cli("get", "pool", "app.test"),
                         r"(?m)^members +server=app.test.s1 weight=100 role=active$")
        self.run_cli("set", "haproxy", "maxconn=3456")
        self.run_cli("delete", "server", "extra")
        self.run_cli("publish", "http://gone.test", "--to", self.backend.target)
        self.assertIn("- service gone.test", self.run_cli("unpublish", "gone.test", "--plan"))
        self.assertIn("at https://gone.test",
                      self.run_cli("unpublish", "https://gone.test", status=1))
        status, out, _ = self.ask(b"n\n", "unpublish", "http://gone.test")
        self.assertEqual((status, "- server gone.test.s1" in out), (1, True), out)
        self.assertIn("- service gone.test", self.run_cli("unpublish", "HTTP://gone.test/"))
        self.run_cli("publish", "http://gone.test", "--to", self.backend.target)
        status, out, asked = self.ask(b"y\n", "unpublish", "gone.test")
        self.assertEqual((status, asked), (0, True), out)
        self.assertEqual(self.run_cli("list", "services", "--names"), "app.test\n")
        self.run_cli("apply")
        self.assertIn("maxconn 3456", self.run_cli("config"))
        self.assertIn("maxconn 3456", self.run_json("config")["haproxy_cfg"])

    def test_3_preview_names_the_field_of_a_line(self):
        pool = self.run_json("get", "pool", "app.test")
        body = {k: v for k, v in pool.items() if k not in ("id", "kind")}
        body["balance"] = "leastconn"
        shown = self.run_cli("render", "pool", "app.test", "--file", "-", "--changed",
                             text=json.dumps(body))
        self.assertRegex(shown, r"(?m)^    balance leastconn +# pool app.test balance$")
        self.assertIn("No line is new", self.run_cli("render", "--changed"))
        self.run_cli("render", "pool", status=2)
        self.assertIn('no haproxy "x"', self.run_cli("render", "haproxy", "x", "--file", "-",
                                                     text="{}", status=1))

    def test_3_import_and_export(self):
        document = {
            "publish": [{"url": "https://a.test", "to": ["192.0.2.1:80"]},
                        {"url": "https://b.test", "to": ["192.0.2.2:80"], "name": "b"}],
            "objects": [{"kind": "pool", "body": {"name": "b", "retries": 9}},
                        {"kind": "pool", "body": {"name": "loose", "members": [
                            {"server": "late"}]}},
                        {"kind": "server", "body": {
                            "name": "late", "address": "192.0.2.9", "port": 9}}]}
        path = os.path.join(self.node.root, "import.json")

        def write():
            with open(path, "w", encoding="utf-8") as file:
                json.dump(document, file)

        write()
        self.assertIn("+backend loose", self.run_cli("import", "--dry-run", path))
        self.assertIn("draft is empty", self.run_cli("diff"))
        self.run_cli("import", path)
        self.assertEqual(self.run_json("get", "pool", "b")["retries"], 9)
        before = self.run_cli("export")
        self.assertNotIn("PRIVATE KEY", before)
        self.assertIn("Nothing to change", self.run_cli("import", "-", text=before))
        self.assertRegex(self.run_cli("get", "certificate", "a.test"),
                         r"(?m)^chain +-----BEGIN CERTIFICATE-----$")
        # Also where a listener names a placeholder itself.
        placeholder = self.run_json("get", "service", "a.test")["certificate"]
        listener = self.run_json("get", "service", "a.test")["listeners"][-1]
        self.run_cli("set", "listener", listener, 'certificates=["%s"]' % placeholder)
        self.assertIn("Nothing to change",
                      self.run_cli("import", "-", text=self.run_cli("export")))
        self.run_cli("set", "listener", listener, "certificates=[]")
        # What is exported makes the same where there is nothing: only placeholders are new.
        self.run_cli("discard", "--all")
        self.run_cli("import", "-", text=before)
        bodies = [[o["body"] for o in json.loads(text)["objects"]]
                  for text in (before, self.run_cli("export"))]
        for body in bodies[0] + bodies[1]:
            body.pop("certificate", None)
        self.assertEqual(*bodies)
        self.run_cli("discard", "--all")
        for change, words in (
                (lambda d: d["publish"][1].update(to=["192.0.2.2:0"]),
                 "service b /publish/1/to/0"),
                (lambda d: d["objects"][0]["body"].update(retries=99),
                 "pool b /objects/0/body/retries"),
                (lambda d: d["objects"][2].update(kind="serve"), "/objects/2/kind"),
                (lambda d: d["objects"].append({"kind": "admin", "body": {"name": "x"}}),
                 "/objects/3/kind"),
                (lambda d: d["objects"][1]["body"].update(monitor="nix"),
                 "pool loose /objects/1/body/monitor"),
                (lambda d: d.update(servers=[]), '"servers"')):
            kept = json.dumps(document)
            change(document)
            write()
            error = self.run_cli("import", path, status=1)
            self.assertIn(words, error)
            self.assertIn("nothing was imported", error)
            document = json.loads(kept)
        self.assertIn("draft is empty", self.run_cli("diff"))
        self.assertIn("-: this is not JSON: line 1", self.run_cli(
            "import", "-", text="global\n", status=2))

    def test_4_history_show_restore(self):
        history = self.run_cli("history")
        self.assertIn("first", history)
        self.assertIn("maxconn: 4000 -> 3456", self.run_cli("show", "4"))
        objects = self.run_cli("restore", "3")
        self.assertIn("  ~ haproxy\n      maxconn: 3456 -> 4000\n", objects)
        self.assertIn("has 1 change:", self.run_cli("restore", "3", status=1))
        self.run_cli("discard", "--all")
        result = self.run_json("restore", "3")
        self.assertEqual([(o["kind"], o["change"]) for o in result["objects"]],
                         [("haproxy", "changed")])
        self.assertIsNone(result["task"])
        self.run_cli("discard", "--all")
        result = self.run_json("restore", "3", "--apply")
        self.assertEqual(result["objects"][0]["fields"][0]["after"], 4000)
        self.assertEqual(result["task"]["state"], "ok")
        self.assertIn("States of servers stay", self.run_cli("restore", "3"))
        self.assertIn("maxconn 4000", self.run_cli("config"))
        self.assertIn("hashes", self.run_cli("verify"))
        self.assertIn("ok", self.run_cli("tasks"))
        events = self.run_cli("events", "--timeout", "1").splitlines()
        self.assertRegex("\n".join(events),
                         r"(?m)^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d  task    \d{9,} "
                         "Apply the draft: ok, revision 3 serves$")
        self.assertIn("head    revision 3", [line[21:] for line in events])
        events = self.run_cli("events", "--timeout", "1", "--json", "--topics", "head")
        self.assertEqual({json.loads(line)["topic"] for line in events.splitlines()},
                         {"hello", "head"})

    def test_5_a_revision_on_trial_is_shown_until_it_is_confirmed(self):
        self.assertIn("no revision waits", self.run_cli("confirm", status=1))
        for name in ("one", "two"):
            self.run_cli("create", "server", name, "address=192.0.2.8", "port=80")
        self.assertRegex(self.run_cli("apply", "--only", "server/one", "--confirm", "600"),
                         r'(?m)^confirm +"lockstep confirm" keeps .* goes back at 20')
        self.assertEqual(self.run_cli("draft").splitlines()[1].split()[:3], ["+", "server", "two"])
        self.assertRegex(self.run_cli("status"), r"(?m)^confirm +.* goes back at 20")
        self.assertIn("confirm it (lockstep confirm", self.run_cli("apply", status=1))
        self.assertIn("stays", self.run_cli("confirm"))
        self.assertNotIn("goes back", self.run_cli("status"))
        self.assertEqual(
            self.run_cli("apply", "--only", "server/one", "--only", "server/nix", status=1)
            .splitlines()[1:], [
                'lockstep: server one /only/objects/0: The draft does not change the server '
                '"one": leave it out.',
                'lockstep: server nix /only/objects/1: There is no server "nix", neither in the '
                'draft nor applied.'])
        self.run_cli("discard", "--all")
        events = self.run_cli("events", "--timeout", "1")
        self.assertRegex(events, r"(?m)^.{21}status +revision \d+ waits for \"lockstep confirm\" until 20")
        self.assertNotRegex(events, r"(?m)^.{21}task .*: running$")
        self.assertIn("draft   1 change\n", events)

    def test_5_refused_events_say_why(self):
        self.assertIn("topics are task", self.run_cli("events", "--topics", "foo", status=1))

    def test_5_state_and_statistics_of_a_server(self):
        self.assertRegex(self.run_cli("server", "app.test.s1", "drain", "--note", "disk"),
                         r"(?m)^app.test +drain +100 ")
        self.assertEqual(self.run_json("server", "app.test.s1", "weight", "50%")["stored"], {
            "set": True, "state": "drain", "weight": 50, "note": "disk"})
        self.assertIn("/weight", self.run_cli("server", "app.test.s1", "weight", "500", status=1))
        self.assertRegex(self.run_cli("stats", "app.test"), r"(?m)^  app.test.s1 +drain ")
        self.run_cli("create", "pool", "empty")
        self.run_cli("apply", "--only", "pool/empty")
        self.assertRegex(self.run_cli("status"), r"(?m)^pools +without a server for visitors: "
                         r"app.test \(all are taken out\), empty \(it has none\)$")
        self.run_cli("delete", "pool", "empty")
        self.run_cli("apply", "--only", "pool/empty")
        self.assertRegex(self.run_cli("server", "app.test.s1", "reset"),
                         r"(?m)^stored +ready, weight 100%$")
        self.assertNotIn("pools ", self.run_cli("status"))

    def test_5_errors_say_what_and_where(self):
        error = self.run_cli("set", "server", "app.test.s1", "port=70000", status=1)
        self.assertIn("/port", error)
        error = self.run_cli("create", "pool", "broken", "ports=1", status=2)
        self.assertIn("members", error)
        self.assertIn("app.test", self.run_cli("delete", "pool", "app.test", status=1))
        self.run_cli("nonsense", status=2)
        for word, near in (("publishx", '"publish"'), ("statsu", '"status" or "stats"')):
            self.assertIn('there is no command "%s": did you mean %s?' % (word, near),
                          self.run_cli(word, "http://x.test", "--to", "x", status=2))
        self.assertIn("TLS on in the service's pool", self.run_cli(
            "publish", "http://x.test", "--to", "https://192.0.2.1:443", status=1))
        self.run_cli("set", "pool", "app.test", "tls=true", "verifyhost=app.test")
        self.assertIn("can be applied", self.run_cli("check"))
        self.run_cli("discard", "--all")
        # One place that is wrong is told once.
        self.assertEqual(self.run_cli("create", "server", "x", "address=192.0.2.1", status=1),
                         "lockstep: server x /port: Port is missing.\n")
        self.assertIn("12 to 200", self.run_cli("password", "admin", text="short\n", status=1))
        self.run_cli("password", "admin", text="a longer password\n")
        node.Api("127.0.0.1", 8443).sign_in("admin", "a longer password")
        self.assertIn("  ~ admin admin\n      password: (set) -> (another one)\nDone",
                      self.run_cli("set", "admin", "admin", "password=a longer password"))
        self.assertIn("usage", self.run_cli("delete", "server", "x", "y", status=2))
        self.assertIn("UTF-8", self.run_cli("get", "server", b"\xff", status=2))
        self.run_cli("publish", "http://x.test", status=2)
        self.assertIn("/check", self.run_cli("publish", "http://x.test", "--to", "192.0.2.1:80",
                                             "--check", "helth:/x", status=1))

    def test_5_a_terminal_gets_tables_of_its_width_and_colours_unless_refused(self):
        table = self.on_terminal(60, "history")
        self.assertLessEqual(max(len(line) for line in table.splitlines()), 60)
        self.assertIn("~", table)
        self.assertIn("\x1b[", self.on_terminal(60, "show", "3"))
        self.assertNotIn("\x1b[", self.on_terminal(60, "show", "3", "--no-color"))
        self.assertNotIn("\x1b[", self.run_cli("show", "3"))
        # Times, numbers and states stay whole.
        for line in self.on_terminal(60, "tasks").splitlines()[1:]:
            self.assertRegex(line, r"^\d+ +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d +ok ")

    def test_5_a_list_has_the_columns_of_its_kind(self):
        self.assertEqual(self.run_cli("list", "pools").split("\n")[0].split(),
                         ["name", "enabled", "mode", "balance", "members", "monitor"])
        self.run_cli("create", "monitor", "plain", "type=tcp")
        # A field without a meaning there, as the path of a tcp check, is no value.
        self.assertRegex(self.run_cli("list", "monitors"), r"(?m)^plain +tcp +- +0 +5000 ")
        self.assertRegex(self.run_cli("list", "monitors"), r"(?m)^app.test +http +/healthz +0 ")
        self.assertEqual(self.run_json("list", "node", "--names"), ["node"])
        # A field that is called key is not the key of a program.
        self.assertIn("+ condition office\n", self.run_cli(
            "create", "condition", "office", "type=header", "key=X-From", "values=office"))
        # A name is cut last.
        name = "with-a-name-that-is-rather-long"
        self.run_cli("create", "pool", name)
        self.assertIn(name + " ", self.on_terminal(80, "list", "pools"))
        self.run_cli("discard", "--all")

    def test_5_explain_is_wrapped(self):
        for words in ((), ("pool",), ("pool", "balance"), ("rule", "conditions"), ("monitor",)):
            for width, shown in ((80, self.run_cli("explain", *words)),
                                 (50, self.on_terminal(50, "explain", *words))):
                self.assertLessEqual(max(map(len, shown.splitlines())), width)
                self.assertNotIn("~", shown)
        self.assertIn("url_param, hdr", " ".join(self.on_terminal(50, "explain", "pool",
                                                                  "balance").split()))

    def test_5_long_values_show_where_they_differ(self):
        networks = ["10.%d.0.0/16" % i for i in range(60)]
        self.run_cli("set", "listener", "http", "allowed_networks=" + ",".join(networks))
        self.run_cli("apply")
        networks[40] = "10.99.0.0/16"
        self.run_cli("set", "listener", "http", "allowed_networks=" + ",".join(networks))
        whole = self.run_cli("diff").splitlines()
        line = next(x for x in whole if "allowed_networks: " in x)
        self.assertEqual(*(len(json.loads(v)) for v in line.split(": ", 1)[1].split(" -> ")))
        for width in (80, 140):
            shown = self.on_terminal(width, "diff", "--no-color").splitlines()
            at = next(i for i, x in enumerate(shown) if x.strip() == "allowed_networks:")
            was, now = shown[at + 1:at + 3]
            self.assertLessEqual(max(len(was), len(now)), width)
            self.assertIn("10.40.0.0/16", was)
            self.assertNotIn("10.40.0.0/16", now)
        self.run_cli("set", "listener", "http", "allowed_networks=")
        self.run_cli("apply")

    def test_5_what_has_nothing_to_show_says_so(self):
        self.assertRegex(self.run_cli("show", "3", "3"),
                         r"^No difference between revisions 3@\w{8} and 3@\w{8}\.$")
        self.assertIn("changes no object", self.run_cli("show", "1"))
        self.assertEqual(self.run_cli("list", "rules"), "There are no rules.\n")
        self.assertIn("no pools with \"x\"", self.run_cli("list", "pools", "--match", "x"))
        self.assertIn("no commit before revision 1", self.run_cli("history", "--before", "1"))
        self.assertIn("empty already", self.run_cli("discard", "--all"))
        self.assertIn("Nothing to change", self.run_cli("set", "pool", "app.test", "mode=http"))
        self.assertIn("Nothing to change", self.run_cli(
            "publish", "http://app.test", "--to", self.backend.target, "--check",
            "http:/healthz", "--plan"))
        self.run_cli("create", "server", "loose", "address=192.0.2.5", "port=81")
        self.assertRegex(self.run_cli("status"), r"(?m)^draft +1 change not applied")
        self.run_cli("apply")
        self.assertRegex(self.run_cli("server", "loose"), r"(?m)^pools +none has it$")
        self.run_cli("delete", "server", "loose")
        self.assertEqual(self.run_cli("discard", "server", "loose"),
                         "The change of server loose is out of the draft.\n")
        self.run_cli("delete", "server", "loose")
        self.assertIn("discarded 1 change.", self.run_cli("discard", "--all"))

    def test_5_an_option_without_effect_is_refused(self):
        to = ("--to", self.backend.target)
        for words, name in (
                (("publish", "http://x.test", *to, "--confirm", "60"), "--confirm"),
                (("publish", "http://x.test", *to, "--note", "n"), "--note"),
                (("publish", "http://x.test", *to, *to), "--to"),
                (("restore", "3", "--confirm", "60"), "--confirm"),
                (("restore", "3", "--note", "n"), "--note"),
                (("server", "app.test.s1", "--note", "n"), "--note"),
                (("server", "app.test.s1", "reset", "--note", "n"), "--note"),
                (("list", "haproxy", "--match", "x"), "--match"),
                (("apply", "--only", "haproxy/x"), "--only"),
                (("render", "--changed", "--json"), "--changed")):
            self.assertIn(" " + name + " ", self.run_cli(*words, status=2).split("\n")[0])

    def test_5_completion_knows_commands_options_kinds_and_names(self):
        script = os.path.join(node.BUILD, "gen", "lockstep.bash")
        program = os.path.join(node.BUILD, "lockstep")

        def complete(*words):
            text = ('. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; '
                    '_lockstep; printf "%s\\n" "${COMPREPLY[@]}"')
            done = subprocess.run(["/bin/bash", "-c", text, script, program, *words],
                                  capture_output=True, text=True, timeout=30, check=True)
            self.assertEqual(done.stderr, "")
            return done.stdout.split()

        self.assertEqual(complete("unp"), ["unpublish"])
        self.assertEqual(complete("publish", "--pl"), ["--plan"])
        self.assertEqual(complete("get", "moni"), ["monitor"])
        self.assertEqual(complete("--config", self.config, "get", "pool", "app"), ["app.test"])
        self.assertEqual(complete("--config", self.config, "unpublish", ""), ["app.test"])
        self.assertEqual(complete("set", "pool", "app.test", "balance=x", "ret"), ["retries="])
        self.assertEqual(complete("server", "x", "dr"), ["drain"])
        self.assertEqual(complete("help", "unp"), ["unpublish"])
        self.assertIn("3", complete("--config", self.config, "restore", ""))
        self.assertEqual(complete("--config", self.config, "show", "1", "2"), ["2"])
        self.assertEqual(complete("--url", "https://127.0.0.1:1", "get", "pool", ""), [])

    def test_6_another_key_of_the_server_is_refused_and_no_answer_is_said(self):
        with open(self.config, encoding="utf-8") as file:
            config = json.load(file)
        other = os.path.join(self.node.root, "other.json")
        for change, status, word in (({"pin": "sha256//" + "A" * 43 + "="}, 3, "pinned"),
                                     ({"pin": "sha256//" + "A" * 43 + "="}, 3, "peerkey"),
                                     ({"url": "https://127.0.0.1:1"}, 3, "127.0.0.1"),
                                     ({"key": "lsk_" + "A" * 43}, 1, "key")):
            with open(other, "w", encoding="utf-8") as file:
                json.dump(dict(config, **change), file)
            self.assertIn(word, self.run_cli("status", status=status, config=other))


class Recorder(http.server.BaseHTTPRequestHandler):
    """A node that writes down what it is asked and gives prepared answers."""

    def do_GET(self):
        length = int(self.headers.get("Content-Length", "0"))
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.seen.append((self.command, self.path, body))
        status, answer = self.server.answers.get((self.command, self.path.split("?")[0]),
                                                 (409, {"detail": "not now"}))
        if callable(answer):
            answer = answer()
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):
            self.wfile.write(text)

    do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, *_args):
        """Requests are not logged."""


class Requests(unittest.TestCase):
    """What commands send, where the answer alone does not show it."""

    def setUp(self):
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Recorder)
        self.server.seen, self.server.answers = [], {}
        thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        thread.start()
        self.addCleanup(lambda: (self.server.shutdown(), thread.join(),
                                 self.server.server_close()))

    def command(self, *arguments):
        return [os.path.join(node.BUILD, "lockstep"), "--url",
                "http://127.0.0.1:%d" % self.server.server_address[1], "--config", "/nonexistent",
                *arguments]

    def run_cli(self, *arguments, status=0):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True,
                              timeout=30, check=False)
        self.assertEqual(done.returncode, status, (done.stdout, done.stderr))
        return done.stdout + done.stderr

    def test_apply_a_part_for_a_while(self):
        self.server.answers["GET", "/api/v1/draft"] = 200, {"changes": [
            {"kind": k, "name": n, "author": a, "change": "changed"} for k, n, a in (
                ("pool", "a", "x"), ("pool", "b", "x"), ("server", "c", "admin maria"))]}
        said = self.run_cli(
            "apply", "--only", "pool/a", "--only", "haproxy", "--author", "admin maria",
            "--confirm", "60", "--note", "n", status=1)
        self.assertEqual(said, "  ~ pool a\n  ~ server c\nlockstep: not now\n")
        self.assertEqual(self.server.seen[1:], [("POST", "/api/v1/config/apply", {
            "note": "n", "confirm": 60, "only": {
                "objects": [{"kind": "pool", "name": "a"}, {"kind": "haproxy", "name": "haproxy"}],
                "authors": ["admin maria"]}})])
        self.run_cli("apply", "--only", "pool", status=2)
        self.server.answers["POST", "/api/v1/config/confirm"] = 200, {"rev": 3}
        self.assertIn("stays", self.run_cli("confirm"))

    def test_who_interrupts_an_apply_hears_that_it_goes_on(self):
        asked, ended = threading.Event(), threading.Event()
        self.server.answers["GET", "/api/v1/draft"] = 200, {"changes": [
            {"kind": "pool", "name": str(i), "change": "removed"} for i in range(53)]}
        self.server.answers["POST", "/api/v1/config/apply"] = 202, {"id": 7}
        self.server.answers["GET", "/api/v1/events"] = 200, lambda: asked.set() or ended.wait(30)
        with subprocess.Popen(self.command("apply"), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as apply:
            asked.wait(30)
            apply.send_signal(signal.SIGINT)
            listed, said = apply.communicate(timeout=10)
        ended.set()
        self.assertRegex(listed, r"^(  - pool \d+\n){50}  and 3 more\n$")
        self.assertEqual((apply.returncode, said), (
            -signal.SIGINT, 'lockstep: the node goes on with it: "lockstep tasks 7" shows how\n'))

    def test_a_change_of_a_server_keeps_the_rest_of_its_state(self):
        path = "/api/v1/servers/web1/state"
        state = {"server": "web1", "running": "yes", "reason": None, "pools": [
            {"pool": "p", "refused": None, "server": {
                "state": "drain", "weight": 50, "check": {"status": "L7OK"}, "since": None}},
            {"pool": "q", "refused": None, "server": {
                "state": "maint", "taken_out_by": "dns", "weight": 50, "check": {}}}],
            "stored": {"set": True, "state": "drain", "weight": 50, "note": "x"}}
        for method in ("GET", "PUT", "DELETE"):
            self.server.answers[method, path] = 200, state
        shown = self.run_cli("server", "web1", "weight", "20%")
        self.assertEqual(self.server.seen[-1], (
            "PUT", path, {"weight": 20}))  # the node keeps what is not named
        self.assertRegex(shown, r"(?m)^stored +drain, weight 50%: x$")
        self.assertRegex(shown, r"(?m)^p +drain +50 +L7OK ")
        self.assertRegex(shown, r"(?m)^q +no address \(DNS\) +50 ")
        self.run_cli("server", "web1", "ready", "--note", "y")
        self.assertEqual(self.server.seen[-1], (
            "PUT", path, {"state": "ready", "note": "y"}))
        self.run_cli("server", "web1", "reset")
        self.assertEqual(self.server.seen[-1][:2], ("DELETE", path))
        for wrong in (("weight",), ("weight", "a"), ("weight", "5 %"), ("away",),
                      ("drain", "5%")):
            self.run_cli("server", "web1", *wrong, status=2)

    def test_a_word_instead_of_json_is_shown(self):
        self.server.answers["GET", "/api/v1/ready"] = 503, "starting"
        self.assertRegex(self.run_cli("ready", status=1),
                         'status 503: .?starting.?\n.*"lockstep status" says what is missing')
        self.assertIn("starting", self.run_cli("ready", "--json", status=1))

    def test_a_haproxy_that_hangs_is_not_said_to_run_something_else(self):
        status = {"head": {"id": "a"}, "running": {"known": False}, "age_s": 4, "silent_s": 75,
                  "haproxy": {"up": "no", "detail": "no answer from x in time"}}
        self.server.answers["GET", "/api/v1/status"] = 200, status
        self.server.answers["GET", "/api/v1/cluster"] = 200, {"nodes": [{}], "conditions": []}
        shown = self.run_cli("status")
        self.assertRegex(shown, r"(?m)^running +unknown: HAProxy does not answer$")
        self.assertRegex(shown, r"(?m)^haproxy +does not answer on its admin socket for 1 min: "
                                "no answer from x in time$")
        self.assertRegex(shown, r"(?m)^measured +4 s ago$")

    def test_statistics_of_all_pages(self):
        traffic = {"sessions": {"current": 1, "total": 7}, "queue": {"current": 0},
                   "responses": {"5xx": None}, "bytes_in": 3584, "bytes_out": 5 << 30}
        self.server.answers["GET", "/api/v1/stats"] = 200, {
            "listeners": [{"name": "http", "status": "OPEN", "traffic": traffic}], "next": None,
            "pools": [{"name": "p", "state": "up", "traffic": traffic, "servers": [
                {"name": "s", "state": "down", "check": {"status": "L4CON"},
                 "traffic": traffic},
                {"name": "n", "state": "maint", "taken_out_by": "dns", "check": {},
                 "traffic": traffic}]}]}
        shown = self.run_cli("stats", "p")
        self.assertEqual(self.server.seen[-1][1], "/api/v1/stats?pool=p&limit=1000")
        self.assertRegex(shown, r"(?m)^  s +down +L4CON +1 +7 +0 +- +3\.5k +5\.0G$")
        self.assertRegex(shown, r"(?m)^  n +no address \(DNS\) +- +1 ")
        self.assertRegex(self.run_cli("stats"), r"(?m)^http +OPEN +1 +7 ")


if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
