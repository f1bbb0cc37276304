#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The source tree as that of the next release, for a test of upgrades: links to all files but for
a few that say more: next_release.py SOURCE TARGET"""
import json
import pathlib
import re
import sys

FOLDERS = ("appliance", "render", "schema", "migrations")
RELEASE = "99.0.0"
# What this release does not know, as each release may add: a field, a kind, a value.
FIELD = {
    "name": "owner", "type": "text", "text_type": "note", "default": "", "effect": "none",
    "label": "Owner", "help": "Who looks after the pool.", "group": "Pool",
    "examples": ["Shop team"],
}
KIND = {
    "kind": "zone", "plural": "zones", "title": "Zone", "scope": "shared", "singleton": False,
    "direct": False, "unique": ["name"], "columns": ["name"], "help": "Where servers are.",
    "fields": [{
        "name": "name", "type": "text", "text_type": "name", "required": True, "effect": "none",
        "label": "Name", "help": "How this zone is called here.", "group": "Zone",
        "examples": ["north"],
    }],
}
VALUE = "spare"  # of the role of a pool's member


def raised(pattern, text):
    """The number behind the pattern is one more -> (text, number)"""
    found = re.search(pattern + r"(\d+)", text)
    number = int(found[1]) + 1
    return text[:found.start(1)] + str(number) + text[found.end(1):], number


def changes(source):
    """{path: text}"""
    # The generator asks where it is, and is to find itself beside the other fields.
    out = {str(p.relative_to(source)): p.read_text("ascii")
           for p in (source / "schema").rglob("*") if p.suffix in (".json", ".py")}
    for path, pattern in (("appliance/model/schema.h", "#define SCHEMA_VERSION "),
                          ("schema/lib/names.py", "SCHEMA_VERSION = ")):
        out[path], version = raised(pattern, (source / path).read_text("ascii"))
    pool = json.loads((source / "schema/kinds/pool.json").read_text("ascii"))
    pool["fields"].append({**FIELD, "since": version})
    members = next(f for f in pool["fields"] if f["name"] == "members")
    role = next(f for f in members["fields"] if f["name"] == "role")
    role["values"].append(VALUE)
    role["values_since"] = {VALUE: version}
    out["schema/kinds/zone.json"] = json.dumps({**KIND, "since": version}, indent=2)
    out["schema/kinds/pool.json"] = json.dumps(pool, indent=2)
    number = max(int(p.name[:4]) for p in (source / "migrations").glob("[0-9]*.sql")) + 1
    out["migrations/%04d_next_release.sql" % number] = (
        "-- SPDX-License-Identifier: Apache-2.0\n-- A field, a value and a kind more.\n\n"
        "PRAGMA user_version = %d;\n" % number)
    out["CMakeLists.txt"] = re.sub(
        r"(project\(lockstep VERSION )[0-9.]+", r"\g<1>" + RELEASE,
        (source / "CMakeLists.txt").read_text("ascii"))
    return out


def put(path, text):
    """A file that is right already keeps its time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        path.unlink()
    if not path.exists() or path.read_text("ascii") != text:
        path.write_text(text, "ascii")


def main():
    source, target = (pathlib.Path(a).resolve() for a in sys.argv[1:])
    changed = changes(source)
    wanted = {target / p for p in changed}
    for folder in FOLDERS:
        for path in (source / folder).rglob("*"):
            link = target / path.relative_to(source)
            if path.is_dir() or "__pycache__" in path.parts or link in wanted:
                continue
            wanted.add(link)
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.unlink(missing_ok=True)
                link.symlink_to(path)
    for path in list(target.rglob("*")):
        if not path.is_dir() and path not in wanted:
            path.unlink()
    for path, text in changed.items():
        put(target / path, text)


if __name__ == "__main__":
    main()
