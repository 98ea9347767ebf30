# SPDX-License-Identifier: Apache-2.0
"""Reports written exactly as our SDKs write them, recognised without parsing what was parsed before.

Most of what a report costs is reading it. Apart from its id, a report of few symbols is one of few texts: once strict
parsing and the document's rules have let a text in, the same text with another id is the same again. Whatever is
written in any other way, or seen for the first time, takes the way of all reports; the verdicts are the same.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from weakref import ref

from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.report import MAX_REPORT_BYTES, Report, SymbolJson

from frankly_server.intake.admission import Admission
from frankly_server.store import Database, Kind, ReportRow

_REPORT: Final = re.compile(
    rb'\{"v":1,"doc":"(sha256:[0-9a-f]{64})","id":"([0-9a-f]{32})","y":(\[[0-9a-f",\[\]]*\]),"strata":(\{[^{}\\]*\}),'
    rb'"token":null\}'
)
_SPACE: Final = b" \t\r\n"
_DEPTH: Final = 3
_MOST: Final = 20_000
"""Texts that are remembered; then all are forgotten and learnt again."""
_LONGEST: Final = 1024
"""Bytes of symbols and strata worth remembering: JSON allows any spaces, so anybody could fill the memory with them."""
_FEW: Final = 64


class Regular(NamedTuple):
    """A report in the SDKs' own form, cut into its parts; nothing of it is known to be right."""

    doc: bytes
    id: bytes
    y: bytes
    strata: bytes

    def parsed(self) -> Report:
        """Return the report by strict parsing. Raises InvalidInput as `Report.from_json`, or json_invalid."""
        whole = b'{"v":1,"doc":"%b","id":"%b","y":%b,"strata":%b,"token":null}' % self
        return Report.from_json(parse_json(whole, max_bytes=len(whole), max_depth=_DEPTH))


@dataclass(slots=True, eq=False)
class Known:
    """What a text was found to say, apart from the id."""

    admission: Admission
    symbols: tuple[SymbolJson, ...]
    stratum: str
    _kind: "ref[Kind] | None" = None  # weak: the store alone decides how much it remembers

    def kind(self, database: Database) -> Kind | None:
        """Return the store's kind of these reports, None if they are none of its plain ones."""
        found = self._kind() if self._kind is not None else None
        if found is None and (found := database.kind(self.row(""))) is not None:
            self._kind = ref(found)
        return found

    def row(self, report_id: str) -> ReportRow:
        """Return what is stored of a report of this text."""
        return ReportRow(self.admission.survey, report_id, self.admission.document, self.symbols, self.stratum)


Text = tuple[bytes, bytes, bytes]
"""doc, y and strata as they were written."""


@dataclass(frozen=True, slots=True)
class Batch(Sequence[Regular]):
    """Reports in the SDKs' own form: their ids and texts."""

    ids: Sequence[bytes]
    texts: Sequence[Text]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, i: Any) -> Any:
        """Return one report."""
        doc, y, strata = self.texts[i]
        return Regular(doc, self.ids[i], y, strata)


class Memory:
    """Texts that were let in, by (doc, y, strata). Safe to share between threads: entries never change."""

    def __init__(self) -> None:
        self._known: dict[Text, Known] = {}

    def of(self, report: Regular) -> Known | None:
        """Return what this text was found to say, None if it is new."""
        return self._known.get((report.doc, report.y, report.strata))

    def add(self, report: Regular, known: Known) -> None:
        """Remember a text that was let in and needs no token."""
        if len(report.y) + len(report.strata) > _LONGEST:
            return
        if len(self._known) >= _MOST:
            self._known = {}
        self._known[report.doc, report.y, report.strata] = known

    def known(self, texts: Iterable[Text]) -> list[Known | None]:
        """Return what each text was found to say, None for a new one."""
        return list(map(self._known.get, texts))

    def batch(self, body: bytes) -> Batch | None:
        """Cut the reports of a batch into their parts; None if it is written in another way, or its texts are new.

        What lies between the reports must be commas and spaces: then the body is JSON if every report is, and holds
        exactly these.
        """
        parts = _REPORT.split(body)
        between = set(parts[5:-1:5])  # few different ones, whatever the number of reports
        if parts[0].strip(_SPACE) != b'{"reports":[' or parts[-1].strip(_SPACE) != b"]}":
            return None
        if any(gap.strip(_SPACE) != b"," for gap in between):
            return None
        found = Batch(parts[2::5], list(zip(parts[1::5], parts[3::5], parts[4::5], strict=True)))
        new = {text: i for i, text in enumerate(found.texts) if text not in self._known}
        # Where most texts are new, as those of large sets are, parsing all of them at once is quicker.
        few = len(new) <= _FEW + len(found) // 4
        return found if few and all(_is_json(found[i]) for i in new.values()) else None


def single(body: bytes) -> Regular | None:
    """Cut one report into its parts; None if it is written in another way."""
    if len(body) > MAX_REPORT_BYTES:
        return None
    found = _REPORT.fullmatch(body.strip(_SPACE))
    return None if found is None else Regular(*found.groups())


def _is_json(report: Regular) -> bool:
    """Tell whether a text is JSON; if not, the batch is refused as a whole, in the usual words."""
    try:
        report.parsed()
    except InvalidInput as error:
        return error.code not in ("json_invalid", "eps_not_finite")
    return True
