# SPDX-License-Identifier: Apache-2.0
"""Small real servers behind HAProxy, on loopback."""
import base64
import hashlib
import http.server
import json
import socket
import socketserver
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    """Says which server it is and what it was sent; /ws upgrades and then echoes bytes."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/ws":
            self.upgrade()
            return
        if self.path == "/healthz":
            self.answer(self.server.health, self.server.health_body, "text/plain")
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


class ProxiedHandler(Handler):
    SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"

    def setup(self):
        super().setup()
        head = self.rfile.read(16)
        assert head[:12] == self.SIGNATURE, head
        size = int.from_bytes(head[14:16], "big")
        self.server.proxied.append(head + self.rfile.read(size))


class TalkHandler(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.settimeout(10)
        self.server.talk(self.request)


class Talk:
    """A TCP server on loopback that leaves each connection to a function talk(socket)."""

    def __init__(self, talk):
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), TalkHandler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a check ends its connection as it likes
        self.server.talk = talk
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, handler):
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def handle_error(self, request, client_address):
        """A health check ends its connection as it likes."""


class Backend:
    """tls: the SSLContext of a server that speaks https. proxy: connections begin with a header
    of the PROXY protocol, which is kept."""

    def __init__(self, label, address="127.0.0.1", port=0, tls=None, proxy=False):
        self.server = Server((address, port), ProxiedHandler if proxy else Handler)
        if tls:
            self.server.socket = tls.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.server.label = label
        self.server.health = 200
        self.server.health_body = b"health\n"
        self.server.proxied = []
        self.port = self.server.server_address[1]
        self.target = ("[%s]:%d" if ":" in address else "%s:%d") % (address, self.port)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
