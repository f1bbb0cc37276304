#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""7-bit ASCII, no space at the end of a line, no tab in C, a newline at the end."""
import tree

SUFFIXES = (".c", ".h", ".py", ".sql", ".sh", ".md", ".json", ".txt", ".cmake", ".mjs")


def wanted(path, text):
    return not tree.is_data(path) and (path.endswith(SUFFIXES) or tree.is_script(path, text))


def check(path, text):
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no newline at the end"
    if text.endswith("\n\n"):
        yield text.count("\n"), "empty line at the end"
    for number, line in enumerate(text.split("\n"), 1):
        if not line.isascii():
            yield number, "not 7-bit ASCII"
        if line != line.rstrip():
            yield number, "space at the end of the line"
        if "\t" in line and tree.is_c(path):
            yield number, "tab"


BAD = [
    ("a.c", "int a; /* \u00e4 */\n", "ASCII"),
    ("a.c", "int a; \n", "space"),
    ("a.md", "a\r\n", "space"),
    ("a.c", "\tint a;\n", "tab"),
    ("a.py", "a = 1", "newline"),
    ("a.py", "a = 1\n\n", "empty"),
]
GOOD = [("a.c", "int a;\n"), ("a.py", "")]

if __name__ == "__main__":
    tree.per_file(wanted, check, BAD, GOOD)
