#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What visitors of a real HAProxy get for rendered objects: which pool answers which request,
which certificate is shown, what servers are told."""
import itertools
import json
import os
import pathlib
import socket
import ssl
import subprocess
import threading
import unittest

import backend
import lab

TOOL = lab.BUILD / "tests" / "render_objects"
GOLDEN = pathlib.Path(os.environ["LOCKSTEP_SOURCE"]) / "tests" / "golden" / "render"
PLACEHOLDER = GOLDEN / "placeholder.pem"
CERTIFICATES = {o["name"]: o
                for o in json.loads((GOLDEN / "tls" / "objects.json").read_text())["shared"]
                if o["kind"] == "certificate"}
SUFFIX = "\r\nConnection: close\r\n\r\n"


def private_network():
    """Every port is free in here, and no name server answers."""
    if lab.LIBC.unshare(lab.CLONE_NEWNET) != 0:
        raise OSError("unshare")
    lab.run("ip", "link", "set", "lo", "up")


def listener(name, port, **fields):
    return dict(kind="listener", name=name, port=port, addresses=["127.0.0.1"], **fields)


def server(name, port, address="127.0.0.1"):
    return dict(kind="server", name=name, address=address, port=port)


def pool(name, *servers, **fields):
    return dict(kind="pool", name=name, members=[{"server": s} for s in servers], **fields)


def service(name, listeners, to, **fields):
    return dict(kind="service", name=name, listeners=listeners, pool=to, **fields)


def der(certificate):
    return ssl.PEM_cert_to_DER_cert(certificate["chain"])


def raw(port, request, tls=None, name=None):
    """All bytes that come back for a request sent as it is."""
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        sock = tls.wrap_socket(plain, server_hostname=name) if tls else plain
        sock.sendall(request.encode("latin-1"))
        answer = b""
        while True:
            try:
                data = sock.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                return answer.decode("latin-1")
            answer += data


class Answer:
    def __init__(self, text):
        self.head, _, self.body = text.partition("\r\n\r\n")
        lines = self.head.split("\r\n")
        self.status = int(lines[0].split()[1]) if text else 0
        self.headers = [tuple(line.split(": ", 1)) for line in lines[1:]]

    def header(self, name):
        return [v for k, v in self.headers if k.lower() == name.lower()]

    @property
    def seen(self):
        """What the server behind was asked, as it tells."""
        return json.loads(self.body)


def get(port, path="/", host="a.x.test", extra="", tls=None):
    line = "GET %s HTTP/1.1\r\n" % path
    if host is not None:
        line += "Host: %s\r\n" % host
    return Answer(raw(port, line + extra + "Connection: close\r\n\r\n", tls))


def any_tls():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Proxy(unittest.TestCase):
    """One HAProxy for the objects of a class."""
    OBJECTS = ()
    BACKENDS = ()

    @classmethod
    def setUpClass(cls):
        cls.lab = lab.Lab()
        cls.addClassCleanup(cls.lab.close)
        cls.backends = {}
        for label in cls.BACKENDS:
            cls.backends[label] = backend.Backend(label)
            cls.backends[label].server.handle_error = lambda *_: None  # a reset is no fault
            cls.addClassCleanup(cls.backends[label].close)
        cls.files = cls.lab.dir / "files"
        cls.files.mkdir()
        servers = [server(b, cls.backends[b].port) for b in cls.BACKENDS]
        pools = [pool(b, b) for b in cls.BACKENDS]
        objects = cls.lab.dir / "objects.json"
        objects.write_text(json.dumps({"shared": [*servers, *pools, *cls.objects()]}))
        cls.digest = lab.run(TOOL, objects, cls.files, cls.lab.dir, "haproxy",
                             PLACEHOLDER).stdout.strip()
        cls.config = cls.files / "haproxy.cfg"
        (cls.lab.dir / "server-state").write_text("1\n")
        checked = lab.run(lab.HAPROXY, "-c", "-f", cls.config, check=False)
        if checked.returncode != 0:
            raise AssertionError(checked.stderr)
        cls.checked = checked.stderr
        cls.haproxy = cls.lab.start(lab.HAPROXY, "-db", "-f", cls.config)
        lab.wait_for(lambda: " 200 " in cls.probe(), "HAProxy")

    @classmethod
    def objects(cls):
        return cls.OBJECTS

    @classmethod
    def ask(cls, name, text):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(10)
            sock.connect(str(cls.lab.dir / name))
            sock.sendall(text.encode())
            return sock.makefile(encoding="latin-1").read()

    @classmethod
    def probe(cls):
        return cls.ask("probe.sock", "GET / HTTP/1.0\r\n\r\n")

    def assert_server(self, answer, label):
        self.assertEqual(answer.status, 200, answer.head)
        self.assertEqual(answer.seen["server"], label)


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
        for host in ("b.x.test", "x.test", "aa.x.test", "a.x.test.test", "*.x.test", "..", "[::1]",
                     "a" * 300):
            with self.subTest(host=host):
                answer = get(81, "/", host)
                self.assertEqual(answer.status, 404)
                self.assertEqual(answer.header("content-type"), ["text/plain; charset=utf-8"])

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

    def shown(self, port, name):
        with socket.create_connection(("127.0.0.1", port), 10) as plain:
            with any_tls().wrap_socket(plain, server_hostname=name) as sock:
                return sock.getpeercert(binary_form=True)

    def test_each_name_gets_its_certificate(self):
        for port in (443, 444):
            self.assertEqual(self.shown(port, "a.test"), der(CERTIFICATES["a"]))
            self.assertEqual(self.shown(port, "b.test"), der(CERTIFICATES["b"]))
        self.assertEqual(self.shown(443, "z.test"), der(CERTIFICATES["z"]))
        self.assertEqual(self.shown(445, "c.test"), der(CERTIFICATES["c"]))

    def test_no_name_and_unknown_names_get_the_listeners_first(self):
        placeholder = ssl.PEM_cert_to_DER_cert(PLACEHOLDER.read_text().partition("-----BEGIN P")[0])
        for name in (None, "unknown.test", "x.a.test"):
            with self.subTest(name=name):
                self.assertEqual(self.shown(443, name), der(CERTIFICATES["z"]))
                self.assertEqual(self.shown(444, name), placeholder)
                self.assertEqual(self.shown(445, name), placeholder)

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
