# SPDX-License-Identifier: Apache-2.0
"""Small real servers behind HAProxy, on loopback."""
import base64
import hashlib
import http.server
import json
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    """Says which server it is and what it was sent; /ws upgrades and then echoes bytes."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/ws":
            self.upgrade()
            return
        if self.path == "/healthz":
            self.answer(self.server.health, b"health\n", "text/plain")
            return
        seen = {"server": self.server.label, "path": self.path,
                "headers": [[k, v] for k, v in self.headers.items()]}
        self.answer(200, json.dumps(seen).encode(), "application/json")

    do_HEAD = do_OPTIONS = do_GET

    def answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def upgrade(self):
        key = self.headers.get("Sec-WebSocket-Key", "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.send_response(101)
        self.send_header("Sec-WebSocket-Accept", accept)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.end_headers()
        self.wfile.flush()
        while True:
            data = self.connection.recv(4096)
            if not data:
                break
            self.connection.sendall(data)
        self.close_connection = True

    def log_message(self, *_args):
        """Requests are not logged."""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """A health check ends its connection as it likes."""


class Backend:
    def __init__(self, label, address="127.0.0.1", port=0):
        self.server = Server((address, port), Handler)
        self.server.label = label
        self.server.health = 200
        self.port = self.server.server_address[1]
        self.target = "%s:%d" % (address, self.port)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
