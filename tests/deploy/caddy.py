# SPDX-License-Identifier: Apache-2.0
"""Caddy with the deployment's Caddyfile on local ports, and a name server for the replicas."""

import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port

_HEADER = struct.Struct(">HHHHHH")
_FOUND = 0x8180  # flags: response, recursion desired and available, no error
_A, _IN = 1, 1


@dataclass(frozen=True)
class Proxy:
    """Ports of Caddy, a TLS context that trusts its local authority, and its log."""

    port: int
    plain_port: int
    trust: ssl.SSLContext
    log: Path


def local_caddyfile(caddyfile: str, names: int, replica_port: int, ports: tuple[int, int]) -> str:
    """Return the Caddyfile with local ports for TLS, plain HTTP, the replicas and the name server.

    For Caddy before 2.8, request buffering is removed too. When such a version retries a request,
    another request may use the same buffer, and devices then receive responses about each other's
    reports.
    """
    changes = {
        "dynamic a server 8000 {\n": f"dynamic a server {replica_port} {{\n\t\t\tresolvers udp/127.0.0.1:{names}\n",
        "{\n\tadmin off\n": f"{{\n\tadmin off\n\tskip_install_trust\n\thttps_port {ports[0]}\n\thttp_port {ports[1]}\n",
    }
    text = caddyfile
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text if version() >= (2, 8) else text.replace("\t\trequest_buffers 4MiB\n", "")


def version() -> tuple[int, int]:
    """Return the major and minor version of the installed Caddy."""
    printed = subprocess.run(
        [_program(), "version"], check=True, capture_output=True, text=True
    ).stdout
    major, minor = re.match(r"v?(\d+)\.(\d+)\.", printed).groups()  # type: ignore[union-attr]
    return int(major), int(minor)


def _program() -> str:
    path = shutil.which("caddy")
    assert path, "install the package caddy"
    return path


def validated(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `caddy validate` on a Caddyfile."""
    file = folder / "Caddyfile.checked"
    file.write_text(text)
    command = [_program(), "validate", "--adapter", "caddyfile", "--config", str(file)]
    return subprocess.run(
        command, env=_environment(folder), capture_output=True, text=True, check=False
    )


@contextmanager
def proxying(text: str, ports: tuple[int, int], folder: Path) -> Iterator[Proxy]:
    """Run Caddy with this file in a separate home folder."""
    file, log = folder / "Caddyfile", folder / "caddy.log"
    file.write_text(text)
    command = [_program(), "run", "--adapter", "caddyfile", "--config", str(file)]
    with (
        log.open("wb") as log_file,
        subprocess.Popen(
            command, env=_environment(folder), stdout=log_file, stderr=log_file
        ) as caddy,
    ):
        try:
            root = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"
            deadline = time.monotonic() + 60
            while not (root.exists() and _has_certificate(ports[0], root)):
                assert caddy.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            yield Proxy(*ports, ssl.create_default_context(cafile=str(root)), log)
        finally:
            caddy.terminate()
            caddy.wait(timeout=60)


def _environment(folder: Path) -> dict[str, str]:
    home = {name: str(folder) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    return {"PATH": os.environ["PATH"], "SITE": "localhost", **home}


def _has_certificate(port: int, root: Path) -> bool:
    """Return True once Caddy has created its certificate, which happens after it starts to listen."""
    try:
        with socket.create_connection(("localhost", port)) as raw:
            ssl.create_default_context(cafile=str(root)).wrap_socket(
                raw, server_hostname="localhost"
            ).close()
    except OSError:
        return False
    return True


@contextmanager
def naming(addresses: list[str]) -> Iterator[int]:
    """Run a name server that returns these addresses for every query, as Docker's name server does;
    yield its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        door.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=_name, args=(door, addresses), daemon=True)
        thread.start()
        yield door.getsockname()[1]
        door.sendto(b"", door.getsockname())  # an empty datagram ends the name server
        thread.join()


def _name(door: socket.socket, addresses: list[str]) -> None:
    while True:
        query, who = door.recvfrom(512)
        if not query:
            return
        number, end = _HEADER.unpack_from(query)[0], query.index(b"\0", _HEADER.size) + 5
        question = query[_HEADER.size : end]
        (kind,) = struct.unpack(">H", question[-4:-2])
        replies = addresses if kind == _A else []
        # Each record points at the name in the question (compression) and has a TTL of 0.
        records = [
            struct.pack(">HHHIH", 0xC00C, _A, _IN, 0, 4) + socket.inet_aton(address)
            for address in replies
        ]
        door.sendto(
            _HEADER.pack(number, _FOUND, 1, len(records), 0, 0) + question + b"".join(records), who
        )


def port_on_all(addresses: list[str]) -> int:
    """Return a port that is free on each of these addresses."""
    while True:
        port = free_port()
        try:
            for address in addresses:
                with socket.socket() as tried:
                    tried.bind((address, port))
        except OSError:
            continue
        return port
