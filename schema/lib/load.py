# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON files of schema/ without judging them."""
import json


class Source:
    """What the files say: types by name, kinds and routes in their order, components, commands."""

    def __init__(self, types, kinds, routes, components, commands):
        self.types = types
        self.kinds = kinds
        self.routes = routes
        self.components = components
        self.commands = commands

    def kind(self, name):
        return next(k for k in self.kinds if k["kind"] == name)


class SchemaError(Exception):
    """One or more sentences, each with the file and the field it is about."""


def refuse_twins(pairs):
    seen = {}
    for key, value in pairs:
        if key in seen:
            raise ValueError("the key \"%s\" stands twice" % key)
        seen[key] = value
    return seen


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="ascii"), object_pairs_hook=refuse_twins)
    except (OSError, ValueError) as error:
        raise SchemaError("%s: %s" % (path.name, error)) from error


def load(folder):
    kinds = []
    for path in sorted((folder / "kinds").glob("*.json")):
        kind = read_json(path)
        if not isinstance(kind, dict) or kind.get("kind") != path.stem:
            raise SchemaError("%s: \"kind\" must be \"%s\", like the file" % (path.name, path.stem))
        kinds.append(kind)
    return Source(read_json(folder / "types.json"), kinds,
                  read_json(folder / "routes.json"), read_json(folder / "components.json"),
                  read_json(folder / "commands.json"))
