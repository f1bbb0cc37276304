#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The committed schema documents are what schema/generate.py writes today."""
import pathlib
import subprocess
import sys
import tempfile

import tree

GENERATOR = tree.ROOT / "schema" / "generate.py"
# Folders that hold nothing but generated files: one left over there describes a kind that is gone.
OWNED = ("docs/reference/",)


def generated():
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-B", str(GENERATOR), "--docs", scratch],
                       check=True, stdout=subprocess.DEVNULL)
        root = pathlib.Path(scratch)
        return {p: (root / p).read_bytes() for p in tree.walk(root)}


def first_difference(a, b):
    lines = zip(a.split(b"\n"), b.split(b"\n"))
    return next((n for n, (x, y) in enumerate(lines, 1) if x != y), 1)


def compare(wanted, committed):
    for path, content in sorted(wanted.items()):
        if path not in committed:
            yield path, 1, "missing: run schema/generate.py --docs ."
        elif committed[path] != content:
            yield (path, first_difference(content, committed[path]),
                   "stale: run schema/generate.py --docs .")
    for path in sorted(committed):
        if path.startswith(OWNED) and path not in wanted:
            yield path, 1, "nothing generates this file"


def try_out(path, text):
    # The text stands for the committed file; the generator would write "new\n".
    committed = {path: text.encode()} if text else {}
    return list(compare({"docs/reference/pool.md": b"new\n"}, committed))


BAD = [
    ("docs/reference/pool.md", "old\n", "stale"),
    ("docs/reference/pool.md", "", "missing"),
    ("docs/reference/gone.md", "x\n", "nothing generates"),
]
GOOD = [("docs/reference/pool.md", "new\n")]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return tree.self_test(try_out, BAD, GOOD)
    wanted = generated()
    committed = {p: (tree.ROOT / p).read_bytes() for p in tree.files()
                 if p in wanted or p.startswith(OWNED)}
    return tree.report(list(compare(wanted, committed)), len(wanted))


if __name__ == "__main__":
    sys.exit(main())
