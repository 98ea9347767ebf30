# SPDX-License-Identifier: Apache-2.0
"""Priors as an admin writes them: counts of everybody, or for each stratum of the survey's public questions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Annotated, Final, Self

from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.promises import MAX_STRATA
from pydantic import Field, model_validator

from frankly_server.surveys.fields import Cell, Flag, Part, Slug, Text, custom

Table = tuple[tuple[Cell, ...], ...]
Stratum = tuple[str, ...]
"""One choice id for each public question, in the survey's order."""
_SHOWN: Final = 3


class StratumDefinition(Part):
    """Counts of the people of one stratum: `when` names their answer to every public question."""

    when: Annotated[dict[Slug, Slug], Field(min_length=1, max_length=8)]
    joint: Annotated[tuple[tuple[Cell, ...], ...], Field(min_length=1, max_length=64)]


class PriorDefinition(Part):
    """Public counts known beforehand: joint[s][x], all counts or all shares; one row means the answer itself.

    strata : counts for each stratum in place of `joint`. public : the admin's word that the counts come from public
    data; needed if any lies between 1 and 4.
    """

    joint: Annotated[tuple[tuple[Cell, ...], ...], Field(max_length=64)] = ()
    strata: Annotated[tuple[StratumDefinition, ...], Field(max_length=MAX_STRATA)] = ()
    source: Text
    secret: Slug | None = None
    secrets: tuple[Slug, ...] | None = None
    public: Flag = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if bool(self.joint) == bool(self.strata):
            raise custom(Problem.FIELD_MISSING, "give the counts either as joint, or for each stratum as strata")
        if (self.secret is None) != (self.secrets is None):
            raise custom(Problem.FIELD_MISSING, "name the secret and its values together: secret and secrets")
        rows = {len(table) for table in self.tables}
        if len(rows) > 1:
            raise custom(Problem.PRIOR_SHAPE, "every stratum needs the same number of rows")
        if self.secrets is not None and rows != {len(self.secrets)}:
            words = f"{len(self.secrets)} secrets need as many rows, there are {rows.pop()}"
            raise custom(Problem.PRIOR_SHAPE, words)
        for i, secret in enumerate(self.secrets or ()):
            if secret in (self.secrets or ())[:i]:
                words = f"the secrets “{secret}” and “{secret}” cannot be told apart; change one"
                raise custom(Problem.CHOICES_COLLIDE, words)
        if self.strata:
            self._check_counts()
        return self

    def _check_counts(self) -> None:
        cells = [cell for table in self.tables for row in table for cell in row]
        if any("." in cell for cell in cells):
            words = "counts for each stratum are whole numbers: shares would not say how many people are in a stratum"
            raise custom(Problem.PRIOR_VALUE, words)
        if sum(map(int, cells)) > MAX_INT:
            raise custom(Problem.PRIOR_VALUE, "the counts of all strata together are below 2^53")

    @property
    def tables(self) -> tuple[Table, ...]:
        """The counts of everybody, or those of every stratum."""
        return tuple(stratum.joint for stratum in self.strata) or (self.joint,)

    @property
    def paths(self) -> tuple[str, ...]:
        """The path of every table within the prior."""
        return tuple(f"strata[{z}].joint" for z in range(len(self.strata))) or ("joint",)

    @property
    def places(self) -> tuple[str, ...]:
        """The answers to the public questions that each table is about, as people read them; "" for everybody."""
        return tuple(named_stratum(stratum.when) for stratum in self.strata) or ("",)


def named_stratum(when: Mapping[str, str]) -> str:
    """Return a stratum as people read it: “region north, age old”."""
    return ", ".join(f"{question} {choice}" for question, choice in when.items())


def in_strata_order(
    prior: PriorDefinition, questions: Sequence[tuple[str, Sequence[str]]], field: str
) -> PriorDefinition:
    """Return the prior with its strata in row-major order over the public questions, the last question fastest.

    questions : ids with the ids of their choices. field : the prior's path.
    Raises InvalidInput(prior_shape) unless every combination of public answers is counted exactly once.
    """
    if not prior.strata:
        return prior
    if not questions:
        words = "this survey has no public questions: give the counts of everybody as joint"
        raise InvalidInput(Problem.PRIOR_SHAPE, words, f"{field}.strata")
    if prod(len(choices) for _, choices in questions) > MAX_STRATA:
        words = f"the public questions have more than {MAX_STRATA} combinations: ask fewer of them"
        raise InvalidInput(Problem.PRIOR_SHAPE, words, f"{field}.strata")
    found: dict[Stratum, StratumDefinition] = {}
    for i, stratum in enumerate(prior.strata):
        key = _key(stratum.when, questions, f"{field}.strata[{i}].when")
        if key in found:
            words = f"{named_stratum(stratum.when)} is counted twice"
            raise InvalidInput(Problem.PRIOR_SHAPE, words, f"{field}.strata[{i}].when")
        found[key] = StratumDefinition(
            when={question: choice for (question, _), choice in zip(questions, key, strict=True)}, joint=stratum.joint
        )
    every = list(product(*(choices for _, choices in questions)))
    if missing := [key for key in every if key not in found]:
        words = f"no counts for {_listed(missing, questions)}: every combination of public answers needs its own"
        raise InvalidInput(Problem.PRIOR_SHAPE, words, f"{field}.strata")
    return prior.model_copy(update={"strata": tuple(found[key] for key in every)})


def _key(when: Mapping[str, str], questions: Sequence[tuple[str, Sequence[str]]], field: str) -> Stratum:
    if set(when) != {question for question, _ in questions}:
        words = f"name an answer to each public question, and to no other: {', '.join(q for q, _ in questions)}"
        raise InvalidInput(Problem.PRIOR_SHAPE, words, field)
    for question, choices in questions:
        if when[question] not in choices:
            words = f"{question} has the choices {', '.join(choices)}"
            raise InvalidInput(Problem.PRIOR_SHAPE, words, f"{field}.{question}")
    return tuple(when[question] for question, _ in questions)


def _listed(missing: Sequence[Stratum], questions: Sequence[tuple[str, Sequence[str]]]) -> str:
    names = [named_stratum(dict(zip((q for q, _ in questions), key, strict=True))) for key in missing[:_SHOWN]]
    return "; ".join(names) + (f"; and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else "")


def summed(tables: Iterable[Table]) -> Table:
    """Return the counts of all strata together; a single table stays as it is written."""
    first, *others = tables
    if not others:
        return first
    return tuple(tuple(_sums(columns)) for columns in zip(first, *others, strict=True))


def _sums(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    return (str(sum(map(int, column))) for column in zip(*rows, strict=True))
