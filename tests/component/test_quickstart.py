#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The first command of the README: it shows a served URL, and Ctrl-C leaves nothing."""
import contextlib
import glob
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import unittest

import node
from lab import end_descendants, run, wait_for
from terminal import on_terminal

COMMAND = [os.path.join(node.SOURCE, "packaging", "quickstart")]


class QuickStart(unittest.TestCase):
    def start(self, *arguments):
        """Returns when it serves: the process, what it printed, the processes below it."""
        process = subprocess.Popen(COMMAND + list(arguments), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(end_descendants, [process])
        out = ""
        for line in process.stdout:
            out += line
            if "Press Ctrl-C" in line:
                break
        self.assertIn("Press Ctrl-C", out, out)
        self.folder = re.search(r"/tmp/lockstep-quickstart\.\w+", out)[0]
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        return process, out, node.descendants(process.pid)

    def curl(self, *arguments):
        return subprocess.run(["curl", "-fsS", *arguments], check=True, capture_output=True,
                              text=True).stdout

    def assert_gone(self, process, family):
        """It said so, and nothing lives at that moment."""
        rest = process.stdout.read()
        self.assertEqual([family[p] for p in family if node.is_alive(p)], [], rest)
        self.assertIn("everything is removed", rest)
        self.assertFalse(os.path.exists(self.folder))
        process.wait(60)
        return rest

    def test_prints_what_a_new_user_needs_and_leaves_nothing(self):
        process, out, family = self.start("--nodes", "1")
        service = re.search(r"Published service +(\S+)", out)[1]
        self.assertRegex(out, r"Sign-in +admin / \S{16,}")
        port = re.search(r":(\d+)/", service)[1]
        fetched = self.curl("--resolve", "demo.localhost:%s:127.0.0.1" % port, service)
        self.assertIn("Hello from sample", fetched)
        self.assertEqual(self.curl("-k", re.search(r"curl -k (\S+)", out)[1]).strip(), "up")
        listening = subprocess.run(["ss", "-Hltn"], check=True, capture_output=True,
                                   text=True).stdout
        self.assertEqual({line.split()[3].rpartition(":")[0] for line in listening.splitlines()},
                         {"127.0.0.1"})
        command = re.search(r"Command line +(lockstep\(\) .*)", out)[1]
        shown = subprocess.run(["/bin/bash", "-c", command + "; lockstep status"], check=True,
                               capture_output=True, text=True).stdout
        self.assertRegex(shown, r"(?m)^serving +yes$")
        self.assertTrue([p for p in family if node.program_of(p) == "haproxy"])
        daemon = [p for p in family if node.program_of(p) == "lockstepd"][0]
        with open("/proc/%d/status" % daemon, encoding="ascii") as file:
            self.assertNotRegex(file.read(), r"(?m)^Uid:\s+0\b")
        for _ in range(3):  # as a terminal does, where somebody impatient types it again
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        self.assert_gone(process, family)
        self.assertEqual(process.returncode, 130)

    def test_several_nodes_are_reached_and_leave_nothing(self):
        with subprocess.Popen(["true"]) as ended:
            stale = "lockstep-quickstart-%d-n1" % ended.pid
        run("ip", "netns", "add", stale)
        self.addCleanup(run, "ip", "netns", "delete", stale, check=False)
        links = socket.if_nameindex()
        process, out, family = self.start()
        self.assertFalse(os.path.exists("/run/netns/" + stale))
        apis = re.findall(r"API of n\d +(\S+)", out)
        self.assertEqual(len(set(apis)), 3, out)
        for api in apis:
            self.assertEqual(self.curl("-k", api + "health").strip(), "up")
        for other, command in re.findall(r"the same of (n\d) +lockstep (.*)", out):
            shown = subprocess.run([os.path.join(node.BUILD, "lockstep"), *shlex.split(command)],
                                   check=True, capture_output=True, text=True).stdout
            self.assertRegex(shown, "(?m)^node +%s," % other)
            self.assertRegex(shown, "(?m)^edit +n1 holds the VIP")
        self.assertEqual(out.count("the same of n"), 2, out)
        services = re.findall(r"(?m)^(?:Published service)? +(http://\S+) \(", out)
        self.assertEqual(len(services), 4, out)  # at the VIP and at each node
        self.assertEqual(len(re.findall(r"(?m)^n\d .* (in step|this node) ", out)), 3, out)
        for service in services:
            self.assertIn("Hello from sample", self.curl(service))
        client = re.search(r"Client +(ip .*)", out)[1]
        self.assertIn("Hello from sample", run(*shlex.split(client)).stdout)
        for program in ("lockstepd", "haproxy"):
            self.assertGreaterEqual(len([p for p in family if node.program_of(p) == program]), 3)
        self.the_documents_tell_of_it_as_it_is(out)
        process.send_signal(signal.SIGTERM)
        self.assert_gone(process, family)
        self.assertEqual(glob.glob("/run/netns/lockstep-quickstart-%d-*" % process.pid), [])
        self.assertEqual(socket.if_nameindex(), links)

    def test_leaves_nothing_when_a_part_of_it_is_killed(self):
        for program, word in (("lockstep-run", "the node stopped"), ("python3", "web server")):
            with self.subTest(program=program):
                process, _, family = self.start("--nodes", "1")
                os.kill([p for p in family if node.program_of(p).startswith(program)][0],
                        signal.SIGKILL)
                self.assertIn(word, self.assert_gone(process, family))
                self.assertEqual(process.returncode, 1)

    def the_documents_tell_of_it_as_it_is(self, out):
        """Commands of the README work as they stand; each file has its line."""
        with open(os.path.join(node.SOURCE, "README.md"), encoding="ascii") as file:
            commands = [line for line in re.findall(r"(?m)^    (.*)", file.read())
                        if not line.startswith("sudo packaging/")]
        self.assertGreater(len(commands), 8)
        # The packages of the tests have no man, but groff-base: it is enough to read the page.
        script = ["set -e", "man() { test -r \"$2\"; }",
                  re.search(r"Command line +(.*)", out)[1], *commands]
        # On a terminal, where a question would take the next line that was pasted for its answer.
        script.insert(0, "cd " + shlex.quote(node.SOURCE))
        status, shown, asked = on_terminal(["/bin/bash", "-c", "\n".join(script)])
        self.assertEqual((status, asked), (0, False), shown[-2000:])
        self.assertEqual(self.undocumented(), set())

    def undocumented(self):
        """Names below the two directories that the architecture does not have."""
        with open(os.path.join(node.SOURCE, "docs", "architecture.md"), encoding="ascii") as file:
            known = set(re.findall(r"[\w.-]+", file.read().split("## Directories")[1]))
        found = set()
        for top in ("state", "run"):
            for path, folders, files in os.walk(os.path.join(self.folder, "n1", top)):
                names = folders if re.search(r"/generation/\d+/", path) else folders + files
                found.update(re.sub(r"^\d+$", "N", name) for name in names)
        return found - known

    def test_leaves_nothing_when_the_terminal_goes(self):
        process, out, family = self.start("--nodes", "1", "--service-address", "0.0.0.0")
        self.assertIn("accepts connections on 0.0.0.0", out)
        process.send_signal(signal.SIGHUP)
        self.assert_gone(process, family)

    def test_its_processes_end_when_it_is_killed_itself(self):
        process, _, family = self.start("--nodes", "1")
        process.kill()
        wait_for(lambda: not [p for p in family if node.is_alive(p)], "all have ended")

    def refused(self, status, *arguments):
        done = subprocess.run(COMMAND + list(arguments), capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_refuses_what_it_cannot_do(self):
        self.assertIn("16 at most", self.refused(2, "--nodes", "17"))
        self.assertIn("one node only",
                      self.refused(2, "--nodes", "2", "--service-address", "0.0.0.0"))
        for network in ("10.77.0.0", "10.256.0.0/24", "10.077.0.0/24"):
            self.assertIn("like 10.77.0.0/24", self.refused(2, "--network", network))
        self.assertIn("several nodes only",
                      self.refused(2, "--nodes", "1", "--network", "10.99.0.0/24"))
        self.assertIn("'--fast'", self.refused(2, "--fast"))
        self.assertIn("--api-port needs", self.refused(2, "--api-port"))
        self.assertIn("65535", self.refused(2, "--api-port", "70000"))
        self.assertIn("needs an IP", self.refused(2, "--service-address", "localhost"))
        self.assertIn("different ports", self.refused(2, "--api-port", "8080"))

    def test_takes_no_network_that_the_machine_has(self):
        for taken in ("10.99.0.0/25", "10.99.0.0/24", "10.99.0.0/16"):
            run("ip", "route", "add", taken, "dev", "lo")
            self.addCleanup(run, "ip", "route", "delete", taken, check=False)
            self.assertIn("route to 10.99.0.0/24",
                          self.refused(1, "--nodes", "2", "--network", "10.99.0.0/24"))
            run("ip", "route", "delete", taken)

    def test_names_the_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 8443)):
            self.assertIn("port 8443 is in use", self.refused(1, "--nodes", "1"))


if __name__ == "__main__":
    # packages come from outside this namespace: install-deps has nothing to install by now
    node.private_network()
    unittest.main(verbosity=2)
