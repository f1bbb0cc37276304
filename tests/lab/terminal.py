# SPDX-License-Identifier: Apache-2.0
"""Commands on a terminal of their own, as people use them."""
import contextlib
import fcntl
import os
import pty
import struct
import termios

END_OF_INPUT = b"\x04"


def on_terminal(command, width=80, answer=END_OF_INPUT):
    """(exit status, output, whether it asked): at the first question, [y/N], the answer is
    typed."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        os.execv(command[0], command)
    out, asked = b"", False
    with contextlib.suppress(OSError), os.fdopen(terminal, "r+b", 0) as file:
        while piece := file.read(65536):
            out += piece
            if b"[y/N]" in out and not asked:
                file.write(answer)
                asked = True
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out.decode(), asked
