# SPDX-License-Identifier: Apache-2.0
"""A node whose helper is slow, for as long as the test wants."""
import json
import os
import socket
import socketserver
import threading


class Held(socketserver.ThreadingUnixStreamServer):
    """Stands before a node's helper, and keeps one verb from it until it is released."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            asked = self.rfile.readline()
            if json.loads(asked).get("verb") == self.server.verb:
                self.server.came.set()
                self.server.released.wait(30)
            with socket.socket(socket.AF_UNIX) as helper:
                helper.connect(self.server.helper)
                helper.sendall(asked)
                self.wfile.write(helper.makefile("rb").readline())

    def __init__(self, one, verb):
        self.path = os.path.join(one.run_dir, "helper.sock")
        self.helper, self.verb = self.path + ".real", verb
        self.came, self.released = threading.Event(), threading.Event()
        os.rename(self.path, self.helper)
        super().__init__(self.path, self.Handler)
        os.chmod(self.path, 0o666)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def __exit__(self, *_error):
        self.released.set()
        self.shutdown()
        self.server_close()
        os.rename(self.helper, self.path)
