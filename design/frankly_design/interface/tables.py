# SPDX-License-Identifier: Apache-2.0
"""Arrays, pandas tables and numbers of Python, as the exact values of requests."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import MAX_PREC, Context, Decimal
from fractions import Fraction
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.notions.prior import Prior
from frankly_design.requests.design_fields import no_time

Number = int | float | str | Decimal | Fraction
"""A number; a float means the shortest decimal that converts back to it (0.1 is one tenth).

Levels and probabilities are decimals, so that a `Fraction` such as one third is refused there."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of exact numbers, with labels of rows and columns if the given table has them."""

    rows: list[list[Any]]
    row_labels: tuple[Any, ...] | None = None
    column_labels: tuple[Any, ...] | None = None


def table(value: Any, field: str) -> Table:
    """Read a table: nested lists, an array, a pandas DataFrame or Series, or a `Prior`.

    One dimension is a single row. Raises InvalidInput(prior_shape) for any other object.
    """
    if isinstance(value, Prior):
        return Table([list(row) for row in value.joint])
    index, columns = getattr(value, "index", None), getattr(value, "columns", None)
    rows = as_lists(value)
    is_row = isinstance(rows, list) and rows != [] and not any(map(_is_listed, rows))
    rows = [rows] if is_row else rows
    if not isinstance(rows, list) or not rows or not all(map(_is_listed, rows)):
        raise InvalidInput(Problem.PRIOR_SHAPE, "give rows of numbers, an array or a table", field)
    given = [exact(row, field if is_row else f"{field}[{i}]") for i, row in enumerate(rows)]
    if columns is not None and index is not None:
        return Table(given, _labels(index), _labels(columns))
    if not is_row or not _has_numpy(value):
        return Table(given)
    name = getattr(value, "name", None)
    return Table(given, None if name is None else (plain(name),), _labels(index))


def _labels(index: Any) -> tuple[Any, ...] | None:
    """Return the labels of a pandas index; None for the one that pandas makes without labels."""
    if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1):
        return None
    return tuple(map(plain, index))


def plain(label: Any) -> Any:
    """Return a label as an ordinary object of Python: numbers of numpy and rows as tuples."""
    label = label.tolist() if hasattr(label, "tolist") else label
    return tuple(label) if isinstance(label, list) else label


def as_lists(value: Any) -> Any:
    """Return arrays, pandas objects and tuples, also within lists, as lists."""
    value = value.to_numpy() if _has_numpy(value) else value
    if hasattr(value, "tolist"):
        # The shortest decimals of short floats are those of their own type.
        is_short = value.dtype.kind == "f" and value.dtype.itemsize < 8
        return _decimals(value.astype(str).tolist()) if is_short else value.tolist()
    return [as_lists(entry) for entry in value] if isinstance(value, list | tuple) else value


def _decimals(value: Any) -> Any:
    return list(map(_decimals, value)) if isinstance(value, list) else Decimal(value)


def _is_listed(row: Any) -> bool:
    return isinstance(row, list | tuple)


def _has_numpy(value: Any) -> bool:
    return hasattr(value, "to_numpy") and hasattr(value, "index")


def prior_table(value: Any, field: str = "prior.joint") -> Table:
    """Read a prior: as `table`, and numbers that are all whole are counts, also as floats."""
    given = table(value, field)
    numbers = [v for row in given.rows for v in row]
    if all(isinstance(v, Decimal) and v == v.to_integral_value() for v in numbers):
        return replace(given, rows=[[int(v) for v in row] for row in given.rows])
    return given


def aligned(value: Any, labels: Sequence[Any] | None, field: str, axis: int = 1) -> Table:
    """Read a table whose columns (axis 1) or rows (axis 0) are answers, in the order of `labels`.

    labels : of the answers; None if they have none. A table without labels is taken as it is.

    Raises InvalidInput(prior_shape) if the table's labels are not those of the answers.
    """
    given = prior_table(value, field)
    own = given.column_labels if axis else given.row_labels
    if labels is None or own is None:
        return given
    order = order_of(own, labels, field)
    if axis:
        return Table(
            [[row[x] for x in order] for row in given.rows], given.row_labels, tuple(labels)
        )
    return Table([given.rows[x] for x in order], tuple(labels), given.column_labels)


def order_of(own: Sequence[Any], labels: Sequence[Any], field: str) -> list[int]:
    """Return the place of each of `labels` in `own`. Raises InvalidInput unless they are the same."""
    # By their text, because True and 1 are equal in Python.
    places = {repr(label): place for place, label in enumerate(own)}
    wanted = list(map(repr, labels))
    if len(places) < len(own) or sorted(places) != sorted(wanted):
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"the labels are not those of the prior: {', '.join(wanted[:24])}, each once",
            field,
        )
    return [places[label] for label in wanted]


def answer_labels(given: Table, size: int) -> tuple[Any, ...] | None:
    """Return the labels of `size` answers: the prior's columns, or pairs (s, u); None without labels."""
    columns, rows = given.column_labels, given.row_labels
    if columns is None or size == len(columns):
        return columns
    secrets = rows or tuple(range(len(given.rows)))
    secrets = secrets if len(given.rows) > 1 else columns
    return tuple((s, u) for s in secrets for u in columns)


def read_limits(limits: Any, timer: Callable[[], float]) -> Any:
    """Return the limits of a search as in JSON. Raises InvalidInput for seconds without a clock."""
    if not isinstance(limits, dict):
        return limits
    if timer is no_time and "seconds" in limits:
        raise InvalidInput(
            Problem.FIELD_MISSING, "seconds need a clock: give timer=time.monotonic", "timer"
        )
    return {name: exact(value, f"limits.{name}") for name, value in limits.items()}


def exact(value: Any, field: str) -> Any:
    """Return a number, or nested lists of them, as JSON requests contain it: exact decimals.

    Fractions that are no decimals stay fractions. Raises InvalidInput(field_type) for a float that
    is not a number.
    """
    value = as_lists(value)
    if isinstance(value, list):
        return [exact(entry, field) for entry in value]
    if isinstance(value, float):
        if math.isnan(value):
            raise InvalidInput(Problem.FIELD_TYPE, "a number is needed here, not nan", field)
        return Decimal(repr(value)) if math.isfinite(value) else str(value)
    if isinstance(value, Fraction):
        return _decimal(value)
    return value


def _decimal(value: Fraction) -> Any:
    """Return a fraction as a decimal if it is one of at most 30 places."""
    scaled = value * 10**30
    if value.denominator == 1 or scaled.denominator != 1:
        return value.numerator if value.denominator == 1 else value
    # Other operations of decimals would round to 28 digits.
    digits = tuple(map(int, str(abs(scaled.numerator))))
    return Decimal((int(value < 0), digits, -30)).normalize(Context(prec=MAX_PREC))
