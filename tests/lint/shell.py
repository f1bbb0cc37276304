#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""shellcheck has nothing to say on any shell script."""
import tree

PATTERN = r"^(?P<path>[^:\n]+):(?P<line>\d+):\d+: (?P<reason>.*)$"


def check(root):
    names = [p for p in tree.files(root)
             if not tree.is_data(p) and tree.is_script(p, tree.read(p, root))]
    if not names:
        return [], 0
    return tree.tool_findings(["shellcheck", "-x", "-f", "gcc", *names], root, PATTERN), len(names)


BAD = [("a", "#!/bin/sh\nrm $1\n", "SC2086"), ("b", "#!/usr/bin/env bash\ncd x\nls\n", "SC2164")]
GOOD = [("a", "#!/bin/sh\nset -e\nrm \"$1\"\n")]

if __name__ == "__main__":
    tree.per_tree(check, BAD, GOOD)
