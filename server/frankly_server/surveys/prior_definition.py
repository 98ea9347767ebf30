# SPDX-License-Identifier: Apache-2.0
"""Priors of survey files: counts of all people, or by stratum of the public questions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Annotated, Final, Self

from frankly_design.requests.fields import Cell, ClosedModel, Flag, Slug, custom
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.promises import MAX_STRATA
from pydantic import Field, model_validator

from frankly_server.surveys.fields import Text

Table = tuple[tuple[Cell, ...], ...]
Stratum = tuple[str, ...]
"""One choice id for each public question, in the survey's order."""
_MAX_LISTED: Final = 3


class StratumDefinition(ClosedModel):
    """Counts of the people in one stratum; `when` is their answer to every public question."""

    when: Annotated[dict[Slug, Slug], Field(min_length=1, max_length=8)]
    joint: Annotated[tuple[tuple[Cell, ...], ...], Field(min_length=1, max_length=64)]


class PriorDefinition(ClosedModel):
    """Public counts or shares joint[s][x]; one row means that the answer is the secret.

    strata : counts by stratum instead of `joint`. source : origin of the counts. secret, secrets :
    name of the secret, and of its values in the order of the rows. public : the admin's statement
    that the counts come from public data; required if any of them is 1 to 4.
    """

    joint: Annotated[tuple[tuple[Cell, ...], ...], Field(max_length=64)] = ()
    strata: Annotated[tuple[StratumDefinition, ...], Field(max_length=MAX_STRATA)] = ()
    source: Text
    secret: Slug | None = None
    secrets: tuple[Slug, ...] | None = None
    public: Flag = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        # Both together would be two priors, and it would be unclear which one the promise refers
        # to.
        if bool(self.joint) == bool(self.strata):
            raise custom(
                Problem.FIELD_MISSING,
                "give the counts either as joint, or for each stratum as strata",
            )
        if (self.secret is None) != (self.secrets is None):
            raise custom(
                Problem.FIELD_MISSING, "name the secret and its values together: secret and secrets"
            )
        rows = {len(table) for table in self.tables}
        if len(rows) > 1:
            raise custom(Problem.PRIOR_SHAPE, "every stratum needs the same number of rows")
        if self.secrets is not None and rows != {len(self.secrets)}:
            raise custom(
                Problem.PRIOR_SHAPE,
                f"{len(self.secrets)} secrets need one row each, but there are {rows.pop()}",
            )
        for i, secret in enumerate(self.secrets or ()):
            if secret in (self.secrets or ())[:i]:
                raise custom(
                    Problem.CHOICES_COLLIDE, f"two secrets are called “{secret}”; change one"
                )
        if self.strata:
            self._check_counts()
        return self

    def _check_counts(self) -> None:
        cells = [cell for table in self.tables for row in table for cell in row]
        if any("." in cell for cell in cells):
            raise custom(
                Problem.PRIOR_VALUE,
                "counts by stratum are whole numbers: shares do not give the size of a stratum",
            )
        # `summed` adds the counts, and canonical JSON allows no larger integers.
        if sum(map(int, cells)) > MAX_INT:
            raise custom(Problem.PRIOR_VALUE, "the counts of all strata must sum to less than 2^53")

    @property
    def tables(self) -> tuple[Table, ...]:
        """The counts of all people, or those of every stratum."""
        return tuple(stratum.joint for stratum in self.strata) or (self.joint,)

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of every table within the prior."""
        return tuple(f"strata[{z}].joint" for z in range(len(self.strata))) or ("joint",)

    @property
    def places(self) -> tuple[str, ...]:
        """The public answers of each table as readable text; "" for counts of all people."""
        return tuple(named_stratum(stratum.when) for stratum in self.strata) or ("",)


def named_stratum(when: Mapping[str, str]) -> str:
    """Return a stratum as readable text: “region north, age old”."""
    return ", ".join(f"{question} {choice}" for question, choice in when.items())


def in_strata_order(
    prior: PriorDefinition, questions: Sequence[tuple[str, Sequence[str]]], field: str
) -> PriorDefinition:
    """Return the prior with its strata in row-major order over the public questions.

    questions : ids with the ids of their choices. field : the prior's path.
    Raises InvalidInput(prior_shape) unless every combination of public answers is counted exactly
    once.
    """
    if not prior.strata:
        return prior
    if not questions:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            "this survey has no public questions: give the counts of all people as joint",
            f"{field}.strata",
        )
    # Checked before combinations are listed, because eight questions can have billions.
    if prod(len(choices) for _, choices in questions) > MAX_STRATA:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"the public questions have more than {MAX_STRATA} combinations: ask fewer of them",
            f"{field}.strata",
        )
    by_key: dict[Stratum, StratumDefinition] = {}
    for i, stratum in enumerate(prior.strata):
        key = _key(stratum.when, questions, f"{field}.strata[{i}].when")
        if key in by_key:
            raise InvalidInput(
                Problem.PRIOR_SHAPE,
                f"{named_stratum(stratum.when)} is counted twice",
                f"{field}.strata[{i}].when",
            )
        by_key[key] = StratumDefinition(
            when={question: choice for (question, _), choice in zip(questions, key, strict=True)},
            joint=stratum.joint,
        )
    combinations = list(product(*(choices for _, choices in questions)))
    if missing := [key for key in combinations if key not in by_key]:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"no counts for {_listed(missing, questions)}: every combination of public answers needs counts",
            f"{field}.strata",
        )
    # A fixed order, so that files that differ only in the order of their strata give the same
    # document.
    return prior.model_copy(update={"strata": tuple(by_key[key] for key in combinations)})


def _key(
    when: Mapping[str, str], questions: Sequence[tuple[str, Sequence[str]]], field: str
) -> Stratum:
    if set(when) != {question for question, _ in questions}:
        names = ", ".join(question for question, _ in questions)
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"give an answer to each public question, and to no other: {names}",
            field,
        )
    for question, choices in questions:
        if when[question] not in choices:
            raise InvalidInput(
                Problem.PRIOR_SHAPE,
                f"{question} has the choices {', '.join(choices)}",
                f"{field}.{question}",
            )
    return tuple(when[question] for question, _ in questions)


def _listed(missing: Sequence[Stratum], questions: Sequence[tuple[str, Sequence[str]]]) -> str:
    names = [
        named_stratum(dict(zip((q for q, _ in questions), key, strict=True)))
        for key in missing[:_MAX_LISTED]
    ]
    return "; ".join(names) + (
        f"; and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
    )


def summed(tables: Iterable[Table]) -> Table:
    """Return the sum of the counts of all strata; a single table is returned unchanged."""
    first, *further = tables
    # The texts are unchanged, so that an exported file shows them as written.
    if not further:
        return first
    return tuple(tuple(_sums(columns)) for columns in zip(first, *further, strict=True))


def _sums(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    return (str(sum(map(int, column))) for column in zip(*rows, strict=True))
