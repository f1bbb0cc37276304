#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""lockstep-helper with a real HAProxy: who may call, what it takes, which ports are free."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import unittest

import lab
from direct import Direct, GROUP, UID, call
from lab import run, wait_for

KEY_AND_CERTIFICATE = (
    "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
    "-subj", "/CN=a.test", "-days", "2")


class Case(unittest.TestCase):
    def node(self, **tunables):
        node = Direct({"stop_ms": 2000, **tunables})
        self.addCleanup(node.close)
        node.start()
        return node


class Caller(Case):
    def as_user(self, node, uid, gid):
        """What a process of that user gets from the helper's socket."""
        code = ("import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(%r)\n"
                "s.sendall(b'{\"verb\":\"status\"}\\n')\nprint(s.recv(65536).decode())"
                % str(node.run_dir / "helper.sock"))
        return run("setpriv", "--reuid=%d" % uid, "--regid=%s" % gid, "--clear-groups",
                   "/usr/bin/python3", "-c", code, check=False)

    def test_lockstepd_is_heard(self):
        node = self.node()
        done = self.as_user(node, UID, GROUP)
        self.assertTrue(json.loads(done.stdout)["ok"], done)

    def test_another_user_of_the_group_is_refused(self):
        node = self.node()
        done = self.as_user(node, UID + 1, GROUP)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["ok"], answer["code"]), (False, "denied"))
        self.assertIn("refused a call of uid %d" % (UID + 1), node.log_text())

    def test_another_group_does_not_reach_the_socket(self):
        node = self.node()
        done = self.as_user(node, UID + 1, "daemon")
        self.assertIn("PermissionError", done.stderr)

    def test_lockstepd_does_not_reach_the_service_calls(self):
        node = self.node()
        code = ("import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(%r)"
                % str(node.run_dir / "run.sock"))
        done = run("setpriv", "--reuid=%d" % UID, "--regid=%s" % GROUP, "--clear-groups",
                   "/usr/bin/python3", "-c", code, check=False)
        self.assertIn("PermissionError", done.stderr)

    def test_clients_that_misbehave_are_survived(self):
        node = self.node()
        path = str(node.run_dir / "helper.sock")
        for sent in (b"", b"{", b"\xff\xfe\n", b"[" * 100000 + b"\n", b"{}\n" * 1000):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                s.sendall(sent)
        self.assertTrue(node.helper(verb="status")["ok"])
        with self.assertRaises((BrokenPipeError, ConnectionResetError, json.JSONDecodeError)):
            # Nobody needs 64 MiB: it is dropped after two seconds or refused at its end.
            answer = call(path, b" " * (64 << 20))
            self.assertEqual(answer["code"], "limit")
            raise BrokenPipeError
        self.assertTrue(node.helper(verb="status")["ok"])


class Stage(Case):
    def refused(self, node, number, part):
        answer = node.helper(verb="stage", generation=number)
        self.assertFalse(answer["ok"], answer)
        self.assertIn(part, answer["message"])
        self.assertFalse((node.state / "generation" / str(number)).exists())
        left = [n for n in os.listdir(node.state / "generation") if n.startswith(".")]
        self.assertEqual(left, [])
        return answer["code"]

    def test_a_full_generation_is_checked_by_haproxy(self):
        node = self.node()
        pem = node.lab.dir / "pem"
        run(*KEY_AND_CERTIFICATE, "-keyout", pem, "-out", "%s.crt" % pem)
        config = node.config() + (
            "    bind 127.0.0.1:8443 ssl crt-list crt-list/https.list\n"
            "    errorfile 503 error/503.http\n"
            "    http-request set-var(txn.a) path,map_beg(map/http.map,none)\n"
            "backend none\n")
        files = {
            "haproxy.cfg": config,
            "crt/a.pem": pem.read_text() + pathlib.Path("%s.crt" % pem).read_text(),
            "crt-list/https.list": "crt/a.pem a.test\n",
            "map/http.map": "/x none\n",
            "error/503.http": "HTTP/1.0 503 Down\r\nContent-Length: 0\r\n\r\n",
        }
        node.write_stage(1, files)
        answer = node.helper(verb="stage", generation=1)
        self.assertEqual(answer.get("exit_status"), 0, answer)
        gid = (node.state / "generation").stat().st_gid
        for name in files:
            found = (node.state / "generation" / "1" / name).stat()
            self.assertEqual((found.st_mode & 0o7777, found.st_uid, found.st_gid),
                             (0o640, 0, gid), name)
        self.assertTrue(node.helper(verb="install", generation=1)["ok"])
        self.assertTrue(node.helper(verb="reload")["loaded"])
        self.assertEqual(node.get(), "one")

    def test_what_looks_like_an_expression_in_a_file_is_only_sent(self):
        node = self.node()
        expression = "%[path,map(/nonexistent)]"
        config = node.config() + (
            "    errorfile 503 error/503.http\n"
            "    acl listed path -f acl/a.list\n"
            "    http-request set-var(txn.a) path,map(map/a.map)\n"
            "    http-request return status 200 content-type a/b file body/a.txt if listed\n")
        files = {
            "haproxy.cfg": config,
            "acl/a.list": expression + "\n",
            "body/a.txt": expression,
            "map/a.map": "/x %s\n" % expression,
            "error/503.http": "HTTP/1.0 503 Down\r\nContent-Length: %d\r\n\r\n%s" % (
                len(expression), expression),
        }
        node.write_stage(1, files)
        # HAProxy would say that it cannot open the file.
        answer = node.helper(verb="stage", generation=1)
        self.assertEqual(answer.get("exit_status"), 0, answer)
        files["haproxy.cfg"] = config + (
            "    http-request return status 200 content-type a/b lf-file body/a.txt\n")
        node.write_stage(2, files)
        self.assertEqual(self.refused(node, 2, "evaluates what is in a file"), "denied")

    def test_what_haproxy_complains_about_comes_with_file_and_line(self):
        node = self.node()
        node.write_stage(1, {"haproxy.cfg": node.config() + "    timeout clent 5s\n"})
        answer = node.helper(verb="stage", generation=1)
        self.assertEqual(answer["exit_status"], 1)
        self.assertRegex(answer["output"],
                         r"parsing \[.*/generation/1/haproxy.cfg:\d+\] : 'timeout' supports")
        self.assertEqual(node.helper(verb="install", generation=1)["code"], "conflict")

    def test_other_weights_are_not_checked_again(self):
        node = self.node()

        def stage(number, weight, rest=""):
            node.write_stage(number, {"haproxy.cfg": node.config(digest="%016x" % number) + (
                "backend b\n    server s 127.0.0.1:9 weight %s%s\n" % (weight, rest))})
            answer = node.helper(verb="stage", generation=number)
            return answer["exit_status"], answer["only_weights"]

        self.assertEqual(stage(1, 1), (0, False))
        self.assertTrue(node.helper(verb="install", generation=1)["ok"])
        self.assertTrue(node.helper(verb="reload")["loaded"])
        self.assertEqual(stage(2, 257), (1, False))
        self.assertEqual(stage(3, 2, " wait 5"), (1, False))
        for number, weight in ((4, 256), (5, 0)):
            self.assertEqual(stage(number, weight), (0, True))
            self.assertTrue(node.helper(verb="install", generation=number)["ok"])
            self.assertTrue(node.helper(verb="reload")["loaded"])
        self.assertTrue(node.helper(verb="restart")["loaded"])
        self.assertEqual(node.get(), "one")
        # The warning about a name is repeated.
        named = "\n    server t nowhere.invalid:9 init-addr libc,none"
        for number in (6, 7):
            self.assertEqual(stage(number, number, named), (0, False))
            self.assertTrue(node.helper(verb="install", generation=number)["ok"])

    def test_generations_that_haproxy_refuses_do_not_pile_up(self):
        node = self.node()
        node.serve(1)
        for number in range(2, 14):
            node.write_stage(number, {"haproxy.cfg": node.config() + "    timeout clent 5s\n"})
            self.assertEqual(
                node.helper(verb="stage", generation=number)["exit_status"], 1)
        left = sorted(int(n) for n in os.listdir(node.state / "generation") if n.isdigit())
        self.assertEqual(left, [1, 8, 9, 10, 11, 12, 13])
        self.assertEqual(node.get(), "one")

    def test_hostile_directories_are_refused(self):
        node = self.node()
        secret = node.lab.dir / "secret"
        secret.write_text("secret", encoding="ascii")
        secret.chmod(0o600)

        def symlink(top):
            (top / "crt").mkdir()
            (top / "crt" / "a.pem").symlink_to(secret)

        def hard_link(top):
            (top / "crt").mkdir()
            os.link(secret, top / "crt" / "a.pem")

        def fifo(top):
            (top / "map").mkdir()
            os.mkfifo(top / "map" / "a.map")

        def extra(top):
            (top / "run.sh").write_text("x", encoding="ascii")

        def deep(top):
            (top / "crt" / "a.pem").mkdir(parents=True)

        def folder_link(top):
            (top / "crt").symlink_to("/etc")

        for number, (spoil, part) in enumerate((
                (symlink, "crt/a.pem"), (hard_link, "second name"), (fifo, "regular"),
                (extra, "run.sh"), (deep, "regular"), (folder_link, "crt")), 1):
            top = node.write_stage(number, {"haproxy.cfg": node.config()})
            spoil(top)
            node.give_away(top)
            os.chown(secret, 0, 0)
            with self.subTest(spoil.__name__):
                self.refused(node, number, part)

    def test_a_file_of_root_is_refused(self):
        node = self.node()
        top = node.write_stage(1, {"haproxy.cfg": node.config()})
        os.chown(top / "haproxy.cfg", 0, 0)
        self.assertEqual(self.refused(node, 1, "belongs to uid 0"), "denied")

    def test_a_configuration_that_runs_programs_is_refused(self):
        node = self.node()
        for number, line in enumerate((
                "program x", "    external-check command /bin/true", "\"pro\"gram x",
                "    option external-check", "    http-request lua.x"), 1):
            node.write_stage(number, {"haproxy.cfg": node.config() + line + "\n"})
            with self.subTest(line):
                last = node.config().count("\n") + 1
                self.refused(node, number, "haproxy.cfg line %d: " % last)

    def test_too_many_files_are_refused_in_time(self):
        node = self.node()
        top = node.write_stage(1, {"haproxy.cfg": node.config(), "map/m.map": "a b\n"})
        for number in range(200001):
            # Links are cheaper than files, and a file has at most some 65,000.
            base = top / "map" / ("%d.map" % (number - number % 60000))
            if number % 60000 == 0:
                base.write_text("", encoding="ascii")
            else:
                os.link(base, top / "map" / ("%d.map" % number))
        start = time.monotonic()
        self.assertEqual(self.refused(node, 1, "more than 200000 files"), "limit")
        self.assertLess(time.monotonic() - start, 10)

    def test_an_interrupted_stage_leaves_nothing_behind(self):
        node = self.node()
        (node.state / "generation" / ".5.tmp").mkdir()
        (node.state / "generation" / ".5.tmp" / "haproxy.cfg").write_text("x", encoding="ascii")
        pid = node.record()["helper"]["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: node.record()["helper"]["pid"] not in (0, pid), "a new helper")
        wait_for(lambda: not (node.state / "generation" / ".5.tmp").exists(), "it is removed")


class BindTest(Case):
    def failures(self, node, *binds):
        answer = node.helper(verb="bind-test", binds=[
            {"address": address, "port": port} for address, port in binds])
        self.assertTrue(answer["ok"], answer)
        return [(f["address"], f["port"], f["reason"], f["holder"])
                for f in answer["failures"]]

    def test_free_ports_are_free(self):
        node = self.node()
        self.assertEqual(self.failures(node, ("127.0.0.1", 80), ("0.0.0.0", 81), ("::", 81),
                                       ("::1", 443), ("127.0.0.9", 65535)), [])

    def test_a_port_of_another_process_is_told_with_its_name(self):
        node = self.node()
        other = node.listen(8081)
        in_use = "Address already in use"
        holder = "python3 (pid %d)" % other.pid
        self.assertEqual(
            self.failures(node, ("127.0.0.1", 8081), ("0.0.0.0", 8081), ("127.0.0.2", 8081),
                          ("::", 8081)),
            [("127.0.0.1", 8081, in_use, holder), ("0.0.0.0", 8081, in_use, holder)])

    def test_a_holder_of_another_user_is_named(self):
        node = self.node()
        code = ("import socket,signal;s=socket.socket(socket.AF_INET6);"
                "s.bind(('::',8082));s.listen(5);signal.pause()")
        other = node.lab.start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               "/usr/bin/python3", "-c", code, ns=node.ns)
        holder = "python3 (pid %d)" % other.pid
        # A socket of IPv6 that takes IPv4 as well stands in the way of both.
        wait_for(lambda: self.failures(node, ("127.0.0.1", 8082)) ==
                 [("127.0.0.1", 8082, "Address already in use", holder)], "it is found")
        self.assertEqual(self.failures(node, ("::1", 8082))[0][3], holder)

    def test_ports_of_our_own_haproxy_are_free(self):
        node = self.node()
        node.serve(1, ports=(8080, 443))
        self.assertEqual(self.failures(node, ("127.0.0.1", 8080), ("0.0.0.0", 8080),
                                       ("127.0.0.1", 443), ("127.0.0.2", 443)), [])

    def test_another_process_beside_our_own_haproxy_is_told(self):
        node = self.node()
        node.serve(1, ports=(8080,))
        other = node.listen(8080, "127.0.0.2")
        self.assertEqual(self.failures(node, ("127.0.0.1", 8080)), [])
        self.assertEqual(self.failures(node, ("0.0.0.0", 8080)),
                         [("0.0.0.0", 8080, "Address already in use",
                           "python3 (pid %d)" % other.pid)])

    def test_ports_of_old_workers_are_free(self):
        node = self.node()
        node.serve(1, ports=(8080, 8081))
        with node.ns:
            idle = socket.create_connection(("127.0.0.1", 8081))
        with idle:
            idle.sendall(b"GET / HTTP/1.1\r\n")
            node.install(2, body="two", ports=(8080,))
            self.assertTrue(node.helper(verb="reload")["loaded"])
            self.assertEqual(len(node.helper(verb="status")["old_workers"]), 1)
            self.assertEqual(self.failures(node, ("127.0.0.1", 8081), ("0.0.0.0", 8081)), [])

    def test_an_address_of_no_interface_is_told(self):
        node = self.node()
        self.assertEqual(
            self.failures(node, ("192.0.2.1", 80), ("2001:db8::1", 80)),
            [("192.0.2.1", 80, "no interface of this node has 192.0.2.1", ""),
             ("2001:db8::1", 80, "no interface of this node has 2001:db8::1", "")])

    def test_a_port_that_an_outgoing_connection_uses_is_told(self):
        node = self.node()
        node.listen(8081)
        code = ("import socket,signal;s=socket.socket();s.bind(('127.0.0.1',8999));"
                "s.connect(('127.0.0.1',8081));signal.pause()")
        other = node.lab.start("/usr/bin/python3", "-c", code, ns=node.ns)
        wait_for(lambda: self.failures(node, ("127.0.0.1", 8999)) ==
                 [("127.0.0.1", 8999, "Address already in use", "python3 (pid %d)" % other.pid)],
                 "it is found")

    def test_a_thousand_binds_are_tried_in_time(self):
        node = self.node()
        node.serve(1, ports=tuple(range(10000, 10500)))
        start = time.monotonic()
        self.assertEqual(
            self.failures(node, *(("127.0.0.1", p) for p in range(10000, 11000))), [])
        self.assertLess(time.monotonic() - start, 2)


class Program(unittest.TestCase):
    def test_wrong_options_are_refused(self):
        for options in ([], ["--uid", "x", "--gid", "1"], ["--uid", "1"],
                        ["--uid", "1", "--gid", "4294967295"], ["--nothing"],
                        ["--uid", "1", "--gid", "1", "--state-dir", "relative"]):
            done = run(lab.BUILD / "lockstep-helper", *options, check=False)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn("usage:", done.stderr)

    def test_help_and_version_are_given(self):
        for name in ("lockstep-helper", "lockstep-run"):
            self.assertIn("usage:", run(lab.BUILD / name, "--help").stdout)
            self.assertRegex(run(lab.BUILD / name, "--version").stdout, name + r" \d")

    def test_missing_directories_are_told(self):
        done = subprocess.run(
            [lab.BUILD / "lockstep-helper", "--uid", "1", "--gid", "0", "--state-dir", "/no/such"],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("lockstep-helper: error: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
