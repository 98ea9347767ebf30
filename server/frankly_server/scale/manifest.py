# SPDX-License-Identifier: Apache-2.0
"""What an export consists of: per document its signed bytes and its segments, each with its range of ids and digest.

``manifest.json`` is replaced whole. A segment counts only if the manifest names it: a file that was written before a
kill and is not named yet is removed by the next run, and its range is exported again. So every report is in exactly one
segment, wherever a run was stopped.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import FranklyError

from frankly_server.durable import written_whole

FORMAT: Final = "frankly.segments/1"
NAME: Final = "manifest.json"
_MAX_BYTES: Final = 256 << 20


class ExportBroken(FranklyError):
    """An export that is not whole, or is not what its manifest says; nothing was counted."""

    def __init__(self, detail: str, field: str | None = None) -> None:
        super().__init__(detail, code="integrity", field=field)


@dataclass(frozen=True, slots=True)
class Segment:
    """A Parquet file of the reports with ids beyond `after`, up to and with `last` (32 hex digits; `after` may be "").

    file : relative to the export's folder. sha256 : of its bytes.
    """

    file: str
    after: str
    last: str
    rows: int
    sha256: str

    def check(self, folder: Path) -> Path:
        """Return the file's path. Raises ExportBroken if it is missing or its bytes are others."""
        path = folder / self.file
        try:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            raise ExportBroken("a segment is missing or cannot be read", self.file) from None
        if found != self.sha256:
            raise ExportBroken("a segment is not the one the manifest names: export it again", self.file)
        return path


@dataclass(frozen=True, slots=True)
class Exported:
    """One version of the survey: the envelope's exact bytes, and its segments by `after`."""

    digest: str
    version: int
    envelope: bytes
    segments: tuple[Segment, ...] = ()

    def document(self) -> SurveyDocument:
        """Return the document. Raises ExportBroken if the bytes are not those of `digest`."""
        try:
            found = SurveyDocument.parse(Envelope.from_bytes(self.envelope, SURVEY_TYPE).payload)
        except FranklyError:
            raise ExportBroken("a document cannot be read", "documents") from None
        if found.digest != self.digest:
            raise ExportBroken("a document is not the one the manifest names", "documents")
        return found

    @property
    def rows(self) -> int:
        """How many reports its segments hold."""
        return sum(segment.rows for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All of an export. complete : whether a run came to its end: until then some ranges are missing."""

    survey: str
    documents: tuple[Exported, ...]
    complete: bool = False

    @property
    def rows(self) -> int:
        """How many reports there are."""
        return sum(each.rows for each in self.documents)

    def files(self) -> Iterator[str]:
        """Yield the file of every segment."""
        for each in self.documents:
            yield from (segment.file for segment in each.segments)

    def write(self, folder: Path) -> None:
        """Replace the folder's manifest at once; when this returns, it is on disk."""
        with written_whole(folder / NAME, replace=True) as file:
            file.write(json.dumps(self._to_json(), indent=1, sort_keys=True).encode() + b"\n")

    @classmethod
    def read(cls, folder: Path) -> "Manifest | None":
        """Return a folder's manifest, None if there is none. Raises ExportBroken if it cannot be read."""
        try:
            with (folder / NAME).open("rb") as file:
                body = json.loads(file.read(_MAX_BYTES))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError):
            raise ExportBroken("the manifest cannot be read", NAME) from None
        try:
            return cls._of_json(body)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ExportBroken(f"this is no manifest of {FORMAT}", NAME) from None

    def _to_json(self) -> dict[str, Any]:
        documents = [
            {
                "digest": each.digest,
                "version": each.version,
                "envelope": base64.b64encode(each.envelope).decode(),
                "segments": [asdict(segment) for segment in each.segments],
            }
            for each in self.documents
        ]
        return {"format": FORMAT, "survey": self.survey, "complete": self.complete, "documents": documents}

    @classmethod
    def _of_json(cls, body: Mapping[str, Any]) -> "Manifest":
        if body["format"] != FORMAT:
            raise ValueError(FORMAT)
        return cls(str(body["survey"]), tuple(map(_exported, body["documents"])), complete=body["complete"] is True)


def _exported(value: Mapping[str, Any]) -> Exported:
    envelope = base64.b64decode(value["envelope"], validate=True)
    return Exported(str(value["digest"]), int(value["version"]), envelope, _segments(value["segments"]))


def _segments(values: Sequence[Mapping[str, Any]]) -> tuple[Segment, ...]:
    found = [Segment(str(v["file"]), str(v["after"]), str(v["last"]), int(v["rows"]), str(v["sha256"])) for v in values]
    if any(".." in Path(each.file).parts or Path(each.file).is_absolute() for each in found):
        raise ValueError("a segment lies outside the folder")
    return tuple(sorted(found, key=lambda each: each.after))
