#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sixteen nodes in namespaces of one machine: what their health costs, a health answer, and the
time until all agree. With the time constants of the product."""
import argparse
import json
import time

import filled
import node
from bench_cluster import change, fill, settle
from cluster import MOST, Cluster, head, in_step, key_of
from filled import figure, median, processor_s
from lab import run, wait_for

SERVICES = 10
ASKED = 200  # questions of a round


def counters(lab):
    """Bytes that each node has sent and got, frames with their headers, seen from the bridge."""
    names = {one.name for one in lab.nodes}
    return {link["ifname"]: sum(link["stats64"][way]["bytes"] for way in ("rx", "tx"))
            for link in json.loads(run("ip", "-json", "-stats", "link", "show").stdout)
            if link["ifname"] in names}


def bench_quiet(lab, seconds):
    """Nobody asks for anything but the nodes each other."""
    pids = {one.name: one.pid_of("lockstepd") for one in lab.nodes}
    used = {name: processor_s(pid) for name, pid in pids.items()}
    moved, began = counters(lab), time.monotonic()
    time.sleep(seconds)  # what is measured
    took = time.monotonic() - began
    now = counters(lab)
    rates = [(now[name] - moved[name]) / took for name in pids]
    shares = [100 * (processor_s(pid) - used[name]) / took for name, pid in pids.items()]
    print("of %d nodes in %.0f s: lowest and highest %.1f and %.1f kB/s, %.2f and %.2f %%" % (
        len(pids), took, min(rates) / 1000, max(rates) / 1000, min(shares), max(shares)))
    figure("traffic of a node among sixteen at rest, kB/s", "%.1f" % (median(rates) / 1000))
    figure("processor of lockstepd among sixteen at rest, %", "%.2f" % median(shares))


class Asker:
    """One TLS connection; the same request again and again, with little around it."""

    def __init__(self, one, path):
        self.connection = one.api.open()
        self.connection.connect()
        self.request = ("GET %s HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer %s\r\n\r\n" % (
            path, key_of(one)["key"])).encode()

    def ask(self):
        """The body."""
        sock = self.connection.sock
        sock.sendall(self.request)
        got = sock.recv(65536)
        while b"\r\n\r\n" not in got:
            got += sock.recv(65536)
        fields, body = got.split(b"\r\n\r\n", 1)
        assert fields.startswith(b"HTTP/1.1 200 "), got
        length = next(int(line.split(b":")[1]) for line in fields.split(b"\r\n")
                      if line.lower().startswith(b"content-length:"))
        while len(body) < length:
            body += sock.recv(65536)
        return body

    def median_ms(self):
        return median([filled.timed(self.ask) for _ in range(ASKED)])

    def close(self):
        self.connection.close()


def bench_answer(lab, runs):
    """Beside an answer that is a word, over connections of the same kind, by turns."""
    one = lab.nodes[0]
    health = Asker(one, "/peer/v1/health?head=" + head(one))
    word = Asker(one, "/api/v1/health")
    sizes = {len(health.ask())}
    times = []
    for _ in range(runs):
        times.append((health.median_ms(), word.median_ms()))
    sizes.add(len(health.ask()))
    health.close()
    word.close()
    print("health answer %.3f ms, GET /api/v1/health %.3f ms" % tuple(
        median(column) for column in zip(*times)))
    figure("health answer, bytes", "%d" % max(sizes), "<= 1023")
    figure("making a health answer, ms", "%.3f" % median([a - b for a, b in times]), "<= 1")


def wait_until(connection, path, is_so, what):
    wait_for(lambda: is_so(json.loads(connection.ask("GET", path))), what, 60)


def agree(lab, connections, commit):
    """Each has it, and has heard so of all others."""
    for connection in connections:
        wait_until(connection, "/api/v1/status", lambda s: s["head"]["id"] == commit, "stored")
    stored = time.monotonic()
    for connection in connections:
        wait_until(connection, "/api/v1/cluster", lambda c: len(c["nodes"]) == len(lab.nodes) and
                   all(n["answers"] and n["relation"] == "in_step" for n in c["nodes"]), "agreed")
    return stored, time.monotonic()


def bench_agree(lab, what, runs, work):
    """work(n) changes something on the first node; the commit that all are to have."""
    times = []
    for n in range(runs):
        settle(lab)
        connections = [filled.Kept(one.api) for one in lab.nodes]
        began = time.monotonic()
        commit = work(n)
        answered = time.monotonic()
        stored, agreed = agree(lab, connections, commit)
        times.append([t - began for t in (answered, stored, agreed)])
        for connection in connections:
            connection.close()
    columns = [median(column) for column in zip(*times)]
    print("%s: answered after %.2f s, on all nodes after %.2f s, all agree after %.2f s" % (
        what, *columns))
    figure("%s on sixteen nodes until all agree, s" % what, "%.2f" % columns[2])


def put_state(one, n):
    one.api.expect(200, "PUT", "/api/v1/servers/svc00007.s1/state",
                   {"state": ("drain", "ready")[n % 2]})
    return head(one)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--seconds", type=float, default=60)
    given = options.parse_args()
    with Cluster(MOST, tunables={"status_round_ms": filled.ROUND_MS}) as lab:
        lab.set_up()
        for one in lab.nodes:
            one.api.unlock = True
        fill(lab, SERVICES)
        in_step(lab.nodes, 120)
        settle(lab)
        bench_quiet(lab, given.seconds)
        bench_answer(lab, given.runs)
        first = lab.nodes[0]
        bench_agree(lab, "apply with a reload", given.runs,
                    lambda n: change(first, n)["result"]["commit"])
        bench_agree(lab, "state of a server", given.runs, lambda n: put_state(first, n))


if __name__ == "__main__":
    node.private_network()
    main()
