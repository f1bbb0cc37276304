# SPDX-License-Identifier: Apache-2.0
"""Another program that takes a port between the bind test of an apply and the reload."""
import os
import subprocess


class Thief:
    """Takes the port as soon as the generation under test is activated, so that the bind test
    passes and HAProxy fails."""

    def __init__(self, of, port):
        self.node, self.port = of, port

    def __enter__(self):
        script = ("import os, socket, sys\n"
                  "link, was, port = sys.argv[1], sys.argv[2], int(sys.argv[3])\n"
                  "while os.path.realpath(link) == was: pass\n"
                  "s = socket.create_server(('127.0.0.1', port))\n"
                  "sys.stdin.read()\n")
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-c", script,
             os.path.join(self.node.state, "generation", "current"), self.node.generation(),
             str(self.port)], stdin=subprocess.PIPE)
        return self

    def __exit__(self, *_error):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
