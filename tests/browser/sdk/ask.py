# SPDX-License-Identifier: Apache-2.0
"""Client of `conformance.py serve SOCKET`: python ask.py SOCKET init|refresh|answer."""

import socket
import sys


def main() -> int:
    """Forward standard input, write the reply to stdout or stderr, and return the command's exit code."""
    request = f"{' '.join(sys.argv[2:])}\n{sys.stdin.read()}".encode("utf-8", "surrogatepass")
    with socket.socket(
        socket.AF_UNIX
    ) as server:  # connect after reading stdin: the server takes one command at a time
        server.connect(sys.argv[1])
        server.sendall(request)
        server.shutdown(socket.SHUT_WR)
        status, _, output = (
            b"".join(iter(lambda: server.recv(65_536), b"")).decode().partition("\n")
        )
    (sys.stdout if status == "0" else sys.stderr).write(output)
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
