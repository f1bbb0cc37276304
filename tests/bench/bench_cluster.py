#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three nodes in namespaces of one machine: an apply until all of them store and run it, a state of
a server until all have it, a node that was cut off, and one that was down. With the time constants
of the product."""
import argparse
import os
import subprocess
import time

import filled
import node
from cluster import Cluster, drained, head, join
from direct import call
from filled import figure, median, timed
from lab import HAPROXY, stat_fields, wait_for


def helper(one, verb):
    return call(os.path.join(one.run_dir, "helper.sock"), {"verb": verb})


def same_head(lab):
    return len({head(one) for one in lab.nodes}) == 1


def fill(lab, count):
    one = lab.nodes[0]
    ops = [{"op": "merge", "kind": "haproxy", "name": "haproxy", "body": {"maxconn": 500}},
           {"op": "create", "kind": "listener", "name": "web", "body": {"name": "web", "port": 80}}]
    apply(one, ops + list(filled.services(count)))
    for other in lab.nodes[1:]:
        join(other, one)
    wait_for(lambda: same_head(lab), "all have joined", 60)


def apply(one, ops):
    task = one.api.expect(200, *filled.applying(ops))
    assert task["state"] == "ok", task
    return task


def change(one, n):
    return apply(one, [{"op": "merge", "kind": "pool", "name": "svc00007",
                        "body": {"retries": n % 10}}])


def settle(lab):
    for one in lab.nodes:
        wait_for(lambda o=one: not helper(o, "status")["old_workers"], "no old workers", 120)


def floor(lab, nodes):
    """haproxy -c on the first of them, and a reload of each, one after the other."""
    with nodes[0].ns:
        checked = timed(lambda: subprocess.run(
            [HAPROXY, "-c", "-f", nodes[0].generation() + "/haproxy.cfg"], check=True,
            capture_output=True))
    reloads = []
    for one in nodes:
        settle(lab)
        reloads.append(timed(lambda o=one: helper(o, "reload")))
    return checked + sum(reloads)


def bench_apply(lab, services, runs):
    over, steps = [], []
    for n in range(runs):
        settle(lab)
        took = timed(lambda n=n: steps.append(
            {s["name"]: s["ms"] for s in change(lab.nodes[0], n)["steps"]}))
        assert same_head(lab), "the apply was answered before all had it"
        settle(lab)
        over.append(took - floor(lab, lab.nodes))
    print("apply on three nodes at %d services, ms: %s" % (services, ", ".join(
        "%s %.0f" % (name, median([s[name] for s in steps])) for name in steps[0])))
    figure("apply on three nodes at %d services, ms over check and three reloads" % services,
           "%.0f" % median(over), "<= 300")


def bench_state(lab, services, runs):
    times = []
    for n in range(runs):
        state = ("drain", "ready")[n % 2]
        began = time.monotonic()
        lab.nodes[0].api.expect(200, "PUT", "/api/v1/servers/svc00007.s1/state",
                                {"state": state})
        wait_for(lambda s=state: all((drained(one, "svc00007") == {"svc00007.s1"}) == (s == "drain")
                               for one in lab.nodes)
                 and same_head(lab), "all have the state, stored and running")
        times.append((time.monotonic() - began) * 1000)
    figure("state of a server on three nodes at %d services, ms" % services,
           "%.0f" % median(times), "<= 50")


def bench_heal(lab, services, runs, commits):
    a, b, c = lab.nodes
    times = []
    for n in range(runs):
        settle(lab)
        lab.cut(a, b)
        lab.cut(c, b)
        for k in range(commits):
            a.api.expect(200, "PUT", "/api/v1/servers/svc00007.s1/state",
                         {"state": ("drain", "ready")[(n + k) % 2]})
        began = time.monotonic()
        lab.join_all()
        wait_for(lambda: same_head(lab), "healed", 60)
        times.append(time.monotonic() - began)
    figure("healing %d commits behind at %d services, s" % (commits, services),
           "%.1f" % median(times), "<= 3")


def runs_for_s(pid):
    """In steps of 10 ms."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - \
        int(stat_fields(pid)[19]) / os.sysconf("SC_CLK_TCK")


def bench_restart(lab, services, runs):
    """From the start of lockstepd, which was down when the others moved on, while its HAProxy
    ran on. What is stored was seen to serve."""
    a, _, c = lab.nodes
    times, floors = [], []
    for n in range(runs):
        settle(lab)
        c.take_down("lockstepd")
        before = c.running_digest()
        wanted = change(a, n)["result"]["commit"]
        c.put_up()
        pid = c.pid_of("lockstepd")
        wait_for(lambda w=wanted: head(c) == w, "healed", 60)
        times.append(runs_for_s(pid) * 1000)
        assert c.running_digest() != before, "stored, but not running"
        wait_for(lambda: same_head(lab), "the same head")
        settle(lab)
        floors.append(floor(lab, [c]))
    print("healing after a restart at %d services: %.0f ms, check and reload %.0f ms" % (
        services, median(times), median(floors)))
    figure("healing after a restart at %d services, ms over check and reload" % services,
           "%.0f" % median([t - f for t, f in zip(times, floors)]), "<= 1000")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--services", type=int, nargs="*", default=[10, 1000])
    options.add_argument("--runs", type=int, default=5)
    given = options.parse_args()
    for services in given.services:
        with Cluster(3, tunables={"status_round_ms": filled.ROUND_MS}) as lab:
            lab.set_up()
            for one in lab.nodes:
                one.api.unlock = True
            fill(lab, services)
            bench_apply(lab, services, given.runs)
            bench_state(lab, services, given.runs)
            bench_heal(lab, services, given.runs, 1)
            bench_heal(lab, services, given.runs, 250)
            bench_restart(lab, services, given.runs)


if __name__ == "__main__":
    node.private_network()
    main()
