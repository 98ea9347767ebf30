# SPDX-License-Identifier: Apache-2.0
"""Released counts of noisy symbols by stratum, with their mechanisms (spec 8.11).

Every estimate of the server can be computed from these counts, and other methods can use them.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Self

from frankly_analyst.counted_part import SETS, CountedPart, Question, Stratum
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.formats import cell, needed
from frankly_analyst.rows import localised
from frankly_analyst.score_table import Builder, ScoreTable, localiser

_COUNTED = ("n", "symbol", "count")


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a survey's released reports, by part and stratum.

    title : title in `language`, or otherwise in the survey's first language. n : released reports
        of the survey.
    by : public questions, and possibly a period, whose combinations are the strata; () for one
        stratum of all reports.
    strata_questions : the survey's public questions, except those whose answers are counted like
        symbols because another arm protects them.
    parts : one entry for each part and document, or arm of a document; counts of different versions
        or arms are never added, because their mechanisms may differ.
    body : the server's response.
    """

    survey: str
    title: str
    n: int
    by: tuple[str, ...]
    strata_questions: tuple[Question, ...]
    parts: tuple[CountedPart, ...]
    body: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    language: str | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any], language: str | None = None) -> Self:
        """Read a response of the server. Raises KeyError, TypeError or AttributeError if malformed."""
        return cls(
            survey=body["survey"],
            title=localised(body["title"], language, body["languages"]),
            n=body["n"],
            by=tuple(body["by"]),
            strata_questions=tuple(map(Question.from_json, body["strata_questions"])),
            parts=tuple(map(CountedPart.from_json, body["parts"])),
            body=body,
            language=language,
        )

    def __iter__(self) -> Iterator[CountedPart]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def of(self, *questions: str) -> tuple[CountedPart, ...]:
        """Return the parts that contain these questions, oldest version first.

        Raises InvalidRequest(targets_invalid) if there are none.
        """
        parts = tuple(p for p in self.parts if set(questions) <= {q.id for q in p.questions})
        if not parts:
            held = ", ".join(dict.fromkeys(part.id for part in self.parts))
            detail = (
                f"no part contains {', '.join(questions)}: these counts have {held}; questions of "
                "several blocks must be requested together"
            )
            raise InvalidRequest(detail, code="targets_invalid", field="questions")
        return parts

    def part(self, *questions: str, arm: str | None = None) -> CountedPart:
        """Return the newest version's smallest part that contains these questions.

        arm : the arm whose part to return; needed only if several arms ask the questions.

        Raises InvalidRequest(targets_invalid) if there is none, or if the arm must be named.
        """
        parts = self.of(*questions)
        # Versions may have different mechanisms, so counts of one version only are returned.
        newest = max(part.version for part in parts)
        parts = tuple(part for part in parts if part.version == newest)
        arms = list(dict.fromkeys(part.arm for part in parts if part.arm is not None))
        # The same holds for arms, and a part of one arm must not be taken for all reports.
        if (arm is None and len(arms) > 1) or (arm is not None and arm not in arms):
            held = ", ".join(arms) or "none"
            detail = f"name one; the arms that ask {', '.join(questions)} are: {held}"
            raise InvalidRequest(detail, code="targets_invalid", field="arm")
        chosen = (part for part in parts if arm in (None, part.arm))
        return min(chosen, key=lambda part: len(part.questions))

    def by_document(
        self, *questions: str, documents: Sequence[str] = ()
    ) -> tuple[CountedPart, ...]:
        """Return the smallest part with these questions of every document or arm, oldest version first.

        documents : digests of the documents to use, or `CountedPart.key` of one of their arms; ()
            for all.

        Raises InvalidRequest(targets_invalid) if there is none.
        """
        every = self.of(*questions)
        unknown = {*documents} - {name for part in every for name in (part.document, part.key)}
        if isinstance(documents, str) or unknown:
            held = ", ".join(dict.fromkeys(part.key for part in every))
            raise InvalidRequest(
                f"must be digests of documents: these counts have {held}",
                code="targets_invalid",
                field="documents",
            )
        parts = [p for p in every if not documents or {p.document, p.key} & {*documents}]
        # Each arm has reports of its own, so one part of every arm is needed for all reports.
        return tuple(
            min((p for p in parts if p.key == key), key=lambda p: len(p.questions))
            for key in dict.fromkeys(p.key for p in parts)
        )

    def table(
        self,
        *questions: str,
        complete: bool = False,
        expand: bool = False,
        documents: Sequence[str] = (),
    ) -> ScoreTable:
        """Return public answers, symbols and decoded scores with their number of reports.

        The mean of a score is the unbiased share of its choice among these reports; any statistics
        package can take it from there. With several questions, there are also the scores of the
        cells of their table. Texts, scores and roles are those of the newest version.

        complete : leave out reports whose public answers are missing, for weights by these answers.
        expand : one row for each report, for packages without frequency weights.
        documents : as in `by_document`; documents with other choices cannot be in one table.

        Raises InvalidRequest, naming the argument: targets_invalid, or unsupported for sets that
        are not counted one by one.
        """
        if not questions or not all(isinstance(name, str) for name in questions):
            held = ", ".join(dict.fromkeys(q.id for part in self.parts for q in part.questions))
            detail = f"name one or more as texts, of {held}"
            raise InvalidRequest(detail, code="targets_invalid", field="questions")
        parts = self.by_document(*questions, documents=documents)
        choices = [
            {q.id: [c.id for c in q.choices] for q in part.questions if q.id in questions}
            for part in parts
        ]
        if any(one != choices[0] for one in choices):
            detail = "have different choices: use one of " + ", ".join(part.key for part in parts)
            raise InvalidRequest(detail, code="unsupported", field="documents")
        builder = Builder(
            self.title,
            self.n,
            parts,
            questions,
            self.by,
            {question.id: question for question in self.strata_questions},
            localiser(self.body, self.language),
            complete,
            expand,
        )
        return builder.table()

    def lines(self) -> list[dict[str, Any]]:
        """Return one dict per count: document, version, questions, public answers, n, symbol, count.

        If the survey has arms, the arm follows the version; it is None in a version without arms.
        A symbol is a number; for sets it is an answer or, as "x,z", a pair of answers.
        """
        return [
            _head(part, has_arms=self._has_arms)
            | {name: stratum.by.get(name) for name in self.by}
            | dict(zip(_COUNTED, (stratum.n, symbol, count), strict=True))
            for part in self.parts
            for stratum in part.strata
            for symbol, count in _counted(part, stratum)
        ]

    def to_csv(self) -> str:
        """Return the `lines` under a header; public answers are columns."""
        out = io.StringIO()
        writer = csv.DictWriter(out, self._columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: cell(v) for name, v in line.items()} for line in self.lines())
        return out.getvalue()

    def to_pandas(self) -> Any:
        """Return the `lines` as a pandas DataFrame. Raises InvalidRequest(unsupported) without pandas."""
        return needed("pandas").DataFrame(self.lines(), columns=self._columns)

    @property
    def _has_arms(self) -> bool:
        return any(part.arm is not None for part in self.parts)

    @property
    def _columns(self) -> list[str]:
        arm = ["arm"] if self._has_arms else []
        return ["document", "version", *arm, "questions", *self.by, *_COUNTED]

    def _rows(self) -> list[tuple[str, str, int, str]]:
        """Return (part, group, n, withheld) for each stratum, and one row for the reports withheld from each part."""
        rows = []
        for part in self.parts:
            arm = "" if part.arm is None else f", arm {part.arm}"
            name = f"{part.id} (version {part.version}{arm})"
            rows += [(name, stratum.group or "all", stratum.n, "") for stratum in part.strata]
            if part.withheld_strata:
                # Withheld strata are listed, so that the rows add up to the part's number of
                # reports.
                remark = f"{part.withheld_strata} of fewer than {part.minimum} reports withheld"
                rows.append((name, "strata", part.withheld_reports, remark))
            if part.without_stratum:
                remark = "released without public answers"
                rows.append((name, "no stratum", part.without_stratum, remark))
        return rows

    def __str__(self) -> str:
        by = f" by {', '.join(self.by)}" if self.by else ""
        rows = self._rows()
        widths = [max((len(str(row[i])) for row in rows), default=0) for i in (0, 1)]
        return "\n".join(
            [
                f"{self.title}: noisy counts of {self.n} reports{by}",
                *(
                    f"  {name:<{widths[0]}}  {group:<{widths[1]}}  n {n:>9}  {remark}".rstrip()
                    for name, group, n, remark in rows
                ),
            ]
        )

    def _repr_html_(self) -> str:
        """Return the strata of every part with their n as an HTML table for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(group)}</td><td>{n}</td><td>{remark}</td></tr>"
            for name, group, n, remark in self._rows()
        )
        head = "".join(f"<th>{title}</th>" for title in ("part", "stratum", "n", ""))
        caption = f"{escape(self.title)}: noisy counts of {self.n} reports"
        return f"<table><caption>{caption}</caption><tr>{head}</tr>{rows}</table>"


def _head(part: CountedPart, *, has_arms: bool) -> dict[str, Any]:
    # Surveys without arms have no column of them.
    arm = {"arm": part.arm} if has_arms else {}
    return {"document": part.document, "version": part.version, **arm, "questions": part.id}


def _counted(part: CountedPart, stratum: Stratum) -> list[tuple[str, int]]:
    if part.kind != SETS:
        return [(str(y), count) for y, count in enumerate(stratum.counts)]
    return [
        (str(x) if x == z else f"{x},{z}", stratum.pairs[x][z])
        for x in range(len(stratum.pairs))
        # The matrix is symmetric, so each pair is written once.
        for z in range(x, len(stratum.pairs))
    ]
