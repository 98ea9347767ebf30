# SPDX-License-Identifier: Apache-2.0
"""Estimates of a survey: rows to iterate over, print, plot, combine and export."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, Self

from frankly_analyst import formats, labelled, printing
from frankly_analyst.charts import Line, Scale, intervals
from frankly_analyst.comparisons import Comparisons, WaldTest
from frankly_analyst.completion import Completion
from frankly_analyst.drawing import draw
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.random_answers import RandomAnswers
from frankly_analyst.request import ANSWERED, FIRST, SCALES, SHARES, WEIGHTED, as_text
from frankly_analyst.rows import Estimate, localised
from frankly_analyst.shown import Range
from frankly_analyst.sources import Sources
from frankly_analyst.svg import Svg

Ask = Callable[..., "Estimates"]
"""Function that sends a request for the same survey, with the given fields changed."""


@dataclass(frozen=True, slots=True)
class Estimates:
    """The rows of a survey's estimates, to iterate over, print or write as CSV.

    insufficient : question id, or "id (group)" -> number of further reports needed for an estimate.
    covariances : (question, group) -> covariance matrix of the question's estimates in the order of
        its rows, or None if unknown.
    body : the server's response, which `frankly replay` can recompute.
    ask : function that sends another request; None if these estimates did not come from a server.
    language : language of the labels; None for the survey's first language.
    """

    survey: str
    title: str
    n: int
    rows: tuple[Estimate, ...]
    insufficient: Mapping[str, int]
    covariances: Mapping[tuple[str, str], Sequence[Sequence[float]] | None] = field(
        default_factory=dict
    )
    body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ask: Ask | None = field(default=None, repr=False, compare=False)
    language: str | None = None

    @classmethod
    def from_json(
        cls, body: Mapping[str, Any], language: str | None = None, ask: Ask | None = None
    ) -> Self:
        """Read a response of the server. Raises KeyError, TypeError, AttributeError or StopIteration if malformed."""
        questions, languages = body["questions"], body["languages"]
        return cls(
            survey=body["survey"],
            title=localised(body["title"], language, languages),
            n=body["n"],
            rows=tuple(
                Estimate.from_json(row, language, languages)
                for question in questions
                for row in question["rows"]
            ),
            insufficient={
                _name(q): q["needed"] - q["n"] for q in questions if q["status"] == "insufficient"
            },
            covariances={(q["id"], _group(q)): q.get("covariance") for q in questions},
            body=body,
            ask=ask,
            language=language,
        )

    @property
    def comparisons(self) -> Comparisons:
        """The comparisons that were requested with `compare`."""
        return Comparisons.from_json(self.body, self.language)

    @property
    def sources(self) -> Sources | None:
        """Random answers by source, if estimates are `by` the question of the sources; otherwise None."""
        return Sources.from_json(self.body.get("sources"))

    @property
    def random_answers(self) -> dict[tuple[str, str], RandomAnswers]:
        """People who answer at random, by (question, group); empty without an instructed item."""
        return {
            (question["id"], _group(question)): RandomAnswers.from_json(found)
            for question in self.body.get("questions", [])
            if (found := question.get("random_answers")) is not None
        }

    def said_of_random_answers(self) -> list[str]:
        """Return a line for each question and group: how many people answer at random, and what that does."""
        return [
            f"{question}{f' ({by})' if by else ''}: "
            + " ".join(
                found.sentences([r for r in self.rows if (r.question, r.by) == (question, by)])
            )
            for (question, by), found in self.random_answers.items()
        ]

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, question: str, by: str = "") -> tuple[Estimate, ...]:
        """Return the rows of one question, or of its group `by`. Raises InvalidRequest(targets_invalid) if none."""
        rows = tuple(row for row in self.rows if (row.question, row.by) == (question, by))
        if not rows:
            held = ", ".join(dict.fromkeys(row.question for row in self.rows))
            raise InvalidRequest(
                f"there are no estimates of this question or group: the questions are {held}",
                code="targets_invalid",
                field="question",
            )
        return rows

    def sum(self, question: str, choices: Sequence[str], by: str = "") -> Estimate:
        """Request the total share of several choices, each named once; raises like `lincom`."""
        _require_different(choices, "choices")
        return self.lincom(question, dict.fromkeys(choices, 1.0), label=" + ".join(choices), by=by)

    def diff(self, question: str, choice: str, other: str, by: str = "") -> Estimate:
        """Request the share of `choice` minus that of `other`; raises like `lincom`."""
        _require_different((choice, other), "other")
        return self.lincom(question, {choice: 1.0, other: -1.0}, label=f"{choice} − {other}", by=by)

    def lincom(
        self, question: str, weights: Mapping[str, float], label: str | None = None, by: str = ""
    ) -> Estimate:
        """Request Σ weight · share over choices of a question or cells "a × b" of a joint table.

        The server computes its interval by the method of these estimates; combining the rows'
        intervals would not give a valid interval.

        Raises Unreachable or Refused, InvalidRequest(targets_invalid) for an unknown question or a repeated name, and
        InvalidRequest(unsupported) if these estimates did not come from a server.
        """
        return self._combined(question, label or _formula(weights), _by_id(weights, "weights"), by)

    def ratio(
        self,
        question: str,
        of: Mapping[str, float],
        over: Mapping[str, float] | str = ANSWERED,
        by: str = "",
    ) -> Estimate:
        """Request Σ of · share / Σ over · share with Fieller's interval, flagged if unbounded.

        The interval uses the method of these estimates; for kl, exact and sequence it uses score
        instead, flagged `score_instead`. A denominator that is equal for all answers, such as the
        sum of all choices, only scales the numerator; then the interval uses the method of these
        estimates. over : "answered" divides by the share of the people who chose no choice with a
        role. Raises like `lincom`.
        """
        divisor = over if isinstance(over, str) else _by_id(over, "over")
        label = over if isinstance(over, str) else _formula(over)
        combination = {"of": _by_id(of, "of"), "over": divisor}
        return self._combined(question, f"({_formula(of)}) / ({label})", combination, by)

    def net(
        self, question: str, top: Sequence[str], bottom: Sequence[str], by: str = ""
    ) -> Estimate:
        """Request a net score: the share of `top` minus that of `bottom`, among those who answered.

        The margin is computed as for a difference, or as for a ratio if the question has choices
        with a role. Raises like `lincom`.
        """
        _require_different((*top, *bottom), "bottom")
        weights = dict.fromkeys(top, 1.0) | dict.fromkeys(bottom, -1.0)
        label = f"net {' + '.join(top)} − {' − '.join(bottom)}"
        combination = {"of": _by_id(weights, "top"), "over": ANSWERED}
        return self._combined(question, label, combination, by)

    def crosstab(self, *questions: str, percent: str | None = None) -> "Estimates":
        """Request the joint table of several questions, each cell with its own margin.

        percent : for two questions, "row" for shares within each choice of the first one, "column" for the second.

        Raises like `lincom`.
        """
        _require_different(questions, "questions")
        return self._ask(targets=list(questions), percent=percent, quantiles=None)

    def compare(
        self,
        reference: str | Mapping[str, float] = FIRST,
        by: str | None = None,
        equivalence: float | None = None,
    ) -> Comparisons:
        """Request a comparison of groups: differences with margins, tests, effect sizes and trends.

        reference : "first", "previous", "mean", "all" (pairs), the id of a group, or weights by group, such as
        ``{"north": 1, "south": -0.5, "east": -0.5}``, for Σ weight · share over groups. by : the
        groups; None for the groups of these estimates. equivalence : the largest difference that is regarded as
        none, for a test that a difference is smaller.

        Raises like `lincom`; also Refused, with the field `compare`, if there are no groups or one
        is unknown.
        """
        text = as_text("compare", reference)
        # Comparisons are of groups, never of their population, whose sizes other groups lack.
        changes: dict[str, Any] = {"compare": text, "equivalence": equivalence, "group_sizes": None}
        changes |= {} if by is None else {"by": by}
        return Comparisons.from_json(self._ask(**changes).body, self.language)

    def homogeneity(self, by: str | None = None) -> tuple[WaldTest, ...]:
        """Request a test of equal figures in all groups per question; raises like `compare`."""
        return self.compare(by=by).tests

    def trend(self, by: str | None = None) -> Comparisons:
        """Request slopes over ordered groups, such as periods; raises like `compare`."""
        return self.compare(by=by).trends

    def independence(self, first: str, second: str, by: str = "") -> WaldTest:
        """Request a χ² test of independence of two questions, with Cramér's V or phi.

        by : the group, such as "region=north". Raises like `lincom`.
        """
        tables = {
            _group(question): question
            for question in self.crosstab(first, second).body["questions"]
        }
        if by not in tables:
            detail = (
                f"name one of the groups {', '.join(tables)}"
                if any(tables)
                else "there are no groups"
            )
            raise InvalidRequest(detail, code="targets_invalid", field="by")
        if (test := tables[by]["independence"]) is None:
            raise InvalidRequest(
                "there are too few reports for this table", code="targets_invalid", field="by"
            )
        return WaldTest.from_json("independence", _name(tables[by]), test)

    def completion(self) -> tuple[Completion, ...]:
        """Request where people gave up more often, for each form of each version; raises like `lincom`."""
        whole = dict.fromkeys(
            (
                "targets",
                "percent",
                "quantiles",
                "by",
                "since",
                "until",
                "compare",
                "equivalence",
                "group_sizes",
            )
        )
        return Completion.all_from_json(self._ask(completion=True, **whole).body, self.language)

    def scales(self, quantiles: Sequence[float] = (0.5,)) -> "Estimates":
        """Request mean, distribution and quantiles of the questions with scores or ranges.

        Raises like `lincom`.
        """
        levels = ",".join(f"{q:.6f}".rstrip("0") for q in quantiles)
        return self._ask(targets=SCALES, percent=None, quantiles=levels)

    def answered(self) -> "Estimates":
        """Request the shares among the people who answered each question; raises like `lincom`."""
        return self._ask(targets=SHARES, percent=ANSWERED, quantiles=None)

    def plot(self, question: str | None = None, by: str = "", possible: Range | None = None) -> Svg:
        """Return the chart of one question, or of the shares of all questions, as SVG text.

        A notebook shows it as a picture; written to a file it is one. It is the chart of the server's results
        page: shares as bars from 0, cut to 0 to 100%; a mean as a dot; the choices of groups one below the
        other, each group with its n (`by` draws one group only, "" all); periods as a trend with gaps where there
        are no figures; a table of two questions as a heat map. Intervals are whiskers, and in words. Of figures with
        two units, such as those of `scales`, the first unit is drawn; of a question that versions ask
        differently, the newest form. possible : the smallest and largest score, over which the scale of a mean then
        goes.

        Raises InvalidRequest(targets_invalid) for an unknown question, or if there are no estimates to plot.
        """
        if question is None:
            drawn = self._bars()
        else:
            rows, forms = self._newest(self._rows_of(question, by))
            text = self._text_of(rows[0]) or question
            title = f"{text} ({by})" if by else text
            # Of one group its name is in the title, and rows without groups are drawn alone.
            shown = [replace(row, by="") for row in rows] if by else rows
            reports = {row.by: row.n for row in rows}
            # A population consists of the reports of its groups, which would count twice.
            groups = [n for by, n in reports.items() if not by.startswith(f"{WEIGHTED}=")]
            notes = [self._note(sum(groups or reports.values()))]
            if forms > 1:
                notes.append(f"the newest of {forms} forms of this question")
            note = f"{', '.join(notes)}. {self.title}"
            drawn = draw(title, shown, possible=possible, most=len(rows), note=note)
        if drawn is None:
            raise InvalidRequest(
                "there are no estimates to plot", code="targets_invalid", field="question"
            )
        return drawn

    def to_json(self) -> bytes:
        """Return the server's complete answer as JSON; in a file, `frankly replay` recomputes it byte for byte."""
        return formats.encode(self.body)

    def to_csv(self) -> str:
        """Return the CSV of `?format=csv`: a header, one line per row, and one per question without rows."""
        return formats.to_csv(self.body, self.language).decode()

    def to_spreadsheet(self) -> bytes:
        """Return a CSV file for people, that spreadsheets open with a double click.

        It has the texts of questions and choices, estimates and intervals.
        """
        return formats.to_spreadsheet(self.body, self.language)

    def to_pandas(self, *, wide: bool = False) -> Any:
        """Return the lines of `to_csv` as a pandas DataFrame.

        wide : one row for each question and choice, and for each group the columns estimate, se, low, high and n.

        Raises InvalidRequest(unsupported) without pandas.
        """
        lines = formats.lines(self.body, self.language)
        pandas = formats.needed("pandas")
        if not wide:
            return pandas.DataFrame(lines, columns=list(formats.COLUMNS))
        estimated = [line for line in lines if line["status"] == "ok"]
        groups = list(dict.fromkeys(line["by"] for line in estimated))
        # A group may lack a row, for example because it has too few reports; its cells stay empty.
        cells = {(line["question"], line["choice"], line["by"]): line for line in estimated}
        index = list(dict.fromkeys((line["question"], line["choice"]) for line in estimated))
        columns = {
            (group, name): [cells.get((*row, group), {}).get(name) for row in index]
            for group in groups
            for name in _WIDE
        }
        names = ["question", "choice"]
        return pandas.DataFrame(columns, index=pandas.MultiIndex.from_tuples(index, names=names))

    def to_arrow(self) -> Any:
        """Return the lines of `to_csv` as a pyarrow Table. Raises InvalidRequest(unsupported) without pyarrow."""
        return formats.to_arrow(formats.needed("pyarrow"), self.body, self.language)

    def to_sav(self, path: str | Path) -> None:
        """Write the lines of `to_csv` as an SPSS file, with labels of variables and values.

        Raises InvalidRequest(unsupported) without pyreadstat (the extra ``files``), or for a path that cannot be
        written.
        """
        labelled.write("sav", self.body, path, self.language)

    def to_dta(self, path: str | Path) -> None:
        """Write the lines of `to_csv` as a Stata file, with labels; raises like `to_sav`."""
        labelled.write("dta", self.body, path, self.language)

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks, with the comparisons if there are any."""
        table = printing.as_html(self.title, self.n, self.rows, self.insufficient)
        table += "".join(f"<p>{escape(line)}</p>" for line in self.said_of_random_answers())
        return table + (self.comparisons._repr_html_() if self.body.get("comparisons") else "")

    def __str__(self) -> str:
        text = printing.as_text(self.title, self.n, self.rows, self.insufficient)
        said = self.said_of_random_answers()
        return "\n".join(
            [text, *said, *([str(self.comparisons)] if self.body.get("comparisons") else [])]
        )

    def _note(self, n: int) -> str:
        level = f", intervals at {100 * self.rows[0].level:.6g}%" if self.rows else ""
        return f"{n:,} reports{level}"

    def _bars(self) -> Svg | None:
        """Return the shares of all questions, each below its question; None without shares."""
        blocks: dict[tuple[str, str], list[Line]] = {}
        for row in self.rows:
            if lines := printing.bars(row):
                text = self._text_of(row) or row.question
                blocks.setdefault((row.question, text), []).extend(lines)
        if not blocks:
            return None
        scale = Scale.of_shares([line for lines in blocks.values() for line in lines])
        below = [(text, lines) for (_, text), lines in blocks.items()]
        return intervals(self.title, below, scale, note=self._note(self.n))

    def _newest(self, rows: Sequence[Estimate]) -> tuple[list[Estimate], int]:
        """Return the rows of the newest form of a question, and the number of its forms.

        Versions of a survey can ask different questions, or offer other choices, under one id.
        """
        versions: dict[str, int] = {
            one["digest"]: one["version"] for one in self.body.get("documents", ())
        }
        forms: dict[tuple[str, ...], list[Estimate]] = {}
        for _, table in groupby(rows, lambda row: (row.by, row.documents)):
            same = list(table)
            forms.setdefault((self._text_of(same[0]), *(row.choice for row in same)), []).extend(
                same
            )

        def newest_version(form: Sequence[Estimate]) -> int:
            return max(versions.get(digest, 0) for row in form for digest in ("", *row.documents))

        return max(forms.values(), key=newest_version), len(forms)

    def _text_of(self, row: Estimate) -> str:
        """Return the text of a row's question in the version that asked it, "" if it is unknown."""
        for one in self.body.get("questions", ()):
            if (one["id"], _group(one), tuple(one["documents"])) == (
                row.question,
                row.by,
                row.documents,
            ):
                return self._localised(one["text"])
        return ""

    def _localised(self, texts: Mapping[str, str]) -> str:
        return localised(texts, self.language, self.body.get("languages", ()))

    def _rows_of(self, question: str, by: str) -> tuple[Estimate, ...]:
        rows = tuple(row for row in self.rows if row.question == question and by in ("", row.by))
        return rows or self.of(question, by)  # raises an error that names the question

    def _ask(self, **changes: Any) -> "Estimates":
        if self.ask is None:
            raise InvalidRequest(
                "these estimates did not come from a server", code="unsupported", field="targets"
            )
        return self.ask(**{"completion": False} | changes)

    def _combined(
        self, question: str, label: str, combination: Mapping[str, Any], by: str
    ) -> Estimate:
        response = self._ask(
            targets={_id(question): {_NAME: combination}},
            percent=None,
            quantiles=None,
            compare=None,
            equivalence=None,
        )
        # The server calls the combination `_NAME`; callers see their own formula.
        return replace(response.of(question, by)[0], choice=label, label=label)


_NAME = "combination"
_WIDE = ("estimate", "se", "low", "high", "n")


def _id(name: str) -> str:
    """Return the name of a table, or of one of its cells, as requests write it."""
    return name.replace(" × ", ",")


def _require_different(names: Sequence[str], field: str) -> None:
    """Raise InvalidRequest(targets_invalid) if a name occurs twice, which could cancel out."""
    # "a × b" and "a,b" name the same cell.
    ids = [_id(name) for name in names]
    repeated = next((name for name in names if ids.count(_id(name)) > 1), None)
    if repeated is not None:
        raise InvalidRequest(
            f"{repeated} is named twice: name each once", code="targets_invalid", field=field
        )


def _by_id(weights: Mapping[str, float], field: str) -> dict[str, float]:
    _require_different(tuple(weights), field)
    return {_id(name): weight for name, weight in weights.items()}


def _formula(weights: Mapping[str, float]) -> str:
    terms = [
        f"{'−' if w < 0 else '+'} {'' if abs(w) == 1 else f'{abs(w):g} × '}{c}"
        for c, w in weights.items()
    ]
    return " ".join(terms).removeprefix("+ ")


def _group(question: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in (question.get("by") or {}).items())


def _name(question: Mapping[str, Any]) -> str:
    group = _group(question)
    return f"{question['id']} ({group})" if group else str(question["id"])
