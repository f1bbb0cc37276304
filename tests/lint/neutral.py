#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tree builds anywhere: no path of one machine, no package registry's host."""
import re

import tree

# Put together from halves so that this file passes its own rule.
PATHS = ["/" + name for name in ("work", "home", "root", "Users")]
HOSTS = [host + "." + top for host, top in (
    ("registry.npmjs", "org"), ("registry.yarnpkg", "com"), ("pypi", "org"),
    ("pythonhosted", "org"), ("proxy.golang", "org"), ("crates", "io"), ("deb.debian", "org"),
    ("security.debian", "org"), ("docker", "io"), ("ghcr", "io"))]
RULES = [
    (re.compile(r"(?<![\w.}/\"'-])(%s)/[\w.-]+" % "|".join(PATHS)), "path of one machine"),
    (re.compile(r"(?<![\w.}/-])[\"'](%s)(/[\w.-]+)+" % "|".join(PATHS)), "path of one machine"),
    (re.compile(r"(?<!\w)(%s)(?!\w)" % "|".join(map(re.escape, HOSTS))), "registry host"),
]


def wanted(path, text):
    return not tree.is_data(path) and "\0" not in text


def check(_path, text):
    for number, line in enumerate(text.split("\n"), 1):
        for rule, reason in RULES:
            match = rule.search(line)
            if match:
                yield number, "%s: %s" % (reason, match[0])


BAD = [
    ("a.c", "x = \"%s/main/x\";\n" % PATHS[0], "path"),
    ("a.md", "see %s/me/x\n" % PATHS[1], "path"),
    ("a.sh", "cd %s/build\n" % PATHS[2], "path"),
    ("a.json", "\"resolved\": \"https://%s/x\"\n" % HOSTS[0], "registry"),
    ("a", "FROM %s/debian\n" % HOSTS[8], "registry"),
]
GOOD = [("a.md", "the work/rest balance, /var/lib/lockstep, https://example.org/home/x\n")]

if __name__ == "__main__":
    tree.per_file(wanted, check, BAD, GOOD)
