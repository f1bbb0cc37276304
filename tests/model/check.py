#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check.py RUN...: Spin searches every state of tests/model/sync.pml for a broken invariant.

What a node decides comes from relation_table, so from the code of the product. A run passes when
Spin finds nothing, and "mutations" when it finds something in each spoilt table. "long" is all
runs of LONG. Everything stays in LOCKSTEP_BUILD/tests/model/RUN, for "./pan -r".
"""
import os
import pathlib
import re
import subprocess
import sys
import time

BUILD = pathlib.Path(os.environ["LOCKSTEP_BUILD"])
MODEL = pathlib.Path(__file__).resolve().parent / "sync.pml"
TABLE = BUILD / "tests/relation_table"
ALL_INVARIANTS = 0b1111110
DEADLINE_S = 3600


def bounds(nodes, line, edits, overwrites, late, releases):
    return {"NODES": nodes, "LINE": line, "EDITS": edits, "OVERWRITES": overwrites,
            "LATE": late, "RELEASES": releases}


RUNS = {
    "pair": bounds(2, 0, edits=3, overwrites=2, late=2, releases=1),
    "mesh": bounds(3, 0, edits=3, overwrites=1, late=2, releases=0),
    "mesh_overwrites": bounds(3, 0, edits=2, overwrites=2, late=2, releases=0),
    "mesh_releases": bounds(3, 0, edits=2, overwrites=1, late=2, releases=1),
    "line": bounds(3, 1, edits=3, overwrites=1, late=2, releases=0),
    "line_overwrites": bounds(3, 1, edits=2, overwrites=2, late=2, releases=0),
}
# Up to 43 million states (mesh_long): 4.2 GB and some minutes.
LONG = {
    "pair_long": bounds(2, 0, edits=4, overwrites=2, late=3, releases=0),
    "mesh_long": bounds(3, 0, edits=3, overwrites=2, late=2, releases=0),
    "mesh_late": bounds(3, 0, edits=3, overwrites=1, late=3, releases=0),
    "line_releases": bounds(3, 1, edits=3, overwrites=1, late=2, releases=1),
}
# Spoilt table -> the invariant that it breaks. Bounds are those of "pair".
MUTATIONS = {
    "pull_when_diverged": 1,
    "counter_only": 1,
    "forget_expected_head": 1,
    "merge_when_equal": 2,
    "adopt_any_equal": 2,
    "adopt_no_equal": 2,
    "accept_stale": 1,
    "accept_diverged": 3,
    "ignore_release": 4,
    "forget_rank": 5,
}
# Of three nodes, too: bounds of that run.
ALSO_REFUTED = {"forget_rank": "mesh_overwrites"}
# How many relations, actions of healing, verdicts and steps there are: what never happens proves
# nothing, so "pair" must come across all.
WANTED_SEEN = [(1 << count) - 1 for count in (7, 3, 8, 15)]
WANTED_SEEN[3] &= ~(1 << 7)  # an Overwrite that was crossed by another one


class Failed(Exception):
    pass


def call(command, folder):
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=DEADLINE_S, check=False)
    if done.returncode != 0:
        raise Failed("%s ended with %d:\n%s" % (command[0], done.returncode, done.stdout))
    return done.stdout


def number(pattern, text):
    match = re.search(pattern, text)
    if match is None:
        raise Failed("no \"%s\" in what pan says:\n%s" % (pattern, text))
    return int(match[1])


def search(name, defines, mutation=None, optimise="-O0"):
    """Builds and runs pan; what it printed, and the folder."""
    folder = BUILD / "tests/model" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sync.pml.trail").unlink(missing_ok=True)
    table = call([TABLE, "--mutate", mutation] if mutation else [TABLE], folder)
    (folder / "relation.pml").write_text(table)
    (folder / "sync.pml").write_text(MODEL.read_text())
    options = ["-D%s=%d" % item for item in defines.items()]
    call(["spin", *options, "-a", "sync.pml"], folder)
    call(["gcc", optimise, "-w", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c"], folder)
    return call(["./pan", "-m200000", "-w22"], folder), folder


def replay(folder):
    lines = call(["./pan", "-r"], folder).splitlines()
    return "\n".join(lines[-60:]) + "\nall of it: cd %s && ./pan -r" % folder


def show(name, out, began):
    print("%-30s %9d states %10d transitions %6.1f s" % (
        name, number(r"(\d+) states, stored", out),
        float(re.search(r"([\d.e+]+) transitions", out)[1]), time.monotonic() - began), flush=True)


def prove(name):
    began = time.monotonic()
    defines = {**RUNS, **LONG}[name]
    out, folder = search(name, {**defines, "INVARIANTS": ALL_INVARIANTS},
                         optimise="-O2" if name in LONG else "-O1")
    if number(r"errors: (\d+)", out) != 0:
        raise Failed("%s:\n%s\n%s" % (name, out, replay(folder)))
    if "max search depth too small" in out or "Search not completed" in out:
        raise Failed("%s: not every state was looked at:\n%s" % (name, out))
    if name == "pair":
        seen = [int(mask, 16) for mask in re.search(r"^seen (.*)", out, re.MULTILINE)[1].split()]
        if seen != WANTED_SEEN:
            raise Failed("never came up: %s" % [hex(w & ~s) for w, s in zip(WANTED_SEEN, seen)])
    show(name, out, began)


def refute(mutation, invariant, run="pair"):
    """Only that invariant is asserted, so it is the one that broke."""
    began = time.monotonic()
    out, folder = search("mutant_" + mutation, {**RUNS[run], "INVARIANTS": 1 << invariant},
                         mutation)
    if number(r"errors: (\d+)", out) == 0:
        raise Failed("%s was not noticed: invariant %d holds" % (mutation, invariant))
    if "assertion violated" not in out:
        raise Failed("%s: stopped by something else:\n%s" % (mutation, out))
    show("%s breaks %d" % (mutation, invariant), out, began)
    if not replay(folder):
        raise Failed("%s: no trail" % mutation)


def refute_all():
    listed = set(call([TABLE, "--list"], BUILD).split())
    if listed != set(MUTATIONS):
        raise Failed("mutations of relation_table and of this file differ: %s" % (
            listed ^ set(MUTATIONS)))
    for mutation, invariant in MUTATIONS.items():
        refute(mutation, invariant)
    for mutation, run in ALSO_REFUTED.items():
        refute(mutation, MUTATIONS[mutation], run)


def main(names):
    if not names:
        raise Failed(__doc__)
    for name in names:
        if name == "mutations":
            refute_all()
        elif name == "long":
            for each in LONG:
                prove(each)
        elif name in RUNS or name in LONG:
            prove(name)
        else:
            raise Failed("no run \"%s\": %s" % (name, " ".join([*RUNS, *LONG, "mutations", "long"])))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Failed as failed:
        sys.exit("check.py: %s" % failed)
