# SPDX-License-Identifier: Apache-2.0
"""routes_gen.h and routes_gen.c: the routes as a const table."""
from lib.emit_c import NOTICE, c_bool, c_string, upper

FAMILIES = {None: "ROUTE_PLAIN", "collection": "ROUTE_COLLECTION", "singleton": "ROUTE_SINGLETON"}


def segments_of(route):
    return route["path"].strip("/").split("/")


def in_order(source):
    """Literal segments before placeholders: the first row that fits is the right one."""
    def key(route):
        return [(s.startswith("{"), s) for s in segments_of(route)], route["method"]
    return sorted(source.routes, key=key)


def header(source):
    handlers = ["void http_%s(struct request *r);\n" % r["id"] for r in in_order(source)]
    return "".join([
        NOTICE, "#ifndef LOCKSTEP_ROUTES_GEN_H\n#define LOCKSTEP_ROUTES_GEN_H\n\n",
        "#include \"http/route.h\"\n\n",
        "#define ROUTE_COUNT %d\n\n" % len(handlers),
        "/* Sorted: the first row that fits a path is the right one. */\n",
        "extern const struct route routes[ROUTE_COUNT];\n\n",
        *handlers, "\n#endif\n"])


def words(name, items):
    listed = "".join(c_string(i) + ", " for i in items)
    return "static const char *const %s[] = {%sNULL};\n" % (name, listed)


def rows(route):
    yield "method", "METHOD_" + route["method"]
    yield "path", c_string(route["path"])
    yield "segments", "segments_" + route["id"]
    yield "segment_count", str(len(segments_of(route)))
    yield "family", FAMILIES[route.get("family")]
    yield "permission", "PERMISSION_" + upper(route["permission"])
    yield "runs", "RUNS_" + upper(route["runs"])
    yield "body_max", str(route.get("body_max_bytes", 0))
    yield "body_optional", c_bool(route.get("request_optional"))
    yield "merge", c_bool(route.get("merge"))
    yield "filters", c_bool(route.get("filters"))
    yield "if_match", c_bool("If-Match" in route.get("headers", ()))
    yield "query", "query_" + route["id"]
    yield "operation", c_string(route["id"])
    yield "handler", "http_" + route["id"]


def table(source):
    routes = in_order(source)
    out = [NOTICE, "#include \"routes_gen.h\"\n\n"]
    for route in routes:
        out.append(words("segments_" + route["id"], segments_of(route)))
        out.append(words("query_" + route["id"], route.get("query", ())))
    out.append("\nconst struct route routes[ROUTE_COUNT] = {\n")
    for route in routes:
        lines = ["        .%s = %s,\n" % row for row in rows(route)]
        out.append("    {\n%s    },\n" % "".join(lines))
    out.append("};\n")
    return "".join(out)
