#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A layer includes only what is below it, and a library's header has one home."""
import re

import tree

FOLDERS = {
    "base": "appliance/base", "model": "appliance/model", "render": "render",
    "store": "appliance/store", "haproxy": "appliance/haproxy",
    "keepalived": "appliance/keepalived", "helper": "appliance/helper",
    "run": "appliance/run", "engine": "appliance/engine", "http": "appliance/http",
    "peer": "appliance/peer", "sync": "appliance/sync", "cli": "appliance/cli",
}
# Layer or program -> the layers it may include besides itself.
EDGES = {
    "base": "",
    "model": "base",
    "render": "model base",
    "store": "model base",
    "haproxy": "base",
    "keepalived": "base",
    "helper": "haproxy keepalived base",
    "run": "haproxy base",
    "engine": "helper keepalived haproxy store render model base",
    "sync": "peer engine keepalived store model base",
    "http": "sync peer engine helper keepalived haproxy store render model base",
    "peer": "base",
    "cli": "peer model base",
    "lockstepd": "http sync peer engine helper keepalived haproxy store render model base",
    "lockstep": "cli peer model base",
    "lockstep-helper": "helper haproxy keepalived base",
    "lockstep-run": "run haproxy base",
}
# Edges that reach one header of a layer, not the layer.
NARROW = {("cli", "model"): {"model/schema.h"}, ("http", "peer"): {"peer/trial.h"}}
GENERATED = {"schema_gen.h": "model", "routes_gen.h": "http", "commands_gen.h": "cli",
             "version_gen.h": "base"}
LIBRARIES = {
    "sqlite3.h": "store",
    "curl/": "peer",
    "microhttpd.h": "http",
    "openssl/": "base",
    "xxhash.h": "base",
    "zlib.h": "base",
    "pcre2.h": "base",
    "jansson.h": "base model store helper engine http sync peer cli",
}
# No clock, no file, no process: what a pure layer returns depends on its arguments only.
PURE = {"model", "render"}
IMPURE = ("unistd.h", "fcntl.h", "time.h", "signal.h", "spawn.h", "poll.h", "pthread.h",
          "netdb.h", "dirent.h", "threads.h", "sys/epoll.h", "sys/stat.h", "sys/wait.h",
          "sys/time.h", "sys/un.h", "base/clock.h", "base/file.h", "base/proc.h",
          "base/mailbox.h", "base/probe.h", "base/crashpoint.h")
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"]+)[>\"]", re.MULTILINE)


def layer_of(path):
    for layer, folder in FOLDERS.items():
        if path.startswith(folder + "/"):
            return layer
    match = re.fullmatch(r"appliance/(lockstep[a-z-]*)\.[ch]", path)
    return match[1] if match else None


def wanted(path, _text):
    return tree.is_c(path) and path.startswith(("appliance/", "render/"))


def check_library(layer, header):
    for prefix, homes in LIBRARIES.items():
        if header.startswith(prefix) and layer not in homes.split():
            yield "<%s> belongs to %s" % (header, homes)
    if layer in PURE and header in IMPURE:
        yield "%s is pure: no %s" % (layer, header)


def check_own(layer, header):
    target = GENERATED.get(header, header.split("/")[0])
    if layer in PURE and header in IMPURE:
        yield "%s is pure: no %s" % (layer, header)
    if target not in FOLDERS:
        yield "\"%s\" names no layer: write \"layer/file.h\"" % header
    elif target != layer and target not in EDGES[layer].split():
        yield "%s must not include %s (\"%s\")" % (layer, target, header)
    elif (layer, target) in NARROW and header not in GENERATED:
        if header not in NARROW[layer, target]:
            yield "of %s, %s may include only %s" % (
                target, layer, " ".join(sorted(NARROW[layer, target])))


def check(path, text):
    layer = layer_of(path)
    if layer not in EDGES:
        yield 1, "no layer: add the folder or program to the table in tests/lint/layers.py"
        return
    for match in INCLUDE.finditer(tree.code_of(text, keep_strings=True)):
        rule = check_library if match[1] == "<" else check_own
        for reason in rule(layer, match[2]):
            yield tree.line_at(text, match.start(1)), reason


BAD = [
    ("appliance/base/a.c", "#include \"model/schema.h\"\n", "must not include model"),
    ("appliance/model/a.c", "#include \"schema_gen.h\"\n#include \"render/a.h\"\n", "render"),
    ("appliance/base/a.h", "#include \"schema_gen.h\"\n", "must not include model"),
    ("appliance/peer/a.c", "#include \"engine/a.h\"\n", "engine"),
    ("appliance/cli/a.c", "#include \"model/snapshot.h\"\n", "only model/schema.h"),
    ("appliance/lockstep.c", "#include \"engine/a.h\"\n", "engine"),
    ("appliance/store/a.c", "#include \"a.h\"\n", "names no layer"),
    ("appliance/http/a.c", "#include \"peer/rest.h\"\n", "only peer/trial.h"),
    ("appliance/http/a.c", "#include <sqlite3.h>\n", "belongs to store"),
    ("appliance/engine/a.c", "#include <curl/curl.h>\n", "belongs to peer"),
    ("appliance/engine/a.h", "#include <microhttpd.h>\n", "belongs to http"),
    ("appliance/peer/a.c", "#include <openssl/evp.h>\n", "belongs to base"),
    ("render/a.c", "#include <jansson.h>\n", "belongs to base model"),
    ("render/a.c", "#include <time.h>\n", "pure"),
    ("appliance/model/a.c", "#include \"base/file.h\"\n", "pure"),
    ("appliance/misc/a.c", "int a;\n", "no layer"),
]
GOOD = [
    ("appliance/engine/a.c", "#include \"engine/b.h\"\n#include \"store/c.h\"\n"
     "#include <jansson.h>\n#include <time.h>\n"),
    ("render/a.c", "#include \"schema_gen.h\"\n/* #include <time.h> */\n"),
    ("appliance/cli/a.c", "#include \"model/schema.h\"\n#include \"version_gen.h\"\n"),
    ("appliance/lockstepd.c", "#include \"http/server.h\"\n"),
]

if __name__ == "__main__":
    tree.per_file(wanted, check, BAD, GOOD)
