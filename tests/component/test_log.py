#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Log text is data: whatever a visitor sends, a request is one line of HAProxy's log, and nothing
of it is more than text."""
import base64
import json
import re
import socket
import unittest

import node
from backend import Backend

CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
FORGED = b"\r\n<134>1 - - haproxy - - - forged"
# Path, headers, method when it is not GET; each must be one line.
REQUESTS = [
    (b"/plain", b""),
    (b"/encoded%0d%0a<134>forged%1b[31m", b""),
    (b"/escape\x1b[31mred", b""),
    (b"/bell\x07\x08\x7f", b""),
    (b"/high\xff\xc3\xa9", b""),
    (b'/"quote\\back{}%[src]', b""),
    (b"/user", b"Authorization: Basic " + base64.b64encode(b"maria" + FORGED + b"\x1b[31m:x")),
    (b"/agent", b"User-Agent: a\x1b[31mred\x07\r\nReferer: http://x/\x1b]0;t\x07"),
    (b"/folded", b"User-Agent: a\r\n <134>forged"),
    (b"/bare", b"User-Agent: a\n<134>forged: b"),
    (b"/cookie", b"Cookie: a=\x1b[2J; b=\xff"),
    (b"/long" + b"%0a" * 3000, b""),
    (b"/quotes" + b'"' * 9000, b"Host: " + b'"' * 5000),
    (b"/method", b"", b"A" * 5000),
]


class Log(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.backend = Backend("one")
        cls.addClassCleanup(cls.backend.close)
        cls.node = node.Node().set_up()
        cls.addClassCleanup(cls.node.close)
        cls.api = cls.node.api
        cls.api.expect(200, "POST", "/api/v1/publish",
                       {"url": "http://app.test", "to": [cls.backend.target]})
        cls.log = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        cls.addClassCleanup(cls.log.close)
        cls.log.bind(("127.0.0.1", 0))
        cls.log.settimeout(10)

    def send(self, path, headers, source="127.0.0.9", method=b"GET"):
        """By its source its line is told from others."""
        lines = [method + b" " + path + b" HTTP/1.1", headers, b"Connection: close"]
        if not headers.startswith(b"Host: "):
            lines.insert(1, b"Host: app.test")
        with socket.create_connection(("127.0.0.1", 80), 5, (source, 0)) as client:
            client.sendall(b"\r\n".join(line for line in lines if line) + b"\r\n\r\n")
            while client.recv(65536):
                pass

    def lines_until(self, source):
        """What came until the line of that source: all of the requests before it."""
        found = []
        while True:
            line = self.log.recv(65536)
            if b"127.0.0.9" in line:
                found.append(line)
            if source.encode() in line:
                return found

    def one_line_each(self, log_format):
        self.api.patch("/api/v1/haproxy", log_format=log_format,
                       log_target="127.0.0.1:%d" % self.log.getsockname()[1])
        self.assertEqual(self.api.apply()["state"], "ok")
        for number, (path, headers, *method) in enumerate(REQUESTS):
            end = "127.0.1.%d" % (number + 1)
            self.send(path, headers, method=(method or [b"GET"])[0])
            self.send(b"/end", b"", end)
            lines = self.lines_until(end)
            self.assertEqual(len(lines), 1, (path, lines))
            self.assertTrue(lines[0].startswith(b"<134>1 "), lines)
            text = lines[0].removesuffix(b"\n")
            self.assertIsNone(CONTROL.search(text), (path, text))
            yield path, text

    def test_haproxy_writes_one_line_for_each_request(self):
        for log_format in ("default", "clf"):
            with self.subTest(log_format=log_format):
                for path, text in self.one_line_each(log_format):
                    # Not cut, also behind a long URI.
                    self.assertTrue(text.rstrip().endswith(b'"'), (path, text))

    def test_haproxy_writes_one_object_of_json_for_each_request(self):
        uris = {}
        for path, text in self.one_line_each("json"):
            record = json.loads(text[text.index(b"{"):])
            self.assertEqual((record["client"], record["listener"]), ("127.0.0.9", "http"))
            if record["uri"] != "-":
                self.assertTrue(path.startswith(record["uri"].encode()), (path, record))
                uris[path[:6]] = len(record["uri"])
        self.assertEqual(uris[b"/plain"], len("/plain"))
        self.assertGreater(uris[b"/long%"], 1000)



if __name__ == "__main__":
    node.private_network()
    unittest.main(verbosity=2)
