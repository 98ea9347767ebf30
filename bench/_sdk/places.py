# SPDX-License-Identifier: Apache-2.0
"""Virtual environments for each peer and for our SDK, in the temporary folder."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = "frankly-sdk"
# pure-ldp imports scikit-learn and statsmodels without declaring them.
WANTED: dict[str, tuple[str, ...]] = {
    OURS: (str(ROOT / "shared"), str(ROOT / "client_sdk")),
    "pure-ldp": ("pure-ldp==1.2.0", "scikit-learn", "statsmodels"),
    "multi-freq-ldpy": ("multi-freq-ldpy==0.2.5",),
    "opendp": ("opendp==0.16.0",),
}
IMPORTS = {
    OURS: "import frankly_sdk",
    "pure-ldp": "import pure_ldp.frequency_oracles",
    "multi-freq-ldpy": "import multi_freq_ldpy.pure_frequency_oracles.GRR",
    "opendp": "import opendp.prelude",
}


def environment(name: str) -> Path | None:
    """Return the interpreter of an environment with a package, None if it cannot be installed."""
    folder = Path(tempfile.gettempdir()) / f"frankly-bench-{os.getuid()}" / name
    python, ready = folder / "bin" / "python", folder / "ready"
    if ready.exists() and name != OURS:
        return python
    pip = [
        _base(),
        "-m",
        "pip",
        "--python",
        str(python),
        "--disable-pip-version-check",
        "install",
        "--quiet",
    ]
    pip += ["--root-user-action=ignore", "--no-compile", "--upgrade"]
    try:
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", "--clear", str(folder)], check=True
        )
        subprocess.run([*pip, *WANTED[name]], check=True, stdout=sys.stderr)
        subprocess.run([str(python), "-c", IMPORTS[name]], check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError):
        return None
    ready.touch()
    return python


def _base() -> str:
    """Return the interpreter that this environment was created with; it has pip."""
    return str(
        Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    )


def installed_mb(python: Path) -> float:
    """Return the installed size with dependencies, without compiled caches."""
    [packages] = python.parents[1].glob("lib/python*/site-packages")
    files = (path for path in packages.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return sum(path.stat().st_size for path in files) / 1e6
