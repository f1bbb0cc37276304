#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The first command of the README: it shows a served URL, and Ctrl-C leaves nothing."""
import contextlib
import glob
import os
import re
import signal
import socket
import subprocess
import unittest

import node

COMMAND = [os.path.join(node.SOURCE, "packaging", "quickstart")]


class QuickStart(unittest.TestCase):
    def test_prints_what_a_new_user_needs_and_leaves_nothing(self):
        before = set(glob.glob("/tmp/lockstep-quickstart.*"))
        process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, start_new_session=True)
        self.addCleanup(process.kill)
        out = ""
        for line in process.stdout:
            out += line
            if "Press Ctrl-C" in line:
                break
        self.assertIn("Press Ctrl-C", out, out)
        service = re.search(r"Published service +(\S+)", out)[1]
        api = re.search(r"API +(\S+)", out)[1]
        self.assertRegex(out, r"Sign-in +admin / \S{16,}")
        port = re.search(r":(\d+)/", service)[1]
        fetched = subprocess.run(
            ["curl", "-fsS", "--resolve", "demo.localhost:%s:127.0.0.1" % port, service],
            check=True, capture_output=True, text=True).stdout
        self.assertIn("Hello from sample", fetched)
        subprocess.run(["curl", "-fsSk", api + "health"], check=True, capture_output=True)
        family = node.descendants(process.pid)
        self.assertTrue([p for p in family if node.program_of(p) == "haproxy"])
        daemon = [p for p in family if node.program_of(p) == "lockstepd"][0]
        with open("/proc/%d/status" % daemon, encoding="ascii") as file:
            self.assertNotRegex(file.read(), r"(?m)^Uid:\s+0\b")
        for _ in range(3):  # as a terminal does, where somebody impatient types it again
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        process.wait(60)
        process.stdout.close()
        self.assertEqual([p for p in family if node.is_alive(p)], [])
        self.assertEqual(set(glob.glob("/tmp/lockstep-quickstart.*")), before)

    def refused(self, status, *arguments):
        done = subprocess.run(COMMAND + list(arguments), capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_refuses_what_it_cannot_do(self):
        self.assertIn("--nodes 1", self.refused(1, "--nodes", "3"))
        self.assertIn("'--fast'", self.refused(2, "--fast"))
        self.assertIn("--api-port needs", self.refused(2, "--api-port"))
        self.assertIn("65535", self.refused(2, "--api-port", "70000"))
        self.assertIn("different ports", self.refused(2, "--api-port", "8080"))

    def test_names_the_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 8443)):
            self.assertIn("port 8443 is in use", self.refused(1))


if __name__ == "__main__":
    # packages come from outside this namespace: install-deps has nothing to install by now
    node.private_network()
    unittest.main(verbosity=2)
