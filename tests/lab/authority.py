# SPDX-License-Identifier: Apache-2.0
"""Certificates that tests make with openssl, and servers that show them."""
import pathlib
import ssl
import subprocess


class Authority:
    """Makes certificates in a folder with openssl."""

    def __init__(self, folder, name):
        self.folder, self.name = pathlib.Path(folder), name
        self.path = self.folder / (name + ".pem")
        self.key = self.folder / (name + ".key")
        self.openssl("req", "-x509", "-subj", "/CN=" + name, "-days", "30", "-nodes",
                     *self.new_key(self.key), "-out", self.path)

    @staticmethod
    def openssl(*argv):
        subprocess.run(["openssl", *map(str, argv)], check=True, capture_output=True)

    @staticmethod
    def new_key(path):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", path)

    def text(self):
        return self.path.read_text(encoding="ascii")

    def issue(self, name):
        """(chain, key) files of a certificate for a DNS name."""
        request, chain, key = (self.folder / (name + end) for end in (".csr", ".crt", ".key"))
        names = self.folder / (name + ".ext")
        names.write_text("subjectAltName=DNS:%s\n" % name, encoding="ascii")
        self.openssl("req", "-new", "-subj", "/CN=" + name, "-nodes", *self.new_key(key),
                     "-out", request)
        self.openssl("x509", "-req", "-in", request, "-CA", self.path, "-CAkey", self.key,
                     "-CAcreateserial", "-days", "30", "-extfile", names, "-out", chain)
        return chain, key


def tls_context(chain, key, client_ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    context.asked = []
    context.sni_callback = lambda _sock, name, _context: context.asked.append(name)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context
