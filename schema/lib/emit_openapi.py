# SPDX-License-Identifier: Apache-2.0
"""openapi.json: the OpenAPI 3.1 description of all routes, with the kinds written out."""
from lib import names
from lib.emit_schema import value_schema

WHERE = {False: "The change goes into the draft.", True: "The change takes effect at once."}
MERGE_PATCH = "application/merge-patch+json"


def ref(section, name):
    return {"$ref": "#/components/%s/%s" % (section, name)}


def closed(title, properties, required):
    return {"title": title, "type": "object", "properties": properties,
            "required": sorted(required), "additionalProperties": False}


def read_schema(source, kind):
    properties = {"kind": {"type": "string", "enum": [kind["kind"]]},
                  "id": {"type": "string", "minLength": 1, "maxLength": 23,
                         "description": "Identity of the object; it stays when the name changes."}}
    for field in kind["fields"]:
        if field.get("secret"):
            properties[field["name"]] = {**ref("schemas", "Secret"), "title": field["label"],
                                         "description": field["help"]}
        else:
            properties[field["name"]] = value_schema(source, field, False)
    return {**closed(kind["title"], properties, properties), "description": kind["help"]}


def write_schema(source, kind, keeps_secrets):
    fields = [f for f in kind["fields"] if not f.get("read_only")]
    required = [f["name"] for f in fields if f.get("required") and "when" not in f
                and not (keeps_secrets and f.get("secret"))]
    properties = {f["name"]: value_schema(source, f, False) for f in fields}
    return closed(kind["title"], properties, required)


def created_schema(read, more):
    """What is shown once, in the answer that creates the object, beside its read form."""
    return {**closed(read["title"], {**read["properties"], **more["properties"]},
                     [*read["required"], *more["required"]]),
            "description": more["description"]}


def or_null(schema):
    if isinstance(schema["type"], list):
        return schema
    if "enum" in schema:
        return {**schema, "type": [schema["type"], "null"], "enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]}


def merge_schema(source, kind):
    """All may be left out; null stands for the default where there is one."""
    properties = {}
    for field in kind["fields"]:
        if not field.get("read_only"):
            schema = value_schema(source, field, False)
            properties[field["name"]] = schema if field.get("required") else or_null(schema)
    return closed(kind["title"], properties, [])


def list_schema(kind):
    read = names.camel(kind["kind"])
    return closed("%s: list" % kind["title"], {
        "items": {"type": "array", "items": ref("schemas", read), "maxItems": 1000},
        "next": {"type": ["string", "null"],
                 "description": "Value of after for the next page; null at the end."},
    }, ["items", "next"])


def schemas(source):
    out = dict(source.components["schemas"])
    for kind in source.kinds:
        def name(placeholder, kind=kind):
            return names.family_schema(source, kind, placeholder)
        read = out[name("{Read}")] = read_schema(source, kind)
        out[name("{Replace}")] = write_schema(source, kind, True)
        out[name("{Write}")] = write_schema(source, kind, False)
        out[name("{Merge}")] = merge_schema(source, kind)
        if not kind["singleton"]:
            out[name("{List}")] = list_schema(kind)
        if name("{Created}") != name("{Read}"):
            out[name("{Created}")] = created_schema(read, out[name("{Created}")])
    return dict(sorted(out.items()))


class Words:
    """Replaces the placeholders of a family's route by the words of one kind."""

    def __init__(self, source, kind):
        self.source = source
        self.kind = kind

    def text(self, text):
        if self.kind is None:
            return text
        return (text.replace("{plural}", self.kind["plural"])
                .replace("{kind}", self.kind["kind"]).replace("{title}", self.kind["title"])
                .replace("{where}", WHERE[self.kind["direct"]]))

    def path(self, path):
        if self.kind is None:
            return path
        return path.replace("{kind}", self.kind["plural"]).replace(
            "{singleton}", self.kind["plural"])

    def schema(self, name):
        if name in names.FAMILY_SCHEMAS:
            name = names.family_schema(self.source, self.kind, name)
        return ref("schemas", name)


def error_statuses(route):
    """Every error that a route can answer: its own, and those of what it needs."""
    found = {400, 413, 500, 503, *route.get("errors", ())}
    if route["permission"] not in ("none", "setup"):
        found.add(401)
        if route["method"] != "GET" or route["permission"] != "signed_in":
            found.add(403)
    if route.get("body_max_bytes"):
        found.add(415)
    if "If-Match" in route.get("headers", ()):
        found |= {412, 428}
    if route["method"] != "GET" and route["permission"] in ("operate", "edit"):
        found.add(423)
    if route["runs"] != "inline":
        found.add(504)
    return sorted(found)


def success(source, words, status, entry):
    if entry is None or isinstance(entry, str):
        entry = {"schema": entry} if entry else {}
    out = {"description": {"304": "Not modified.", "503": "Not now."}.get(status, "Done.")}
    headers = ["Lockstep-Node", *entry.get("headers", ())]
    out["headers"] = {h: ref("headers", h) for h in headers}
    if "type" in entry:
        out["content"] = {entry["type"]: {"schema": {"type": "string"}}}
    elif "any_of" in entry:
        schema = {"anyOf": [words.schema(s) for s in entry["any_of"]]}
        out["content"] = {"application/json": {"schema": schema}}
    elif "schema" in entry:
        out["content"] = {"application/json": {"schema": words.schema(entry["schema"])}}
    return out


def filter_parameter(field):
    """Texts are compared in any case; what fits no object is no error, but for other types."""
    if field["type"] == "enum":
        schema = {"type": "string", "enum": field["values"]}
    else:
        schema = {"type": {"bool": "boolean", "int": "integer"}.get(field["type"], "string")}
    return {"name": field["name"], "in": "query", "required": False, "schema": schema,
            "description": "Only objects with this value: %s" % field["label"]}


def parameters(words, route):
    path = words.path(route["path"])
    out = [ref("parameters", "path_" + p) for p in names.path_parameters(path)]
    out += [ref("parameters", "query_" + q) for q in route.get("query", ())]
    if route.get("filters"):
        out += [filter_parameter(f) for f in names.filter_fields(words.kind)]
    return out + [ref("parameters", "header_" + h) for h in route.get("headers", ())]


def security(route):
    if route["permission"] in ("none", "setup"):
        return []
    if route["permission"] in ("peer", "member"):
        return [{"peer": []}]
    if route["method"] == "GET":
        return [{"session": []}, {"key": []}]
    return [{"session": [], "csrf": []}, {"key": []}]


def operation(source, words, route):
    tag = words.kind["title"] if words.kind else route["tag"]
    out = {"tags": [tag], "operationId": words.text(route.get("operation", route["id"])),
           "summary": words.text(route["summary"]), "description": words.text(route["help"]),
           "security": security(route), "x-permission": names.permission(route, words.kind)}
    listed = parameters(words, route)
    if listed:
        out["parameters"] = listed
    if "request" in route:
        types = ["application/json"] + ([MERGE_PATCH] if route.get("merge") else [])
        schema = words.schema(route["request"])
        out["requestBody"] = {"required": not route.get("request_optional"),
                              "content": {t: {"schema": schema} for t in types}}
    out["responses"] = {status: success(source, words, status, entry)
                        for status, entry in route["responses"].items()}
    for status in error_statuses(route):
        if str(status) in route["responses"]:
            continue
        out["responses"][str(status)] = ref("responses", "Error%d" % status)
    return out


def paths(source):
    out = {}
    for route in source.routes:
        kinds = names.kinds_of(source, route) if "family" in route else [None]
        for kind in kinds:
            words = Words(source, kind)
            at = out.setdefault(words.path(route["path"]), {})
            at[route["method"].lower()] = operation(source, words, route)
    return dict(sorted(out.items()))


def shared_parameters(source):
    out = {}
    for place in ("path", "query", "header"):
        section = source.components["headers" if place == "header" else place]
        for name, entry in section.items():
            out["%s_%s" % (place, name)] = {
                "name": name, "in": place, "required": entry.get("required", place == "path"),
                "description": entry["description"], "schema": entry["schema"]}
    out["path_kind"]["schema"] = {"type": "string", "enum": [k["kind"] for k in source.kinds]}
    del out["path_singleton"]
    return out


def shared_responses(source):
    out = {}
    for status, text in source.components["errors"].items():
        headers = ["Lockstep-Node"] + (["Retry-After"] if status in ("429", "503") else [])
        out["Error" + status] = {
            "description": text, "headers": {h: ref("headers", h) for h in headers},
            "content": {"application/problem+json": {"schema": ref("schemas", "Problem")}}}
    return out


def security_schemes():
    return {
        "session": {"type": "apiKey", "in": "cookie", "name": "lockstep_session_NODE",
                    "description": "The cookie that signing in sets. Instead of NODE its name "
                                   "has 8 hexadecimal digits that each node has of its own."},
        "csrf": {"type": "apiKey", "in": "header", "name": "Lockstep-CSRF",
                 "description": "With the cookie, requests that change something carry the value "
                                "of csrf from GET /api/v1/session."},
        "key": {"type": "http", "scheme": "bearer",
                "description": "An automation key."},
        "peer": {"type": "http", "scheme": "bearer",
                 "description": "The peer key of the node that is called."},
    }


def document(source):
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lockstep", "version": "1.%d" % names.SCHEMA_VERSION,
                 "description": "The API of a node. Changes of objects go into the draft; "
                                "apply makes them serve.",
                 "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        "servers": [{"url": "/"}],
        "paths": paths(source),
        "components": {"schemas": schemas(source), "parameters": shared_parameters(source),
                       "responses": shared_responses(source),
                       "headers": source.components["answer_headers"],
                       "securitySchemes": security_schemes()},
    }
