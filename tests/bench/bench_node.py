#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one lockstepd takes: memory after an apply and 1,000 requests, time until its first
answer, processor time while nobody asks for anything; at several numbers of services."""
import argparse
import os
import resource
import subprocess
import time

import filled
import node
from filled import figure, median, processor_s

STARTS = 7


def resident_mb(pid):
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as file:
        for line in file:
            if line.startswith("Rss:"):
                return int(line.split()[1]) / 1024
    raise AssertionError("no Rss")


def bench_memory(one, count, wanted):
    connection = filled.Kept(one.api)
    for n in range(250):
        connection.ask("GET", "/api/v1/services/svc%05d" % (n * 7919 % count))
        connection.ask("GET", "/api/v1/servers?limit=100")
    for _ in range(500):
        connection.ask("GET", "/api/v1/status")
    connection.close()
    one.rest()
    figure("memory of lockstepd at %d services, MB" % count,
           "%.0f" % resident_mb(one.pid_of("lockstepd")), wanted)


def bench_idle(one, count, seconds):
    pid = one.pid_of("lockstepd")
    before = processor_s(pid)
    start = time.monotonic()
    time.sleep(seconds)  # what is measured: asking for anything would be work
    used = (processor_s(pid) - before) / (time.monotonic() - start)
    figure("processor of an idle lockstepd at %d services, %%" % count,
           "%.2f" % (100 * used), "<= 0.5")


def first_answer_ms(one):
    """lockstepd alone on the data of a node that was stopped."""
    command = [os.path.join(node.BUILD, "lockstepd"), "--state-dir", one.state, "--run-dir",
               one.run_dir, "--listen", "127.0.0.1:8443", "--node-name", one.name]
    with open(one.log_path, "ab") as log:
        start = time.monotonic()
        with subprocess.Popen(command, stdout=log, stderr=log, user=node.UID) as process:
            try:
                while not filled.answers(one.api):
                    assert process.poll() is None, one.log()[-2000:]
                    time.sleep(0.001)  # its processor is wanted elsewhere
                return (time.monotonic() - start) * 1000
            finally:
                process.kill()  # in order it would wait for a helper


def bench_start(one, count):
    one.stop()
    figure("start of lockstepd at %d services, first answer, ms" % count,
           "%.0f" % median([first_answer_ms(one) for _ in range(STARTS)]), "<= 100")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--idle", type=float, default=20, help="seconds")
    given = options.parse_args()
    # 9,000 services are 18,000 servers, whose checks may all be under way.
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    node.private_network()
    for count, memory in ((0, None), (100, "<= 24"), (1000, None), (9000, "<= 150")):
        with filled.BenchNode(count) as one:
            if memory is not None:
                bench_memory(one, count, memory)
            if count == 9000:
                bench_idle(one, count, given.idle)
            if count <= 1000:
                bench_start(one, count)


if __name__ == "__main__":
    main()
