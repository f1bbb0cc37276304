#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reloads of many services under a prober of 50 ms with a deadline of 75 ms: none of them may
look like a fault, of which it takes two failures in a row. Fails when one does."""
import argparse
import json
import os
import subprocess
import sys

import filled
import node
from filled import figure


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--services", type=int, default=5000)
    options.add_argument("--reloads", type=int, default=20)
    given = options.parse_args()
    node.private_network()
    with filled.BenchNode(given.services) as one:
        one.settle()
        command = [os.path.join(node.BUILD, "tests", "prober"), one.run_dir, "50", "75"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as prober:
            for n in range(given.reloads):
                one.change("pool", "svc00007", retries=n % 10)
            seen = json.loads(prober.communicate()[0])
    print(json.dumps(seen))
    assert seen["windows"] >= given.reloads, "fewer windows than reloads"
    figure("faults seen in %d reloads at %d services" % (given.reloads, given.services),
           seen["faults"], "<= 0")
    sys.exit(1 if seen["faults"] else 0)


if __name__ == "__main__":
    main()
