# SPDX-License-Identifier: Apache-2.0
"""HAProxy that refuses on request what it would accept: our own validation refuses whatever else
could be thought of."""
import contextlib
import os
import shutil
import tempfile

from lab import HAPROXY

# Runs as HAProxy of each node: notes that it checked, and refuses where a file says so.
SCRIPT = """\
#!/bin/sh
here=%s/$(cat "$(dirname "$(dirname "$(dirname "$3")")")/name" 2>/dev/null)
if [ "$1" = -c ]; then
    echo check >>"$here.checks"
    if [ -e "$here.refuses" ]; then
        line=$(grep -n '^ *maxconn' "$3" | head -1 | cut -d: -f1)
        echo "[ALERT]    (1) : config : parsing [$3:$line] : not on this node." >&2
        exit 1
    fi
fi
exec %s "$@"
"""


class Checker:
    """The program at self.path. A node's name is what the file name in its state folder says, or
    nothing."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="lockstep-checker-")
        os.chmod(self.folder, 0o777)
        self.path = os.path.join(self.folder, "haproxy")
        with open(self.path, "w", encoding="ascii") as file:
            file.write(SCRIPT % (self.folder, HAPROXY))
        os.chmod(self.path, 0o755)

    def close(self):
        shutil.rmtree(self.folder)

    def count(self, name=""):
        """How often it checked."""
        try:
            with open(os.path.join(self.folder, name + ".checks"), encoding="ascii") as file:
                return len(file.readlines())
        except FileNotFoundError:
            return 0

    @contextlib.contextmanager
    def refusing(self, name=""):
        path = os.path.join(self.folder, name + ".refuses")
        with open(path, "w", encoding="ascii"):
            pass
        try:
            yield
        finally:
            os.remove(path)
