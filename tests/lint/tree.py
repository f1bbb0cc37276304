# SPDX-License-Identifier: Apache-2.0
"""What every lint needs: the files of the tree, C without comments, and one way to report.

A lint that never bites proves nothing, so each brings texts that it must refuse (BAD) and texts
that it must accept (GOOD); `--self-test` tries them.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP_FOLDERS = {".git", "build", "node_modules", "__pycache__"}
TOKEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def walk(root):
    """A tree without git: a source archive, or the scratch folder of a self-test."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIP_FOLDERS)
        found += [(pathlib.Path(folder) / n).relative_to(root).as_posix() for n in names]
    return sorted(found)


def files(root=ROOT):
    """Tracked files and untracked ones that are not ignored, as paths relative to root."""
    if not (root / ".git").exists():
        return walk(root)
    # safe.directory: the tests run as root on a checkout that may belong to somebody else.
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z",
         "--cached", "--others", "--exclude-standard"], check=True, capture_output=True)
    names = set(listed.stdout.decode().split("\0")) - {""}
    return sorted(n for n in names if (root / n).is_file())


def is_c(path):
    return path.endswith((".c", ".h"))


def is_data(path):
    """Inputs and expected outputs of tests are bytes, not prose or code."""
    return path.startswith(("tests/fuzz/corpus/", "tests/golden/", "tests/fixtures/")) and not is_c(path)


def is_script(path, text):
    return bool(re.match(r"#!.*\b(sh|bash)\b", text))


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def code_of(text, keep_strings=False):
    """C text with comments, and what is in strings, made blank; positions stay."""
    def replace(match):
        token = match[0]
        if token[0] == "/":
            return blank(token)
        return token if keep_strings else token[0] + blank(token[1:-1]) + token[-1]
    return TOKEN.sub(replace, text)


def line_at(text, position):
    return text.count("\n", 0, position) + 1


def functions(code):
    """(first line, last line, signature, body) per function; relies on the fixed format: only a
    function has its braces in column 0."""
    for match in re.finditer(r"^\{\n(.*?)^\}", code, re.DOTALL | re.MULTILINE):
        before = code[:match.start()]
        start = max(before.rfind("\n\n"), before.rfind("}\n"), before.rfind(";\n"))
        yield (line_at(code, match.start()), line_at(code, match.end()),
               before[start + 1:].strip(), match[1])


def read(path, root=ROOT):
    return (root / path).read_text(encoding="utf-8", errors="surrogateescape")


def report(findings, looked_at):
    for path, line, reason in findings:
        print("%s:%d: %s" % (path, line, reason))
    print("%d files, %d findings" % (looked_at, len(findings)))
    # Nothing to look at means that the lint has lost its subject.
    return 1 if findings or not looked_at else 0


def self_test(try_out, bad, good):
    failures = 0
    for path, text, word in bad:
        reasons = [r for _, _, r in try_out(path, text)]
        if not any(word in r for r in reasons):
            print("not refused: %s %r: wanted %r, got %r" % (path, text, word, reasons))
            failures += 1
    for path, text in good:
        reasons = list(try_out(path, text))
        if reasons:
            print("wrongly refused: %s %r: %r" % (path, text, reasons))
            failures += 1
    print("%d refused and %d accepted texts tried, %d failures"
          % (len(bad), len(good), failures))
    return 1 if failures or not bad else 0


def per_file(wanted, check, bad, good):
    """main() of a lint that looks at one text at a time: check(path, text) yields (line, reason)."""
    def findings_of(path, text):
        return [(path, line, reason) for line, reason in check(path, text)]

    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test(findings_of, bad, good))
    findings, count = [], 0
    for path in files():
        text = read(path)
        if wanted(path, text):
            count += 1
            findings += findings_of(path, text)
    sys.exit(report(findings, count))


def per_tree(check, bad, good):
    """main() of a lint that asks a tool: check(root) returns ([(path, line, reason)], count)."""
    def try_out(path, text):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="ascii")
            return check(root)[0]

    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test(try_out, bad, good))
    sys.exit(report(*check(ROOT)))


def tool_findings(command, root, pattern):
    """Runs a checker; its lines that match pattern (groups path, line, reason) are findings. A
    checker that fails without such a line is a finding of its own."""
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    found = [(os.path.relpath(os.path.join(root, m["path"]), root), int(m["line"]), m["reason"])
             for m in re.finditer(pattern, output, re.MULTILINE)]
    if done.returncode and not found:
        found = [(command[0], 0, "exit %d: %s" % (done.returncode, output.strip()[:300]))]
    return found
