#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every C file is as clang-format writes it."""
import shutil

import tree

PATTERN = r"^(?P<path>[^:\n]+):(?P<line>\d+):\d+: (?:error|warning): (?P<reason>.*)$"


def check(root):
    names = [p for p in tree.files(root) if tree.is_c(p)]
    if root != tree.ROOT:
        shutil.copy(tree.ROOT / ".clang-format", root)
    if not names:
        return [], 0
    found = tree.tool_findings(
        ["clang-format", "--style=file", "--dry-run", "-Werror", *names], root, PATTERN)
    return sorted(set(found)), len(names)


BAD = [("a.c", "int  a;\n", "format"), ("a.h", "int f( void );\n", "format")]
GOOD = [("a.c", "int\nf(void)\n{\n    return 0;\n}\n")]

if __name__ == "__main__":
    tree.per_tree(check, BAD, GOOD)
