#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What visitors of a real HAProxy get for rendered objects: which pool answers which request,
which certificate is shown, what servers are told."""
import itertools
import json
import pathlib
import re
import socket
import ssl
import subprocess
import tempfile
import threading
import unittest

import lab
from proxy import (
    GOLDEN, PLACEHOLDER, TOOL, Answer, Proxy, any_tls, der, get, listener, pool,
    private_network, raw, server, service)

CERTIFICATES = {o["name"]: o
                for o in json.loads((GOLDEN / "tls" / "objects.json").read_text())["shared"]
                if o["kind"] == "certificate"}
PEM = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
SUFFIX = "\r\nConnection: close\r\n\r\n"


class Files(Proxy):
    OBJECTS = [listener("http", 80)]

    def test_the_worker_tells_the_digest_that_was_rendered(self):
        self.assertRegex(self.digest, "^[0-9a-f]{16}$")
        self.assertIn("\ndescription: lockstep %s\n" % self.digest,
                      self.ask("haproxy.sock", "show info\n"))

    def test_the_checker_has_no_warning(self):
        self.assertNotIn("WARNING", self.checked)

    def test_the_same_objects_give_the_same_bytes_in_any_folder(self):
        other = self.lab.dir / "other"
        other.mkdir()
        digest = lab.run(TOOL, self.lab.dir / "objects.json", other, self.lab.dir, "haproxy",
                         PLACEHOLDER).stdout.strip()
        self.assertEqual(digest, self.digest)
        self.assertEqual((other / "haproxy.cfg").read_bytes(), self.config.read_bytes())

    def test_sockets_belong_to_the_group_only(self):
        for name in ("haproxy.sock", "probe.sock"):
            self.assertEqual((self.lab.dir / name).stat().st_mode & 0o777, 0o660)

    def test_a_listener_without_services_answers_404(self):
        answer = get(80)
        self.assertEqual(answer.status, 404)
        self.assertEqual(answer.header("cache-control"), ["no-store"])


class Shadowing(Proxy):
    """Rules that overlap, put in under every order of names; a listener for each order."""
    BACKENDS = ("any", "any-api", "wild", "exact", "wild-api")
    RULES = [
        dict(to="any"),
        dict(to="any-api", path="/api"),
        dict(to="wild", hosts=["*.x.test"]),
        dict(to="exact", hosts=["a.x.test", "b.x.test"]),
        dict(to="wild-api", hosts=["*.x.test"], path="/api/v2"),
    ]
    WANTED = [
        ("a.x.test", "/", "exact"), ("a.x.test", "/api/v2", "exact"), ("b.x.test", "/q", "exact"),
        ("q.x.test", "/", "wild"), ("q.x.test", "/api/v1", "wild"),
        ("q.x.test", "/api/v2/z", "wild-api"), ("q.x.test", "/api/v22", "wild"),
        ("other", "/api/v1", "any-api"), ("other", "/api", "any-api"), ("other", "/", "any"),
        ("other", "/apix", "any"), ("x.test", "/api/v2", "any-api"),
        ("q.q.x.test", "/", "any"),
    ]

    @classmethod
    def orders(cls):
        return list(itertools.permutations(range(len(cls.RULES))))

    @classmethod
    def objects(cls):
        for number, order in enumerate(cls.orders()):
            yield listener("l%d" % number, 1000 + number)
            for place, rule in zip(order, cls.RULES):
                yield service("s%d-%d" % (number, place), ["l%d" % number], **rule)

    def test_no_rule_is_shadowed_under_any_order(self):
        for number, order in enumerate(self.orders()):
            for host, path, label in self.WANTED:
                with self.subTest(order=order, host=host, path=path):
                    self.assert_server(get(1000 + number, path, host), label)


class Hosts(Proxy):
    BACKENDS = ("root", "api", "shop", "any")
    OBJECTS = [
        listener("http", 80), listener("named", 81),
        service("root", ["http", "named"], "root", hosts=["a.x.test"]),
        service("api", ["http"], "api", hosts=["a.x.test"], path="/api"),
        service("shop", ["http"], "shop", hosts=["a.x.test"], path="/shop/de/"),
        service("any", ["http"], "any", path="/any"),
    ]

    def test_the_host_may_be_written_in_any_way(self):
        for host in ("a.x.test", "A.X.Test", "a.x.test.", "a.x.test:80", "A.x.test.:8080"):
            with self.subTest(host=host):
                self.assert_server(get(80, "/", host), "root")

    def test_the_host_may_be_in_the_request_line(self):
        self.assert_server(Answer(raw(80, "GET http://a.x.test/api HTTP/1.1\r\n"
                                      "Host: a.x.test" + SUFFIX)), "api")

    def test_no_host_finds_services_for_any_host_only(self):
        self.assert_server(get(80, "/any", host=None), "any")
        self.assert_server(Answer(raw(80, "GET /any HTTP/1.0\r\n\r\n")), "any")
        self.assertEqual(get(80, "/api", host=None).status, 404)
        self.assertEqual(get(80, "/", host="").status, 404)

    def test_a_path_is_matched_by_whole_segments(self):
        for path, label in (("/api", "api"), ("/api/", "api"), ("/api/x", "api"),
                            ("/api?x=/y", "api"), ("/apix", "root"), ("/ap", "root"),
                            ("/API", "root"), ("/x/api", "root"), ("/?x=/api", "root"),
                            ("/shop/de", "shop"), ("/shop/de/x", "shop"),
                            ("/shop/den", "root"), ("/shop", "root")):
            with self.subTest(path=path):
                self.assert_server(get(80, path), label)

    def test_a_path_is_matched_as_it_is_sent(self):
        for path, label in (("//api", "root"), ("/api/../x", "api"), ("/x/../api", "root"),
                            ("/%61pi", "root"), ("/api%2fx", "root"), ("/./api", "root")):
            with self.subTest(path=path):
                answer = get(80, path)
                self.assert_server(answer, label)
                # Python's server makes one slash of two at the front.
                self.assertEqual(answer.seen["path"], path.replace("//", "/"))

    def test_unknown_hosts_get_404(self):
        for host in ("b.x.test", "x.test", "aa.x.test", "a.x.test.test", "..", "[::1]", "a" * 300):
            with self.subTest(host=host):
                answer = get(81, "/", host)
                self.assertEqual(answer.status, 404)
                self.assertEqual(answer.header("content-type"), ["text/plain; charset=utf-8"])

    def test_a_host_that_is_none_is_refused(self):
        for host in ("*.x.test", "a.x.test/", "a.x.test,b", "[::1", "a.x.test:80:80"):
            with self.subTest(host=host):
                self.assertEqual(get(81, "/", host).status, 400)

    def test_requests_without_a_path_get_404(self):
        self.assertEqual(Answer(raw(81, "OPTIONS * HTTP/1.1\r\nHost: a.x.test" + SUFFIX)).status,
                         404)


class Off(Proxy):
    BACKENDS = ("on", "fallback")
    TITLE = "a b\"c'd\\e#f $HOME ${X} %[src] {} ; -i \u00fc"
    OBJECTS = [
        dict(kind="haproxy", name="haproxy", error_title=TITLE, error_text="<b>&amp;</b>"),
        listener("http", 80), listener("tcp", 81, mode="tcp"), listener("free", 82, mode="tcp"),
        listener("closed", 83, enabled=False),
        server("dead", 1),
        pool("dead", "dead"), pool("empty"), pool("raw", "on", mode="tcp"),
        service("off", ["http"], "on", hosts=["off.test"], enabled=False),
        service("fallback", ["http"], "fallback"),
        service("dead", ["http"], "dead", hosts=["dead.test"]),
        service("empty", ["http"], "empty", hosts=["empty.test"]),
        service("closed", ["closed"], "on"),
        service("raw", ["tcp"], "raw", enabled=False),
    ]

    def assert_error_page(self, answer):
        self.assertEqual(answer.status, 503)
        self.assertEqual(answer.header("cache-control"), ["no-store"])
        self.assertEqual(answer.header("content-type"), ["text/html; charset=utf-8"])
        self.assertEqual(answer.header("content-length"), [str(len(answer.body))])
        text = answer.body.encode("latin-1").decode()
        for escape, char in (("&quot;", "\""), ("&#39;", "'")):
            text = text.replace(escape, char)
        self.assertIn("<h1>%s</h1>" % self.TITLE, text)
        self.assertIn("<p>&lt;b&gt;&amp;amp;&lt;/b&gt;</p>", text)

    def test_a_service_that_is_off_answers_503_and_no_other_takes_its_host(self):
        self.assert_error_page(get(80, "/x", "off.test"))
        self.assert_server(get(80, "/x", "other.test"), "fallback")

    def test_a_pool_without_a_server_that_is_up_answers_503(self):
        self.assert_error_page(get(80, "/", "dead.test"))
        self.assert_error_page(get(80, "/", "empty.test"))

    def test_a_tcp_listener_without_a_service_that_is_on_closes(self):
        for port in (81, 82):
            self.assertEqual(raw(port, "GET / HTTP/1.0\r\n\r\n"), "")

    def test_a_listener_that_is_off_opens_no_port(self):
        with self.assertRaises(ConnectionRefusedError):
            raw(83, "")


class Redirects(Proxy):
    BACKENDS = ("app",)
    OBJECTS = [
        listener("http", 80), listener("https", 443, tls=True), listener("alt", 8444 + 1, tls=True),
        service("app", ["http", "https", "alt"], "app", hosts=["app.test"]),
        service("alt", ["http", "alt"], "app", hosts=["alt.test"]),
        service("plain", ["http", "https"], "app", hosts=["plain.test"], redirect_https=False),
        service("only", ["http"], "app", hosts=["only.test"]),
        service("any", ["http", "https"], "app"),
    ]

    def test_plain_requests_are_sent_on_with_path_and_query(self):
        for host, path, location in (
                ("app.test", "/a/b?c=%20d&e", "https://app.test/a/b?c=%20d&e"),
                ("APP.test:80", "/", "https://app.test/"),
                ("alt.test", "/x", "https://alt.test:8445/x"),
                ("[2001:db8::1]:80", "/", "https://[2001:db8::1]/"),
                ("elsewhere.test", "//evil.test/", "https://elsewhere.test//evil.test/")):
            with self.subTest(host=host):
                answer = get(80, path, host)
                self.assertEqual(answer.status, 308)
                self.assertEqual(answer.header("location"), [location])

    def test_nothing_is_sent_on_where_that_is_not_wanted_or_possible(self):
        self.assert_server(get(80, "/", "plain.test"), "app")
        self.assert_server(get(80, "/", "only.test"), "app")
        self.assert_server(get(443, "/", "app.test", tls=any_tls()), "app")

    def test_a_request_without_host_cannot_be_sent_on(self):
        self.assertEqual(get(80, "/", host=None).status, 400)
        self.assertEqual(get(80, "/", host="").status, 400)


def shown(port, name):
    """The certificate that a visitor gets who asks for this name, in DER."""
    if name == "127.0.0.1":  # which Python would not send
        done = subprocess.run(
            ["openssl", "s_client", "-connect", "127.0.0.1:%d" % port, "-servername", name],
            check=False, input="", capture_output=True, text=True)
        return ssl.PEM_cert_to_DER_cert(PEM.search(done.stdout)[0])
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        with any_tls().wrap_socket(plain, server_hostname=name) as sock:
            return sock.getpeercert(binary_form=True)


class Certificates(Proxy):
    BACKENDS = ("app",)

    @classmethod
    def objects(cls):
        yield from CERTIFICATES.values()
        yield listener("own", 443, tls=True, certificates=["z"])
        yield listener("none", 444, tls=True)
        yield listener("raw", 445, tls=True, mode="tcp")
        yield pool("raw", "app", mode="tcp")
        yield service("a", ["own", "none"], "app", hosts=["a.test"], certificate="a")
        yield service("b", ["own", "none"], "app", hosts=["b.test"], certificate="b",
                      enabled=False)
        yield service("raw", ["raw"], "raw", certificate="c")

    def test_each_name_gets_its_certificate(self):
        for port in (443, 444):
            self.assertEqual(shown(port, "a.test"), der(CERTIFICATES["a"]))
            self.assertEqual(shown(port, "b.test"), der(CERTIFICATES["b"]))
        self.assertEqual(shown(443, "z.test"), der(CERTIFICATES["z"]))
        self.assertEqual(shown(445, "c.test"), der(CERTIFICATES["c"]))

    def test_no_name_and_unknown_names_get_the_listeners_first(self):
        placeholder = ssl.PEM_cert_to_DER_cert(PEM.search(PLACEHOLDER.read_text())[0])
        for name in (None, "unknown.test", "x.a.test"):
            with self.subTest(name=name):
                self.assertEqual(shown(443, name), der(CERTIFICATES["z"]))
                self.assertEqual(shown(444, name), placeholder)
                self.assertEqual(shown(445, name), placeholder)

    def test_http2_is_offered_in_http_mode_only(self):
        for port, protocol in ((443, "h2"), (445, None)):
            context = any_tls()
            context.set_alpn_protocols(["h2", "http/1.1"])
            with socket.create_connection(("127.0.0.1", port), 10) as plain:
                with context.wrap_socket(plain) as sock:
                    self.assertEqual(sock.selected_alpn_protocol(), protocol)

    def test_old_tls_is_refused(self):
        context = any_tls()
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        with socket.create_connection(("127.0.0.1", 443), 10) as plain:
            with self.assertRaises(ssl.SSLError):
                context.wrap_socket(plain)

    def test_http2_requests_are_routed_like_others(self):
        done = subprocess.run(
            ["curl", "-sk", "--http2", "--resolve", "a.test:443:127.0.0.1", "https://A.test/x"],
            check=True, capture_output=True, text=True)
        self.assertEqual(json.loads(done.stdout)["path"], "/x")


class Choice(Proxy):
    """The certificate for a name depends on the objects alone, not on how they came in."""
    BACKENDS = ("app",)
    UNKNOWN = ("c.d.x.test", "zzz.test", None, "127.0.0.1")

    @classmethod
    def setUpClass(cls):
        cls.made, cls.names, cls.more = {}, {"D": "D", "W": "W", "E": "E"}, []
        for label in cls.names:
            cls.make(label)
        super().setUpClass()

    @classmethod
    def make(cls, label):
        hosts = {"D": ("*.x.test", "s.x.test", "d.test"), "W": ("*.x.test",),
                 "E": ("a.x.test",), "0": ("*.x.test", "a.x.test", "s.x.test")}[label]
        with tempfile.TemporaryDirectory() as folder:
            key, chain = pathlib.Path(folder, "key"), pathlib.Path(folder, "chain")
            lab.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", chain,
                    "-subj", "/CN=x", "-addext",
                    "subjectAltName=" + ",".join("DNS:" + h for h in hosts))
            cls.made[label] = dict(kind="certificate", id="%016x" % ord(label),
                                   key=key.read_text(), chain=chain.read_text())

    @classmethod
    def objects(cls):
        d, w, e = (cls.names[label] for label in "DWE")
        yield from (dict(cls.made[label], name=name) for label, name in cls.names.items())
        yield listener("services", 443, tls=True, certificates=[d])
        yield listener("strict", 444, tls=True, certificates=[d], strict_sni=True)
        yield listener("none", 445, tls=True)
        yield listener("own", 446, tls=True, certificates=[d, w, e, *cls.more])
        yield service("w", ["services", "strict"], "app", hosts=["*.x.test"], certificate=w)
        yield service("w1", ["none"], "app", hosts=["b.x.test"], certificate=w)
        yield service("e", ["services", "strict", "none"], "app", hosts=["a.x.test"],
                      certificate=e)
        for name in cls.more:
            yield service("0", ["services", "strict", "none"], "app", hosts=["0.x.test"],
                          certificate=name)

    def assert_choice(self):
        known = {der(made): label for label, made in self.made.items()}
        for port in (443, 444, 445, 446):
            for name, label in (("a.x.test", "E"), ("b.x.test", "W")):
                self.assertEqual(known.get(shown(port, name)), label, (port, name))
        for name in self.UNKNOWN:
            for port, label in ((443, "D"), (445, None), (446, "D")):
                self.assertEqual(known.get(shown(port, name)), label, (port, name))
        for name, label in (("s.x.test", "W"), ("d.test", "D")):
            self.assertEqual(known.get(shown(444, name)), label, name)
        for name in self.UNKNOWN[:-1]:
            with self.assertRaises(ssl.SSLError, msg=name):
                shown(444, name)

    def restart(self, folder):
        self.render(folder)
        self.haproxy.terminate()
        self.haproxy.wait(10)
        self.start()
        self.assert_choice()

    def test_it_stays_whatever_happens_to_the_listeners_default(self):
        self.assert_choice()
        for label in "EWD":
            self.make(label)
            made, path = self.made[label], "crt/%s.pem" % self.made[label]["id"]
            self.ask("haproxy.sock", "set ssl cert %s <<\n%s%s\n"
                     % (path, made["chain"], made["key"]))
            self.assertIn("Success!", self.ask("haproxy.sock", "commit ssl cert %s\n" % path))
            self.assert_choice()
        lists = sorted((p.name, p.read_text()) for p in self.files.glob("crt-list/*"))
        self.restart("renewed")
        self.assertEqual(lists, sorted(
            (p.name, p.read_text()) for p in self.files.glob("crt-list/*")))
        self.names["D"] = "zz"
        self.restart("renamed")
        self.make("0")
        self.names["0"] = "0"
        self.more.append("0")
        self.restart("added")


class Forwarded(Proxy):
    BACKENDS = ("app",)
    OBJECTS = [listener("http", 80), listener("https", 443, tls=True),
               service("app", ["http", "https"], "app", redirect_https=False)]
    FORGED = ("X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 7.7.7.7\r\nx-forwarded-proto: https\r\n"
              "X-Forwarded-Host: evil.test\r\nX-Forwarded-Port: 1\r\nForwarded: for=6.6.6.6\r\n"
              "X-Real-IP: 6.6.6.6\r\n")

    def told(self, answer):
        names = ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port",
                 "forwarded", "x-real-ip")
        return sorted((k.lower(), v) for k, v in answer.seen["headers"] if k.lower() in names)

    def wanted(self, proto, port, host):
        told = [("x-forwarded-for", "127.0.0.1"), ("x-forwarded-port", port),
                ("x-forwarded-proto", proto)]
        return sorted(told + ([("x-forwarded-host", host)] if host else []))

    def test_servers_see_only_the_real_client_and_scheme(self):
        for port, tls, proto in ((80, None, "http"), (443, any_tls(), "https")):
            for forged in ("", self.FORGED):
                answer = get(port, "/", "App.test:99", extra=forged, tls=tls)
                self.assertEqual(self.told(answer), self.wanted(proto, str(port), "App.test:99"))
                self.assertIn(["host", "App.test:99"],
                              [[k.lower(), v] for k, v in answer.seen["headers"]])

    def test_without_host_no_host_is_told(self):
        answer = get(80, "/", host=None, extra=self.FORGED)
        self.assertEqual(self.told(answer), self.wanted("http", "80", None))


class Pools(Proxy):
    """Checks and time-outs as servers and clients feel them."""
    BACKENDS = ("good", "bad")
    PATH = "/a'b(c);$HOME/~!&*+,=:@%20"

    @classmethod
    def objects(cls):
        cls.backends["bad"].server.health = 500
        cls.checks = []
        cls.checked_port = cls.serve_checks()
        yield dict(kind="monitor", name="health", type="http", path="/healthz", interval_ms=100,
                   rise=1, fall=1)
        yield dict(kind="monitor", name="odd", type="http", path=cls.PATH, interval_ms=100,
                   host="[2001:db8::1]:8080", method="OPTIONS", port=cls.checked_port)
        yield dict(kind="monitor", name="bare", type="http", interval_ms=100,
                   port=cls.checked_port)
        yield server("gone", 80, address="no-such-host.invalid")
        yield listener("tcp", 81, mode="tcp", client_timeout_ms=300)
        yield listener("short", 82, mode="tcp", client_timeout_ms=60000)
        yield pool("tcp", "good", "bad", mode="tcp", monitor="health", server_timeout_ms=5000)
        yield pool("short", "good", mode="tcp", server_timeout_ms=300)
        yield pool("odd", "good", monitor="odd")
        yield pool("bare", "good", monitor="bare")
        yield pool("gone", "gone", "good")
        yield listener("http", 80)
        yield service("tcp", ["tcp"], "tcp")
        yield service("short", ["short"], "short")
        yield service("gone", ["http"], "gone")

    @classmethod
    def serve_checks(cls):
        """A port that keeps what checks send."""
        sock = socket.create_server(("127.0.0.1", 0))
        cls.addClassCleanup(sock.close)

        def serve():
            while True:
                try:
                    client, _ = sock.accept()
                except OSError:
                    return
                with client:
                    cls.checks.append(client.recv(65536).decode("latin-1"))
                    client.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        threading.Thread(target=serve, daemon=True).start()
        return sock.getsockname()[1]

    def state_of(self, name, label):
        for line in self.ask("haproxy.sock", "show stat\n").splitlines():
            fields = line.split(",")
            if fields[:2] == [name, label]:
                return fields[17]
        return None

    def test_a_tcp_pool_with_an_http_check_leaves_out_who_fails_it(self):
        lab.wait_for(lambda: self.state_of("tcp", "bad") == "DOWN", "the check to fail")
        for _ in range(6):
            self.assert_server(get(81), "good")

    def test_checks_send_what_was_configured(self):
        wanted = {
            "OPTIONS %s HTTP/1.1\r\nhost: [2001:db8::1]:8080\r\nconnection: close\r\n\r\n"
            % self.PATH,
            "GET / HTTP/1.0\r\n\r\n"}
        lab.wait_for(lambda: wanted <= set(self.checks), "both checks")
        self.assertEqual(set(self.checks) - {""}, wanted)

    def idle(self, port, seconds):
        """Whether a session is still open after being idle so long."""
        with socket.create_connection(("127.0.0.1", port), 10) as sock:
            sock.settimeout(seconds)
            try:
                return sock.recv(1) != b""
            except TimeoutError:
                return True

    def test_a_long_server_timeout_is_not_cut_by_a_short_client_timeout(self):
        self.assertTrue(self.idle(81, 1.0))
        self.assertFalse(self.idle(82, 5.0))

    def test_a_name_that_does_not_resolve_keeps_nobody_from_serving(self):
        self.assert_server(get(80), "good")


if __name__ == "__main__":
    private_network()
    unittest.main(verbosity=2)
