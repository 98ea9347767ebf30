# SPDX-License-Identifier: Apache-2.0
"""Manifest of an export: the signed documents, and their segments with id ranges and digests.

``manifest.json`` is replaced atomically, and only segments listed in it are counted. If a run is
killed after writing a file but before listing it, the next run removes the file and exports its
range again. So no report is in two listed segments, wherever a run was stopped.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import FranklyError

from frankly_server.keys.durable import written_whole

FORMAT: Final = "frankly.segments/1"
NAME: Final = "manifest.json"
_MAX_BYTES: Final = 256 << 20  # a longer file is truncated, and then fails to parse


class ExportBroken(FranklyError):
    """An export is incomplete, damaged or in use, or belongs to another survey than the others."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__(detail, code="integrity", field=field)


@dataclass(frozen=True, slots=True)
class Segment:
    """A Parquet file of the reports with after < id ≤ last (32 hex digits; `after` may be "").

    file : path relative to the export's folder. sha256 : hash of the file's bytes, in hex.
    """

    file: str
    after: str
    last: str
    rows: int
    sha256: str

    def check(self, folder: Path) -> Path:
        """Return the file's path.

        Raises ExportBroken if it is missing or its bytes have changed.
        """
        # All bytes are hashed, because a damaged file can have the right length.
        path = folder / self.file
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            raise ExportBroken("a segment is missing or cannot be read", self.file) from None
        if digest != self.sha256:
            raise ExportBroken(
                "a segment is not the one the manifest names: export to an empty folder", self.file
            )
        return path


@dataclass(frozen=True, slots=True)
class ExportedDocument:
    """One version of the survey: its signed envelope, and its segments sorted by `after`."""

    digest: str
    version: int
    envelope: bytes
    segments: tuple[Segment, ...] = ()

    def document(self) -> SurveyDocument:
        """Return the document. Raises ExportBroken if it is unreadable or has another digest."""
        try:
            document = SurveyDocument.from_envelope(self.envelope)
        except FranklyError:
            raise ExportBroken("a document cannot be read", "documents") from None
        if document.digest != self.digest:
            raise ExportBroken("a document is not the one the manifest names", "documents")
        return document

    @property
    def rows(self) -> int:
        """Return the number of reports in its segments."""
        return sum(segment.rows for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Manifest of one survey's export. complete : False while some ranges of ids may be missing."""

    survey: str
    documents: tuple[ExportedDocument, ...]
    complete: bool = False

    @property
    def rows(self) -> int:
        """Return the number of reports in all segments."""
        return sum(document.rows for document in self.documents)

    def files(self) -> Iterator[str]:
        """Yield the file of every segment."""
        for document in self.documents:
            yield from (segment.file for segment in document.segments)

    def write(self, folder: Path) -> None:
        """Replace the folder's manifest atomically and durably."""
        with written_whole(folder / NAME, replace=True) as file:
            file.write(json.dumps(self._to_json(), indent=1, sort_keys=True).encode() + b"\n")

    @classmethod
    def read(cls, folder: Path) -> "Manifest | None":
        """Return a folder's manifest, or None if there is none.

        Raises ExportBroken if it cannot be read or has another format.
        """
        try:
            with (folder / NAME).open("rb") as file:
                body = json.loads(file.read(_MAX_BYTES))
        except FileNotFoundError:
            return None
        # RecursionError: JSON nested thousands of levels deep.
        except (OSError, ValueError, RecursionError):
            raise ExportBroken("the manifest cannot be read", NAME) from None
        try:
            return cls._of_json(body)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ExportBroken(f"this is no manifest of {FORMAT}", NAME) from None

    def _to_json(self) -> dict[str, Any]:
        documents = [
            {
                "digest": document.digest,
                "version": document.version,
                "envelope": base64.b64encode(document.envelope).decode(),
                "segments": [asdict(segment) for segment in document.segments],
            }
            for document in self.documents
        ]
        return {
            "format": FORMAT,
            "survey": self.survey,
            "complete": self.complete,
            "documents": documents,
        }

    @classmethod
    def _of_json(cls, body: Mapping[str, Any]) -> "Manifest":
        if body["format"] != FORMAT:
            raise ValueError(FORMAT)  # `read` raises ExportBroken instead
        documents = tuple(map(_document_of_json, body["documents"]))
        return cls(str(body["survey"]), documents, complete=body["complete"] is True)


def _document_of_json(value: Mapping[str, Any]) -> ExportedDocument:
    envelope = base64.b64decode(value["envelope"], validate=True)
    segments = _segments_of_json(value["segments"])
    return ExportedDocument(str(value["digest"]), int(value["version"]), envelope, segments)


def _segments_of_json(values: Sequence[Mapping[str, Any]]) -> tuple[Segment, ...]:
    segments = [
        Segment(str(v["file"]), str(v["after"]), str(v["last"]), int(v["rows"]), str(v["sha256"]))
        for v in values
    ]
    # A foreign manifest must not make the engine read files outside the folder.
    if any(".." in Path(row.file).parts or Path(row.file).is_absolute() for row in segments):
        raise ValueError("a segment lies outside the folder")
    return tuple(sorted(segments, key=lambda segment: segment.after))
