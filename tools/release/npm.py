# SPDX-License-Identifier: Apache-2.0
"""The archive of the npm package, with the name and contents of `npm pack`, equal on every machine.

The bytes of `npm pack` depend on the machine's versions of npm and zlib. This archive is
compressed by the standard library, like the wheels and source archives.
"""

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

_ALWAYS: Final = ("package.json", "LICENSE")


def described(folder: Path) -> dict[str, Any]:
    """Return a package's package.json."""
    package: dict[str, Any] = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    return package


def contents(folder: Path) -> list[str]:
    """Return the paths of the files that belong to the package, sorted.

    Raises FileNotFoundError if an entry of `files` names nothing.
    """
    names = set(_ALWAYS)
    for entry in described(folder)["files"]:
        found = list(_matching(folder, entry))
        if not found:
            raise FileNotFoundError(folder / entry)
        names.update(found)
    return sorted(names)


def _matching(folder: Path, entry: str) -> Iterator[str]:
    for path in folder.glob(entry):
        for file in path.rglob("*") if path.is_dir() else (path,):
            if file.is_file():
                yield file.relative_to(folder).as_posix()


def pack(folder: Path, into: Path, epoch: int) -> Path:
    """Write the archive of a package into a folder and return its path; all files have the time `epoch`."""
    package = described(folder)
    name = package["name"].removeprefix("@").replace("/", "-")
    made = into / f"{name}-{package['version']}.tgz"
    inside = io.BytesIO()
    with tarfile.open(fileobj=inside, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in contents(folder):
            data = (folder / path).read_bytes()
            member = tarfile.TarInfo(f"package/{path}")
            member.size, member.mtime, member.mode = len(data), epoch, 0o644
            archive.addfile(member, io.BytesIO(data))
    made.write_bytes(gzip.compress(inside.getvalue(), 9, mtime=0))
    return made
