#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Options, actions and converters that the helper judges by a list of what it refuses (decision
0017): one that a new HAProxy knows and nobody looked at is found here.

With --update the list becomes what it was and what the programs know."""
import os
import re
import subprocess
import sys
import unittest

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known_keywords.list")
PROGRAMS = [p for p in ("/usr/sbin/haproxy", "/var/cache/lockstep/haproxy30/haproxy")
            if os.path.exists(p)]
PLACES = ("bind", "server", "option", "tcp-request", "tcp-response", "http-request",
          "http-response", "http-after-response")
# "bind <addr> ssl crt +1", "option nolinger [ FE ]", "http-request set-map*"
PLACE = re.compile(r"\t(%s) (?:<\w+> )*([^<\[+*]+)" % "|".join(PLACES))
CONVERTER = re.compile(r"\t?(\w[\w.-]*)(?:\(.*\))?: .* => ")


def keywords(program):
    done = subprocess.run([program, "-dKcfg,cnv", "-c", "-f", "/dev/null"], check=False,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found, section = set(), ""
    for line in done.stdout.splitlines():
        place, converter = PLACE.match(line), CONVERTER.match(line)
        if not line.startswith("\t") and not converter:
            section = line
        elif place:
            found.add("%s %s" % (place[1], place[2].strip()))
        elif converter:
            found.add("converter " + converter[1])
        elif section == "crt-list":
            found.add("crt-list " + line.split()[0])
    return found


def known():
    with open(LIST, encoding="ascii") as file:
        return set(line.rstrip("\n") for line in file if not line.startswith("#"))


def update():
    words = known().union(*map(keywords, PROGRAMS))
    with open(LIST, "w", encoding="ascii") as file:
        file.write("# SPDX-License-Identifier: Apache-2.0\n")
        file.writelines(word + "\n" for word in sorted(words))


class Keywords(unittest.TestCase):
    def test_no_program_knows_one_that_nobody_looked_at(self):
        for program in PROGRAMS:
            found = keywords(program)
            self.assertEqual(
                {"bind ssl crt", "server namespace", "option nolinger", "http-request set-map",
                 "converter map", "crt-list verify"} - found, set(), program)
            self.assertEqual(
                found - known(), set(),
                "%s: see whether these name a file, a program or a socket "
                "(appliance/helper/refuse_checks.c), then run this test with --update" % program)


if __name__ == "__main__":
    if "--update" in sys.argv:
        update()
    else:
        unittest.main()
