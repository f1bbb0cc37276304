# SPDX-License-Identifier: Apache-2.0
"""schema.json: JSON Schema of every kind, with the hints from which forms are built."""
import json

from lib.names import SCHEMA_VERSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"
WIDGETS = {"text": "text", "ref": "ref"}


def compact(document):
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True)


def pretty(document):
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def text_schema(source, field):
    """Lengths count bytes; JSON Schema counts characters, of which each has 1 to 4 bytes."""
    base = source.types[field["text_type"]]
    low = field.get("min", base["min"])
    out = {"type": "string",
           "minLength": low if base["ascii"] else (low + 3) // 4,
           "maxLength": field.get("max", base["max"])}
    if "pattern" in base:
        out["pattern"] = base["pattern"]
    return out


def ref_schema(source, field):
    name = source.types["name"]
    return {"type": "string", "minLength": name["min"], "maxLength": name["max"],
            "pattern": name["pattern"], "x-ref": field["ref"]["kind"]}


def element_schema(source, field, hints):
    if field["type"] == "bool":
        return {"type": "boolean"}
    if field["type"] == "int":
        return {"type": "integer", "minimum": field["min"], "maximum": field["max"]}
    if field["type"] == "enum":
        return {"type": "string", "enum": field["values"]}
    if field["type"] == "ref":
        return ref_schema(source, field)
    if field["type"] == "record":
        return table_schema(source, field["fields"], hints)
    return text_schema(source, field)


def value_schema(source, field, hints):
    """Schema of a field's value: what it may be, and what it is when it is left out."""
    element = element_schema(source, field, hints)
    if field.get("list"):
        out = {"type": "array", "items": element,
               "minItems": field["min_items"], "maxItems": field["max_items"]}
    else:
        out = element
        if field.get("nullable"):
            out = {**element, "type": [element["type"], "null"]}
    out = {**out, "title": field["label"], "description": field["help"]}
    if "default" in field:
        out["default"] = field["default"]
    if field.get("read_only"):
        out["readOnly"] = True
    if field.get("secret"):
        out["writeOnly"] = True
    return out


def default_widget(field):
    if field.get("secret"):
        return "secret"
    if field.get("list") and field["type"] == "ref":
        return "ref-list-ordered" if field["ordered"] else "ref-list"
    if field.get("list"):
        return "lines" if field["type"] == "text" else None
    return WIDGETS.get(field["type"])


def error_of(source, field):
    if "error" in field:
        return field["error"]
    return source.types[field["text_type"]]["error"] if field["type"] == "text" else None


def hints_of(source, field, position):
    """The x- words; those without a value are left out."""
    when = field.get("when")
    text_type = source.types[field["text_type"]] if field["type"] == "text" else None
    all_hints = {
        "x-group": field.get("group"),
        "x-order": field.get("order", position),
        "x-widget": field.get("widget", default_widget(field)),
        "x-show-if": {when["field"]: when["values"]} if when else None,
        "x-advanced": field.get("advanced"),
        "x-ordered": field.get("ordered"),
        "x-text-type": field.get("text_type"),
        "x-max-bytes": field.get("max", text_type["max"]) if text_type else None,
        "x-unit": field.get("unit"),
        "x-error": error_of(source, field),
        "x-example": field["examples"][0] if field.get("examples") else None,
        "x-haproxy": field.get("haproxy"),
        "x-effect": field["effect"],
        "x-secret": field.get("secret"),
        "x-protective": field.get("protective"),
        "x-since": field.get("since"),
        "x-values-since": field.get("values_since"),
    }
    out = {key: value for key, value in all_hints.items() if value is not None}
    if field.get("examples"):
        out["examples"] = field["examples"]
    return out


def table_schema(source, fields, hints):
    properties = {}
    for position, field in enumerate(fields):
        properties[field["name"]] = value_schema(source, field, hints)
        if hints:
            properties[field["name"]].update(hints_of(source, field, position))
    out = {"type": "object", "properties": properties,
           "required": [f["name"] for f in fields if f.get("required") and "when" not in f],
           "additionalProperties": False}
    conditions = [{"if": {"properties": {f["when"]["field"]: {"enum": f["when"]["values"]}}},
                   "then": {"required": [f["name"]]}}
                  for f in fields if f.get("required") and "when" in f]
    if conditions:
        out["allOf"] = conditions
    return out


def kind_schema(source, kind):
    return {"title": kind["title"], "description": kind["help"],
            "x-kind": kind["kind"], "x-plural": kind["plural"], "x-scope": kind["scope"],
            "x-singleton": kind["singleton"], "x-direct": kind["direct"],
            "x-unique": kind["unique"], "x-columns": kind["columns"],
            **({"x-since": kind["since"]} if "since" in kind else {}),
            **table_schema(source, kind["fields"], True)}


def document(source):
    return {"$schema": DIALECT, "title": "Lockstep objects", "x-schema-version": SCHEMA_VERSION,
            "$defs": {k["kind"]: kind_schema(source, k) for k in source.kinds}}
