# SPDX-License-Identifier: Apache-2.0
"""Nodes with a directory on a disk of their own, which can be full. The test has called
node.private_folders() before."""
import contextlib
import os
import shutil
import subprocess

import node
from lab import wait_for

DISK_BYTES = 6 << 20


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


class SmallDisk(node.Node):
    """disk_bytes: how much there is room for."""
    small = "state"

    def __init__(self, *arguments, disk_bytes=DISK_BYTES, **options):
        self.disk_bytes = disk_bytes
        super().__init__(*arguments, **options)

    def disk(self):
        return getattr(self, self.small)

    def start(self):
        if not os.path.ismount(self.disk()):
            os.makedirs(self.disk(), exist_ok=True)
            mount("-t", "tmpfs", "-o", "size=%d,mode=755" % self.disk_bytes, "tmpfs", self.disk())
        super().start()

    def resize(self, size):
        mount("-o", "remount,size=%d" % size, self.disk())

    def fill(self, leave):
        """There is room for so many bytes more. What is written meanwhile may need it."""
        def filled():
            now = os.statvfs(self.disk())
            with contextlib.suppress(subprocess.CalledProcessError):
                self.resize((now.f_blocks - now.f_bfree) * now.f_frsize + leave)
                return True
            return False
        wait_for(filled, "the disk has that size")

    def free(self):
        self.resize(self.disk_bytes)

    def close(self):
        try:
            super().close()
        finally:
            self.sweep()

    def sweep(self):
        super().sweep()
        if os.path.ismount(self.disk()):
            # What was killed may hold files open for a moment.
            subprocess.run(["umount", "--lazy", self.disk()], check=True)
            shutil.rmtree(self.root, ignore_errors=True)


class SmallRun(SmallDisk):
    small = "run_dir"
