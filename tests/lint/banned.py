#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What this code base does not use. Comments and strings do not count, except where a rule says
so; an exception is one exact entry in ALLOW with its reason."""
import fnmatch
import re

import tree

CALLS = {
    "no second process but by base/proc": "fork vfork system popen execl execlp execle execv "
                                          "execvp execvpe execve",
    "signalfd only": "signal sigaction",
    "no jumps": "setjmp longjmp sigsetjmp siglongjmp",
    "no alloca": "alloca strdupa strndupa",
    "no bound": "strcpy stpcpy strcat strncat sprintf vsprintf strncpy gets scanf sscanf fscanf",
    "no error reporting": "atoi atol atoll atof",
    "numbers are read by buf": "strtol strtoll strtoul strtoull strtoimax strtoumax strtod "
                               "strtof",
    "hidden state": "strtok gmtime localtime ctime asctime rand srand random srandom drand48 "
                    "strerror basename dirname",
    "the environment is no interface": "getenv secure_getenv setenv putenv",
    "race": "mktemp tmpnam tempnam",
    "no waiting by time": "sleep usleep nanosleep clock_nanosleep",
    "threads are those of the architecture": "pthread_create thrd_create",
    "SQL is constant and bound": "sqlite3_mprintf sqlite3_snprintf sqlite3_exec",
}
WORDS = {word: reason for reason, words in CALLS.items() for word in words.split()}
CALL = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(sorted(WORDS, key=len, reverse=True)))

# (file pattern, rule word): reason
ALLOW = {
    ("tests/*", "getenv"): "ctest hands over the folders by the environment",
    ("tests/*", "setenv"): "a test sets what the program under it must ignore",
    ("tests/*", "pthread_create"): "a test of thread safety needs threads",
    ("tests/unit/test_proc.c", "sigaction"): "makes a signal ignored, which a child must not "
                                             "inherit",
    ("tests/support/*_lab.h", "void *"): "cmocka hands its state over as void **",
    ("tests/*", "static"): "fakes and fixtures of one test program",
    ("tests/lab/*", "time.sleep"): "the one place that polls a condition with a deadline",
    ("tests/bench/*", "time.sleep"): "what is measured happens meanwhile",
    ("appliance/base/crashpoint_hooks.c", "static"): "compiled into test builds only",
    ("appliance/base/crypt.c", "static"): "algorithms, fetched once and constant from then on",
    ("appliance/base/log.c", "static"): "set once by main before any thread starts",
    ("appliance/base/mailbox.c", "pthread_create"): "the one place that starts worker threads",
    ("appliance/base/*.h", "void *"): "bytes of any type are what these functions are about",
}
# Integer constants or library enums, whose list may grow under us: a default is right.
OTHER_CONSTANTS = re.compile(
    r"(SQLITE|MHD|CURLE|CURL|JSON|AF|EVP|X509|SIG|E[A-Z]+|Z|IPPROTO|SOCK|KW)(_|$)")


def product(path):
    return path.startswith(("appliance/", "render/"))


def calls(path, code, _text):
    for match in CALL.finditer(code):
        yield match.start(), match[1], WORDS[match[1]]


def floats(path, code, _text):
    if path.startswith("appliance/model/"):
        for match in re.finditer(r"\b(float|double)\b", code):
            yield match.start(), "float", "no floats in the model"


def mutable_state(path, code, _text):
    """File-scope and function-scope variables that outlive a call. The format puts a definition
    at column 0 and "static" of a local first on its line."""
    if path.endswith(".c"):
        rule = r"^[ ]*static\s+(?:_Thread_local\s+)?(?![^;={]*\bconst\b)[^;={()]+[;={\[]"
        for match in re.finditer(rule, code, re.MULTILINE):
            yield match.start(), "static", "global mutable state"


def void_pointers(path, code, _text):
    if path.endswith(".h"):
        for match in re.finditer(r"\bvoid \*+(?!(?:ctx|cls)\b)", code):
            yield match.start(), "void *", "void * in a header (but for a callback's ctx)"


def bit_fields(path, code, _text):
    for match in re.finditer(r"^\s+(?:unsigned|signed|int|bool|u?int\d+_t)[\w ]*:\s*\d+;", code,
                             re.MULTILINE):
        yield match.start(), "bit-field", "bit-field"


def conditional_bodies(path, code, _text):
    for start, _end, _signature, body in tree.functions(code):
        for match in re.finditer(r"^\s*#\s*if", body, re.MULTILINE):
            line = start + body.count("\n", 0, match.start(0)) + 1
            yield tree_position(code, line), "#if", "#if in a function body"


def unset_cleanups(path, code, _text):
    """An early return hands what CLEANUP names to its function, whatever is in it."""
    rule = r"^[^\n]*\bCLEANUP\(\w+\)[^;=\n]*?\b(\w+)(\[[^\]\n]*\])?;"
    for start, _end, _signature, body in tree.functions(code):
        for match in re.finditer(rule, body, re.MULTILINE):
            first = re.search(r"\breturn\b|\b%s\b" % match[1], body[match.end():])
            if first and first[0] == "return":
                line = start + body.count("\n", 0, match.start()) + 1
                yield tree_position(code, line), "CLEANUP", "CLEANUP of a variable not yet set"


def tree_position(code, line):
    return sum(len(text) + 1 for text in code.split("\n")[:line - 1])


def switch_body(code, start):
    depth = 0
    for match in re.finditer(r"[{}]", code[start:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return code[start:start + match.end()]
    return code[start:]


def enum_defaults(path, code, _text):
    for match in re.finditer(r"\bswitch \(", code):
        body = switch_body(code, match.start())
        labels = re.findall(r"\bcase ([A-Z][A-Z0-9]*_\w+):", body)
        own = [name for name in labels if not OTHER_CONSTANTS.match(name)]
        found = re.search(r"\bdefault:", body)
        if own and found:
            yield match.start() + found.start(), "default", "default: in a switch over an enum"


def comments(path, _code, text):
    for match in re.finditer(r"/\*.*?\*/|//[^\n]*", text, re.DOTALL):
        if re.search(r"\b(TODO|FIXME|XXX)\b(?! ?\(?#\d+)", match[0]):
            yield match.start(), "TODO", "TODO without a ticket number"
        # A whole comment that is one statement; prose may well end in a bracket and a semicolon.
        if re.fullmatch(r"/[*/]\s*[\w.>*-]+(\(.*\)|( \w+)?\s*=[^=].*);\s*(\*/)?", match[0]):
            yield match.start(), "code", "commented-out code"


def strings(path, _code, text):
    plain = tree.code_of(text, keep_strings=True)
    rule = r"\"[^\"\n]*\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b[^\"\n]*%[sdlu][^\"\n]*\""
    for match in re.finditer(rule, plain):
        yield match.start(), "SQL", "SQL built from strings"
    for match in re.finditer(r"\"(/usr)?(/bin/)?(sh|bash|dash)\"", plain):
        if product(path):
            yield match.start(), "sh", "no shell"


C_RULES = (calls, void_pointers, bit_fields, conditional_bodies, enum_defaults, comments, floats,
           mutable_state, strings, unset_cleanups)


def sql_rules(text):
    code = re.sub(r"--[^\n]*", lambda m: " " * len(m[0]), text)
    for match in re.finditer(r"\bjson\w*\s*\(|->>?", code, re.IGNORECASE):
        yield match.start(), "json", "JSON function in persisted DDL"


def python_rules(text):
    for match in re.finditer(r"\b(time\.sleep|os\.system|os\.popen|shell=True)\b", text):
        yield match.start(), match[1], "%s: wait on a condition, call without a shell" % match[1]


def name_rules(path):
    stem = path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    if stem in ("util", "utils", "common", "misc", "helpers", "manager", "handler", "data"):
        yield 0, "name", "a name that says nothing: %s" % stem


def wanted(path, _text):
    return tree.is_c(path) or path.endswith((".py", ".sql"))


def allowed(path, word):
    return any(word == w and fnmatch.fnmatchcase(path, p) for p, w in ALLOW)


def raw_check(path, text):
    if path == "tests/lint/banned.py":
        return
    if tree.is_c(path):
        code = tree.code_of(text)
        yield from name_rules(path)
        for rule in C_RULES:
            yield from rule(path, code, text)
    elif path.endswith(".sql"):
        yield from sql_rules(text)
    else:
        yield from python_rules(text)


def check(path, text):
    for position, word, reason in raw_check(path, text):
        if not allowed(path, word):
            shown = "%s: %s" % (word, reason) if word in WORDS else reason
            yield tree.line_at(text, position), shown


BAD = [("appliance/a.c", "x = %s(y);\n" % word, word) for word in sorted(WORDS)] + [
    ("appliance/model/a.h", "double a;\n", "float"),
    ("appliance/engine/a.c", "static int count;\n", "global mutable"),
    ("appliance/engine/a.c", "static struct x *table[4] = {0};\n", "global mutable"),
    ("appliance/engine/a.c", "int\nf(void)\n{\n    static int n = 0;\n}\n", "global mutable"),
    ("appliance/engine/a.h", "void *engine_x(void);\n", "void *"),
    ("appliance/model/a.h", "struct a {\n    unsigned b : 3;\n};\n", "bit-field"),
    ("appliance/a.c", "int\nf(void)\n{\n#ifdef X\n    g();\n#endif\n}\n", "#if"),
    ("appliance/a.c", "switch (k) {\ncase K_POOL:\n    break;\ndefault:\n}\n", "default"),
    ("appliance/a.c", "int\nf(int a)\n{\n    CLEANUP(buf_fini) struct buf b;\n    if (a)\n"
     "        return 1;\n    buf_init(&b, 1);\n    return 0;\n}\n", "not yet set"),
    ("appliance/a.c", "/* TODO later */\n", "TODO"),
    ("appliance/a.c", "/* old_call(x); */\n", "commented-out"),
    ("appliance/a.c", "    // x = 3;\n", "commented-out"),
    ("appliance/store/a.c", "f(\"SELECT a FROM %s\", t);\n", "SQL"),
    ("appliance/a.c", "argv[0] = \"/bin/sh\";\n", "shell"),
    ("appliance/base/util.c", "int a(void);\n", "says nothing"),
    ("migrations/0001_a.sql", "CREATE INDEX a ON b (json_extract(c, '$.d'));\n", "JSON"),
    ("tests/component/test_a.py", "time.sleep(1)\n", "time.sleep"),
    ("schema/a.py", "os.system('x')\n", "os.system"),
]
GOOD = [
    ("appliance/a.c", "/* fork() */\nx = \"system(\";\nproc_fork(1);\na->signal(2);\n"),
    ("appliance/a.c", "static const int a[] = {1};\nstatic int\nf(int a);\nstatic int\ng(void)\n"
     "{\n    return 1;\n}\n"),
    ("appliance/a.c", "switch (rc) {\ncase SQLITE_ROW:\n    break;\ndefault:\n    f();\n}\n"),
    ("appliance/a.c", "switch (a) {\ncase K_POOL:\n    f();\n}\nswitch (b) {\ncase 'a':\n"
     "default:\n}\n"),
    ("appliance/a.c", "int\nf(void)\n{\n    CLEANUP(buf_fini) struct buf b;\n"
     "    struct x *c CLEANUP(x_fini) = NULL;\n    buf_init(&b, 1);\n    return 0;\n}\n"),
    ("appliance/engine/a.h", "typedef int (*run_fn)(void *ctx, int a);\n"),
    ("appliance/a.c", "/* See TODO(#12): wait for it; then go on. */\n"),
    ("appliance/a.c", "/* The body (if any);\n * then its hash (raw); */\n"),
    ("tests/lab/wait.py", "time.sleep(0.02)\n"),
    ("migrations/0001_a.sql", "CREATE TABLE a (body TEXT) STRICT; -- json() is not used\n"),
]

if __name__ == "__main__":
    tree.per_file(wanted, check, BAD, GOOD)
