# SPDX-License-Identifier: Apache-2.0
"""Row of an estimate: the number with its uncertainty, sample size, documents and flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from frankly_analyst.declared import described
from frankly_analyst.plots import NUMBER, SHARE, figure, interval
from frankly_analyst.request import METHODS


def localised(texts: Mapping[str, str], language: str | None, languages: Sequence[str]) -> str:
    """Return the text in `language`, else in the first possible of `languages`, else any."""
    tag_present = next((tag for tag in (language, *languages) if tag in texts), None)
    return next(iter(texts.values())) if tag_present is None else texts[tag_present]


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One estimate with its uncertainty: a row, with its columns in the order of CSV.

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
            "description": "Label of the choice, cell or combination; in JSON by language.",
            "json": dict[str, str],
        }
    )
    by: str = field(
        default="",
        metadata={
            "description": "Group of the estimate, such as `region=north`; empty for all reports together."
        },
    )
    unit: str = field(
        default=SHARE,
        metadata={
            "description": "Unit of the estimate and its errors: `share` (1 is all), or `number` for means, medians "
            "and combinations with coefficients above 1.",
            "choices": (SHARE, NUMBER),
        },
    )
    estimate: float | None = field(
        metadata={
            "description": "Unbiased, except for a ratio; may lie outside [0, 1], which `flags` reports for a share. "
            "Null for a ratio whose estimated denominator is 0, and for a figure that cannot be estimated, however "
            "many reports come in."
        }
    )
    se: float | None = field(
        metadata={
            "description": "Standard error; for a ratio by the delta method. Null without an estimate, "
            "or if it is unknown, which `flags` reports."
        }
    )
    margin: float | None = field(
        metadata={"description": "The larger distance from the estimate to `low` or `high`."}
    )
    low: float | None = field(
        metadata={
            "description": "Lower end of the interval at `level`, by `method`; null, like `high` and `margin`, if a "
            "ratio's interval is unbounded or the interval is unknown, which `flags` reports."
        }
    )
    high: float | None = field(metadata={"description": "Upper end of the interval."})
    level: float = field(metadata={"description": "Confidence level of the interval."})
    se_privacy: float | None = field(
        metadata={
            "description": "Part of `se` due to randomisation; null if the parts cannot be separated."
        }
    )
    se_sampling: float | None = field(
        metadata={
            "description": "Part of `se` due to sampling, 0 in a census; null if the parts cannot be separated."
        }
    )
    worst_case_se: float | None = field(
        default=None,
        metadata={"description": "Largest standard error over all possible true shares."},
    )
    poisoning_up: float | None = field(
        default=None,
        metadata={
            "description": "Largest amount by which a share `beta` of fake reports can have raised the estimate."
        },
    )
    poisoning_down: float | None = field(
        default=None,
        metadata={"description": "The same as `poisoning_up`, for lowering the estimate."},
    )
    privacy_cost: float | None = field(
        default=None,
        metadata={
            "description": "Randomisation costs as much accuracy as losing this share of the respondents."
        },
    )
    efficiency: float | None = field(
        default=None,
        metadata={
            "description": "Efficiency of the published decoder relative to the Cramér-Rao bound."
        },
    )
    versions_p: float | None = field(
        default=None,
        metadata={
            "description": "p-value of the test that the pooled versions have equal true shares; null for one version."
        },
    )
    method: str = field(metadata={"description": "Kind of margin.", "choices": METHODS})
    n: int = field(metadata={"description": "Number of reports."})
    mechanism: str = field(
        metadata={"description": "Mechanism of each block, separated by commas."}
    )
    notion: str = field(metadata={"description": "Notion of each block, separated by commas."})
    epsilon: str = field(metadata={"description": "Privacy level in nats."})
    ceiling: str = field(
        metadata={
            "description": "Bound in nats on what a report can reveal under any prior, `inf` if there is none."
        }
    )
    documents: tuple[str, ...] = field(
        metadata={"description": "Digests of the documents whose reports are included."}
    )
    corrected: float | None = field(
        default=None,
        metadata={
            "description": "The estimate corrected for people who answer at random; null without an instructed item, "
            "for a quantile, and if too little is known of their number."
        },
    )
    corrected_se: float | None = field(
        default=None,
        metadata={"description": "Standard error of `corrected`, by the delta method."},
    )
    corrected_low: float | None = field(
        default=None,
        metadata={
            "description": "Lower end of the interval of `corrected` at `level`, by Fieller's method, approximate, "
            "with the variances of the score interval; "
            "null if the interval is unbounded."
        },
    )
    corrected_high: float | None = field(
        default=None, metadata={"description": "Upper end of the interval of `corrected`."}
    )
    denied_estimate: float | None = field(
        default=None,
        metadata={
            "description": "`corrected`, or else `estimate`, divided by 1 − `denial`: the share of the choice if so "
            "many of the people whom it concerns deny it, and so the largest if not more do. Null without "
            "`denial`, and for figures that are no share of a choice or of a set of choices."
        },
    )
    denied_high: float | None = field(
        default=None,
        metadata={
            "description": "Upper end of the interval if at most the share `denial` of the people whom the choice "
            "concerns deny it; the lower end is `corrected_low` if there is `corrected`, else `low`."
        },
    )
    flags: tuple[str, ...] = field(metadata={"description": "Warnings about the estimate."})

    @property
    def interval(self) -> str:
        """Both ends as text, or "interval unknown", "interval unbounded" or "cannot be estimated"."""
        if "interval_unknown" in self.flags:
            return "interval unknown"
        if self.estimate is None and "unbounded" not in self.flags:
            return "cannot be estimated"
        return interval(self.low, self.high, self.unit)

    @property
    def value(self) -> str:
        """The estimate as text."""
        return figure(self.estimate, self.unit)

    @property
    def correction(self) -> str:
        """The corrected estimate with its interval as text, "" if there is none."""
        if self.corrected is None:
            return ""
        ends = interval(self.corrected_low, self.corrected_high, self.unit)
        return f"{figure(self.corrected, self.unit)}, {ends}"

    @property
    def denied(self) -> str:
        """The largest share if some people deny, with the whole interval as text, "" if there is none."""
        if self.denied_estimate is None:
            return ""
        value = figure(self.denied_estimate, self.unit)
        if self.denied_high is None:
            return value
        low = self.low if self.corrected is None else self.corrected_low
        return f"{value}, {interval(low, self.denied_high, self.unit)}"

    @classmethod
    def from_json(
        cls, row: Mapping[str, Any], language: str | None, languages: Sequence[str]
    ) -> Self:
        """Read a row of the server's response; `localised` chooses the label.

        Raises KeyError, TypeError or AttributeError for a malformed row, StopIteration for a label without texts.
        """
        values = {item.name: row[item.name] for item in fields(cls)}
        values["label"] = localised(row["label"], language, languages)
        values |= {name: tuple(row[name]) for name in ("documents", "flags")}
        return cls(**values)

    def __str__(self) -> str:
        flags = f"  [{', '.join(self.flags)}]" if self.flags else ""
        return (
            f"{self.label}  {self.value}, {self.interval} at {self.level:.10g} (n {self.n}){flags}"
        )
