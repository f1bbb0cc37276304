# SPDX-License-Identifier: Apache-2.0
"""How the parts of the interface are called."""
import re

SCHEMA_VERSION = 2  # as in appliance/model/schema.h

# Schemas that a route of a family names; each kind has its own.
FAMILY_SCHEMAS = {"{Read}": "", "{Write}": "Write", "{Replace}": "Replace", "{Merge}": "Merge",
                  "{List}": "List", "{Created}": "Created"}


def camel(kind_name):
    return "".join(part.capitalize() for part in kind_name.split("_"))


def has_required_secret(kind):
    return any(f.get("secret") and f.get("required") for f in kind["fields"])


def family_schema(source, kind, placeholder):
    """Name of the component that stands for "{Read}" and so on."""
    name = camel(kind["kind"]) + FAMILY_SCHEMAS[placeholder]
    if placeholder == "{Replace}" and not has_required_secret(kind):
        return camel(kind["kind"]) + "Write"
    if placeholder == "{Created}" and name not in source.components["schemas"]:
        return camel(kind["kind"])
    return name


def kind_schemas(source):
    """Names of the components that are made from the kinds."""
    made = set()
    for kind in source.kinds:
        placeholders = ["{Read}", "{Write}", "{Replace}", "{Merge}"]
        if not kind["singleton"]:
            placeholders.append("{List}")
        made |= {family_schema(source, kind, p) for p in placeholders}
    return made


def path_parameters(path):
    return re.findall(r"\{([a-z]+)\}", path)


def kinds_of(source, route):
    wanted = route["family"] == "singleton"
    return [k for k in source.kinds if k["singleton"] == wanted]


def permission(route, kind):
    """Who may call the route for a kind (None: a route of no family)."""
    if route["permission"] == "edit" and kind is not None:
        return kind.get("permission", "edit")
    return route["permission"]


def filter_fields(kind):
    """Fields by which a list can be filtered."""
    return [f for f in kind["fields"] if f["type"] != "record" and not f.get("secret")]
