#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Apply of one changed service among many, everything included, beside what it cannot do
without: haproxy -c and a reload of the same files. Medians of alternating runs."""
import argparse
import os
import socket
import statistics
import subprocess
import time

import node
from direct import call


def services(count):
    """A service: host rule, pool, two servers, monitor."""
    for n in range(count):
        name = "svc%05d" % n
        for server in (1, 2):
            yield {"op": "create", "kind": "server", "name": "%s.s%d" % (name, server), "body": {
                "name": "%s.s%d" % (name, server), "address": "127.0.0.1", "port": 9000 + server}}
        yield {"op": "create", "kind": "monitor", "name": name, "body": {
            "name": name, "type": "http", "path": "/healthz", "interval_ms": 3600000}}
        yield {"op": "create", "kind": "pool", "name": name, "body": {
            "name": name, "monitor": name,
            "members": [{"server": "%s.s1" % name}, {"server": "%s.s2" % name}]}}
        yield {"op": "create", "kind": "service", "name": name, "body": {
            "name": name, "pool": name, "listeners": ["web"], "hosts": [name + ".test"]}}


def timed(work):
    start = time.monotonic()
    work()
    return (time.monotonic() - start) * 1000


def fill(api, count):
    ops = [{"op": "create", "kind": "listener", "name": "web", "body": {
        "name": "web", "port": 80, "addresses": ["127.0.0.1"]}}]
    ops += services(count)
    task = api.expect(200, "POST", "/api/v1/changes?wait=1", {"ops": ops, "apply": True})
    assert task["state"] == "ok", task


def apply_one(api, n):
    task = api.expect(200, "POST", "/api/v1/changes?wait=1", {"apply": True, "ops": [
        {"op": "merge", "kind": "pool", "name": "svc00007", "body": {"retries": n % 10}}]})
    assert task["state"] == "ok", task
    return {step["name"]: step["ms"] for step in task["steps"]}


def check(of):
    subprocess.run(["/usr/sbin/haproxy", "-c", "-f", of.generation() + "/haproxy.cfg"],
                   check=True, capture_output=True)


def reload(of):
    answer = call(os.path.join(of.run_dir, "helper.sock"), {"verb": "reload"})
    assert answer["loaded"], answer


def settle(of):
    """Old workers are gone: a reload on top of another is another thing to measure."""
    def alone():
        answer = call(os.path.join(of.run_dir, "helper.sock"), {"verb": "status"})
        return not answer["old_workers"]
    node.wait_for(alone, "old workers are gone", 60)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--services", type=int, default=1000)
    options.add_argument("--runs", type=int, default=9)
    given = options.parse_args()
    node.private_network()
    with node.Node() as one:
        api = one.set_up().api
        fill(api, given.services)
        applies, floors, steps = [], [], []
        for n in range(given.runs):
            settle(one)
            applies.append(timed(lambda n=n: steps.append(apply_one(api, n))))
            settle(one)
            checked = timed(lambda: check(one))
            floors.append(checked + timed(lambda: reload(one)))
        ratios = [a / f for a, f in zip(applies, floors)]
        print("apply of one changed service at %d services, median of %d runs on %s:"
              % (given.services, given.runs, socket.gethostname()))
        print("  apply, from call to answer     %7.0f ms" % statistics.median(applies))
        print("  haproxy -c and reload          %7.0f ms" % statistics.median(floors))
        print("  ratio, pair by pair            %7.2f (at most 1.3)" % statistics.median(ratios))
        for name in steps[0]:
            print("    step %-12s %7.0f ms" % (name, statistics.median(s[name] for s in steps)))


if __name__ == "__main__":
    main()
