# SPDX-License-Identifier: Apache-2.0
"""Flood of malformed or unauthorised requests, sent at a fixed rate even if the server does not
answer.

The flood runs as a separate process, so that it shares no lock with honest devices. Arguments:
port, survey, digest, requests per second, seconds. It prints how many requests were offered,
written and answered.
"""

import json
import select
import socket
import sys
import time

CONNECTIONS = 64


def requests(survey: str, digest: str) -> list[bytes]:
    """Return one request of each kind."""
    sound = {
        "v": 1,
        "doc": digest,
        "id": "f" * 32,
        "y": [0, 0],
        "strata": {"region": "north"},
        "token": None,
    }
    bodies = [
        b"{",
        json.dumps(sound | {"y": [9, 9]}).encode(),
        json.dumps(sound | {"token": "t"}).encode(),
        b"\xff" * 900,
    ]
    messages = [
        b"POST /v1/surveys/%s/reports HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        % survey.encode()
        + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        for body in bodies
    ]
    messages += [
        b"GET /v1/surveys/%s/estimates HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n"
        % (survey.encode(), key)
        for key in (b"none", b"frankly_live_" + b"A" * 43)
    ]
    return [
        *messages,
        b"GET /nothing/here HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /health?" + b"a=1&" * 50 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    ]


def flood(
    port: int, survey: str, digest: str, per_s: float, seconds: float
) -> tuple[int, int, int]:
    """Send requests; return how many were offered, written and answered."""
    kinds = requests(survey, digest)
    sockets: list[socket.socket | None] = [None] * CONNECTIONS
    pending = [b""] * CONNECTIONS
    offered = written = answered = 0
    began = time.monotonic()
    while (now := time.monotonic() - began) < seconds:
        due = int(now * per_s)
        while offered < due:
            i = offered % CONNECTIONS
            if len(pending[i]) < 16_384:  # limits this process's memory
                pending[i] += kinds[offered % len(kinds)]
                written += 1
            offered += 1
        for i in range(CONNECTIONS):
            sockets[i] = sockets[i] or connect(port)
        open_ones = {sock: i for i, sock in enumerate(sockets) if sock is not None}
        readable, writable, _ = select.select(
            open_ones, [s for s, i in open_ones.items() if pending[i]], [], 0.01
        )
        for sock in {*readable, *writable}:
            i = open_ones[sock]
            try:
                if sock in readable:
                    if not (data := sock.recv(65536)):
                        raise OSError
                    answered += data.count(b"HTTP/1.1 ")
                if sock in writable:
                    pending[i] = pending[i][sock.send(pending[i]) :]
            except OSError:  # refused or reset: reconnect
                sock.close()
                sockets[i], pending[i] = None, b""
    return offered, written, answered


def connect(port: int) -> socket.socket | None:
    """Open a non-blocking connection; return None if the server refuses it."""
    try:
        sock = socket.create_connection(("127.0.0.1", port), timeout=1)
    except OSError:
        return None
    sock.setblocking(False)
    return sock


if __name__ == "__main__":
    print(  # noqa: T201
        *flood(int(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]))
    )  # noqa: RUF100, T201
