# SPDX-License-Identifier: Apache-2.0
"""One tidy row per estimate: the number never without its uncertainty, sample size, documents and flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from frankly_analyst.formats import localised
from frankly_analyst.plots import interval, percent


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number beside its uncertainty.

    estimate : unbiased, may leave [0, 1]; a ratio is nearly unbiased. se : standard error, made of se_privacy and
    se_sampling (None where the two cannot be told apart); of a ratio by the delta method. low, high : ends of the
    interval at `level` by `method`, which need not be equally far from the estimate. margin : the larger of the two
    distances; None, as are both ends, where a ratio's interval is unbounded or the interval is not known, which `flags`
    say. estimate, se : None for a ratio whose denominator is estimated 0; se also where it is not known.
    epsilon, ceiling : nats as text. documents : digests whose reports count. by : what the estimate is apart by, as
    ``region=north``. worst_case_se : over all truths. poisoning_up, poisoning_down : what 1% of fakes can have done.
    privacy_cost : as much as losing this share of the respondents. efficiency : against the Cramér-Rao bound.
    versions_p : p-value of the test that the pooled versions have equal truths.
    """

    question: str
    choice: str
    label: str
    estimate: float | None
    se: float | None
    se_privacy: float | None
    se_sampling: float | None
    margin: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    n: int
    mechanism: str
    notion: str
    epsilon: str
    ceiling: str
    documents: tuple[str, ...]
    flags: tuple[str, ...]
    by: str = ""
    worst_case_se: float | None = None
    poisoning_up: float | None = None
    poisoning_down: float | None = None
    privacy_cost: float | None = None
    efficiency: float | None = None
    versions_p: float | None = None

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
        """Return the row as the server writes it; labels as `formats.localised` chooses them."""
        values: dict[str, Any] = {name: row[name] for name in _COPIED}
        label = localised(row["label"], language, languages)
        values |= {"documents": tuple(row["documents"]), "flags": tuple(row["flags"])}
        return cls(label=label, **values)

    def __str__(self) -> str:
        flags = f"  [{', '.join(self.flags)}]" if self.flags else ""
        return f"{self.label}  {percent(self.estimate)}, {self.interval} at {self.level:.10g} (n {self.n}){flags}"


_OWN = frozenset({"label", "documents", "flags"})
_COPIED = tuple(field.name for field in fields(Estimate) if field.name not in _OWN)
