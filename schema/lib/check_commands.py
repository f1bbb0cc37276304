# SPDX-License-Identifier: Apache-2.0
"""What commands.json must keep to."""
import re

from lib import check

TYPES = ("text", "number", "file", "folder", "kind", "object", "field", "choice", "revision",
         "flag")
KEYS = {"globals", "exit", "verbs", "without_verb"}
VERB = {"name": str, "group": str, "help": str, "calls": list}
VERB_OPTIONAL = {"details": str, "arguments": list, "options": list, "examples": list}
OPTION = {"name": str, "type": str, "help": str}
OPTION_OPTIONAL = {"value": str, "required": bool, "repeat": bool, "with": str}
ARGUMENT = {"name": str, "type": str}
ARGUMENT_OPTIONAL = {"optional": bool, "repeat": bool, "values": list}


def check_type(source, word):
    kind = word.removeprefix("object:")
    if kind != word and kind not in [k["kind"] for k in source.kinds]:
        yield "there is no kind \"%s\"" % kind
    elif kind == word and word not in TYPES:
        yield "unknown type \"%s\"" % word


def check_options(source, options):
    for option in options:
        found = list(check.check_keys(option, OPTION, OPTION_OPTIONAL))
        if found:
            yield from found
            continue
        name = option["name"]
        yield from check_type(source, option["type"])
        if not re.fullmatch(r"--[a-z]+(?:-[a-z]+)*", name):
            yield "%s: an option is lower case after two dashes" % name
        if not check.is_sentence(option["help"]):
            yield "%s: help is no sentence" % name
        if ("value" in option) == (option["type"] == "flag"):
            yield "%s: a flag has no value, any other option has one" % name
    names = [o.get("name") for o in options]
    yield from ("%s: with names %s, which is no other option" % (o.get("name"), o["with"])
                for o in options if "with" in o and o["with"] not in set(names) - {o.get("name")})
    yield from ("%s stands twice" % n for n in set(names) if names.count(n) > 1)


def check_arguments(source, arguments):
    optional = False
    for argument in arguments:
        yield from check.check_keys(argument, ARGUMENT, ARGUMENT_OPTIONAL)
        yield from check_type(source, argument.get("type", ""))
        if optional and not argument.get("optional"):
            yield "an argument that is needed stands after an optional one"
        optional = argument.get("optional", False)
        if (argument.get("type") == "choice") != ("values" in argument):
            yield "a choice has values"
    if any(a.get("repeat") for a in arguments[:-1]):
        yield "only the last argument can repeat"


def check_verb(source, verb):
    found = list(check.check_keys(verb, VERB, VERB_OPTIONAL))
    if found:
        return found
    if not re.fullmatch(r"[a-z]+", verb["name"]):
        found.append("a command is one word in lower case")
    for key in ("help", "details"):
        if not check.is_sentence(verb.get(key, "Yes, one.")):
            found.append("%s is no sentence" % key)
    found += check_options(source, source.commands["globals"] + verb.get("options", []))
    found += check_arguments(source, verb.get("arguments", []))
    return found


def check_coverage(source):
    """Every operation has a command, or a reason for having none."""
    commands = source.commands
    called = {call for verb in commands["verbs"] for call in verb["calls"]}
    for route in source.routes:
        place = "%s %s" % (route["method"], route["path"])
        if place not in called and place not in commands["without_verb"]:
            yield "no command calls %s: add one, or a reason to without_verb" % place
        if place in called and place in commands["without_verb"]:
            yield "%s has a command and a reason for having none" % place


def check_commands(source):
    if set(source.commands) != KEYS:
        return ["commands.json: has the keys %s" % ", ".join(sorted(KEYS))]
    found = []
    for verb in source.commands["verbs"]:
        found += ["commands.json: %s: %s" % (verb.get("name", "?"), reason)
                  for reason in check_verb(source, verb)]
    names = [v.get("name") for v in source.commands["verbs"]]
    found += ["commands.json: %s stands twice" % n for n in set(names) if names.count(n) > 1]
    if not found:
        found = ["commands.json: " + reason for reason in check_coverage(source)]
    return found
