#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each condition of the cluster has its page in docs/runbooks, each page its condition, and the API
document lists the same names. A command that a page or a next step names exists."""
import json
import re
import sys

import tree

TABLE = "appliance/sync/condition.h"
PAGES = "docs/runbooks/"
PARTS = ["Cause", "How to see it", "What to do", "How it ends"]
ROW = re.compile(r"\bX\(\w+, \"(\w+)\"")
COMMAND = re.compile(r"\blockstep ([a-z]+)\b")


def check_page(path, text, names):
    name = path[len(PAGES):-len(".md")]
    if name not in names:
        yield path, 1, "no condition has this name: see " + TABLE
    if not text.startswith("# %s\n" % name):
        yield path, 1, "the title is not the name of the condition"
    if re.findall(r"^## (.*)$", text, re.MULTILINE) != PARTS:
        yield path, 1, "the parts are not " + ", ".join(PARTS)


def check(texts, listed, verbs):
    """texts: of the table and the pages, by their paths."""
    names = ROW.findall(texts[TABLE])
    if names != listed:
        yield TABLE, 1, "schema/components.json does not list these names in this order"
    for name in names:
        if PAGES + name + ".md" not in texts:
            yield TABLE, 1, "the condition %s has no page in %s" % (name, PAGES)
    for path, text in texts.items():
        if path != TABLE:
            yield from check_page(path, text, names)
        # A text of C may go on in the next line.
        for match in COMMAND.finditer(text.replace('" ', "  ")):
            if match[1] not in verbs:
                yield path, tree.line_at(text, match.start()), "no such command: " + match[0]


def page(name, more=""):
    return "# %s\n%s\n%s" % (name, "".join("\n## %s\n\nText.\n" % p for p in PARTS), more)


def try_out(path, text):
    texts = {TABLE: "#define CONDITIONS(X) \\\n X(A, \"a\", \"error\", \"text\", \"next\")\n",
             PAGES + "a.md": page("a"), path: text}
    return list(check({p: t for p, t in texts.items() if t}, ["a"], {"status"}))


BAD = [
    (PAGES + "a.md", "", "has no page"),
    (PAGES + "b.md", page("b"), "no condition"),
    (PAGES + "a.md", page("c"), "title"),
    (PAGES + "a.md", page("a").replace("Cause", "Why"), "parts"),
    (PAGES + "a.md", page("a", "`lockstep stats`\n"), "no such command"),
    (TABLE, "X(A, \"a\", \"error\", \"t\", \"lockstep x\") X(B, \"b\", \"error\")\n", "list"),
    (TABLE, "X(A, \"a\", \"error\", \"text\", \"run lockstep nothing\")\n", "no such command"),
]
GOOD = [(PAGES + "a.md", page("a", "`lockstep status`\n"))]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return tree.self_test(try_out, BAD, GOOD)
    texts = {p: tree.read(p) for p in tree.files() if p == TABLE or p.startswith(PAGES)}
    condition = json.loads(tree.read("schema/components.json"))["schemas"]["ClusterCondition"]
    commands = json.loads(tree.read("schema/commands.json"))["verbs"]
    found = check(texts, condition["properties"]["name"]["enum"], {v["name"] for v in commands})
    return tree.report(list(found), len(texts))


if __name__ == "__main__":
    sys.exit(main())
