# SPDX-License-Identifier: Apache-2.0
"""Codebook of a survey: its variables, choices and privacy promises, as HTML, CSV and DDI.

The codebook describes one signed document, the survey's newest version. The signature is not
checked here; `frankly verify` and every device check it.
"""

import base64
import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from hashlib import sha256
from html import escape
from math import ceil, log
from pathlib import Path
from typing import Any, Final, Self
from xml.etree import ElementTree as ET

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.formats import cell
from frankly_analyst.rows import localised

COLUMNS: Final = (
    "variable",
    "text",
    "kind",
    "block",
    "mechanism",
    "promise",
    "ceiling",
    "value",
    "choice",
    "label",
    "score",
    "role",
    "from",
)
"""Columns of the CSV: one line per choice; `value` numbers the choices of a variable from 1."""
PRIVATE, PUBLIC = "randomised", "public"
_DDI: Final = "ddi:codebook:2_5"


@dataclass(frozen=True, slots=True)
class Category:
    """One choice of a variable; score, role and low (the beginning of its range) as in the document."""

    value: int
    id: str
    label: str
    score: str = ""
    role: str = ""
    low: int | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """One question.

    kind : "randomised", or "public" for a question that is answered in the clear. block, mechanism :
    of a randomised one. promise : notions with their levels in nats. ceiling : bound in nats on
    what a report reveals under any prior, "none" without one. arms : ids of the arms that ask it, () if
    all do; a question of another arm may have the same name.
    """

    name: str
    text: str
    kind: str
    categories: tuple[Category, ...]
    block: str = ""
    mechanism: str = ""
    promise: str = ""
    ceiling: str = ""
    arms: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The text, with the arms that ask it if not all do."""
        if not self.arms:
            return self.text
        return f"{self.text} ({'arm' if len(self.arms) == 1 else 'arms'} {', '.join(self.arms)})"

    @property
    def anchor(self) -> str:
        """A name that no other variable has; ids contain no dot."""
        return ".".join((self.name, *self.arms))


@dataclass(frozen=True, slots=True)
class Codebook:
    """Variables of one version of a survey.

    digest : of the signed document. opens, closes : UTC, RFC 3339. minimum : reports needed for an
    estimate. document : the document as JSON values.
    """

    survey: str
    title: str
    version: int
    digest: str
    language: str
    opens: str
    closes: str
    minimum: int
    variables: tuple[Variable, ...]
    document: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_envelope(cls, envelope: Mapping[str, Any], language: str | None = None) -> Self:
        """Read the signed envelope that the server returns; its signature is not checked.

        Raises KeyError, TypeError, AttributeError or ValueError if it is malformed.
        """
        payload = base64.b64decode(envelope["payload"], validate=True)
        document = json.loads(payload)
        languages: list[str] = document["languages"]
        chosen_language = languages[0] if language not in languages else str(language)
        blocks = [
            _variable(question, chosen_language, block, _asking(document, "blocks", block["id"]))
            for block in document["blocks"]
            for question in block["questions"]
        ]
        public = [
            _variable(question, chosen_language, None, _asking(document, "strata", question["id"]))
            for question in document["strata"]
        ]
        return cls(
            survey=document["survey"],
            title=localised(document["title"], chosen_language, languages),
            version=document["version"],
            # Computed over the bytes as received: these are signed, and re-encoded JSON could
            # differ.
            digest="sha256:" + sha256(payload).hexdigest(),
            language=chosen_language,
            opens=document["opens"],
            closes=document["closes"],
            minimum=document["min_reports"],
            variables=(*blocks, *public),
            document=document,
        )

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    def lines(self) -> list[dict[str, Any]]:
        """Return one dict with all COLUMNS per choice."""
        return [
            dict(
                zip(
                    COLUMNS,
                    (
                        v.name,
                        v.label,
                        v.kind,
                        v.block,
                        v.mechanism,
                        v.promise,
                        v.ceiling,
                        c.value,
                        c.id,
                        c.label,
                        c.score,
                        c.role,
                        "" if c.low is None else c.low,
                    ),
                    strict=True,
                )
            )
            for v in self.variables
            for c in v.categories
        ]

    def to_csv(self) -> str:
        """Return the `lines` under a header; text that a spreadsheet would evaluate is escaped."""
        out = io.StringIO()
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: cell(v) for name, v in line.items()} for line in self.lines())
        return out.getvalue()

    def to_html(self) -> str:
        """Return a page without scripts: a table of contents, and a table per variable."""
        contents = "".join(
            f'<li><a href="#v-{escape(v.anchor)}">{escape(v.name)}</a>: {escape(v.label)}</li>'
            for v in self.variables
        )
        facts = [
            ("Survey", self.survey),
            ("Version", str(self.version)),
            ("Document", self.digest),
            ("Open", f"{self.opens} to {self.closes}"),
            ("Reports needed for an estimate", str(self.minimum)),
        ]
        head = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts)
        return (
            f'<!DOCTYPE html>\n<html lang="{escape(self.language)}"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width">'
            f"<title>Codebook: {escape(self.title)}</title><style>{_CSS}</style></head><body><main>"
            f"<h1>{escape(self.title)}</h1><dl>{head}</dl>"
            f'<nav aria-label="Variables"><ul>{contents}</ul></nav>'
            f"{''.join(map(_section, self.variables))}</main></body></html>\n"
        )

    def to_ddi(self) -> str:
        """Return DDI-Codebook 2.5 as XML: the study, its variables, questions and categories."""
        root = ET.Element("codeBook", {"xmlns": _DDI, "version": "2.5"})
        root.set("xml:lang", self.language)
        study = ET.SubElement(root, "stdyDscr")
        citation = ET.SubElement(study, "citation")
        titles = ET.SubElement(citation, "titlStmt")
        _element(titles, "titl", self.title)
        _element(titles, "IDNo", self.survey, agency="Frankly")
        _element(ET.SubElement(citation, "verStmt"), "version", f"{self.version} {self.digest}")
        summary = ET.SubElement(ET.SubElement(study, "stdyInfo"), "sumDscr")
        for event, date in (("start", self.opens), ("end", self.closes)):
            _element(summary, "collDate", date, event=event, date=date)
        data = ET.SubElement(root, "dataDscr")
        for variable in self.variables:
            data.append(_ddi_variable(variable))
        ET.indent(root)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")

    def write(self, folder: str | Path) -> list[Path]:
        """Write codebook.html, codebook.csv and codebook.xml into a folder, created if missing.

        Raises InvalidRequest(unsupported) if they cannot be written.
        """
        texts = {
            "codebook.html": self.to_html(),
            "codebook.csv": self.to_csv(),
            "codebook.xml": self.to_ddi(),
        }
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
        except OSError as error:
            detail = f"the codebook cannot be written: {error.strerror}"
            raise InvalidRequest(detail, code="unsupported", field="out") from None
        return [Path(folder) / name for name in texts]

    def _repr_html_(self) -> str:
        """Return the tables of the variables for notebooks."""
        return f"<h3>{escape(self.title)}</h3>{''.join(map(_section, self.variables))}"

    def __str__(self) -> str:
        lines = [f"{self.title}, version {self.version}"]
        for v in self.variables:
            lines.append(f"{v.name}: {v.label} ({', '.join(filter(None, (v.kind, v.promise)))})")
            lines += [f"  {c.value}  {c.id}: {c.label}" for c in v.categories]
        return "\n".join(lines)


def _asking(document: Mapping[str, Any], kind: str, name: str) -> tuple[str, ...]:
    """Return the ids of the arms that ask a block or a public question; () if all do, or without arms.

    kind : "blocks" or "strata".
    """
    arms = document["arms"]["arms"] if "arms" in document else []
    asking = tuple(arm["id"] for arm in arms if name in arm[kind])
    return () if len(asking) == len(arms) else asking


def _variable(
    question: Mapping[str, Any],
    language: str,
    block: Mapping[str, Any] | None,
    arms: tuple[str, ...],
) -> Variable:
    categories = tuple(
        Category(
            number,
            choice["id"],
            localised(choice["label"], language, ()),
            choice.get("score", ""),
            choice.get("role", ""),
            choice.get("from"),
        )
        for number, choice in enumerate(question["choices"], start=1)
    )
    text = localised(question["text"], language, ())
    if block is None:
        return Variable(question["id"], text, PUBLIC, categories, arms=arms)
    ceiling = block["ceiling"]
    return Variable(
        question["id"],
        text,
        PRIVATE,
        categories,
        block["id"],
        block["mechanism"],
        "; ".join(map(_promise, block["claims"])),
        "none" if ceiling is None else _nats(ceiling),
        arms,
    )


def _promise(claim: Mapping[str, Any]) -> str:
    """Return a claim's notion, its levels in nats and its δ; levels of pairs as a range."""
    levels = [
        f"{name.replace('_', ' ')} {_nats(claim[name])}"
        for name in ("level", "low_level")
        if isinstance(claim.get(name), list)
    ]
    if "delta" in claim:
        numerator, denominator = map(Decimal, claim["delta"])
        delta = Context(prec=4, rounding=ROUND_CEILING).divide(numerator, denominator)
        levels.append(f"δ {delta:f}")
    if "levels" in claim:
        levels = [_of_pairs(claim["level"], claim["levels"])]
    return " ".join([claim["notion"], *levels])


def _of_pairs(level: Sequence[int], levels: Sequence[Sequence[Any]]) -> str:
    """Return the range of the levels of all pairs of answers, and how many pairs have none."""
    pairs = [ratio for x, row in enumerate(levels) for z, ratio in enumerate(row) if x != z]
    nats = sorted(log(level[0] / level[1]) + log(n / d) for n, d in filter(None, pairs))
    without = len(pairs) - len(nats)
    return f"level {_up(nats[0])} to {_up(nats[-1])} by pair of answers" + (
        f", none for {without} of {len(pairs)} pairs" if without else ""
    )


def _nats(ratio: Sequence[int]) -> str:
    return _up(log(ratio[0] / ratio[1]))


def _up(nats: float) -> str:
    # Rounded up: a bound must not be stated lower than it is.
    return f"{ceil(nats * 10_000) / 10_000:.4f}"


_CSS: Final = (
    "body{font:1rem/1.5 system-ui,sans-serif;color:#111;background:#fff;margin:1rem}main{max-width:60rem;margin:auto}"
    "table{border-collapse:collapse;margin:.5rem 0 1.5rem}"
    "th,td{border:1px solid #767676;padding:.2rem .6rem;text-align:left}"
    "caption{text-align:left}dt{font-weight:600}dd{margin:0 0 .3rem;overflow-wrap:anywhere}"
)


def _section(variable: Variable) -> str:
    """Return a variable as HTML: heading, privacy promises, and choices."""
    promise = (
        f"{variable.kind}; block {variable.block}, mechanism {variable.mechanism}, promise "
        f"{variable.promise} (nats), ceiling {variable.ceiling}"
        if variable.kind == PRIVATE
        else "public: answered in the clear"
    )
    rows = "".join(
        f'<tr><td>{c.value}</td><th scope="row">{escape(c.id)}</th><td>{escape(c.label)}</td>'
        f"<td>{escape(c.score)}</td><td>{escape(c.role)}</td>"
        f"<td>{'' if c.low is None else c.low}</td></tr>"
        for c in variable.categories
    )
    titles = ("value", "choice", "label", "score", "role", "from")
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    return (
        f'<section id="v-{escape(variable.anchor)}"><h2>{escape(variable.name)}</h2>'
        f"<p>{escape(variable.label)}</p><table><caption>{escape(promise)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _ddi_variable(variable: Variable) -> ET.Element:
    # An XML ID cannot begin with a digit.
    element = ET.Element("var", {"ID": f"v_{variable.anchor}", "name": variable.name})
    _element(element, "labl", variable.label)
    _element(ET.SubElement(element, "qstn"), "qstnLit", variable.text)
    for category in variable.categories:
        node = ET.SubElement(element, "catgry")
        _element(node, "catValu", str(category.value))
        _element(node, "labl", category.label)
    if variable.kind == PRIVATE:
        note = (
            f"Randomised on the device by {variable.mechanism} (block {variable.block}); promise "
            f"{variable.promise}, ceiling {variable.ceiling}, in nats."
        )
        _element(element, "notes", note)
    return element


def _element(parent: ET.Element, name: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, name, attributes).text = text
