# SPDX-License-Identifier: Apache-2.0
"""What routes.json and components.json must keep to."""
import json
import re

from lib import check, names

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PERMISSIONS = ("none", "setup", "signed_in", "operate", "edit", "manage", "peer",
               "member")
RUNS = ("inline", "engine", "worker")
FAMILIES = {"collection": "{kind}", "singleton": "{singleton}"}
PATH = re.compile(r"(?:/(?:[a-z0-9_.]+|\{[a-z]+\}))+")
NEEDED = {"method": str, "path": str, "id": str, "permission": str, "runs": str,
          "summary": str, "help": str, "responses": dict}
OPTIONAL = {"tag": str, "family": str, "operation": str, "body_max_bytes": int,
            "query": list, "headers": list, "request": str, "request_optional": bool,
            "merge": bool, "filters": bool, "errors": list}
RESPONSE_KEYS = {"schema", "any_of", "type", "headers"}
COMPONENT_KEYS = {"schemas", "query", "path", "headers", "errors", "answer_headers"}


def check_response(source, known, entry):
    if entry is None or isinstance(entry, str):
        entry = {"schema": entry} if entry else {}
    for key in set(entry) - RESPONSE_KEYS:
        yield "unknown key \"%s\" in a response" % key
    for schema in [entry.get("schema"), *entry.get("any_of", ())]:
        if schema and schema not in known:
            yield "unknown schema \"%s\"" % schema
    for header in entry.get("headers", ()):
        if header not in source.components["answer_headers"]:
            yield "unknown header \"%s\" in a response" % header


def check_words(source, route):
    for key, words in (("method", METHODS), ("permission", PERMISSIONS), ("runs", RUNS)):
        if route[key] not in words:
            yield "unknown %s \"%s\"" % (key, route[key])
    start = "/peer/v1/" if route["permission"] in ("peer", "member") else "/api/v1/"
    if not PATH.fullmatch(route["path"]) or not route["path"].startswith(start):
        yield "path \"%s\"" % route["path"]
    if not re.fullmatch(r"[a-z]+(?:_[a-z]+)*", route["id"]):
        yield "an id is lower case with underscores"
    if not check.is_sentence(route["help"].removesuffix(" {where}")):
        yield "help is no sentence"
    family = route.get("family")
    if family is None:
        if "tag" not in route:
            yield "\"tag\" is missing"
    elif route["path"].split("/")[3] != FAMILIES.get(family):
        yield "family \"%s\" does not fit the path" % family
    elif "operation" not in route:
        yield "a family has an operation"
    for param in names.path_parameters(route["path"]):
        if param not in source.components["path"]:
            yield "unknown path parameter \"%s\"" % param


def check_parts(source, route, known):
    for param in route.get("query", ()):
        if param not in source.components["query"]:
            yield "unknown query parameter \"%s\"" % param
    for header in route.get("headers", ()):
        if header not in source.components["headers"]:
            yield "unknown header \"%s\"" % header
    for status in route.get("errors", ()):
        if str(status) not in source.components["errors"]:
            yield "unknown error %s" % status
    if ("request" in route) != (route.get("body_max_bytes", 0) > 0):
        yield "request and body_max_bytes go together"
    if "request" in route and route["request"] not in known:
        yield "unknown schema \"%s\"" % route["request"]
    if not route["responses"]:
        yield "no response"
    for status, entry in route["responses"].items():
        plain = isinstance(entry, dict) and "type" in entry
        if not re.fullmatch(r"[23][0-9]{2}", status) and not (plain and status == "503"):
            yield "response %s" % status
        yield from check_response(source, known, entry)


def check_route(source, route):
    found = list(check.check_keys(route, NEEDED, OPTIONAL))
    if found:
        return found
    known = set(source.components["schemas"])
    if "family" in route:
        known |= set(names.FAMILY_SCHEMAS)
    return list(check_words(source, route)) + list(check_parts(source, route, known))


def check_together(source):
    """Routes that would hide one another."""
    operations, paths = set(), set()
    for route in source.routes:
        place = (route["method"], re.sub(r"\{[a-z]+\}", "{}", route["path"]),
                 route.get("family"))
        if route["id"] in operations:
            yield "the id \"%s\" stands twice" % route["id"]
        if place in paths:
            yield "%s %s stands twice" % (route["method"], route["path"])
        operations.add(route["id"])
        paths.add(place)
    # A longer path hides no object: the routes of a kind have the kind and a name at most.
    literal = {r["path"].split("/")[3] for r in source.routes if r["path"].count("/") < 5}
    for kind in source.kinds:
        if kind["plural"] in literal:
            yield "the kind \"%s\" has the path of a route" % kind["kind"]


def check_components(source):
    components = source.components
    if set(components) != COMPONENT_KEYS:
        yield "has the keys %s" % ", ".join(sorted(COMPONENT_KEYS))
        return
    known = set(components["schemas"]) | names.kind_schemas(source)
    for ref in re.findall(r"\"\$ref\": \"([^\"]*)\"", json.dumps(components)):
        if not ref.startswith("#/components/schemas/") or ref.split("/")[3] not in known:
            yield "$ref to unknown \"%s\"" % ref
    for name in names.kind_schemas(source) & set(components["schemas"]):
        yield "the schema \"%s\" is made from a kind" % name


def check_interface(source):
    found = ["components.json: " + reason for reason in check_components(source)]
    if found:
        return found
    for route in source.routes:
        name = route.get("id", route.get("path", "?"))
        found += ["routes.json: %s: %s" % (name, r) for r in check_route(source, route)]
    if not found:
        found = ["routes.json: " + reason for reason in check_together(source)]
    return found
