# SPDX-License-Identifier: Apache-2.0
"""Decoded scores by public answers and symbol: a table whose means are the estimates, for any statistics package.

A symbol's score for a choice is that of the published decoder (spec 8.1). It depends on the signed
document only, so whatever a package computes of numbers measured without bias (means, weighted
means, differences, regressions of a score on public answers) it computes of these.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from html import escape
from itertools import product
from math import fsum, sqrt
from pathlib import Path
from typing import Any, Final

from frankly_analyst import labelled
from frankly_analyst.counted_part import SETS, CountedPart, Question, Row, Stratum
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.formats import cell, needed
from frankly_analyst.rows import localised

LONGEST_NAME: Final = 31
"""Longest name of a column; Stata accepts one more, but not for its value labels."""
DESIGN, PUBLIC, SYMBOL, SCORE, COUNT = "design", "public", "symbol", "score", "count"
"""Roles of columns."""
KINDS: Final = ("csv", "parquet", "sav", "dta")
"""Endings of the files that `ScoreTable.write` writes."""
# Names that SPSS or Stata keep for themselves.
_RESERVED: Final = re.compile(
    "all|and|by|byte|double|eq|float|ge|gt|if|in|int|le|long|lt|ne|not|or|str[0-9]*|strl|to|using|with"
)
_ONCE: Final = {
    "version": "Version of the document; a stratum of the sample if there are several.",
    "arm": "Arm of the survey that the device drew; a stratum of the sample.",
    "symbol": "Noisy symbol: its number in the document, or the set as a bit mask.",
    "count": "Number of reports with this row: a frequency weight, not a sampling weight.",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a score table.

    role : "design", "public" (missing in reports without public answers), "symbol", "score" or
    "count". labels : label of each value of a public answer. mean, se : of a score, over all
    reports of the table; None for other columns, and for a single report's error.
    """

    name: str
    label: str
    role: str
    labels: Mapping[str, str]
    mean: float | None = None
    se: float | None = None


@dataclass(frozen=True)
class ScoreTable:
    """Rows of public answers, symbol, scores and count, to iterate over, convert or write.

    title : of the survey. n : reports in the table. columns : in their order. values : by column,
    one entry for each row; None for a public answer that is missing. notes : sentences about what
    the table contains.
    """

    title: str
    n: int
    columns: tuple[Column, ...]
    values: Mapping[str, Sequence[Any]]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = list(self.values)
        return (
            dict(zip(names, row, strict=True)) for row in zip(*self.values.values(), strict=True)
        )

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the columns of scores."""
        return tuple(column.name for column in self.columns if column.role == SCORE)

    def to_csv(self) -> str:
        """Return the rows under a header; a missing public answer is an empty cell."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.values)
        writer.writerows(map(cell, row) for row in zip(*self.values.values(), strict=True))
        return out.getvalue()

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame. Raises InvalidRequest(unsupported) without pandas."""
        return needed("pandas").DataFrame(dict(self.values))

    def to_arrow(self) -> Any:
        """Return the rows as a pyarrow Table, the labels as metadata of its fields.

        Raises InvalidRequest(unsupported) without pyarrow.
        """
        arrow = needed("pyarrow")
        types = {SCORE: arrow.float64(), SYMBOL: arrow.int64(), COUNT: arrow.int64()}
        types_of = {c.name: types.get(c.role, arrow.string()) for c in self.columns}
        types_of["version"] = arrow.int64()
        fields = [
            arrow.field(c.name, types_of[c.name], metadata={"label": c.label}) for c in self.columns
        ]
        return arrow.table(dict(self.values), schema=arrow.schema(fields))

    def codebook(self, *, coded: bool = False) -> str:
        """Return one line for each column as CSV: name, role, label, values, and a score's mean and error.

        The mean and error are there to check a package's import. coded : public answers are numbers
        from 1 in the order of their choices, as in SPSS and Stata files.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["column", "role", "label", "values", "mean", "se"])
        for c in self.columns:
            labels = c.labels
            if coded:
                codes = self._codes(c).items()
                labels = {f"{code:g}": f"{v} ({c.labels.get(v, v)})" for v, code in codes}
            values = "; ".join(f"{value} = {label}" for value, label in labels.items())
            writer.writerow(map(cell, [c.name, c.role, c.label, values, c.mean, c.se]))
        return out.getvalue()

    def write(self, path: str | Path) -> tuple[Path, Path]:
        """Write a file by its ending (csv, parquet, sav, dta) and beside it the codebook; return both paths.

        Raises InvalidRequest(unsupported) for another ending, without the library that the ending
        needs, or if a file cannot be written.
        """
        file = Path(path)
        kind = file.suffix.removeprefix(".").lower()
        if kind not in KINDS:
            detail = f"the ending must be one of {', '.join(KINDS)}"
            raise InvalidRequest(detail, code="unsupported", field="path")
        if not file.parent.is_dir():
            detail = "the file cannot be written: its folder does not exist"
            raise InvalidRequest(detail, code="unsupported", field="path")
        codebook = file.with_name(f"{file.stem}.codebook.csv")
        if kind in ("sav", "dta"):
            self._write_labelled(kind, file)
        try:
            if kind == "csv":
                file.write_text(self.to_csv(), encoding="utf-8")
            elif kind == "parquet":
                needed("pyarrow.parquet").write_table(self.to_arrow(), file)
            codebook.write_text(self.codebook(coded=kind in ("sav", "dta")), encoding="utf-8")
        except OSError as error:
            detail = f"the file cannot be written ({type(error).__name__})"
            raise InvalidRequest(detail, code="unsupported", field="path") from None
        return file, codebook

    def _codes(self, column: Column) -> dict[str, float]:
        """Return numbers for public answers and arms; {} for columns of numbers."""
        if column.role in (SCORE, SYMBOL, COUNT) or column.name == "version":
            return {}
        # In the order of the choices, so that equal codes mean equal choices in every file.
        held = (value for value in self.values[column.name] if value is not None)
        return {v: float(i) for i, v in enumerate(dict.fromkeys([*column.labels, *held]), start=1)}

    def _write_labelled(self, kind: str, path: Path) -> None:
        columns: dict[str, list[Any]] = {}
        labels: dict[str, dict[int, str]] = {}
        for c in self.columns:
            values = self.values[c.name]
            if c.role in (SCORE, SYMBOL, COUNT) or c.name == "version":
                columns[c.name] = [float(value) for value in values]
                continue
            codes = self._codes(c)
            columns[c.name] = [float("nan") if v is None else codes[v] for v in values]
            labels[c.name] = {int(code): c.labels.get(v, v) for v, code in codes.items()}
        texts = {c.name: c.label for c in self.columns}
        labelled.save(kind, path, self.title, columns, texts, labels)

    def __str__(self) -> str:
        width = max(len(c.name) for c in self.columns)
        lines = [f"{self.title}: {len(self)} rows of {self.n} reports"]
        lines += [f"  {c.name:<{width}}  {c.label}{_checked(c)}" for c in self.columns]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        """Return the columns with their labels as an HTML table for notebooks."""
        head = "<tr><th>column</th><th>label</th><th>mean</th><th>se</th></tr>"
        rows = "".join(
            f"<tr><td>{escape(c.name)}</td><td>{escape(c.label)}</td>"
            f"<td>{_number(c.mean)}</td><td>{_number(c.se)}</td></tr>"
            for c in self.columns
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        caption = f"{escape(self.title)}: {len(self)} rows of {self.n} reports"
        return f"<table><caption>{caption}</caption>{head}{rows}</table>{notes}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _checked(column: Column) -> str:
    if column.role != SCORE:
        return ""
    return f" (mean {_number(column.mean)}, se {_number(column.se) or 'unknown'})"


@dataclass(frozen=True)
class _Score:
    """A score: its label, and its row of the decoder in every part; None if it cannot be estimated."""

    ids: tuple[str, ...]
    label: str
    rows: tuple[Row | None, ...]


@dataclass(frozen=True)
class Builder:
    """Makes a table of parts that have the same questions and choices.

    total : released reports of the survey. parts : one for each document or arm, oldest version
    first. questions : whose scores are columns. by : public questions and period of the strata.
    public : the public questions with their texts. text : function from texts by language to one
    text. complete : without reports whose public answers are missing. expand : one row for each
    report instead of a count.
    """

    title: str
    total: int
    parts: tuple[CountedPart, ...]
    questions: tuple[str, ...]
    by: tuple[str, ...]
    public: Mapping[str, Question]
    text: Callable[[Mapping[str, str]], str]
    complete: bool
    expand: bool

    def table(self) -> ScoreTable:
        """Return the table. Raises InvalidRequest(unsupported) for sets that are not counted one by one."""
        names = _Names()
        design = ["version", *(["arm"] if self._has_arms else [])]
        heads = [
            *(self._column(name, names.of(name), DESIGN) for name in design),
            *(self._column(name, names.of(name), PUBLIC) for name in self.by),
            self._column("symbol", names.of("symbol"), SYMBOL),
        ]
        scores = {names.of(*score.ids): score for score in self._scores if None not in score.rows}
        if not scores:
            detail = "no number of reports can estimate a share of these questions"
            raise InvalidRequest(detail, code="unsupported", field="questions")
        rows: list[tuple[Any, ...]] = []
        for i, part in enumerate(self.parts):
            of_part = [part.version, *([part.arm] if self._has_arms else [])]
            decoder: list[Row] = [score.rows[i] or () for score in scores.values()]
            # Cached, because every stratum has the same symbols.
            decoded = lru_cache(maxsize=None)(partial(_scores_of, part, decoder))
            for stratum, symbol, count in self._lines(part):
                public = (stratum.by.get(name) for name in self.by)
                rows.append((*of_part, *public, symbol, *decoded(symbol), count))
        if not rows:
            detail = "no stratum has enough reports: request fewer public questions, or more days"
            raise InvalidRequest(detail, code="targets_invalid", field="by" if self.by else "since")
        *values, counts = map(list, zip(*rows, strict=True))
        samples = list(zip(*values[: len(design)], strict=True))
        described = heads + [
            Column(name, score.label, SCORE, {}, *_moments(column, counts, samples))
            for (name, score), column in zip(scores.items(), values[len(heads) :], strict=True)
        ]
        if self.expand:
            values = [
                [v for v, n in zip(column, counts, strict=True) for _ in range(n)]
                for column in values
            ]
        else:
            described.append(Column("count", _ONCE["count"], COUNT, {}))
            values.append(counts)
        return ScoreTable(
            self.title,
            sum(counts),
            tuple(described),
            dict(zip((c.name for c in described), values, strict=True)),
            tuple(self._notes(scores)),
        )

    def _column(self, source: str, name: str, role: str) -> Column:
        if role != PUBLIC:
            return Column(name, _ONCE[source], role, {})
        question = self.public.get(source)
        if question is None:
            return Column(name, f"{source.capitalize()} of release, in UTC.", role, {})
        labels = {choice.id: self.text(choice.label) for choice in question.choices}
        return Column(name, self.text(question.text), role, labels)

    @property
    def _has_arms(self) -> bool:
        return any(part.arm is not None for part in self.parts)

    @cached_property
    def _scores(self) -> list[_Score]:
        """Scores of every choice of every question, of scales, and of the cells of their table."""
        # Texts, scores and roles are those of the newest version, as in estimates.
        newest = max(self.parts, key=lambda part: part.version)
        asked = {question.id: question for question in newest.questions}
        scores = []
        for name in self.questions:
            rows = [part.scores(name) for part in self.parts]
            choices = asked[name].choices
            shares = [
                _Score((name, c.id), f"{name}: {self.text(c.label)}", tuple(r[x] for r in rows))
                for x, c in enumerate(choices)
            ]
            scores += shares + self._of_scale(asked[name], [share.rows for share in shares])
        if len(self.questions) > 1:
            tables = [part.scores(*self.questions) for part in self.parts]
            cells = product(*(asked[name].choices for name in self.questions))
            for x, choices in enumerate(cells):
                pairs = list(zip(self.questions, choices, strict=True))
                label = " × ".join(f"{name}: {self.text(c.label)}" for name, c in pairs)
                ids = tuple(part for name, c in pairs for part in (name, c.id))
                scores.append(_Score(ids, label, tuple(table[x] for table in tables)))
        return scores

    def _of_scale(self, question: Question, rows: Sequence[tuple[Row | None, ...]]) -> list[_Score]:
        """Return the sum of the choices' scores and, if some choices are no answers, of the others' shares."""
        answers = [c for c in question.choices if c.role is None]
        sums = []
        if all(c.score is not None for c in answers):
            weights = [c.score or 0.0 if c.role is None else 0.0 for c in question.choices]
            label = f"{question.id}: score of the answer, 0 if it is none"
            sums.append(("score", label, weights))
        if len(answers) < len(question.choices):
            weights = [float(c.role is None) for c in question.choices]
            sums.append(("answered", f"{question.id}: answered", weights))
        return [
            _Score(
                (question.id, name),
                label,
                tuple(_weighted(part, weights) for part in zip(*rows, strict=True)),
            )
            for name, label, weights in sums
        ]

    def _lines(self, part: CountedPart) -> Iterator[tuple[Stratum, int, int]]:
        """Yield stratum, symbol and number of reports."""
        rest = [part.rest] if part.rest is not None and not self.complete else []
        for stratum in (*part.strata, *rest):
            if part.kind != SETS:
                counted: Sequence[tuple[int, int]] = list(enumerate(stratum.counts))
            elif stratum.masks is None or len(part.factors) > 1:
                raise InvalidRequest(
                    "its sets are too large to be counted one by one: use estimates, or `pairs`",
                    code="unsupported",
                    field="questions",
                )
            else:
                counted = stratum.masks
            yield from ((stratum, symbol, n) for symbol, n in counted if n)

    def _notes(self, scores: Mapping[str, _Score]) -> Iterator[str]:
        about = sum(part.n for part in self.parts)
        if about < self.total:
            yield f"{about} of {self.total} released reports are about {' and '.join(self.questions)}"
        withheld = sum(part.withheld_reports for part in self.parts)
        without = sum(part.without_stratum for part in self.parts)
        if withheld + without:
            inside = sum(part.rest.n for part in self.parts if part.rest is not None)
            told = (
                "their public answers are missing in this table"
                if inside == withheld + without and not self.complete
                else "they are not in this table"
                if self.complete or not inside
                else f"the table has {inside} of them, with missing public answers"
            )
            yield (
                f"{withheld} reports are in strata below the minimum, {without} were released without "
                f"public answers or do not ask for them: {told}"
            )
        unknown = [s.label for s in self._scores if s not in scores.values()]
        if unknown:
            yield f"no number of reports can estimate: {', '.join(unknown)}"


class _Names:
    """Names of columns that CSV readers, R, SPSS and Stata accept, each given once."""

    def __init__(self) -> None:
        self._taken = {"count"}

    def of(self, *ids: str) -> str:
        """Return the ids as a name of letters, digits and underscores, at most `LONGEST_NAME` long."""
        text = re.sub(r"\W", "_", "_".join(ids), flags=re.ASCII)
        if not text[0].isalpha() or _RESERVED.fullmatch(text.lower()):
            text = f"q_{text}"
        number, name = 1, text[:LONGEST_NAME]
        # SPSS does not tell small letters from capitals.
        while name.lower() in self._taken:
            number += 1
            ending = f"_{number}"
            name = text[: LONGEST_NAME - len(ending)] + ending
        self._taken.add(name.lower())
        return name


def _scores_of(part: CountedPart, decoder: Sequence[Row], symbol: int) -> list[float]:
    if part.kind != SETS:
        return [row[symbol] for row in decoder]
    # The first score is that of every report; the others belong to the answers in the set.
    inside = [0, *(x + 1 for x in range(symbol.bit_length()) if symbol >> x & 1)]
    return [fsum(row[i] for i in inside) for row in decoder]


def _weighted(rows: Sequence[Row | None], weights: Sequence[float]) -> Row | None:
    """Return the weighted sum of decoder rows; None if one with a weight is None."""
    used = [(row, w) for row, w in zip(rows, weights, strict=True) if w]
    known = [([w * v for v in row]) for row, w in used if row is not None]
    if len(known) < len(used) or not known:
        return None
    return tuple(map(fsum, zip(*known, strict=True)))


def _moments(
    values: Sequence[float], counts: Sequence[int], samples: Sequence[Any]
) -> tuple[float, float | None]:
    """Return the mean over the reports and its standard error, the samples being of fixed sizes."""
    n = sum(counts)
    mean = fsum(v * c for v, c in zip(values, counts, strict=True)) / n
    sizes = dict.fromkeys(samples, 0)
    sums: dict[Any, list[float]] = {sample: [] for sample in sizes}
    for sample, v, c in zip(samples, values, counts, strict=True):
        sizes[sample] += c
        sums[sample].append(v * c)
    means = {sample: fsum(sums[sample]) / size for sample, size in sizes.items()}
    if min(sizes.values()) < 2:
        return mean, None
    variance = fsum(
        c * (v - means[sample]) ** 2 * sizes[sample] / (sizes[sample] - 1)
        for sample, v, c in zip(samples, values, counts, strict=True)
    )
    return mean, sqrt(variance) / n


def localiser(body: Mapping[str, Any], language: str | None) -> Callable[[Mapping[str, str]], str]:
    """Return the function from texts by language to the text of `language` in a response."""
    return lambda texts: localised(texts, language, body["languages"])
