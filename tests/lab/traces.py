# SPDX-License-Identifier: Apache-2.0
"""What must be as before where something was refused."""
import os
import shutil
import sqlite3
import tempfile


def rows_of(one):
    """All that the database holds, but for what changes by itself: requests and last uses."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("lockstep.db", "lockstep.db-wal"):
            path = os.path.join(one.state, "data", name)
            if os.path.exists(path):
                shutil.copy(path, folder)
        base = sqlite3.connect(os.path.join(folder, "lockstep.db"))
        try:
            return [line for line in base.iterdump()
                    if not line.startswith(('INSERT INTO "session"', 'INSERT INTO "last_use"'))]
        finally:
            base.close()


def traces_of(one):
    """What a refusal must leave as it was."""
    return {"rows": rows_of(one), "current": one.generation(), "good": one.generation("good"),
            "running": one.running_digest(), "worker": one.admin_socket("show info")
            .split("\nPid: ")[1].split("\n")[0], "config": one.config()}
