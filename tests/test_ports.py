# SPDX-License-Identifier: Apache-2.0
"""Ports of test servers, which differ between processes and are never in use."""

import socket
import subprocess
import sys
from pathlib import Path

from tests import ports

SCRIPT = "from tests.ports import free_port; print(*(free_port() for _ in range(30))); input()"


def test_processes_get_different_ports(root: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    lines = [process.stdout.readline().split() for process in running if process.stdout]
    for process in running:
        process.communicate("\n")
    all_ports = [port for line in lines for port in line]
    assert len(all_ports) == len(set(all_ports)) == 120
    # Ports lie below the range from which Linux takes ports for outgoing connections.
    assert max(map(int, all_ports)) < 32_768


def test_a_port_in_use_is_skipped() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", ports.free_port()))
        listener.listen()
        in_use = listener.getsockname()[1]
        assert ports.free_port() != in_use
