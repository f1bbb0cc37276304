#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The generated manual page has no mistake that groff sees, and the completion script none that
shellcheck sees."""
import pathlib
import subprocess
import sys
import tempfile

import tree

GENERATOR = tree.ROOT / "schema" / "generate.py"
GROFF = ["groff", "-man", "-Tutf8", "-ww", "-z", "lockstep.1"]
SHELLCHECK = ["shellcheck", "-f", "gcc", "lockstep.bash"]
FORMS = {"lockstep.1": (GROFF, r"^\w+:(?P<path>[^:]+):(?P<line>\d+): (?P<reason>.*)$"),
         "lockstep.bash": (SHELLCHECK, r"^(?P<path>[^:]+):(?P<line>\d+):\d+: (?P<reason>.*)$")}


def findings(root):
    found = []
    for name, (command, pattern) in FORMS.items():
        if (root / name).exists():
            found += tree.tool_findings(command, root, pattern)
    return found


def try_out(path, text):
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        (root / path).write_text(text, encoding="ascii")
        return findings(root)


BAD = [("lockstep.1", ".TH A 1\n.SH NAME\na\n.nonsense\n", "nonsense"),
       ("lockstep.1", ".TH A 1\n.SH NAME\n\\*[nothing]\n", "nothing"),
       ("lockstep.bash", "#!/bin/bash\na=$1\necho $a\n", "SC2086"),
       ("lockstep.bash", "#!/bin/bash\nif true\n", "SC")]
GOOD = [("lockstep.1", ".TH A 1\n.SH NAME\na \\- b\n"),
        ("lockstep.bash", "#!/bin/bash\necho \"$1\"\n")]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return tree.self_test(try_out, BAD, GOOD)
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-B", str(GENERATOR), "--out", scratch], check=True)
        root = pathlib.Path(scratch)
        return tree.report(findings(root), len([n for n in FORMS if (root / n).exists()]))


if __name__ == "__main__":
    sys.exit(main())
