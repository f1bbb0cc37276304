#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a real HAProxy does with rules, conditions, allowed networks, proxies in front, limits of
rate, virtual addresses and the log."""
import itertools
import json
import socket
import unittest

import lab
import test_routing as routing
from test_routing import listener, pool, service

LOCAL = "127.0.0.1"
# Everything that upsets a file format that forgets to quote.
HOSTILE = ("a b", "a\"b", "a'b", "a\\b", "a#b", "#", "$HOME", "${X}", "%[src]", "%%", "%", "{}", ";",
           "-i", "\u00fc", "x" * 300, "map(/x)", "\\1", "if", "||", "!is.a", "a,b", "(", "[")


def condition(name, kind, *values, **fields):
    return dict(kind="condition", name=name, type=kind, values=list(values), **fields)


def rule(name, action, *conditions, **fields):
    used = [dict(condition=c.lstrip("!"), negate=c.startswith("!")) for c in conditions]
    return dict(kind="rule", name=name, action=action, conditions=used, **fields)


def ask(port, host="plain.test", path="/", headers=(), source=LOCAL, prefix=b"", to=LOCAL):
    """The answer to a request from an address of this machine; status 0: the connection is cut."""
    lines = ["GET %s HTTP/1.1" % path, "Connection: close", *headers]
    if host is not None:
        lines.insert(1, "Host: %s" % host)
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    with socket.socket(family) as sock:
        sock.settimeout(10)
        sock.bind((source, 0))
        data = b""
        try:
            sock.connect((to, port))
            sock.sendall(prefix + ("\r\n".join(lines) + "\r\n\r\n").encode())
            while True:
                more = sock.recv(65536)
                if not more:
                    break
                data += more
        except (ConnectionResetError, BrokenPipeError):
            pass
        return routing.Answer(data.decode("latin-1"))


def seen(answer, name):
    return [v for k, v in answer.seen["headers"] if k.lower() == name.lower()]


class Access(routing.Proxy):
    """Who may connect, and what is believed of whom."""
    BACKENDS = ("app",)
    NETWORKS = ["10.%d.%d.0/24" % (i // 250, i % 250) for i in range(4998)]

    @classmethod
    def objects(cls):
        app = dict(listeners=["http", "trusted", "proxy", "mixed", "limited"], to="app")
        yield listener("http", 80)
        yield listener("trusted", 81, trusted_proxies=["127.0.0.2", "127.0.0.64/26"])
        yield listener("proxy", 82, accept_proxy=True, allowed_networks=["198.51.100.0/24"])
        yield listener("mixed", 83, accept_proxy=True, accept_proxy_networks=["127.0.0.3"])
        yield listener("limited", 84, allowed_networks=[*cls.NETWORKS, "127.0.0.9"])
        yield listener("tcp", 85, mode="tcp")
        yield dict(listener("vip", 90), addresses=["192.0.2.50", "2001:db8::50"])
        yield dict(kind="vip_group", name="v", addresses=["192.0.2.50/24", "2001:db8::50/64"])
        yield service("plain", hosts=["plain.test"], **app)
        yield service("vip", ["vip"], "app")
        yield service("allow", ["http", "trusted"], "app", hosts=["allow.test"],
                      allowed_networks=[*cls.NETWORKS, "127.0.0.9", "203.0.113.0/24"])
        yield service("rate", ["http"], "app", hosts=["rate.test"], rate_limit=3,
                      rate_limit_period_s=3600)
        yield pool("raw", "app", mode="tcp")
        yield service("tcp", ["tcp"], "raw", allowed_networks=["127.0.0.9"])

    def test_the_last_of_five_thousand_networks_counts(self):
        self.assertEqual(ask(80, "allow.test").status, 403)
        self.assert_server(ask(80, "allow.test", source="127.0.0.9"), "app")
        self.assertEqual(ask(84).status, 0)
        self.assert_server(ask(84, source="127.0.0.9"), "app")

    def test_a_tcp_service_takes_connections_from_its_networks_only(self):
        self.assertEqual(ask(85).status, 0)
        self.assert_server(ask(85, source="127.0.0.9"), "app")

    FORGED = ("X-Forwarded-For: 203.0.113.7", "X-Forwarded-For: 198.51.100.1, 203.0.113.8",
              "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.test", "X-Forwarded-Port: 1",
              "Forwarded: for=203.0.113.7", "X-Real-IP: 203.0.113.7")

    def test_what_a_visitor_claims_of_himself_is_removed(self):
        for port in (80, 81):
            with self.subTest(port=port):
                answer = ask(port, headers=self.FORGED)
                self.assertEqual(seen(answer, "x-forwarded-for"), [LOCAL])
                self.assertEqual(seen(answer, "x-forwarded-proto"), ["http"])
                self.assertEqual(seen(answer, "x-forwarded-host"), ["plain.test"])
                self.assertEqual(seen(answer, "x-forwarded-port"), [str(port)])
                self.assertEqual(seen(answer, "forwarded"), [])
                self.assertEqual(seen(answer, "x-real-ip"), [])

    def test_what_a_trusted_proxy_says_is_kept(self):
        for source in ("127.0.0.2", "127.0.0.100"):
            with self.subTest(source=source):
                answer = ask(81, headers=self.FORGED, source=source)
                self.assertEqual(", ".join(seen(answer, "x-forwarded-for")),
                                 "203.0.113.7, 198.51.100.1, 203.0.113.8")
                self.assertEqual(seen(answer, "x-forwarded-proto"), ["https"])
                self.assertEqual(seen(answer, "x-forwarded-host"), ["evil.test"])
                self.assertEqual(seen(answer, "x-forwarded-port"), ["1"])
                self.assertEqual(seen(answer, "forwarded"), [])

    def test_the_address_from_a_trusted_proxy_is_the_visitors(self):
        last = ("X-Forwarded-For: 198.51.100.1, 203.0.113.8",)
        self.assert_server(ask(81, "allow.test", headers=last, source="127.0.0.2"), "app")
        self.assertEqual(ask(81, "allow.test", headers=last).status, 403)
        for broken in ("X-Forwarded-For: 203.0.113.8, nonsense", "X-Forwarded-For: ", "X-Y: z"):
            with self.subTest(broken=broken):
                self.assertEqual(
                    ask(81, "allow.test", headers=(broken,), source="127.0.0.2").status, 403)

    def test_the_proxy_protocol_tells_the_address(self):
        good = b"PROXY TCP4 198.51.100.7 192.0.2.1 5555 80\r\n"
        self.assertEqual(seen(ask(82, prefix=good), "x-forwarded-for"), ["198.51.100.7"])
        self.assertEqual(ask(82, prefix=good.replace(b"198.51", b"198.52")).status, 0)
        self.assertEqual(ask(82).status, 0)

    def test_the_proxy_protocol_is_taken_from_listed_networks_only(self):
        good = b"PROXY TCP6 2001:db8::7 2001:db8::1 5555 80\r\n"
        self.assertEqual(seen(ask(83, prefix=good, source="127.0.0.3"), "x-forwarded-for"),
                         ["2001:db8::7"])
        self.assertEqual(ask(83, prefix=good).status, 400)
        self.assertEqual(seen(ask(83), "x-forwarded-for"), [LOCAL])

    def test_more_requests_than_the_limit_get_429(self):
        for source in ("127.0.0.20", "127.0.0.21"):
            for _ in range(3):
                self.assert_server(ask(80, "rate.test", source=source), "app")
            answer = ask(80, "rate.test", source=source)
            self.assertEqual(answer.status, 429)
            self.assertEqual(answer.header("retry-after"), ["3600"])
            self.assert_server(ask(80, source=source), "app")

    def test_a_virtual_address_is_bound_before_it_is_there(self):
        with self.assertRaises(OSError):
            ask(90, to="192.0.2.50")
        lab.run("ip", "address", "add", "192.0.2.50/32", "dev", "lo")
        lab.run("ip", "address", "add", "2001:db8::50/128", "dev", "lo", "nodad")
        self.assert_server(ask(90, to="192.0.2.50"), "app")
        answer = lab.wait_for(lambda: ask(90, to="2001:db8::50", source="2001:db8::50"),
                              "the kernel has a route to itself")
        self.assert_server(answer, "app")


class Spellings(routing.Proxy):
    """Nobody gets past a rule or a list of networks by another spelling of host or path."""
    BACKENDS = ("app",)

    @classmethod
    def objects(cls):
        yield listener("http", 80)
        yield listener("plain", 81)
        yield service("closed", ["http"], "app", hosts=["a.test"], allowed_networks=["10.0.0.0/8"])
        yield service("open", ["http"], "app", hosts=["a.test"], path="/public")
        yield service("ruled", ["http"], "app", hosts=["b.test"])
        yield condition("admin", "path", "/admin", match="prefix")
        yield condition("other", "host", "c.test")
        yield rule("admin", "deny", "admin", service="ruled")
        yield rule("other", "deny", "other", listener="http")
        yield service("c", ["http"], "app", hosts=["c.test"])
        yield service("plain", ["plain"], "app", hosts=["a.test"])

    def test_a_host_that_is_none_is_refused(self):
        """Else it would be looked up as another name than a server takes it for."""
        for host in ("u@a.test", "a.test:80:90", "a.test#", "a.test?x", "a.test%00", "a.test,b.test",
                     "x,lockstep.invalid", "[::1", "a test"):
            for port in (80, 81):
                with self.subTest(host=host, port=port):
                    self.assertEqual(ask(port, host, "/").status, 400)
        for host in ("a.test:80", "A.Test.", "a.test:"):
            self.assert_server(ask(81, host, "/"), "app")
        self.assertEqual(ask(81, "[2001:db8::1]:80", "/").status, 404)

    def test_a_host_is_no_part_of_a_path(self):
        self.assertEqual(ask(80, "a.test", "/secret").status, 403)
        for host in ("a.test/public", "a.test/public/", "c.test/x", "b.test/admin/.."):
            with self.subTest(host=host):
                self.assertEqual(ask(80, host, "/secret").status, 400)
                self.assertEqual(ask(81, host, "/secret").status, 400)

    def test_a_host_in_the_request_line_alone_is_refused(self):
        """HAProxy makes no Host of it, but a server takes it for one."""
        for port in (80, 81):
            self.assertEqual(ask(port, None, "http://a.test/secret").status, 400)
            self.assertEqual(ask(port, None, "ftp://a.test/secret").status, 400)
        self.assertEqual(ask(80, "a.test", "http://a.test/secret").status, 403)
        self.assert_server(ask(81, "a.test", "http://a.test/secret"), "app")
        self.assertEqual(ask(81, None, "/secret").status, 404)

    def test_other_spellings_of_a_path_are_the_same_or_refused(self):
        for path in ("/admin", "//admin", "///admin/x", "/admin//", "/admin%2fx", "/admin%2F",
                     "/%2fadmin", "/admin%5Cx", "/admin;a=b", "/admin;x/y", "/;x/admin",
                     "/admin;%2f", "/admin%3bx", "/admin%3Bx/y"):
            with self.subTest(path=path):
                self.assertEqual(ask(80, "b.test", path).status, 403)
        for path in ("/./admin", "/x/../admin", "/x/..", "/.", "/%61dmin", "/adm%69n",
                     "/%2e/admin", "/%2E%2e/admin", "/%5Fx", "/%7ex", "/x%2f..%2Fadmin",
                     "/x/..%2fadmin", "/x/..;/admin", "/x%5c..%5cadmin", "/x%2f..", "/x\\admin",
                     "/.;/admin", "/..%3bx/admin", "/admin%00", "/admin%0a", "/.%00/admin",
                     "/x/..%00/admin", "/%u0061dmin", "/admin%u002fx", "/admin%c0%afx", "/admin%",
                     "/admin%2", "/admin%zz"):
            with self.subTest(path=path):
                self.assertEqual(ask(80, "b.test", path).status, 400)
        for path in ("/public/../secret", "/public/%2e%2e/secret", "/public/..%2fsecret",
                     "/public/..;/secret"):
            with self.subTest(path=path):
                self.assertEqual(ask(80, "a.test", path).status, 400)
        for path in ("//secret", "/;/public", "/;x/public/..a"):
            with self.subTest(path=path):
                wanted = 403 if "secret" in path else 200
                self.assertEqual(ask(80, "a.test", path).status, wanted)

    def test_what_clients_have_a_reason_to_send_passes_as_it_is(self):
        for path in ("/a//b", "/a%20b", "/group%2Fproject", "/a.b/..c", "/a;b=c/d;e", "/x%5Cy", "/%c3%bc", "/a%25b"):
            with self.subTest(path=path):
                answer = ask(80, "b.test", path)
                self.assert_server(answer, "app")
                self.assertEqual(answer.seen["path"], path)
        # Where nothing is asked of paths, nothing is refused.
        self.assert_server(ask(81, "a.test", "/x/../y"), "app")


class Actions(routing.Proxy):
    BACKENDS = ("app", "other", "third")

    @classmethod
    def objects(cls):
        cls.log = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        cls.log.bind((LOCAL, 0))
        cls.log.settimeout(10)
        cls.addClassCleanup(cls.log.close)
        yield dict(kind="haproxy", name="haproxy", log_format="json",
                   log_target="%s:%d" % cls.log.getsockname(), extra_global=["maxconnrate 1000"])
        yield listener("http", 80)
        yield listener("https", 443, tls=True)
        yield listener("ruled", 81)
        for name in ("plain", "shared", "hostile", "paths", "answers"):
            yield service(name, ["http"], "app", hosts=["%s.test" % name])
        yield service("paused", ["http", "ruled"], "app", hosts=["paused.test"], enabled=False,
                      allowed_networks=["10.0.0.0/8"], rate_limit=1)
        yield service("any", ["ruled"], "app")
        yield service("sent", ["http", "https"], "app", hosts=["sent.test"])
        yield from cls.conditions()
        yield from cls.rules()
        for number, text in enumerate(HOSTILE):
            yield rule("q%d" % number, "set_header", service="hostile", value=text,
                       header="X-Q%d" % number)
            yield rule("r%d" % number, "set_response_header", service="hostile", value=text,
                       header="X-R%d" % number)

    @staticmethod
    def conditions():
        for number, text in enumerate(HOSTILE[:15]):
            yield condition("h%d" % number, "header", text, key="X-Text")
        yield condition("deny", "path", "/deny")
        yield condition("gone", "path", "/gone", match="prefix")
        yield condition("robots", "path", "/robots.txt")
        yield condition("to-other", "path", "/other", match="prefix")
        yield condition("to-third", "path", "/other/third", match="prefix")
        yield condition("moved", "path", "/moved", "/moved-too")
        yield condition("prefixed", "path", "/prefixed")
        yield condition("scheme", "path", "/scheme")

    @staticmethod
    def rules():
        at = dict(service="answers")
        yield rule("deny", "deny", "deny", **at)
        yield rule("gone", "deny", "gone", status=410, **at)
        yield rule("robots", "return", "robots", body="User-agent: *\n\tDisallow: %[src] $X\n", **at)
        yield rule("moved", "redirect", "moved", target="https://x.test/%20a?b=%25&c", status=301,
                   **at)
        yield rule("prefixed", "redirect", "prefixed", redirect_by="prefix", status=308,
                   target="https://new.test/x", **at)
        yield rule("scheme", "redirect", "scheme", redirect_by="scheme", **at)
        # The second by order, the first by name: the order counts.
        yield rule("a-other", "use_pool", "to-other", order=20, pool="other", **at)
        yield rule("b-third", "use_pool", "to-third", order=10, pool="third", **at)
        yield rule("off", "deny", enabled=False, **at)
        yield rule("add1", "add_header", header="X-Add", value="1", order=1, **at)
        yield rule("add2", "add_header", header="X-Add", value="2", order=2, **at)
        yield rule("del", "del_header", header="User-Agent", **at)
        yield rule("delr", "del_response_header", header="Server", **at)
        yield rule("set", "set_response_header", header="X-Frame-Options", value="DENY", **at)
        yield rule("paused", "redirect", target="https://x.test/", service="paused")
        yield rule("sent", "deny", service="sent")
        yield rule("all", "redirect", target="/all", listener="ruled")
        yield rule("p1", "replace_path", path_prefix="/old.x", path="/new/y/", service="paths",
                   order=1)
        yield rule("p2", "replace_path", path_prefix="/strip/", path="/", service="paths", order=2)

    def test_the_checker_has_no_warning(self):
        self.assertNotIn("WARNING", self.checked)

    def test_answers(self):
        for path, status, header, value in (
                ("/deny", 403, None, None), ("/gone", 410, None, None),
                ("/gone/x", 410, None, None), ("/gonex", 200, None, None),
                ("/moved?x=1", 301, "location", "https://x.test/%20a?b=%25&c"),
                ("/moved-too", 301, "location", "https://x.test/%20a?b=%25&c"),
                ("/prefixed?q=1", 308, "location", "https://new.test/x/prefixed?q=1"),
                ("/scheme?q=1", 302, "location", "https://answers.test/scheme?q=1")):
            with self.subTest(path=path):
                answer = ask(80, "answers.test", path)
                self.assertEqual(answer.status, status)
                if header:
                    self.assertEqual(answer.header(header), [value])

    def test_a_text_is_returned_byte_by_byte(self):
        answer = ask(80, "answers.test", "/robots.txt")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.header("content-type"), ["text/plain; charset=utf-8"])
        self.assertEqual(answer.body, "User-agent: *\n\tDisallow: %[src] $X\n")

    def test_the_first_rule_chooses_the_pool(self):
        for path, label in (("/", "app"), ("/other", "other"), ("/other/x", "other"),
                            ("/other/third", "third"), ("/other/thirdx", "other")):
            self.assert_server(ask(80, "answers.test", path), label)

    def test_headers_are_added_and_removed(self):
        answer = ask(80, "answers.test", headers=("User-Agent: x", "X-Add: 0"))
        self.assertEqual(seen(answer, "x-add"), ["0", "1", "2"])
        self.assertEqual(seen(answer, "user-agent"), [])
        self.assertEqual(answer.header("server"), [])
        self.assertEqual(answer.header("x-frame-options"), ["DENY"])

    def test_rules_touch_their_service_only_though_the_pool_is_shared(self):
        for path in ("/deny", "/robots.txt", "/other"):
            answer = ask(80, "shared.test", path)
            self.assert_server(answer, "app")
            self.assertEqual(answer.header("x-frame-options"), [])
            self.assertEqual(seen(answer, "x-add"), [])

    def test_hostile_texts_arrive_byte_by_byte(self):
        answer = ask(80, "hostile.test")
        for number, text in enumerate(HOSTILE):
            with self.subTest(text=text):
                wanted = [text.encode().decode("latin-1")]
                self.assertEqual(seen(answer, "x-q%d" % number), wanted)
                self.assertEqual(answer.header("x-r%d" % number), wanted)

    def test_paths_are_replaced_by_whole_segments(self):
        for path, wanted in (("/old.x", "/new/y"), ("/old.x/a?b", "/new/y/a?b"),
                             ("/oldyx", "/oldyx"), ("/old.xy", "/old.xy"), ("/strip", "/"),
                             ("/strip/a/b", "/a/b"), ("/stripe", "/stripe")):
            with self.subTest(path=path):
                self.assertEqual(ask(80, "paths.test", path).seen["path"], wanted)

    def test_a_paused_service_answers_503_before_everything_else(self):
        for port in (80, 81):
            answer = ask(port, "paused.test")
            self.assertEqual(answer.status, 503)
            self.assertIn("Service unavailable", answer.body)

    def test_a_rule_of_a_listener_holds_whatever_the_service(self):
        for host in ("plain.test", "nobody.test"):
            self.assertEqual(ask(81, host).header("location"), ["/all"])

    def test_a_service_that_is_sent_on_to_https_is_so_before_its_rules(self):
        self.assertEqual(ask(80, "sent.test").status, 308)
        self.assertEqual(routing.get(443, "/", "sent.test", tls=routing.any_tls()).status, 403)

    def test_a_log_line_is_one_object_that_holds_what_was_sent(self):
        path = "/a\"b'cd$HOME{};,<>?%[src]e\\f"
        ask(80, "plain.test", path)
        while True:
            line = self.log.recv(65536).decode()
            said = json.loads(line[line.index("{"):]) if "{" in line else {}
            if said.get("uri") == path:
                break
        self.assertEqual(said["client"], LOCAL)
        self.assertEqual(said["method"], "GET")
        self.assertEqual(said["host"], "plain.test")
        self.assertEqual(said["pool"], "app")
        self.assertEqual(said["status"], 200)


class Conditions(routing.Proxy):
    """Each condition and combination tells by a header of the answer whether it holds."""
    BACKENDS = ("app",)
    TABLE = [
        (condition("src", "src", "127.0.0.8/30", "2001:db8::/32"),
         [dict(source="127.0.0.9")], [dict()]),
        (condition("method", "method", "POST", "GET"), [dict()], []),
        (condition("no-method", "method", "POST"), [], [dict()]),
        (condition("host", "host", "C.test"), [dict(host="c.TEST:80")], [dict(host="d.test")]),
        (condition("host-end", "host", ".D.test", match="suffix"),
         [dict(host="a.d.test")], [dict(host="d.test")]),
        (condition("exact", "path", "/a", "#b"), [dict(path="/a"), dict(path="/a?x")],
         [dict(path="/a/"), dict(path="/A"), dict(path="/b")]),
        (condition("prefix", "path", "/api/", "/x", match="prefix"),
         [dict(path="/api"), dict(path="/api/x"), dict(path="/x?y")],
         [dict(path="/apix"), dict(path="/API"), dict(path="/v/api")]),
        (condition("suffix", "path", ".PHP", match="suffix", ignore_case=True),
         [dict(path="/a.php"), dict(path="/a.Php?x")], [dict(path="/a.php/b")]),
        (condition("regex", "path", "^/v[0-9]+/", "\"q\"$", match="regex"),
         [dict(path="/v12/a"), dict(path="/\"q\"")], [dict(path="/V1/a"), dict(path="/v/a")]),
        (condition("header", "header", "x, y", "#z", key="X-A"),
         [dict(headers=("x-a: x, y",)), dict(headers=("X-A: 1", "X-A: #z"))],
         [dict(), dict(headers=("X-A: x",))]),
        (condition("contains", "header", "bot", key="User-Agent", match="contains",
                   ignore_case=True),
         [dict(headers=("User-Agent: A (Bot; x)",))], [dict(headers=("User-Agent: curl",))]),
        (condition("present", "header", key="X-P", match="present"),
         [dict(headers=("X-P: 1",))], [dict()]),
        (condition("query", "query", "a b", key="q"),
         [dict(path="/?z=1&q=a%20b"), dict(path="/?q=a+b")], [dict(path="/?q=a"), dict()]),
        (condition("cookie", "cookie", "1", key="s"),
         [dict(headers=("Cookie: t=2; s=1",))], [dict(headers=("Cookie: s=2",)), dict()]),
        (condition("tls", "tls"), [], [dict()]),
    ]
    COMBINATIONS = [(match, *signs) for match in ("all", "any")
                    for signs in itertools.product(("", "!"), repeat=2)]

    @classmethod
    def objects(cls):
        yield listener("http", 80)
        yield service("any", ["http"], "app")
        for told, _, _ in cls.TABLE:
            yield told
            yield rule("t-%s" % told["name"], "set_response_header", told["name"],
                       service="any", header="X-Is-%s" % told["name"], value="1")
        yield condition("a", "query", "1", key="a")
        yield condition("b", "query", "1", key="b")
        for number, (match, first, second) in enumerate(cls.COMBINATIONS):
            yield rule("c%d" % number, "set_response_header", first + "a", second + "b",
                       match=match, service="any", header="X-C%d" % number, value="1")

    def test_each_condition_holds_when_it_should(self):
        for told, holds, fails in self.TABLE:
            for request, wanted in [(r, ["1"]) for r in holds] + [(r, []) for r in fails]:
                with self.subTest(condition=told["name"], request=request):
                    answer = ask(80, **request)
                    self.assert_server(answer, "app")
                    self.assertEqual(answer.header("x-is-%s" % told["name"]), wanted)

    def test_all_and_any_with_and_without_not(self):
        for a, b in itertools.product((0, 1), repeat=2):
            answer = ask(80, path="/?a=%d&b=%d" % (a, b))
            for number, (match, first, second) in enumerate(self.COMBINATIONS):
                holds = (bool(a) != bool(first), bool(b) != bool(second))
                wanted = all(holds) if match == "all" else any(holds)
                with self.subTest(a=a, b=b, match=match, first=first, second=second):
                    self.assertEqual(answer.header("x-c%d" % number), ["1"] if wanted else [])


if __name__ == "__main__":
    routing.private_network()
    unittest.main(verbosity=2)
