# SPDX-License-Identifier: Apache-2.0
"""From the priors an admin wrote to those the designer and the document use."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import cycle, islice, product
from typing import Any

from frankly_protocol.audit import Claim
from frankly_protocol.blocks import Prior as DocumentPrior
from frankly_protocol.blocks import Promise
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.design.asked import RequestedClaims
from frankly_server.design.families import Explicit
from frankly_server.design.prior import Prior
from frankly_server.design.promises import pairs
from frankly_server.design.variance.truths import Truths
from frankly_server.surveys import truths
from frankly_server.surveys.definition import BlockDefinition
from frankly_server.surveys.known import PriorDefinition, Table, summed

_SMALL = frozenset("1234")


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """What a block asks for.

    prior : whole counts of everybody, of equally likely answers if the admin gave none. promises : what is asked for,
    in order; a level that the mechanism's own parameters settle is None. explicit : these parameters. truths : over
    which the largest variance counts; None for the prior's shares alone.
    """

    prior: Prior
    promises: tuple[Promise, ...]
    explicit: Explicit
    truths: Truths | None

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All that the mechanism must keep: the promises' claims, within every stratum where counts are by stratum."""
        return tuple(claim for promise in self.promises for claim in promise.claims)

    def kept(self, claims: Sequence[Claim]) -> tuple[Promise, ...]:
        """Return the promises with the levels that a mechanism keeps; `claims` as in `self.claims`, levels settled."""
        left = iter(claims)
        return tuple(_settled(promise, tuple(islice(left, len(promise.claims)))) for promise in self.promises)


def _settled(promise: Promise, claims: Sequence[Claim]) -> Promise:
    if not promise.is_stratified:
        (claim,) = claims
        return replace(promise, claim=claim)
    if any(claim.notion != promise.claim.notion for claim in claims):
        raise InvalidInput(Problem.UNSUPPORTED, "this mechanism cannot take counts for each stratum", "mechanism")
    if not claims:  # where every stratum has one secret only, nothing about it is left to tell
        return promise
    levels = {
        name: max(given, key=lambda ratio: Fraction(*ratio))
        for name in ("level", "low_level")
        if (given := [ratio for claim in claims if (ratio := getattr(claim, name)) is not None])
    }
    return replace(promise, claim=replace(promise.claim, **levels))


def asked_of(block: BlockDefinition, field: str) -> BlockRequest:
    """Return what a block asks for, ready to be designed.

    Raises InvalidInput: prior_small_cells for counts of 1 to 4 whose data the admin has not called public, prior_sum,
    prior_value, prior_shape, secret_empty, choice_unprotected, or what else is wrong with the notions and their levels;
    `field` is the block's path.
    """
    for name, prior in _named(block):
        for table, path in zip(prior.tables, prior.paths, strict=True):
            _require_public(prior, table, f"{field}.{name}.{path}")
    with named(field), _by_stratum(block):
        asked = RequestedClaims(_request(block))
        for x, n in enumerate(asked.prior.shares):
            if n == 0:  # the published decoder needs every answer to be possible
                words = f"answer {x} has no mass under the prior: smooth the counts, or leave the prior out"
                raise InvalidInput(Problem.PRIOR_VALUE, words, "prior.joint")
        return BlockRequest(asked.prior, _promises(block, asked.claims), asked.explicit, asked.truths)


@contextmanager
def named(field: str) -> Iterator[None]:
    """Put a block's path before the field that an error names."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(error.problem, error.detail, f"{field}.{error.field}" if error.field else field) from None


@contextmanager
def _by_stratum(block: BlockDefinition) -> Iterator[None]:
    """Name the strata where an error is about the counts of everybody, which a file with strata does not hold."""
    try:
        yield
    except InvalidInput as error:
        if block.prior and block.prior.strata and (error.field or "").startswith("prior.joint"):
            raise InvalidInput(error.problem, error.detail, "prior.strata") from None
        raise


def _request(block: BlockDefinition) -> dict[str, Any]:
    """Return what a block asks for in the keys of `frankly design --json`."""
    secrets = _secrets(block, block.prior) if block.prior else ()
    given = block.asked(secrets) | block.own() | {"mechanism": block.mechanism}
    given["prior"] = {"joint": _rows(summed(block.prior.tables)) if block.prior else [[1] * block.answers]}
    if block.notions:
        given["notions"] = [notion.asked(secrets) for notion in block.notions]
    if block.priors:
        given["priors"] = [{"joint": _rows(summed(prior.tables))} for prior in block.priors]
    if block.truths is not None:
        given["truths"] = truths.asked(block.truths)
    if block.ceiling_cap is not None:
        given["ceiling_cap"] = block.ceiling_cap
    return given


def _promises(block: BlockDefinition, claims: Sequence[Claim]) -> tuple[Promise, ...]:
    """Return the claims with the names and sources that people read; nothing but them is published of a prior.

    Every notion with a prior has one claim under each of the block's priors, in order.
    """
    priors = cycle(_document_prior(block, name, given) for name, given in _named(block))
    found = []
    for claim in claims:
        if claim.joint is not None:
            prior, path = next(priors)
            if len(prior.tables) > 1:
                _require_strata(claim, prior, path)
            found.append(Promise.under(claim, prior))
        elif claim.notion == "rldp" and block.prior is not None:
            if block.prior.strata:
                words = "rldp is promised under the counts of everybody: give joint, and a ceiling_cap"
                raise InvalidInput(Problem.UNSUPPORTED, words, "prior.strata")
            found.append(Promise(claim, None, block.prior.secret or block.id, block.prior.source))
        else:
            found.append(Promise(claim))
    return tuple(found)


def _document_prior(block: BlockDefinition, name: str, given: PriorDefinition) -> tuple[DocumentPrior, str]:
    """Return a prior as a document publishes it, and its path within the block."""
    tables = [
        Prior.from_rows(_rows(table), f"{name}.{path}") for table, path in zip(given.tables, given.paths, strict=True)
    ]
    if block.in_pairs:
        tables = [pairs(table) for table in tables]
    joints = tuple(table.joint for table in tables)
    return DocumentPrior(given.secret or block.id, _secrets(block, given), joints, given.source), name


def _require_strata(claim: Claim, prior: DocumentPrior, name: str) -> None:
    """Refuse counts under which somebody of a stratum would not be protected.

    Raises InvalidInput: choice_unprotected for an answer without mass in a stratum, secret_empty and eps_out_of_range
    for a posterior (dpv) that a public answer alone already exceeds.
    """
    for z, table in enumerate(prior.by_stratum):
        path = f"{name}.strata[{z}].joint"
        possible = [x for x, n in enumerate(map(sum, zip(*prior.table, strict=True))) if n]
        for x in possible:
            if not any(row[x] for row in table):
                words = f"answer {x} has no mass in this stratum: smooth the counts, or merge strata"
                raise InvalidInput(Problem.CHOICE_UNPROTECTED, words, path)
        if claim.notion == "dpv" and claim.sensitive is not None and claim.level is not None:
            share = Fraction(sum(table[claim.sensitive]), sum(map(sum, table)))
            if share >= Fraction(*claim.level):
                words = f"in this stratum the sensitive share, {float(share):.6g}, is not below the bound: raise dpv"
                raise InvalidInput(Problem.EPS_OUT_OF_RANGE, words, path)


def _named(block: BlockDefinition) -> list[tuple[str, PriorDefinition]]:
    first = [("prior", block.prior)] if block.prior else []
    return [*first, *((f"priors[{i}]", prior) for i, prior in enumerate(block.priors))]


def _secrets(block: BlockDefinition, prior: PriorDefinition) -> tuple[str, ...]:
    """Return the names of the prior's rows; one row means that the answer itself is the secret."""
    several = len(prior.tables[0]) > 1 and prior.secrets is not None and prior.secret is not None
    return prior.secrets if several and prior.secrets else block.joint_answers


def _rows(table: Table) -> list[list[int | Decimal]]:
    return [[int(cell) if "." not in cell else Decimal(cell) for cell in row] for row in table]


def prior_columns(block: BlockDefinition) -> tuple[str, ...]:
    """Return the names of a prior's columns: joint answers, or, where answers are pairs (s, u), those of u."""
    if not block.in_pairs or block.prior is None:
        return block.joint_answers
    rest = product(*([choice.id for choice in question.choices] for question in block.questions[1:]))
    names = tuple("-".join(ids) for ids in rest)
    width = len(block.prior.tables[0][0])  # a file may cut its questions into pairs in another way
    return names if len(names) == width else tuple(str(x) for x in range(width))


def small_cells(block: BlockDefinition) -> list[tuple[str, str, str]]:
    """Return a prior's counts of 1 to 4, which could point at single people, as (secret, answer, count)."""
    if block.prior is None or _in_shares(block.prior):
        return []
    secrets = block.prior.secrets or ("answer",) * len(block.prior.tables[0])
    answers, found = prior_columns(block), []
    for table, place in zip(block.prior.tables, block.prior.places, strict=True):
        for secret, row in zip(secrets, table, strict=True):
            name = f"{place}, {secret}" if place else secret
            found += [(name, answers[x], n) for x, n in enumerate(row) if n in _SMALL]
    return found


def _in_shares(prior: PriorDefinition) -> bool:
    return any("." in cell for table in prior.tables for row in table for cell in row)


def _require_public(prior: PriorDefinition, table: Table, field: str) -> None:
    if prior.public or _in_shares(prior):
        return
    for s, row in enumerate(table):
        for x, cell in enumerate(row):
            if cell in _SMALL:
                words = (
                    "counts of 1 to 4 could point at single people, and the prior will be published; "
                    "smooth it, or write public: true if the data are public already"
                )
                raise InvalidInput(Problem.PRIOR_SMALL_CELLS, words, f"{field}[{s}][{x}]")
