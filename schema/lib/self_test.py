# SPDX-License-Identifier: Apache-2.0
"""Tries that broken schemas are refused: a check that never bites proves nothing."""
import copy

from lib import load


def field(source, kind, name):
    return next(f for f in source.kind(kind)["fields"] if f["name"] == name)


def route(source, name):
    return next(r for r in source.routes if r["id"] == name)


def put(kind, name, key, value):
    """A break: sets a key of a field."""
    return lambda source: field(source, kind, name).__setitem__(key, value)


def drop(kind, name, key):
    return lambda source: field(source, kind, name).__delitem__(key)


def put_sub(name, key, value):
    return lambda source: field(source, "pool", "members")["fields"][name].__setitem__(key, value)


def put_kind(kind, key, value):
    return lambda source: source.kind(kind).__setitem__(key, value)


def put_route(name, key, value):
    return lambda source: route(source, name).__setitem__(key, value)


def add_field(kind, new):
    return lambda source: source.kind(kind)["fields"].append(new)


def add_copy(kind, name, new_name):
    """A second field that is like the first but for its name."""
    return lambda source: source.kind(kind)["fields"].append(
        {**field(source, kind, name), "name": new_name})


def drop_name(source):
    del source.kind("pool")["fields"][0]


def verb(source, name):
    return next(v for v in source.commands["verbs"] if v["name"] == name)


def put_verb(name, key, value):
    return lambda source: verb(source, name).__setitem__(key, value)


# (what is broken, words that the finding must have)
BROKEN = [
    (put("pool", "retries", "since", 1), "retries: since 1 is not between 2 and"),
    (put("listener", "port", "since", 2), "port: a field that came later cannot be required"),
    (put("listener", "addresses", "since", 2), "addresses: a list that came later has no"),
    (put_kind("condition", "since", 1), "condition.json: since 1 is not between 2 and"),
    (put_kind("webui", "since", 2), "webui.json: only a shared kind says since when"),
    (put_kind("haproxy", "since", 2), "haproxy.json: a shared singleton, which is always there"),
    (put("monitor", "type", "values_since", {"tsl": 2}), "values_since names \"tsl\", which is"),
    (put("monitor", "type", "values_since", {"tls": "2"}), "\"tls\": since must be int"),
    (put("monitor", "type", "values_since", {"tls": 99}), "type: since 99 is not between 2 and"),
    (put("pool", "stick", "values_since", {"cookie": 2}), "\"cookie\" came no later than its"),
    (put("monitor", "type", "values_since", {"tcp": 2}), "\"tcp\" came later than its field and"),
    (put("pool", "retries", "values_since", {}), "retries: unknown key \"values_since\""),
    (put_verb("status", "calls", []), "no command calls GET /api/v1/status"),
    (lambda source: source.commands["without_verb"].__setitem__("GET /api/v1/status", "No."),
     "GET /api/v1/status has a command and a reason"),
    (put_verb("status", "help", "nothing"), "commands.json: status: help is no sentence"),
    (put_verb("status", "name", "diff"), "commands.json: diff stands twice"),
    (put_verb("get", "arguments", [{"name": "A", "type": "word"}]), "unknown type \"word\""),
    (put_verb("get", "arguments", [{"name": "A", "type": "object:x"}]), "no kind \"x\""),
    (put_verb("get", "options", [{"name": "--a", "type": "flag", "value": "B", "help": "Is."}]),
     "--a: a flag has no value"),
    (put_verb("get", "options", [{"name": "--a", "type": "flag", "help": "Is.", "with": "--b"}]),
     "--a: with names --b, which is no other option"),
    (put_kind("pool", "columns", ["name", "nix"]), "columns names \"nix\", which is no field"),
    (put_kind("admin", "columns", ["password"]), "password: a secret is no column"),
    (put_kind("pool", "columns", []), "columns are 1 to 8 fields"),
    (put_verb("get", "options", [{"name": "--json", "type": "flag", "help": "Is so."}]),
     "--json stands twice"),
    (put("pool", "retries", "default", 11), "kinds/pool.json: retries: default 11 is outside"),
    (put("pool", "retries", "default", True), "retries: default must be an integer"),
    (put("pool", "balance", "default", "nosuch"), "balance: default \"nosuch\" is none"),
    (put("service", "path", "default", "shop"), "path: default \"shop\" is no path"),
    (put("service", "path", "default", "/a/../b"), "is no path"),
    (put("listener", "addresses", "default", []), "addresses: default has 0 items"),
    (put("listener", "addresses", "default", ["x"]), "addresses: default \"x\" is no ip"),
    (put("service", "enabled", "default", 1), "enabled: default must be true or false"),
    (put("service", "note", "default", "x" * 501), "note: default has 501 bytes"),
    (put("service", "pool", "default", None), "required excludes default"),
    (put("service", "certificate", "default", "x"), "default of a ref can only be null"),
    (put("pool", "retries", "examples", [99]), "retries: example 99 is outside"),
    (drop("pool", "retries", "examples"), "retries: no example"),
    (drop("pool", "retries", "help"), "retries: \"help\" is missing"),
    (put("pool", "retries", "help", ""), "retries: \"help\" is empty"),
    (put("pool", "retries", "help", "no sentence"), "retries: help is no sentence"),
    (drop("pool", "retries", "label"), "retries: \"label\" is missing"),
    (drop("pool", "retries", "default"), "retries: no default"),
    (drop("pool", "retries", "max"), "retries: \"max\" is missing"),
    (drop("pool", "retries", "group"), "retries: \"group\" is missing"),
    (put("pool", "retries", "min", 11), "retries: min 11, max 10"),
    (put("pool", "retries", "colour", "red"), "retries: unknown key \"colour\""),
    (put("pool", "retries", "values", ["a"]), "retries: unknown key \"values\""),
    (put("pool", "retries", "type", "float"), "retries: unknown type \"float\""),
    (put("pool", "retries", "effect", "reboot"), "retries: unknown effect \"reboot\""),
    (put("pool", "retries", "widget", "slider"), "retries: unknown widget \"slider\""),
    (put("pool", "retries", "required", "yes"), "retries: \"required\" must be bool"),
    (put("pool", "retries", "secret", True), "only a single text can be secret"),
    (put("pool", "retries", "unit", "ms"), "the name does not end in _ms"),
    (drop("pool", "connect_timeout_ms", "unit"), "the name has a unit, the field has none"),
    (put("pool", "retries", "nullable", True), "only a single ref can be null"),
    (put("pool", "retries", "min_items", 1), "belong to a list"),
    (drop("listener", "addresses", "ordered"), "a list says ordered"),
    (put("service", "note", "text_type", "poem"), "unknown text_type \"poem\""),
    (put("service", "note", "max", 501), "wider than note allows"),
    (put("service", "pool", "ref", {"kind": "lake", "on_delete": "refuse"}),
     "pool: ref to unknown kind \"lake\""),
    (put("service", "pool", "ref", {"kind": "pool", "on_delete": "forget"}),
     "unknown on_delete \"forget\""),
    (put("service", "pool", "ref", {"kind": "pool"}), "\"ref\" has the keys"),
    (put("pool", "mode", "values", ["http", "HTTP"]), "a value stands twice"),
    (put("pool", "mode", "values", []), "\"values\" has 1 to 64 words"),
    (put("pool", "mode", "values", ["8bit"]), "\"8bit\" cannot be a value"),
    (put("monitor", "path", "when", {"field": "kind", "values": ["http"]}),
     "path: when names \"kind\", which is no field before"),
    (put("monitor", "rise", "when", {"field": "path", "values": ["/"]}),
     "rise: when names \"path\", which is no field before"),
    (put("monitor", "path", "when", {"field": "type", "values": ["udp"]}),
     "path: when names the unknown value \"udp\""),
    (put("monitor", "path", "when", {"field": "rise", "values": [1]}), "neither an enum nor a bool"),
    (put("monitor", "path", "when", {"field": "type"}), "\"when\" has the keys"),
    (put("monitor", "path", "when", {"field": "type", "values": []}), "when has no values"),
    (put("listener", "certificates", "when", {"field": "tls", "values": [1]}),
     "unknown value \"1\" of \"tls\""),
    (put_sub(1, "default", 257), "members.weight: default 257 is outside"),
    (put("service", "pool", "ref", {"kind": "pool", "on_delete": "cascade"}),
     "service.json: pool: on_delete \"cascade\" needs a direct kind"),
    (put_sub(0, "ref", {"kind": "server", "on_delete": "cascade"}),
     "members: a record does not belong to another object"),
    (put("service", "pool", "protective", True), "pool: a protective field has a default"),
    (lambda source: field(source, "monitor", "steps")["fields"][0].__setitem__(
        "protective", True), "steps: a protective field stands in records that have order"),
    (put_sub(0, "ref", {"kind": "x", "on_delete": "refuse"}), "members.server: ref to unknown"),
    (put_sub(1, "read_only", True), "members.weight: a list, secret or read_only field"),
    (put("pool", "members", "list", False), "records stand in lists"),
    (add_field("pool", {"name": "x"}), "x: unknown type"),
    (add_field("pool", 7), "must be an object"),
    (add_copy("pool", "retries", "mode"), "mode: the name stands twice"),
    (add_copy("pool", "retries", "Big"), "a name is lower case"),
    (add_copy("pool", "retries", "members_weight"), "called F_POOL_MEMBERS_WEIGHT in C"),
    (drop_name, "the first field is \"name\""),
    (put("pool", "name", "required", False), "name: no default"),
    (put("node", "name", "default", "proxy"), "name: a singleton's name"),
    (put_kind("pool", "scope", "cluster"), "unknown scope \"cluster\""),
    (put_kind("pool", "help", "pool"), "kinds/pool.json: help is no sentence"),
    (put_kind("pool", "plural", "servers"), "\"servers\" is also in"),
    (put_kind("pool", "plural", "pool"), "a singleton's plural is its kind"),
    (put_kind("pool", "plural", "tasks"), "the kind \"pool\" has the path of a route"),
    (put_kind("pool", "unique", ["mode"]), "unique is"),
    (put_kind("pool", "checks", []), "unknown key \"checks\""),
    (lambda s: s.types["name"].__setitem__("pattern", "("), "types.json: name: pattern"),
    (lambda s: s.types["name"].__setitem__("keywords", {"b": {"type": "flag"},
                                                        "a": {"type": "flag"}}),
     "name: keywords are sorted"),
    (lambda s: s.types["name"].__setitem__("keywords", {"a": {"type": "float"}}),
     "name: a: no type, or an unknown one"),
    (lambda s: s.types["name"].__setitem__("keywords", {"a": {"type": "int", "min": 1}}),
     "name: a: \"max\" is missing"),
    (lambda s: s.types["name"].__setitem__("keywords", {"a": {"type": "int", "min": 1, "max": 0}}),
     "name: a: min 1, max 0"),
    (lambda s: s.types["name"].__setitem__(
        "keywords", {"a": {"type": "flag", "http_only": ["peers"]}}),
     "name: a: unknown section \"peers\""),
    (lambda s: s.types["global_directive"].__setitem__("keywords", {"x": {"type": "flag"}}),
     "has none of the keywords of global_directive"),
    (lambda s: s.types["name"].__delitem__("help"), "types.json: name: \"help\" is missing"),
    (lambda s: s.types["name"].__setitem__("min", 99), "types.json: name: min and max"),
    (put_route("task_get", "method", "FETCH"), "routes.json: task_get: unknown method"),
    (put_route("task_get", "permission", "root"), "unknown permission \"root\""),
    (put_route("task_get", "runs", "later"), "unknown runs \"later\""),
    (put_route("task_get", "path", "/tasks"), "path \"/tasks\""),
    (put_route("task_get", "path", "/api/v1/tasks/{no}"), "unknown path parameter \"no\""),
    (put_route("task_get", "colour", "red"), "unknown key \"colour\""),
    (put_route("task_get", "help", "no sentence"), "help is no sentence"),
    (put_route("task_get", "query", ["colour"]), "unknown query parameter \"colour\""),
    (put_route("task_get", "headers", ["X-Colour"]), "unknown header \"X-Colour\""),
    (put_route("task_get", "errors", [418]), "unknown error 418"),
    (put_route("task_get", "body_max_bytes", 5), "request and body_max_bytes go together"),
    (put_route("task_get", "responses", {}), "no response"),
    (put_route("task_get", "responses", {"404": "Task"}), "response 404"),
    (put_route("task_get", "responses", {"200": "Poem"}), "unknown schema \"Poem\""),
    (put_route("task_get", "responses", {"200": {"body": 1}}), "unknown key \"body\""),
    (put_route("task_get", "responses", {"200": {"headers": ["X"]}}), "unknown header \"X\""),
    (put_route("changes_create", "request", "Poem"), "unknown schema \"Poem\""),
    (put_route("object_get", "family", "singleton"), "does not fit the path"),
    (lambda s: route(s, "object_get").__delitem__("operation"), "a family has an operation"),
    (lambda s: route(s, "task_get").__delitem__("tag"), "\"tag\" is missing"),
    (put_route("task_get", "id", "task_list"), "the id \"task_list\" stands twice"),
    (put_route("task_get", "path", "/api/v1/tasks"), "GET /api/v1/tasks stands twice"),
    (put_route("task_get", "id", "Task"), "an id is lower case"),
    (lambda s: s.components["schemas"].__setitem__("Pool", {}), "\"Pool\" is made from a kind"),
    (lambda s: s.components["schemas"].__setitem__("A", {"$ref": "#/components/schemas/B"}),
     "$ref to unknown"),
    (lambda s: s.components.__setitem__("more", {}), "components.json: has the keys"),
]


def refusal(checked, source):
    try:
        checked(source)
    except load.SchemaError as error:
        return str(error)
    return ""


def twice_refused():
    try:
        load.refuse_twins([("a", 1), ("a", 2)])
    except ValueError:
        return True
    return False


def run(folder, checked):
    good = load.load(folder)
    failures = 0
    for damage, words in BROKEN:
        source = copy.deepcopy(good)
        damage(source)
        said = refusal(checked, source)
        if words not in said:
            print("not refused as \"%s\" but \"%s\"" % (words, said))
            failures += 1
    if refusal(checked, good):
        print("the schema itself is refused")
        failures += 1
    if not twice_refused():
        print("a key that stands twice is accepted")
        failures += 1
    print("%d broken schemas tried, %d failures" % (len(BROKEN) + 1, failures))
    return 1 if failures else 0
