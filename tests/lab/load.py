# SPDX-License-Identifier: Apache-2.0
"""A steady load of three kinds of clients; every failed request is kept with its reason."""
import http.client
import socket
import threading
import time


class Load:
    """New connections, one kept-alive connection and one WebSocket, until stop()."""

    def __init__(self, address, port, host):
        self.address, self.port, self.host = address, port, host
        self.counts = {"new": 0, "kept": 0, "websocket": 0}
        self.failures = []
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.guard, args=(name, work))
                        for name, work in (("new", self.new), ("kept", self.kept),
                                           ("websocket", self.websocket))]

    def start(self):
        for thread in self.threads:
            thread.start()
        return self

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive(), "a client hangs"

    def guard(self, name, work):
        while not self.ended.is_set():
            try:
                work()
            except (OSError, http.client.HTTPException, AssertionError) as error:
                self.failures.append((name, time.time(), repr(error)))

    def one(self, connection):
        connection.request("GET", "/load", headers={"Host": self.host})
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, "%d %r" % (response.status, body[:200])
        return response

    def new(self):
        connection = http.client.HTTPConnection(self.address, self.port, timeout=5)
        try:
            self.one(connection)
            self.counts["new"] += 1
        finally:
            connection.close()
        self.ended.wait(0.005)

    def kept(self):
        connection = http.client.HTTPConnection(self.address, self.port, timeout=5)
        try:
            while not self.ended.is_set():
                response = self.one(connection)
                self.counts["kept"] += 1
                if response.will_close:
                    break
                self.ended.wait(0.005)
        finally:
            connection.close()

    def websocket(self):
        """Upgraded once; ends only when the test does."""
        with socket.create_connection((self.address, self.port), timeout=5) as client:
            client.sendall(("GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\n"
                            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
                            % self.host).encode())
            head = b""
            while b"\r\n\r\n" not in head:
                piece = client.recv(4096)
                assert piece, "closed during the upgrade"
                head += piece
            assert head.startswith(b"HTTP/1.1 101"), head[:200]
            while not self.ended.is_set():
                client.sendall(b"ping")
                back = client.recv(4)
                assert back, "the WebSocket was cut"
                self.counts["websocket"] += 1
                self.ended.wait(0.02)
