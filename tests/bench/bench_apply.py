#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Apply of one changed service among many, everything included, beside what it cannot do
without: haproxy -c and a reload of the same files, by turns. And what needs no reload."""
import argparse
import json
import re
import subprocess

import filled
import node
from filled import figure, median, timed
from lab import HAPROXY


def check(of):
    subprocess.run([HAPROXY, "-c", "-f", of.generation() + "/haproxy.cfg"],
                   check=True, capture_output=True)


def reload(of):
    answer = of.helper("reload")
    assert answer["loaded"], answer


def bench_reload(one, given):
    applies, floors, steps = [], [], []
    for n in range(given.runs):
        one.settle()
        applies.append(timed(lambda n=n: steps.append(
            one.change("pool", "svc00007", retries=n % 10))))
        one.settle()
        checked = timed(lambda: check(one))
        floors.append(checked + timed(lambda: reload(one)))
    one.settle()
    steps = [{step["name"]: step["ms"] for step in task["steps"]} for task in steps]
    print("apply %.0f ms, haproxy -c and reload %.0f ms; of the apply: %s" % (
        median(applies), median(floors),
        ", ".join("%s %.0f" % (name, median([s.get(name, 0) for s in steps]))
                  for name in steps[0])))
    figure("apply at %d services, of haproxy -c and reload" % given.services,
           "%.2f" % median([a / f for a, f in zip(applies, floors)]), "<= 1.3")


def worker(one):
    return re.search(r"^Pid: (\d+)", one.admin_socket("show info"), re.MULTILINE)[1]


def without_reload(one, given, name, work):
    before = worker(one)
    times = [timed(lambda n=n: work(n)) for n in range(given.runs)]
    if worker(one) != before:
        print("notice: %s: HAProxy was reloaded" % name)
        one.settle()
    figure("%s at %d services, ms" % (name, given.services), "%.1f" % median(times), "<= 20")


def bench_runtime(one, given):
    connection = filled.Kept(one.api)

    def weigh(n):
        task = json.loads(connection.ask(*filled.applying([
            {"op": "merge", "kind": "pool", "name": "svc00007", "body": {"members": [
                {"server": "svc00007.s1", "weight": 50 + n}, {"server": "svc00007.s2"}]}}])))
        assert task["state"] == "ok", task

    without_reload(one, given, "weight of a server, applied", weigh)
    without_reload(one, given, "state of a server", lambda n: connection.ask(
        "PUT", "/api/v1/servers/svc00007.s1/state", {"state": ("drain", "ready")[n % 2]}))
    connection.close()


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--services", type=int, default=1000)
    options.add_argument("--runs", type=int, default=9)
    given = options.parse_args()
    node.private_network()
    with filled.BenchNode(given.services) as one:
        bench_reload(one, given)
        bench_runtime(one, given)


if __name__ == "__main__":
    main()
