# SPDX-License-Identifier: Apache-2.0
"""Name servers of a test, for the names that libc looks up."""
import ctypes
import os
import shutil
import socket
import subprocess
import tempfile

CLONE_NEWNS = 0x20000


def use_name_servers(case, *addresses):
    """/etc/resolv.conf of this process and what it starts names these. case: the class of the
    tests that are over then."""
    folder = tempfile.mkdtemp(prefix="lockstep-test-%d-names-" % os.getpid())
    case.addClassCleanup(shutil.rmtree, folder)
    path = os.path.join(folder, "resolv.conf")
    with open(path, "w", encoding="ascii") as file:
        file.writelines("nameserver %s\n" % address for address in addresses)
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "--bind", path, "/etc/resolv.conf"], check=True)


class Mute:
    """A name server that takes questions and answers none."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))

    def questions(self):
        """How many have come since the last look."""
        count = 0
        self.socket.setblocking(False)
        try:
            while self.socket.recv(4096):
                count += 1
        except BlockingIOError:
            return count

    def close(self):
        self.socket.close()
