# SPDX-License-Identifier: Apache-2.0
"""What the kinds and text types must keep to. Each finding is "file: field: reason"."""
import re

from lib.names import SCHEMA_VERSION

NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
EFFECTS = ("none", "haproxy:runtime", "haproxy:reload")
UNITS = ("ms", "s", "bytes")
WIDGETS = ("text", "secret", "cidr-list", "duration", "port", "ref", "ref-list",
           "ref-list-ordered", "lines")
UNIT_SUFFIX = {"ms": "_ms", "s": "_s", "bytes": "_bytes"}
INT_LIMIT = 2 ** 53 - 1

KIND_KEYS = {"kind": str, "plural": str, "title": str, "scope": str, "singleton": bool,
             "direct": bool, "unique": list, "columns": list, "help": str, "fields": list}
KIND_OPTIONS = {"permission": str, "since": int}
KIND_PERMISSIONS = ("edit", "manage")
LIST_WORDS = ("limit", "after", "q")  # query parameters of a list that are no fields
FIELD_KEYS = {"name": str, "type": str, "label": str, "help": str, "effect": str}
FIELD_OPTIONS = {"list": bool, "ordered": bool, "required": bool, "nullable": bool,
                 "secret": bool, "read_only": bool, "protective": bool, "default": object, "min_items": int,
                 "max_items": int, "when": dict, "unit": str, "group": str, "order": int,
                 "examples": list, "widget": str, "advanced": bool, "haproxy": str,
                 "since": int, "error": str}
TYPE_OPTIONS = {
    "bool": {},
    "int": {"min": int, "max": int},
    "text": {"text_type": str, "min": int, "max": int},
    "enum": {"values": list, "values_since": dict},
    "ref": {"ref": dict},
    "record": {"fields": list},
}
TYPE_NEEDS = {"int": ("min", "max"), "text": ("text_type",), "enum": ("values",),
              "ref": ("ref",), "record": ("fields",)}
TEXT_TYPE_KEYS = {"min": int, "max": int, "ascii": bool, "help": str, "error": str}
TEXT_TYPE_OPTIONS = {"pattern": str, "keywords": dict}
# What a keyword of HAProxy takes: the keys, beside "type", that it has and may have.
KEYWORD_TYPES = {
    "flag": ({}, {"http_only": list}),
    "int": ({"min": int, "max": int}, {"unit": str}),
    "time": ({"min": int, "max": int, "unit": str}, {"words": list}),
    "words": ({"min": int, "max": int, "words": list}, {"alone": str}),
    "text": ({"min": int, "max": int}, {}),
    "ciphers": ({}, {}),
    "ciphersuites": ({}, {}),
}


def has_type(value, wanted):
    if wanted is object:
        return True
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, wanted)


def check_keys(item, needed, optional):
    for key in item:
        if key not in needed and key not in optional:
            yield "unknown key \"%s\"" % key
    for key, wanted in {**optional, **needed}.items():
        if key in item and not has_type(item[key], wanted):
            yield "\"%s\" must be %s" % (key, wanted.__name__)
    for key, wanted in needed.items():
        if key not in item:
            yield "\"%s\" is missing" % key
        elif wanted is str and not item[key]:
            yield "\"%s\" is empty" % key


def is_sentence(text):
    return text[-1:] in ".!?" and text == text.strip()


def text_limits(types, field):
    """(min, max) bytes of a text field: its own, or its type's."""
    base = types[field["text_type"]]
    return field.get("min", base["min"]), field.get("max", base["max"])


def check_text(types, field, value):
    if not isinstance(value, str):
        yield "must be a text"
        return
    low, high = text_limits(types, field)
    length = len(value.encode())
    pattern = types[field["text_type"]].get("pattern")
    if not low <= length <= high:
        yield "has %d bytes, allowed are %d to %d" % (length, low, high)
    keywords = types[field["text_type"]].get("keywords", [value])
    if not any((value + " ").startswith(word + " ") for word in keywords):
        yield "\"%s\" has none of the keywords of %s" % (value, field["text_type"])
    if pattern and not re.search(pattern, value):
        yield "\"%s\" is no %s" % (value, field["text_type"])


def check_one(types, field, value):
    """Reasons why value does not fit one element of the field."""
    kind = field["type"]
    if kind == "bool" and not isinstance(value, bool):
        yield "must be true or false"
    elif kind == "int":
        if not has_type(value, int):
            yield "must be an integer"
        elif not field["min"] <= value <= field["max"]:
            yield "%d is outside %d to %d" % (value, field["min"], field["max"])
    elif kind == "enum" and value not in field["values"]:
        yield "\"%s\" is none of the values" % value
    elif kind == "text":
        yield from check_text(types, field, value)
    elif kind == "ref":
        name = {"type": "text", "text_type": "name"}
        yield from check_text(types, name, value)
    elif kind == "record":
        yield "a record has no value of its own"


def check_value(types, field, value):
    if value is None:
        if not field.get("nullable"):
            yield "null is not allowed"
    elif not field.get("list"):
        yield from check_one(types, field, value)
    elif not isinstance(value, list):
        yield "must be a list"
    else:
        if not field["min_items"] <= len(value) <= field["max_items"]:
            yield "has %d items, allowed are %d to %d" % (
                len(value), field["min_items"], field["max_items"])
        for item in value:
            yield from check_one(types, field, item)


def check_form(source, field):
    """Keys, their types and the words they may hold; the rest relies on these."""
    kind = field.get("type")
    if kind not in TYPE_OPTIONS:
        yield "unknown type \"%s\"" % kind
        return
    optional = {**FIELD_OPTIONS, **TYPE_OPTIONS[kind]}
    yield from check_keys(field, FIELD_KEYS, optional)
    for key in TYPE_NEEDS.get(kind, ()):
        if key not in field:
            yield "\"%s\" is missing" % key
    if not NAME.fullmatch(str(field.get("name", ""))):
        yield "a name is lower case with single underscores"
    for key, words in (("effect", EFFECTS), ("unit", UNITS), ("widget", WIDGETS)):
        if key in field and field[key] not in words:
            yield "unknown %s \"%s\"" % (key, field[key])
    if kind == "text" and field.get("text_type") not in source.types:
        yield "unknown text_type \"%s\"" % field.get("text_type")
    if kind == "ref":
        yield from check_ref(source, field.get("ref"))
    if kind == "enum":
        yield from check_enum(field.get("values"))


def check_ref(source, ref):
    if not isinstance(ref, dict) or set(ref) != {"kind", "on_delete"}:
        yield "\"ref\" has the keys \"kind\" and \"on_delete\""
        return
    if ref["kind"] not in {k.get("kind") for k in source.kinds}:
        yield "ref to unknown kind \"%s\"" % ref["kind"]
    if ref["on_delete"] not in ("refuse", "cascade"):
        yield "unknown on_delete \"%s\"" % ref["on_delete"]


def check_enum(values):
    if not isinstance(values, list) or not 1 <= len(values) <= 64:
        yield "\"values\" has 1 to 64 words"
        return
    for value in values:
        if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", value):
            yield "\"%s\" cannot be a value" % value
    if len({re.sub("[-./]", "_", str(v).lower()) for v in values}) != len(values):
        yield "a value stands twice"


def check_limits(source, field):
    kind = field["type"]
    if field["type"] in ("int", "text") and {"min", "max"} & set(field):
        low = field.get("min", 0)
        high = field.get("max", INT_LIMIT)
        if not -INT_LIMIT <= low <= high <= INT_LIMIT:
            yield "min %d, max %d" % (low, high)
    if kind == "text":
        base = source.types[field["text_type"]]
        low, high = text_limits(source.types, field)
        if not base["min"] <= low <= high <= base["max"]:
            yield "length %d to %d is wider than %s allows" % (low, high, field["text_type"])
    if field.get("list"):
        if not {"ordered", "min_items", "max_items"} <= set(field):
            yield "a list says ordered, min_items and max_items"
        elif not 0 <= field["min_items"] <= field["max_items"] <= 20000:
            yield "min_items %d, max_items %d" % (field["min_items"], field["max_items"])
    elif {"ordered", "min_items", "max_items"} & set(field):
        yield "ordered, min_items and max_items belong to a list"
    suffix = UNIT_SUFFIX.get(field.get("unit"), "")
    if not field["name"].endswith(suffix):
        yield "unit \"%s\" but the name does not end in %s" % (field["unit"], suffix)
    if kind == "int" and "unit" not in field and field["name"].endswith(("_ms", "_s", "_bytes")):
        yield "the name has a unit, the field has none"


def check_default(source, field):
    if field.get("required"):
        if "default" in field or field.get("nullable") or field.get("read_only"):
            yield "required excludes default, nullable and read_only"
    elif "default" not in field:
        yield "no default, and not required"
    for reason in (check_value(source.types, field, field["default"])
                   if "default" in field else ()):
        yield "default %s" % reason
    if field.get("nullable") and (field.get("list") or field["type"] != "ref"):
        yield "only a single ref can be null"
    if field["type"] == "ref" and not field.get("list") and field.get("default") is not None:
        yield "default of a ref can only be null"
    for example in field.get("examples", ()):
        for reason in check_value(source.types, field, example):
            yield "example %s" % reason
    needs_example = field["type"] in ("int", "text", "ref") and not field.get("read_only")
    if needs_example and not field.get("examples"):
        yield "no example"


def check_version(since):
    if not 2 <= since <= SCHEMA_VERSION:
        yield "since %d is not between 2 and %d" % (since, SCHEMA_VERSION)


def check_values_since(field):
    for value, since in field.get("values_since", {}).items():
        if value not in field["values"]:
            yield "values_since names \"%s\", which is none of the values" % value
        elif not has_type(since, int):
            yield "\"%s\": since must be int" % value
        else:
            yield from check_version(since)
            if since <= field.get("since", 1):
                yield "\"%s\" came no later than its field" % value
            if value == field.get("default"):
                yield "\"%s\" came later than its field and is the default" % value


def check_kind_since(kind):
    """Nodes of an older release would refuse each revision that has such an object."""
    if "since" not in kind:
        return
    yield from check_version(kind["since"])
    if kind["scope"] != "shared":
        yield "only a shared kind says since when it is there"
    elif kind["singleton"]:
        yield "a shared singleton, which is always there, cannot come later"


def check_since(field):
    """A field that came later is left out of the canonical form while it has its default."""
    yield from check_values_since(field)
    since = field.get("since")
    if since is None:
        return
    yield from check_version(since)
    if field.get("required"):
        yield "a field that came later cannot be required"
    elif field.get("list") and field.get("default"):
        yield "a list that came later has no items as default"


def check_when(field, before):
    when = field.get("when")
    if when is None:
        return
    if set(when) != {"field", "values"} or not isinstance(when["values"], list):
        yield "\"when\" has the keys \"field\" and \"values\""
        return
    other = before.get(when["field"])
    if other is None:
        yield "when names \"%s\", which is no field before this one" % when["field"]
        return
    if other["type"] not in ("enum", "bool") or other.get("list"):
        yield "when names \"%s\", which is neither an enum nor a bool" % when["field"]
        return
    allowed = other["values"] if other["type"] == "enum" else [False, True]
    if not when["values"]:
        yield "when has no values"
    for value in when["values"]:
        if not any(value is a or (isinstance(a, str) and value == a) for a in allowed):
            yield "when names the unknown value \"%s\" of \"%s\"" % (value, when["field"])


def check_protective_items(field):
    """Items are told apart by a reference, and are compared in the order that callers send."""
    fields = [f for f in field.get("fields", ()) if isinstance(f, dict)]
    if any(f.get("protective") for f in fields):
        if not field.get("ordered") or fields[0].get("type") != "ref":
            yield "a protective field stands in records that have order and begin with a ref"


def check_field(source, field, before, inside):
    """before: the fields of the same table that stand above, by name."""
    findings = list(check_form(source, field))
    if findings:
        yield from findings
        return
    yield from check_limits(source, field)
    if not list(check_limits(source, field)):
        yield from check_default(source, field)
    yield from check_when(field, before)
    yield from check_since(field)
    if field["name"] in before:
        yield "the name stands twice"
    if not is_sentence(field["help"]):
        yield "help is no sentence"
    if field.get("secret") and (field["type"] != "text" or field.get("list")):
        yield "only a single text can be secret"
    if field["type"] == "record" and (inside or not field.get("list")):
        yield "records stand in lists, and not within records"
    if inside and (field.get("list") or field.get("secret") or field.get("read_only")):
        yield "a list, secret or read_only field inside a record"
    if field.get("protective") and ("default" not in field or field.get("read_only")):
        yield "a protective field has a default that callers may change"
    yield from check_protective_items(field)
    if not inside and field["name"] in LIST_WORDS:
        yield "lists have a query parameter of that name"
    if not inside and "group" not in field:
        yield "\"group\" is missing"


def check_table(source, fields, path):
    """Fields of a kind or of a record; yields (field path, reason)."""
    before = {}
    for position, field in enumerate(fields):
        if not isinstance(field, dict):
            yield "%s%d" % (path, position), "must be an object"
            continue
        name = "%s%s" % (path, field.get("name", position))
        for reason in check_field(source, field, before, bool(path)):
            yield name, reason
        if field.get("type") == "record" and isinstance(field.get("fields"), list):
            yield from check_table(source, field["fields"], name + ".")
        before[field.get("name")] = field


def check_kind(source, kind):
    findings = list(check_keys(kind, KIND_KEYS, KIND_OPTIONS))
    if findings:
        yield from (("", reason) for reason in findings)
        return
    if not NAME.fullmatch(kind["kind"]) or not NAME.fullmatch(kind["plural"]):
        yield "", "kind and plural are lower case with single underscores"
    if kind["scope"] not in ("shared", "local"):
        yield "", "unknown scope \"%s\"" % kind["scope"]
    if kind.get("permission", "edit") not in KIND_PERMISSIONS:
        yield "", "unknown permission \"%s\"" % kind["permission"]
    if kind["singleton"] != (kind["plural"] == kind["kind"]):
        yield "", "a singleton's plural is its kind, and no other's is"
    if not is_sentence(kind["help"]):
        yield "", "help is no sentence"
    yield from (("", reason) for reason in check_kind_since(kind))
    found = list(check_table(source, kind["fields"], ""))
    yield from found
    if not found:
        yield from check_name_field(kind)
        yield from check_columns(kind)
        yield from check_belongs(source, kind)


def check_name_field(kind):
    first = kind["fields"][0] if kind["fields"] else {}
    if first.get("name") != "name" or first.get("text_type") != "name":
        yield "", "the first field is \"name\" of the text_type name"
    elif kind["singleton"] and first.get("default") != kind["kind"]:
        yield "name", "a singleton's name has its kind as default"
    elif not kind["singleton"] and not first.get("required"):
        yield "name", "a name is required"
    if kind["unique"] != ["name"]:
        yield "", "unique is [\"name\"]"
    for field in kind["fields"]:
        if kind["singleton"] and "default" not in field:
            yield field["name"], "a singleton has defaults only"


def check_columns(kind):
    """What a list shows of an object."""
    columns = kind["columns"]
    fields = {f["name"]: f for f in kind["fields"]}
    for name in columns:
        if name not in fields:
            yield "", "columns names \"%s\", which is no field" % name
        elif fields[name].get("secret"):
            yield name, "a secret is no column"
    if not 1 <= len(columns) <= 8 or len(set(columns)) != len(columns):
        yield "", "columns are 1 to 8 fields, each once"


def belongs(kind):
    """The fields by which an object is part of another one: it goes with it, has its name."""
    return [f for f in kind["fields"] if f.get("ref", {}).get("on_delete") == "cascade"]


def check_belongs(source, kind):
    """An object that is part of another one is no work of its own: it is never drafted."""
    for field in kind["fields"]:
        for sub in field.get("fields", ()):
            if sub.get("ref", {}).get("on_delete") == "cascade":
                yield field["name"], "a record does not belong to another object"
    found = belongs(kind)
    if len(found) > 1:
        yield found[1]["name"], "an object belongs to one other only"
    for field in found:
        other = next(k for k in source.kinds if k["kind"] == field["ref"]["kind"])
        if not field.get("required") or field.get("list"):
            yield field["name"], "on_delete \"cascade\" needs one required reference"
        if not kind["direct"] or kind["singleton"]:
            yield field["name"], "on_delete \"cascade\" needs a direct kind"
        if other["scope"] != kind["scope"] or other["direct"] or belongs(other):
            yield field["name"], "on_delete \"cascade\" needs a drafted kind of the same scope"


def check_keyword(takes):
    if not isinstance(takes, dict) or takes.get("type") not in KEYWORD_TYPES:
        yield "no type, or an unknown one"
        return
    needed, optional = KEYWORD_TYPES[takes["type"]]
    findings = list(check_keys(takes, {"type": str, **needed}, optional))
    yield from findings
    if not findings and takes.get("min", 0) > takes.get("max", 0):
        yield "min %d, max %d" % (takes["min"], takes["max"])
    if takes.get("unit", "ms") not in UNITS:
        yield "unknown unit \"%s\"" % takes["unit"]
    for section in takes.get("http_only", ()):
        if section not in ("frontend", "backend"):
            yield "unknown section \"%s\"" % section


def check_types(types):
    for name, entry in types.items():
        for reason in check_keys(entry, TEXT_TYPE_KEYS, TEXT_TYPE_OPTIONS):
            yield name, reason
        if not 0 <= entry.get("min", 0) <= entry.get("max", 0):
            yield name, "min and max"
        keywords = entry.get("keywords", {})
        if list(keywords) != sorted(keywords):
            yield name, "keywords are sorted"
        for word, takes in keywords.items():
            for reason in check_keyword(takes):
                yield name, "%s: %s" % (word, reason)
        try:
            re.compile(entry.get("pattern", ""))
        except re.error as error:
            yield name, "pattern: %s" % error


def check_unique_names(source):
    seen = {}
    for kind in source.kinds:
        for word in {kind.get("kind"), kind.get("plural")}:
            if word in seen:
                yield "%s.json" % kind.get("kind"), "\"%s\" is also in %s" % (word, seen[word])
            seen[word] = "%s.json" % kind.get("kind")


def check_model(source):
    """Findings about types.json and kinds/, as texts."""
    found = ["types.json: %s: %s" % pair for pair in check_types(source.types)]
    if found:
        return found
    for kind in source.kinds:
        for field, reason in check_kind(source, kind):
            place = "kinds/%s.json" % kind["kind"]
            found.append("%s: %s" % (place, "%s: %s" % (field, reason) if field else reason))
    found += ["kinds/%s: %s" % pair for pair in check_unique_names(source)]
    return found
