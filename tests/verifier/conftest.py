# SPDX-License-Identifier: Apache-2.0
"""Fixture: the verifier's binary, built once for all test processes."""

import fcntl
import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.verifier.driver import Verifier


def go(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Go command in the verifier's folder, with a cache inside the checkout."""
    settings = {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-trimpath",
        "GOPROXY": "off",  # the verifier has no dependencies
        "GOCACHE": str(root / "build" / "go"),
    }
    return subprocess.run(
        ["go", *arguments],
        cwd=root / "verifier",
        env=os.environ | settings,
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="session")
def go_root(root: Path) -> Path:
    """The checkout. Tests that use it need Go, and are marked full_only (tests/conftest.py)."""
    return root


@pytest.fixture(scope="session")
def verifier(go_root: Path) -> Verifier:
    """The binary, built unless a binary from the same sources exists."""
    sources = sorted((go_root / "verifier").glob("*.go"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = go_root / "build" / "verifier"
    folder.mkdir(parents=True, exist_ok=True)
    binary = folder / f"frankly-verify-{digest}"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            built = go(go_root, "build", "-ldflags=-s -w", "-o", str(binary), ".")
            assert built.returncode == 0, built.stderr
    return Verifier(binary)
