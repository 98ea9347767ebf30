# SPDX-License-Identifier: Apache-2.0
"""One question over all the documents that asked it: its rows, or how many reports are still needed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frankly_protocol.audit import ln_up
from frankly_protocol.blocks import Block, Question
from frankly_protocol.documents import SurveyDocument

from frankly_server.analysis.pooling import Version, pool
from frankly_server.analysis.targets import shares_of
from frankly_server.estimate import estimate

_LEAST: Final = 2  # a covariance needs two reports; a version with fewer is left out, whatever they say


@dataclass(frozen=True, slots=True)
class Asked:
    """How an analyst wants uncertainty told; `level` lies strictly between 0 and 1."""

    level: float
    census: bool
    simultaneous: bool

    @property
    def method(self) -> str:
        """The margin's name: normal approximation per choice, or Bonferroni over all choices of a question."""
        return "simultaneous" if self.simultaneous else "clt"


@dataclass(frozen=True, slots=True)
class Counted:
    """A document and how often each symbol of each block came in: counts[block][symbol]."""

    document: SurveyDocument
    counts: Sequence[Sequence[int]]

    @property
    def received(self) -> int:
        """How many reports came in: every report has one symbol for every block."""
        return sum(self.counts[0])


@dataclass(frozen=True, slots=True)
class Source:
    """One document's part in a question's estimate."""

    document: SurveyDocument
    block: Block
    question: Question
    counts: Sequence[int]

    @property
    def n(self) -> int:
        """How many reports were made under this document."""
        return sum(self.counts)


def asked_alike(documents: Sequence[Counted]) -> list[list[Source]]:
    """Group the questions of all documents (oldest first) by the ids of question and choices.

    Groups follow the newest document; its sources are oldest first.
    """
    groups: dict[tuple[str, ...], list[Source]] = {}
    for counted in reversed(documents):
        for block, counts in zip(counted.document.blocks, counted.counts, strict=True):
            for question in block.questions:
                key = (question.id, *(choice.id for choice in question.choices))
                groups.setdefault(key, []).append(Source(counted.document, block, question, counts))
    return [sources[::-1] for sources in groups.values()]


def question_json(sources: Sequence[Source], asked: Asked) -> dict[str, Any]:
    """Return one question with its rows, one per choice; no rows below the minimum of reports."""
    newest = sources[-1]
    used = [source for source in sources if source.n >= _LEAST]
    n, needed = sum(source.n for source in used), max(source.document.min_reports for source in sources)
    enough = bool(used) and n >= needed
    return {
        "id": newest.question.id,
        "block": newest.block.id,
        "text": dict(newest.question.text),
        "status": "ok" if enough else "insufficient",
        "n": n,
        "needed": needed,
        "documents": [source.document.digest for source in used],
        "rows": _rows(used, asked, _flags(sources, used)) if enough else [],
    }


def _flags(sources: Sequence[Source], used: Sequence[Source]) -> list[str]:
    left_out = any(source.n for source in sources if source not in used)
    return [*(["pooled"] if len(used) > 1 else []), *(["version_left_out"] if left_out else [])]


def _rows(sources: Sequence[Source], asked: Asked, flags: Sequence[str]) -> list[dict[str, Any]]:
    pooled = pool([_version(source, asked) for source in sources], census=asked.census)
    shared = {
        "level": asked.level,
        "method": asked.method,
        "n": sum(source.n for source in sources),
        "mechanism": _joined(source.block.mechanism_name for source in sources),
        "notion": _joined(source.block.notion for source in sources),
        "epsilon": _joined(ln_up(source.block.ratio) for source in sources),
        "ceiling": _joined(ln_up(source.block.ceiling) for source in sources),
        "documents": [source.document.digest for source in sources],
    }
    rows = []
    for t, choice in enumerate(sources[-1].question.choices):
        value, se, margin = pooled.value[t], pooled.se[t], pooled.margin[t]
        if value is None or se is None or margin is None:
            continue  # not identifiable, as the admin accepted in writing: the other rows carry the flag
        rows.append(
            {
                "question": sources[-1].question.id,
                "choice": choice.id,
                "label": dict(choice.label),
                "estimate": value,
                "se": se,
                "se_privacy": pooled.se_privacy[t],
                "se_sampling": pooled.se_sampling[t],
                "margin": margin,
                "lo": value - margin,
                "hi": value + margin,
                **shared,
                "flags": [*pooled.flags, *flags, *([] if 0 <= value <= 1 else ["outside_unit_interval"])],
            }
        )
    return rows


def _version(source: Source, asked: Asked) -> Version:
    found = estimate(
        source.block.mechanism,
        source.counts,
        design_prior=source.block.design_prior,
        targets=shares_of(source.block, source.question),
        census=asked.census,
        level=asked.level,
    )
    return Version(found, found.margins.simultaneous if asked.simultaneous else found.margins.clt)


def _joined(values: Iterable[str]) -> str:
    """Return what all versions share, or each different value once, oldest first."""
    return ", ".join(dict.fromkeys(values))
