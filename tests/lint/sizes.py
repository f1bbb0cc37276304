#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Limits on the size of files and functions, on nesting and on parameters."""
import ast
import re

import tree

FILE_LINES = {".h": 150, ".c": 600, ".py": 600}
FUNCTION_LINES = 70
NESTING = 4
PARAMETERS = 6
# (file, function): reason
MORE_PARAMETERS = {
    ("appliance/base/crypt.c", "crypt_open"): "three byte ranges, as every AEAD interface has",
}
# The signature of a library's callback is not ours to shorten.
LIBRARY_CALLBACK = re.compile(r"\bstruct MHD_Connection \*")


def suffix_of(path):
    return "." + path.rsplit(".", 1)[-1]


def wanted(path, _text):
    return suffix_of(path) in FILE_LINES


def deepest(body):
    """Depth of the blocks in a function's body; the braces of initialisers do not count."""
    depth = most = 0
    stack = []
    for match in re.finditer(r"[{}]", body):
        if match[0] == "}":
            depth -= stack.pop() if stack else 0
            continue
        before = body[:match.start()].rstrip()
        is_block = (body[match.end():match.end() + 1] == "\n"
                    and not before.endswith(("=", ",", "(")))
        stack.append(1 if is_block else 0)
        depth += stack[-1]
        most = max(most, depth)
    return most


def parameters(signature):
    depth = count = 0
    for char in signature[signature.find("("):]:
        depth += (char in "([") - (char in ")]")
        count += char == "," and depth == 1
        if depth == 0:
            break
    return count + 1


def excused(path, name, signature):
    return (path, name) in MORE_PARAMETERS or LIBRARY_CALLBACK.search(signature)


def check_c(path, text):
    for start, end, signature, body in tree.functions(tree.code_of(text)):
        name = re.search(r"(\w+)\s*\(", signature)
        name = name[1] if name else signature
        if end - start + 1 > FUNCTION_LINES:
            yield start, "%s: %d lines (limit %d)" % (name, end - start + 1, FUNCTION_LINES)
        if deepest(body) > NESTING:
            yield start, "%s: nesting %d (limit %d)" % (name, deepest(body), NESTING)
        count = parameters(signature)
        if count > PARAMETERS and not excused(path, name, signature):
            yield start, "%s: %d parameters (limit %d)" % (name, count, PARAMETERS)


def check_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield node.lineno, "%s: %d lines (limit %d)" % (node.name, lines, FUNCTION_LINES)


def check(path, text):
    suffix = suffix_of(path)
    lines = text.count("\n")
    if lines > FILE_LINES[suffix]:
        yield 1, "file: %d lines (limit %d)" % (lines, FILE_LINES[suffix])
    if suffix == ".py":
        yield from check_python(text)
    else:
        yield from check_c(path, text)


def c_function(signature, body):
    return "int\n%s\n{\n%s\n}\n" % (signature, body)


DEEP = "if (a) {\n" * 5 + "}\n" * 5
BAD = [
    ("a.h", "\n" * 151, "file"),
    ("a.c", "\n" * 601, "file"),
    ("a.py", "\n" * 601, "file"),
    ("a.c", c_function("f(void)", "    g();\n" * 69), "lines"),
    ("a.py", "def f():\n" + "    g()\n" * 70, "lines"),
    ("a.c", c_function("f(void)", DEEP), "nesting"),
    ("a.c", c_function("f(int a, int b, int c,\n    int d, int e, int f, int g)", ""),
     "7 parameters"),
]
GOOD = [
    ("a.c", c_function("f(void)", "    g();\n" * 66)),
    ("a.c", c_function("f(int a, int (*b)(int, int, int), int c, int d, int e, int f)", DEEP[9:])),
    ("a.c", c_function("f(struct MHD_Connection *c, int b, int c, int d, int e, int f, int g)", "")),
    ("a.c", c_function("f(void)", "    int a[2][2] = {\n{1,\n{2,\n{3,\n{4,\n{5}}}}}};")),
]

if __name__ == "__main__":
    tree.per_file(wanted, check, BAD, GOOD)
