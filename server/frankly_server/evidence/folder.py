# SPDX-License-Identifier: Apache-2.0
"""Writing of the folder, completely or not at all."""

import errno
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.evidence.access import access
from frankly_server.evidence.checks import checks
from frankly_server.evidence.content import FolderPart, Grid
from frankly_server.evidence.dpia import dpia
from frankly_server.evidence.facts import Facts
from frankly_server.evidence.linddun import HEADERS, linddun, rows
from frankly_server.evidence.nist import nist
from frankly_server.evidence.pages import csv_table, markdown, open_points, page
from frankly_server.evidence.people import consent, participants
from frankly_server.evidence.registry import OPEN_POINTS, registry
from frankly_server.keys.durable import sync_folder

_MAKERS: Final = (nist, linddun, dpia, consent, participants, access, checks)
FILES: Final = (
    "index.html",
    "nist_sp_800_226.md",
    "linddun.md",
    "linddun.csv",
    "dpia.md",
    "consent.md",
    "participants.md",
    "access_and_retention.md",
    "checks.md",
    "registry.yaml",
    "open_points.csv",
)
"""Files of the folder; the first one shows everything."""


def contents(facts: Facts) -> Mapping[str, bytes]:
    """Return the files of the folder by name."""
    parts = [*(make(facts) for make in _MAKERS), _registry_part()]
    files = {f"{part.name}.md": markdown(part) for part in parts[:-1]}
    return {
        "index.html": page(facts, parts, FILES),
        **files,
        "linddun.csv": csv_table(Grid(HEADERS, rows(facts))),
        "registry.yaml": registry(facts),
        "open_points.csv": csv_table(open_points(parts)),
    }


def write_folder(folder: Path, facts: Facts) -> Sequence[Path]:
    """Write the folder, mode 0700, and return its files.

    Raises InvalidInput: file_exists for a folder that is not empty and for a file, usage if the
    folder above it does not exist. Files are written to a temporary folder, which is then renamed.
    """
    _require_free(folder)
    files = contents(facts)
    temporary = None
    try:
        # In the same folder, because a rename is atomic within one file system only.
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        for name in FILES:
            with (temporary / name).open("wb") as file:
                file.write(files[name])
                file.flush()
                os.fsync(file.fileno())
        # Replaces an empty folder; fails if another process has put a file into it meanwhile.
        temporary.rename(folder)
        sync_folder(folder.parent)
    # BaseException: an interrupt must not leave the temporary folder either.
    except BaseException as error:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        # Between the check and the rename, another process has put a file into the folder.
        if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise _not_empty() from None
        # The message names the folder that the operator has given, not the temporary one.
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(folder), None
        raise
    return [folder / name for name in FILES]


def _require_free(folder: Path) -> None:
    if not folder.parent.is_dir():
        raise InvalidInput(
            Problem.USAGE, "the folder above this one does not exist: make it first", "out"
        )
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InvalidInput(Problem.FILE_EXISTS, "this is not a folder: name another one", "out")
    if folder.is_dir() and any(folder.iterdir()):
        raise _not_empty()


def _not_empty() -> InvalidInput:
    return InvalidInput(
        Problem.FILE_EXISTS, "this folder is not empty: name a new one, or empty it", "out"
    )


def _registry_part() -> FolderPart:
    """Return the part that lists the open points of the registry's entry."""
    return FolderPart(
        "registry",
        "Entry for the registry of deployments",
        [
            "registry.yaml is an entry for opendp/deployments-registry-data, with the status Draft. Replace its "
            "open points before you submit it:",
            *OPEN_POINTS,
        ],
    )
