# SPDX-License-Identifier: Apache-2.0
"""Conversion of priors in survey files to priors of design requests and documents."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import cycle, islice, product

from frankly_design.engine.read_truths import read_truths
from frankly_design.families import Explicit
from frankly_design.notions.prior import Prior, pairs
from frankly_design.notions.truths import Truths
from frankly_design.requests.claims import RequestedClaims
from frankly_design.requests.faults import named
from frankly_protocol.audit import Claim
from frankly_protocol.blocks import Prior as DocumentPrior
from frankly_protocol.blocks import Promise
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.surveys import truths
from frankly_server.surveys.definition import BlockDefinition
from frankly_server.surveys.prior_definition import PriorDefinition, Table, summed

_SMALL = frozenset("1234")


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """The design request of a block.

    prior : integer counts of all people; equally likely answers if the block has no prior.
    promises : the requested promises, in order; a level is None if `explicit` determines it.
    explicit : explicit parameters of a family. truths : the truths over which the largest variance
    is minimised; None for only the prior's shares.
    """

    prior: Prior
    promises: tuple[Promise, ...]
    explicit: Explicit
    truths: Truths | None

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of all promises; one per stratum for counts by stratum."""
        return tuple(claim for promise in self.promises for claim in promise.claims)

    def settled_promises(self, claims: Sequence[Claim]) -> tuple[Promise, ...]:
        """Return the promises with the levels of `claims`, which a design has determined."""
        remaining = iter(claims)
        slices = [tuple(islice(remaining, len(promise.claims))) for promise in self.promises]
        return tuple(map(_settled, self.promises, slices))


def _settled(promise: Promise, claims: Sequence[Claim]) -> Promise:
    if not promise.is_stratified:
        (claim,) = claims
        return replace(promise, claim=claim)
    if any(claim.notion != promise.claim.notion for claim in claims):
        raise InvalidInput(
            Problem.UNSUPPORTED, "this mechanism cannot use counts for each stratum", "mechanism"
        )
    if not claims:  # each stratum has a single secret, so a report cannot reveal anything about it
        return promise
    # One promise covers all strata, so that it states the weakest (largest) level.
    levels = {
        name: max(ratios, key=lambda ratio: Fraction(*ratio))
        for name in ("level", "low_level")
        if (ratios := [ratio for claim in claims if (ratio := getattr(claim, name)) is not None])
    }
    return replace(promise, claim=replace(promise.claim, **levels))


def block_request(block: BlockDefinition, field: str) -> BlockRequest:
    """Return the design request of a block. field : path of the block.

    Raises InvalidInput: prior_small_cells for counts of 1 to 4 that are not marked as public,
    prior_sum, prior_value, prior_shape, secret_empty, choice_unprotected, or the errors of notions
    and levels.
    """
    for name, prior in _named_priors(block):
        for table, path in zip(prior.tables, prior.paths, strict=True):
            _require_public(prior, table, f"{field}.{name}.{path}")
    with named(field), _by_stratum(block):
        # The objective is computed for the sum of all strata; each stratum has separate claims.
        rows = _rows(summed(block.prior.tables)) if block.prior else [[1] * block.answers]
        others = [
            Prior.from_rows(_rows(summed(prior.tables)), f"priors[{i}].joint")
            for i, prior in enumerate(block.priors)
        ]
        secrets = _secrets(block, block.prior) if block.prior else ()
        requested = RequestedClaims(block, Prior.from_rows(rows), others, secrets)
        for x, n in enumerate(requested.prior.shares):
            if n == 0:  # the published decoder requires that every answer is possible
                raise InvalidInput(
                    Problem.PRIOR_VALUE,
                    f"answer {x} has probability 0 under the prior: smooth it, or leave it out",
                    "prior.joint",
                )
        plausible = None if block.truths is None else truths.request_value(block.truths)
        return BlockRequest(
            requested.prior,
            _promises(block, requested.claims),
            block.explicit,
            read_truths(plausible, requested.prior),
        )


@contextmanager
def _by_stratum(block: BlockDefinition) -> Iterator[None]:
    """Rename an error's field prior.joint to prior.strata if the file has strata."""
    try:
        yield
    except InvalidInput as error:
        if block.prior and block.prior.strata and (error.field or "").startswith("prior.joint"):
            raise InvalidInput(error.problem, error.detail, "prior.strata") from None
        raise


def _promises(block: BlockDefinition, claims: Sequence[Claim]) -> tuple[Promise, ...]:
    """Return the claims with names and sources of their priors, in the form of the document.

    Every prior-based notion has one claim under each of the block's priors, in order.
    """
    # cycle: each notion has a claim under every prior, in the same order.
    priors = cycle(
        _document_prior(block, name, prior_definition)
        for name, prior_definition in _named_priors(block)
    )
    promises = []
    for claim in claims:
        if claim.joint is not None:
            prior, path = next(priors)
            if len(prior.tables) > 1:
                _require_strata(claim, prior, path)
            promises.append(Promise.under(claim, prior))
        elif claim.lower_bounds is not None and block.prior is not None:
            if block.prior.strata:
                raise InvalidInput(
                    Problem.UNSUPPORTED,
                    "rldp needs counts of all people: give joint, and a ceiling_cap",
                    "prior.strata",
                )
            promises.append(
                Promise(claim, None, block.prior.secret or block.id, block.prior.source)
            )
        else:
            promises.append(Promise(claim))
    return tuple(promises)


def _document_prior(
    block: BlockDefinition, name: str, definition: PriorDefinition
) -> tuple[DocumentPrior, str]:
    """Return a prior in the form of a document, and its path within the block."""
    tables = [
        Prior.from_rows(_rows(table), f"{name}.{path}")
        for table, path in zip(definition.tables, definition.paths, strict=True)
    ]
    if block.in_pairs:
        # The file has one column per u, a document has one per joint answer (s, u).
        tables = [pairs(table) for table in tables]
    joints = tuple(table.joint for table in tables)
    secret = definition.secret or block.id
    return DocumentPrior(secret, _secrets(block, definition), joints, definition.source), name


def _require_strata(claim: Claim, prior: DocumentPrior, name: str) -> None:
    """Raise InvalidInput for counts that would leave people of a stratum unprotected.

    The problem is choice_unprotected for an answer without mass in a stratum, and eps_out_of_range
    for a bound on a posterior (dpv) that public answers alone already reach.
    """
    for z, table in enumerate(prior.by_stratum):
        path = f"{name}.strata[{z}].joint"
        possible = [x for x, n in enumerate(map(sum, zip(*prior.table, strict=True))) if n]
        for x in possible:
            if not any(row[x] for row in table):
                raise InvalidInput(
                    Problem.CHOICE_UNPROTECTED,
                    f"answer {x} has no mass in this stratum: smooth the counts, or merge strata",
                    path,
                )
        # No mechanism can lower a posterior below the share that is known without any report.
        if claim.sensitive is not None and claim.level is not None:
            # The share is exact, because it is compared with the promised bound.
            share = Fraction(sum(table[claim.sensitive]), sum(map(sum, table)))
            if share >= Fraction(*claim.level):
                raise InvalidInput(
                    Problem.EPS_OUT_OF_RANGE,
                    f"the stratum's sensitive share, {float(share):.6g}, reaches the bound: raise dpv",
                    path,
                )


def _named_priors(block: BlockDefinition) -> list[tuple[str, PriorDefinition]]:
    first = [("prior", block.prior)] if block.prior else []
    return [*first, *((f"priors[{i}]", prior) for i, prior in enumerate(block.priors))]


def _secrets(block: BlockDefinition, prior: PriorDefinition) -> tuple[str, ...]:
    """Return the names of the prior's rows; one row means that the answer itself is the secret."""
    several = len(prior.tables[0]) > 1 and prior.secrets is not None and prior.secret is not None
    return prior.secrets if several and prior.secrets else block.joint_answers


def _rows(table: Table) -> list[list[int | Decimal]]:
    # Decimal, because a float would change the share in the file.
    return [[int(cell) if "." not in cell else Decimal(cell) for cell in row] for row in table]


def prior_columns(block: BlockDefinition) -> tuple[str, ...]:
    """Return the names of a prior's columns: joint answers, or u for pairs (s, u)."""
    if not block.in_pairs or block.prior is None:
        return block.joint_answers
    further_answers = product(
        *([choice.id for choice in question.choices] for question in block.questions[1:])
    )
    names = tuple("-".join(ids) for ids in further_answers)
    # The questions in the file may be divided into s and u differently.
    width = len(block.prior.tables[0][0])
    return names if len(names) == width else tuple(str(x) for x in range(width))


def small_cells(block: BlockDefinition) -> list[tuple[str, str, str]]:
    """Return (secret, answer, count) of counts of 1 to 4, which could reveal individual people."""
    if block.prior is None or _in_shares(block.prior):
        return []
    secrets = block.prior.secrets or ("answer",) * len(block.prior.tables[0])
    answers, cells = prior_columns(block), []
    for table, place in zip(block.prior.tables, block.prior.places, strict=True):
        for secret, row in zip(secrets, table, strict=True):
            name = f"{place}, {secret}" if place else secret
            cells += [(name, answers[x], n) for x, n in enumerate(row) if n in _SMALL]
    return cells


def _in_shares(prior: PriorDefinition) -> bool:
    return any("." in cell for table in prior.tables for row in table for cell in row)


def _require_public(prior: PriorDefinition, table: Table, field: str) -> None:
    if prior.public or _in_shares(prior):  # shares do not reveal the number of people in a cell
        return
    for s, row in enumerate(table):
        for x, cell in enumerate(row):
            if cell in _SMALL:
                raise InvalidInput(
                    Problem.PRIOR_SMALL_CELLS,
                    "counts of 1 to 4 could reveal individual people, and the prior will be "
                    "published; smooth it, or write public: true if the data are public already",
                    f"{field}[{s}][{x}]",
                )
