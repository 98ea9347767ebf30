# SPDX-License-Identifier: Apache-2.0
"""Build all files of a release, reproducibly: python -m tools.release [FOLDER]."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.release.npm import pack
from tools.release.sbom import bill_of_materials

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECTS: Final = ("shared", "client_sdk", "analyst", "server")
EPOCH: Final = "1577836800"
"""2020-01-01 in seconds: time of every file in an archive, which makes builds reproducible."""


def build(folder: Path, root: Path = ROOT) -> list[Path]:
    """Write wheels and source archives of the four distributions, and the npm package, to `folder`.

    Returns the archives, sorted. Raises subprocess.CalledProcessError if a build fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for project in PROJECTS:
        build_one(root / project, folder, "wheel", "sdist")
    pack(root / "client_sdk" / "browser", folder, int(EPOCH))
    return sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".gz", ".tgz"))


def build_one(project: Path, folder: Path, *targets: str) -> None:
    """Write a project's `targets` ("wheel", "sdist") to `folder`."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    for target in targets:
        command += ["-t", target]
    subprocess.run(command, cwd=project, env=_environment(), check=True, capture_output=True)  # noqa: S603


def _environment() -> Mapping[str, str]:
    return {
        **os.environ,
        "SOURCE_DATE_EPOCH": EPOCH,
        "PYTHONHASHSEED": "0",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }


def checksums(files: list[Path]) -> str:
    """Return lines in the format of `sha256sum --check`."""
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files
    )


def main(folder: Path) -> None:
    """Build, then write the bill of materials and the checksums of all files."""
    files = build(folder)
    bill = folder / "frankly.cdx.json"
    bill.write_text(bill_of_materials(ROOT / "requirements" / "runtime.txt"), encoding="utf-8")
    (folder / "SHA256SUMS").write_text(checksums(sorted([*files, bill])), encoding="utf-8")
    sys.stdout.write((folder / "SHA256SUMS").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve())
