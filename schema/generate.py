#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""From the JSON files beside this program to C tables, schema.json, openapi.json and docs.

  generate.py --out DIR     schema_gen.h, schema_gen.c, routes_gen.h, routes_gen.c,
                            commands_gen.h, commands_gen.c, lockstep.1, lockstep.bash
  generate.py --docs ROOT   ROOT/docs/{schema.json,openapi.json,reference/*.md}
  generate.py --self-test   tries that broken schemas are refused
"""
import argparse
import pathlib
import sys

from lib import (check, check_commands, check_routes, emit_c, emit_commands, emit_completion,
                 emit_manual, emit_openapi, emit_reference, emit_routes, emit_schema, load,
                 self_test)

HERE = pathlib.Path(__file__).resolve().parent


def checked(source):
    found = check.check_model(source)
    if not found:
        found = list(emit_c.check_identifiers(source)) + check_routes.check_interface(source)
    if not found:
        found = check_commands.check_commands(source)
    if found:
        raise load.SchemaError("\n".join(found))
    return source


def write(path, text):
    """Leaves a file alone that is right already, so that nothing is compiled again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode("ascii")
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def write_out(source, folder):
    schema_json = emit_schema.compact(emit_schema.document(source))
    openapi_json = emit_schema.compact(emit_openapi.document(source))
    write(folder / "schema_gen.h", emit_c.header(source))
    write(folder / "schema_gen.c", emit_c.tables(source, schema_json, openapi_json))
    write(folder / "routes_gen.h", emit_routes.header(source))
    write(folder / "routes_gen.c", emit_routes.table(source))
    write(folder / "commands_gen.h", emit_commands.header(source))
    write(folder / "commands_gen.c", emit_commands.table(source))
    write(folder / "lockstep.1", emit_manual.manual(source))
    write(folder / "lockstep.bash", emit_completion.script(source))


def write_docs(source, root):
    docs = root / "docs"
    write(docs / "schema.json", emit_schema.pretty(emit_schema.document(source)))
    write(docs / "openapi.json", emit_schema.pretty(emit_openapi.document(source)))
    for name, text in emit_reference.pages(source):
        write(docs / "reference" / name, text)


def main():
    parser = argparse.ArgumentParser(description="schema generator")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--out", metavar="DIR", type=pathlib.Path)
    action.add_argument("--docs", metavar="ROOT", type=pathlib.Path)
    action.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    try:
        source = checked(load.load(HERE))
    except load.SchemaError as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.self_test:
        return self_test.run(HERE, checked)
    if arguments.out:
        write_out(source, arguments.out)
    else:
        write_docs(source, arguments.docs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
