#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""codespell knows every word of the sources and the documents."""
import tree

PATTERN = r"^(?P<path>[^:\n]+):(?P<line>\d+): (?P<reason>.*==>.*)$"
SUFFIXES = (".c", ".h", ".py", ".sql", ".md", ".json", ".txt", ".sh")
# Words that are right here: te = transfer encoding, ot = object table, 2ND.
KNOWN = "te,ot,nd"


def check(root):
    names = [p for p in tree.files(root) if not tree.is_data(p)
             and (p.endswith(SUFFIXES) or tree.is_script(p, tree.read(p, root)))]
    # This file has to contain a misspelt word.
    names = [p for p in names if p != "tests/lint/spelling.py"]
    if not names:
        return [], 0
    return tree.tool_findings(["codespell", "-L", KNOWN, *names], root, PATTERN), len(names)


BAD = [("a.md", "To recieve.\n", "receive"), ("a.c", "/* seperate */\n", "separate")]
GOOD = [("a.md", "To receive.\n")]

if __name__ == "__main__":
    tree.per_tree(check, BAD, GOOD)
