# SPDX-License-Identifier: Apache-2.0
"""A node with many services, and what benchmarks do with one."""
import contextlib
import json
import os
import statistics
import time

import node
from direct import call
from lab import wait_for

ROUND_MS = 2000  # of the product


class BenchNode(node.Node):
    """With the time constants of the product, and a listener on port 80."""
    BACKENDS = (9001, 9002)

    def __init__(self, count, **options):
        super().__init__(tunables={"status_round_ms": ROUND_MS}, **options)
        self.set_up()
        # HAProxy wants a file for each server besides: not more than a container has.
        ops = [{"op": "merge", "kind": "haproxy", "name": "haproxy", "body": {"maxconn": 500}},
               {"op": "create", "kind": "listener", "name": "web", "body": {
                   "name": "web", "port": 80, "addresses": ["127.0.0.1"]}}]
        self.apply(ops + list(services(count)))

    def helper(self, verb):
        return call(os.path.join(self.run_dir, "helper.sock"), {"verb": verb})

    def settle(self):
        """Old workers are gone: a reload on top of another is another thing to measure."""
        wait_for(lambda: not self.helper("status")["old_workers"], "old workers are gone", 120)

    def rest(self):
        """Two rounds of the watcher: it gives memory back that was freed before."""
        for _ in range(2):
            before = self.seen_at()
            wait_for(lambda b=before: self.seen_at() != b, "a round of the watcher", 30)

    def seen_at(self):
        return self.api.get("/api/v1/status")["haproxy"]["seen_at"]

    def apply(self, ops):
        """Changes objects and applies; the task."""
        task = self.api.expect(200, *applying(ops))
        assert task["state"] == "ok", task
        return task

    def change(self, kind, name, **fields):
        return self.apply([{"op": "merge", "kind": kind, "name": name, "body": fields}])


def services(count):
    """A service: host rule, pool, two servers, monitor."""
    for n in range(count):
        name = "svc%05d" % n
        for server, port in enumerate(BenchNode.BACKENDS, 1):
            yield {"op": "create", "kind": "server", "name": "%s.s%d" % (name, server), "body": {
                "name": "%s.s%d" % (name, server), "address": "127.0.0.1", "port": port}}
        yield {"op": "create", "kind": "monitor", "name": name, "body": {
            "name": name, "type": "http", "path": "/healthz", "interval_ms": 3600000}}
        yield {"op": "create", "kind": "pool", "name": name, "body": {
            "name": name, "monitor": name,
            "members": [{"server": "%s.s1" % name}, {"server": "%s.s2" % name}]}}
        yield {"op": "create", "kind": "service", "name": name, "body": {
            "name": name, "pool": name, "listeners": ["web"], "hosts": [name + ".test"]}}


def applying(ops):
    """The request that does it, and waits for the end of the task."""
    return "POST", "/api/v1/changes?wait=1", {"apply": True, "ops": ops}


def timed(work):
    start = time.monotonic()
    work()
    return (time.monotonic() - start) * 1000


def processor_s(pid):
    """Of all its threads; those that ended between two calls are not counted."""
    total = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(FileNotFoundError):
            with open("/proc/%d/task/%s/schedstat" % (pid, thread), encoding="ascii") as file:
                total += int(file.read().split()[0])
    return total / 1e9


class Kept:
    """A connection for many requests."""

    def __init__(self, api):
        self.api = api
        self.connection = api.open()

    def ask(self, method, target, body=None):
        headers = dict(self.api.headers(), **({"Content-Type": "application/json"}
                                              if body else {}))
        self.connection.request(
            method, target, body=json.dumps(body) if body else None, headers=headers)
        response = self.connection.getresponse()
        text = response.read()
        assert response.status < 300, (response.status, text[:500])
        return text

    def close(self):
        self.connection.close()


def answers(api):
    """Whether it answers at all, at once."""
    connection = api.open(timeout=5)
    try:
        connection.request("GET", "/api/v1/status", headers=api.headers())
        return connection.getresponse().status > 0
    except OSError:
        return False
    finally:
        connection.close()


def figure(name, value, wanted=""):
    """A line that tests/bench/run puts into its table."""
    print("@ %s|%s|%s" % (name, value, wanted), flush=True)


def median(values):
    return statistics.median(values)
