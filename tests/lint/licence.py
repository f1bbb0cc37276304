#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every source file names the licence in its first three lines."""
import tree

LINE = "SPDX-License-Identifier: " + "Apache-2.0"
SUFFIXES = (".c", ".h", ".py", ".sql", ".mjs", ".ts", ".svelte")


def wanted(path, text):
    return not tree.is_data(path) and (path.endswith(SUFFIXES) or text.startswith("#!"))


def check(_path, text):
    if not any(LINE in line for line in text.split("\n")[:3]):
        yield 1, "no " + LINE


BAD = [
    ("a.c", "int a;\n", "SPDX"),
    ("a.c", "\n\n\n/* %s */\n" % LINE, "SPDX"),
    ("a", "#!/bin/sh\n", "SPDX"),
    ("a.py", "", "SPDX"),
]
GOOD = [("a.c", "/* %s */\n" % LINE), ("a", "#!/bin/sh\n# %s\n" % LINE)]

if __name__ == "__main__":
    tree.per_file(wanted, check, BAD, GOOD)
