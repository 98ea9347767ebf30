# SPDX-License-Identifier: Apache-2.0
"""Counts request: the only declaration of its fields, for the route, the command and the client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from typing import Any, Final

from frankly_analyst.declared import described

_DAY: Final = {"schema": {"pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "example": "2026-05-31"}}
_NAMES: Final = {"schema": {"maxLength": 1500}}


@described
@dataclass(frozen=True, slots=True)
class CountsRequest:
    """Fields of one counts request; see `Analyst.counts`."""

    by: str | Sequence[str] = field(
        default=(),
        metadata={
            "description": "Public questions whose combinations are the strata, and `day`, `week` or `month` of "
            "release in UTC; in a query separated by commas.",
            **_NAMES,
        },
    )
    questions: str | Sequence[str] = field(
        default=(),
        metadata={
            "description": "Question ids of one table, of one block or of two blocks together; in a query separated "
            "by commas. Without any, every block and every part of a form is returned by itself.",
            **_NAMES,
        },
    )
    since: date | str | None = field(
        default=None,
        metadata={"description": "Only batches released on this UTC day or later.", **_DAY},
    )
    until: date | str | None = field(
        default=None,
        metadata={"description": "Only batches released on this UTC day or before.", **_DAY},
    )

    def query(self) -> dict[str, str]:
        """Return the given fields as the parameters of a query."""
        return {
            name: value if isinstance(value, str) else ",".join(map(str, value))
            for name, value in self._given().items()
        }

    def _given(self) -> Mapping[str, Any]:
        values = {name: getattr(self, name) for name in COUNTS_FIELDS}
        nonempty = {name: value for name, value in values.items() if value}
        return {n: str(v) if isinstance(v, date) else v for n, v in nonempty.items()}


COUNTS_FIELDS: Final = {item.name: item for item in fields(CountsRequest)}
