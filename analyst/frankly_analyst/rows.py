# SPDX-License-Identifier: Apache-2.0
"""Row of an estimate: the number with its uncertainty, sample size, documents and flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from frankly_analyst.declared import described
from frankly_analyst.plots import interval, percent
from frankly_analyst.request import METHODS


def localised(texts: Mapping[str, str], language: str | None, languages: Sequence[str]) -> str:
    """Return a text in `language`, else in the first of `languages` that has it, else in any."""
    tag_present = next((tag for tag in (language, *languages) if tag in texts), None)
    return next(iter(texts.values())) if tag_present is None else texts[tag_present]


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One number beside its uncertainty: a row, with its columns in the order of CSV.

    None is null in JSON.
    """

    question: str = field(metadata={"description": "Id of the question, or of the table."})
    choice: str = field(
        metadata={
            "description": "The choice, the cell of a joint table, or the combination's name."
        }
    )
    label: str = field(
        metadata={
            "description": "What the row is about; in JSON by language.",
            "json": dict[str, str],
        }
    )
    by: str = field(
        default="",
        metadata={
            "description": "What the estimate is apart by, such as `region=north`; empty for all together."
        },
    )
    estimate: float | None = field(
        metadata={
            "description": "Unbiased, but for a ratio; may leave [0, 1], which `flags` then says of a share. "
            "Null for a ratio whose denominator is estimated 0."
        }
    )
    se: float | None = field(
        metadata={
            "description": "Standard error; of a ratio by the delta method. Null without an estimate, "
            "and where it is not known, which `flags` then says."
        }
    )
    margin: float | None = field(
        metadata={"description": "The larger distance from the estimate to `low` or `high`."}
    )
    low: float | None = field(
        metadata={
            "description": "Lower end of the interval at `level`, by `method`; null with `high` and `margin` where a "
            "ratio's interval is unbounded, or where the interval is not known, which `flags` then says."
        }
    )
    high: float | None = field(metadata={"description": "Upper end."})
    level: float = field(metadata={"description": "Confidence of the interval."})
    se_privacy: float | None = field(
        metadata={
            "description": "The part that randomising caused; null if the parts cannot be separated."
        }
    )
    se_sampling: float | None = field(
        metadata={
            "description": "The part that asking a sample caused, 0 in a census; null likewise."
        }
    )
    worst_case_se: float | None = field(
        default=None,
        metadata={"description": "The largest standard error that any true shares would give."},
    )
    poisoning_up: float | None = field(
        default=None,
        metadata={
            "description": "How far a share `beta` of fakes can have pushed the estimate up."
        },
    )
    poisoning_down: float | None = field(default=None, metadata={"description": "The same, down."})
    privacy_cost: float | None = field(
        default=None,
        metadata={"description": "Privacy costs as much as losing this share of the respondents."},
    )
    efficiency: float | None = field(
        default=None,
        metadata={"description": "Of the published decoder, against the Cramér-Rao bound."},
    )
    versions_p: float | None = field(
        default=None,
        metadata={
            "description": "p-value of the test that the pooled versions have equal truths; null for one version."
        },
    )
    method: str = field(metadata={"description": "Kind of margin.", "choices": METHODS})
    n: int = field(metadata={"description": "Reports."})
    mechanism: str = field(metadata={"description": "Of every block, separated by commas."})
    notion: str = field(metadata={"description": "Of every block, separated by commas."})
    epsilon: str = field(metadata={"description": "Nats."})
    ceiling: str = field(
        metadata={
            "description": "Nats; what a report can reveal under any prior, `inf` if there is no bound."
        }
    )
    documents: tuple[str, ...] = field(
        metadata={"description": "Digests of the documents whose reports count."}
    )
    flags: tuple[str, ...] = field(
        metadata={"description": "What the number needs to be read with."}
    )

    @property
    def interval(self) -> str:
        """Both ends as text."""
        return (
            "interval unknown"
            if "interval_unknown" in self.flags
            else interval(self.low, self.high)
        )

    @classmethod
    def from_json(
        cls, row: Mapping[str, Any], language: str | None, languages: Sequence[str]
    ) -> Self:
        """Return the row as the server writes it; labels as `localised` chooses them."""
        values = {item.name: row[item.name] for item in fields(cls)}
        values["label"] = localised(row["label"], language, languages)
        values |= {name: tuple(row[name]) for name in ("documents", "flags")}
        return cls(**values)

    def __str__(self) -> str:
        flags = f"  [{', '.join(self.flags)}]" if self.flags else ""
        return f"{self.label}  {percent(self.estimate)}, {self.interval} at {self.level:.10g} (n {self.n}){flags}"
