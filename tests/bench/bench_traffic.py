#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Requests a second through HAProxy on a listener with one host and on one with 5,000, by
turns, in front of a pair of servers that answer at once."""
import argparse
import os
import subprocess

import filled
import node
from filled import figure, median


class Traffic:
    """tests/bench/bench_traffic.c: the servers and the visitors."""

    def __init__(self):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [os.path.join(node.BUILD, "tests", "bench_traffic"),
             *map(str, filled.BenchNode.BACKENDS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def rate(self, port, hosts, ms):
        self.process.stdin.write("%d %d %d\n" % (port, hosts, ms))
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.communicate()


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--services", type=int, default=5000)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--ms", type=int, default=1000, help="of a round")
    given = options.parse_args()
    node.private_network()
    traffic = Traffic()
    with filled.BenchNode(given.services) as one:
        one.apply([
            {"op": "create", "kind": "listener", "name": "one", "body": {
                "name": "one", "port": 81, "addresses": ["127.0.0.1"]}},
            {"op": "merge", "kind": "service", "name": "svc00000", "body": {
                "listeners": ["web", "one"]}}])
        traffic.rate(80, given.services, given.ms)  # connections to all servers
        single, many = [], []
        for _ in range(given.rounds):
            single.append(traffic.rate(81, 1, given.ms))
            many.append(traffic.rate(80, given.services, given.ms))
        print("requests/s through HAProxy: %.0f with one host, %.0f with %d"
              % (median(single), median(many), given.services))
        figure("requests/s with %d hosts, of those with one" % given.services,
               "%.2f" % median([m / s for m, s in zip(many, single)]), ">= 0.9")
    traffic.close()


if __name__ == "__main__":
    main()
