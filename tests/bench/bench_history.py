#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A node that joins a cluster whose history is long, with the time constants of the product: until it
stores and runs the head, and what both lockstepd took at most."""
import argparse
import time

import node
from cluster import Cluster, head, lengthen
from filled import figure
from lab import wait_for


def peak_mb(one):
    with open("/proc/%d/status" % one.pid_of("lockstepd"), encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200000)
    count = parser.parse_args().count
    node.private_network()
    with Cluster(2) as lab:
        lab.set_up()
        old, new = lab.nodes
        lengthen(old, count)
        before = peak_mb(old), peak_mb(new)
        key = old.api.get("/api/v1/cluster/key")
        start = time.monotonic()
        new.api.expect(200, "POST", "/api/v1/cluster/join", key)
        took = time.monotonic() - start
        new.api.key = old.api.key
        wait_for(lambda: head(new) == head(old), "the head of the other", 10)
        figure("a join with %d revisions, s" % count, "%.1f" % took, "<= 60")
        for name, one, mb in (("the node that joins", new, before[1]),
                              ("the other one", old, before[0])):
            figure("at most in memory with %d revisions, %s, MB (before)" % (count, name),
                   "%.0f (%.0f)" % (peak_mb(one), mb), "<= 128")


if __name__ == "__main__":
    main()
