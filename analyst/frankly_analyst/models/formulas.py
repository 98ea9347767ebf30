# SPDX-License-Identifier: Apache-2.0
"""Formulas such as `drinks ~ region + age`: model matrices of strata, by formulaic.

The values of public covariates are text. A covariate is numeric if all its values are numbers,
unless the formula has `C(…)`; `numeric` maps the values of other covariates to numbers, such as an
age group to its middle.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import formulaic
import formulaic.errors
import numpy as np
import pandas as pd

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.numbers import numbers
from frankly_analyst.models.sample import FloatArray

Numbers = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Sides:
    """Outcome, right side, and the variables that the right side names."""

    outcome: str
    right: str
    variables: tuple[str, ...]


def split(formula: str, known: Sequence[str]) -> Sides:
    """Return the sides of `outcome ~ terms`. Raises InvalidRequest(targets_invalid) naming unknown variables.

    known : public covariates and questions that the right side may name.
    """
    left, tilde, right = formula.partition("~")
    outcome, right = left.strip(), right.strip() or "1"
    if not tilde or not outcome:
        raise _invalid(f"{formula!r} is not of the form 'question ~ covariate + …'")
    try:
        parsed = formulaic.Formula(right)
        needed = tuple(sorted(str(name) for name in parsed.required_variables))
    except (formulaic.errors.FormulaicError, SyntaxError, ValueError) as error:
        raise _invalid(
            f"the right side of the formula cannot be read: {_first_line(error)}"
        ) from None
    if not isinstance(parsed, formulaic.SimpleFormula):
        raise _invalid("the right side of the formula has several parts: use one")
    unknown = [name for name in needed if name not in known]
    if unknown:
        raise _invalid(
            f"{', '.join(unknown)} is unknown here: the counts have {', '.join(known) or 'no public covariates'}. "
            "Request the counts by these covariates"
        )
    return Sides(outcome, right, needed)


def frame_of(strata: pd.DataFrame, numeric: Numbers) -> pd.DataFrame:
    """Return the covariates, as numbers if all values are numeric or mapped by `numeric`."""
    columns = {}
    for name in strata.columns:
        values = strata[name]
        if name in numeric:
            missing = sorted(set(values) - set(numeric[name]))
            if missing:
                raise InvalidRequest(
                    f"has no number for {', '.join(missing)} of {name}",
                    code="targets_invalid",
                    field="numeric",
                )
            columns[name] = numbers(values.map(dict(numeric[name])), "numeric")
        else:
            read = pd.to_numeric(values, errors="coerce")
            columns[name] = values.astype(str) if read.isna().any() else read.astype(float)
    unknown = sorted(set(numeric) - set(columns))
    if unknown:
        raise InvalidRequest(
            f"{', '.join(unknown)} is not a public covariate of these counts",
            code="targets_invalid",
            field="numeric",
        )
    return pd.DataFrame(columns, index=strata.index)


@dataclass(frozen=True)
class Design:
    """Model matrix of a formula that can be evaluated at other rows."""

    names: tuple[str, ...]
    matrix: FloatArray
    spec: Any

    def columns_of(self, term: str) -> list[str]:
        """Return the names of the columns of `term`; [] if the formula has none.

        term : a term such as `region` or `region:age`; one column; or or a variable, for all terms
            that contain only this variable, such as `C(region)`.
        """
        if term in self.names:
            return [term]
        requested = frozenset(part.strip() for part in term.split(":"))
        of_term, of_variable = [], []
        for candidate, places in self.spec.term_indices.items():
            factors = frozenset(map(str, candidate.factors))
            columns = [self.names[i] for i in places]
            if str(candidate) == term or factors == requested:
                of_term += columns
            elif len(factors) == 1 and term in self.spec.term_variables[candidate]:
                of_variable += columns
        return of_term or of_variable

    def at(self, frame: pd.DataFrame) -> FloatArray:
        """Return the model matrix of other rows, with the same columns."""
        try:
            return _array(self.spec.get_model_matrix(frame, context={}))
        except (formulaic.errors.FormulaicError, ValueError, KeyError) as error:
            raise InvalidRequest(
                f"a prediction needs known values of every covariate: {error}",
                code="targets_invalid",
                field="at",
            ) from None


def design(right: str, frame: pd.DataFrame) -> Design:
    """Return the model matrix of the right side. Raises InvalidRequest(targets_invalid) if it has none."""
    try:
        matrix = formulaic.model_matrix(right, frame, context={})
    except (formulaic.errors.FormulaicError, ValueError, KeyError, TypeError) as error:
        raise _invalid(f"the right side of the formula cannot be evaluated: {error}") from None
    names = tuple(re.sub(r"\[T\.([^\]]*)\]", r"[\1]", str(name)) for name in matrix.columns)
    values = _array(matrix)
    if values.shape[1] == 0:
        raise _invalid("the right side of the formula has no terms")
    # A categorical covariate with only one value has no column, and the model would silently omit
    # it.
    empty = [str(term) for term, places in matrix.model_spec.term_indices.items() if not places]
    if empty:
        raise _invalid(f"{', '.join(empty)} has one value in these strata: leave it out")
    return Design(names, values, matrix.model_spec)


def require_full_rank(matrix: FloatArray, names: Sequence[str]) -> None:
    """Raise InvalidRequest(unsupported) naming columns that others determine."""
    scale = np.linalg.norm(matrix, axis=0)
    unit = matrix / np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(unit.T @ unit)
    if values[0] <= 1e-10 * values[-1]:
        involved = [n for n, v in zip(names, np.abs(vectors[:, 0]), strict=True) if v > 1e-6]
        raise InvalidRequest(
            f"{', '.join(involved)} cannot be distinguished in these strata: remove one of them",
            code="unsupported",
            field="formula",
        )


def _first_line(error: Exception) -> str:
    """Return the first line of formulaic's message; the other lines repeat the formula."""
    return str(error).partition("\n")[0]


def _array(matrix: Any) -> FloatArray:
    return np.asarray(matrix, dtype=float)


def _invalid(detail: str) -> InvalidRequest:
    return InvalidRequest(detail, code="targets_invalid", field="formula")
