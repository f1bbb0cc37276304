# SPDX-License-Identifier: Apache-2.0
"""commands_gen.h and .c: the commands of the command line with their help as a const table."""
import textwrap

from lib.emit_c import NOTICE, c_bool, c_string

WIDTH = 79
# Beside the option when its name is short, else below it.
INDENT = 28


def argument_words(verb):
    """"KIND [NAME [FIELD=VALUE ...]]"."""
    out, open_brackets = [], 0
    for argument in verb.get("arguments", ()):
        word = argument["name"]
        if argument["type"] == "choice":
            word = "|".join(argument["values"])
        if argument.get("repeat"):
            word += " ..." if argument.get("optional") else " [%s ...]" % word
        if argument.get("optional"):
            word = "[" + word
            open_brackets += 1
        out.append(word)
    return " ".join(out) + "]" * open_brackets


def option_word(option):
    return option["name"] + (" " + option["value"] if "value" in option else "")


def option_words(verb):
    for option in verb.get("options", ()):
        word = option_word(option)
        if not option.get("required"):
            word = "[%s]" % word
        yield word + (" ..." if option.get("repeat") else "")


def synopsis(verb):
    words = ["lockstep", verb["name"], argument_words(verb), *option_words(verb)]
    return [w for w in words if w]


def usage_lines(verb):
    """Broken between options, never inside one."""
    line = "usage:"
    for word in synopsis(verb):
        if len(line) + 1 + len(word) > WIDTH:
            yield line
            line = " " * 9
        line += " " + word
    yield line


def option_lines(options):
    for option in options:
        word = "  " + option_word(option)
        text = textwrap.wrap(option["help"], WIDTH - INDENT)
        if len(word) + 2 > INDENT:
            yield word
            word = ""
        for line in text:
            yield word.ljust(INDENT) + line
            word = ""


def verb_help(verb):
    lines = [*usage_lines(verb), "", *textwrap.wrap(verb["help"], WIDTH)]
    if "details" in verb:
        lines += textwrap.wrap(verb["details"], WIDTH)
    if verb.get("options"):
        lines += ["", "Options:", *option_lines(verb["options"])]
    if verb.get("examples"):
        lines += ["", "Examples:", *("  " + example for example in verb["examples"])]
    return "\n".join(lines) + "\n"


def groups(source):
    return list(dict.fromkeys(v["group"] for v in source.commands["verbs"]))


def general_help(source):
    lines = ["usage: lockstep [OPTION ...] COMMAND [ARGUMENT ...]"]
    for group in groups(source):
        lines += ["", group + ":"]
        for verb in source.commands["verbs"]:
            if verb["group"] == group:
                text = textwrap.wrap(verb["help"], WIDTH - 13)
                lines.append("  %-10s %s" % (verb["name"], text[0]))
                lines += [" " * 13 + more for more in text[1:]]
    lines += ["", "Options of every command, anywhere on the line:",
              *option_lines(source.commands["globals"]), "", "Exit status:"]
    for number, text in source.commands["exit"]:
        wrapped = textwrap.wrap(text, WIDTH - 5)
        lines += ["  %s  %s" % (number, wrapped[0]), *("     " + more for more in wrapped[1:])]
    lines += ["", "\"lockstep COMMAND --help\" says what a command takes; man lockstep has all."]
    return "\n".join(lines) + "\n"


def option_table(name, options):
    rows = ["    {%s, %s, %s, %s, %s, %s},\n" % (
        c_string(o["name"]), c_string(o.get("value")), c_bool(o["type"] == "number"),
        c_bool(o.get("required")), c_bool(o.get("repeat")), c_string(o.get("with")))
            for o in options]
    return ("static const struct command_option %s[] = {\n%s    {.name = NULL},\n};\n"
            % (name, "".join(rows)))


def counts(verb):
    arguments = verb.get("arguments", [])
    repeats = any(a.get("repeat") for a in arguments)
    least = len([a for a in arguments if not a.get("optional")])
    return least, "INT_MAX" if repeats else str(len(arguments))


def header(source):
    return "".join([
        NOTICE, "#ifndef LOCKSTEP_COMMANDS_GEN_H\n#define LOCKSTEP_COMMANDS_GEN_H\n\n",
        "struct cli;\n\n",
        *("int cmd_%s(struct cli *c, int argc, char **argv);\n" % v["name"]
          for v in source.commands["verbs"]), "\n#endif\n"])


def table(source):
    verbs = source.commands["verbs"]
    out = [NOTICE, "#include <limits.h>\n\n#include \"cli/cli.h\"\n\n"]
    out += [option_table("options_" + v["name"], v["options"]) for v in verbs if "options" in v]
    out.append(option_table("no_options", []))
    out.append(option_table("options_of_all", source.commands["globals"])
               .replace("static const struct command_option options_of_all",
                        "const struct command_option cli_globals"))
    out.append("\nconst char cli_help[] = %s;\n" % c_string(general_help(source)))
    out.append("\nconst struct command cli_commands[] = {\n")
    for verb in verbs:
        options = "options_" + verb["name"] if "options" in verb else "no_options"
        out.append("    {\n        .name = %s,\n        .help = %s,\n        .options = %s,\n"
                   "        .least = %s,\n        .most = %s,\n        .run = cmd_%s,\n    },\n"
                   % (c_string(verb["name"]), c_string(verb_help(verb)), options,
                      *counts(verb), verb["name"]))
    out.append("    {.name = NULL},\n};\n")
    return "".join(out)
