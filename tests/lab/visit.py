# SPDX-License-Identifier: Apache-2.0
"""A visitor: one request through HAProxy, on a connection of its own, from the namespace of the
thread."""
import contextlib
import http.client
import json


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def server(self):
        """The name of the backend.Backend that answered."""
        return json.loads(self.body)["server"]


def visit(host, path="/", port=80, to="127.0.0.1", source=None, headers=None):
    connection = http.client.HTTPConnection(
        to, port, timeout=10, source_address=(source, 0) if source else None)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Host": host, **(headers or {})})
        return Answer(connection.getresponse())


def serves(host="app.test", to="127.0.0.1"):
    """Whether a server answers with 200; False, too, when nobody answers."""
    with contextlib.suppress(OSError):
        return visit(host, to=to).status == 200
    return False
