# SPDX-License-Identifier: Apache-2.0
"""Requests of `frankly verify --json`: exact verification of a mechanism or a survey document."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any

from frankly_protocol import canonical
from frankly_protocol.audit import Claim, Worst, ceiling, require_private, worst
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, InvalidInput, UnsupportedDocument
from frankly_protocol.mechanisms import AnyMechanism, Mechanism
from frankly_protocol.problems import Problem
from frankly_protocol.promises import Promise
from frankly_protocol.schema import REQUEST
from pydantic import PlainValidator, Strict

from frankly_design.kinds.dense import table_of
from frankly_design.notions.ldp_polytope import is_extreme, loose_entries
from frankly_design.notions.prior import Prior
from frankly_design.requests.fields import Flag, JointRows, Whole, custom, errors_at_the_path
from frankly_design.requests.levels import ONE_SIDED
from frankly_design.requests.mechanism import MechanismFields
from frankly_design.requests.whole_report import report_json

_MAX_ENTRIES = 150  # limits the cost of the exact linear algebra in `is_extreme`


def verify_json(obj: Any) -> dict[str, Any]:
    """Verify a JSON request in exact integer arithmetic.

    In: a survey document, as its envelope or as its payload; or weights and bits (kind and params
    for the other kinds), notion, and the fields of the notion: level [p, q], low_level (alip; null
    for a side that is not promised), prior {"joint"} (one row: the answer itself), lower_bounds of
    ratios and diagonal (rldp), attributes (srlip), delta [n, d] (dp), sensitive (dpv, whose level
    is the bound α), levels (metric-ldp: rows of [p, q], null for a pair without one; level
    multiplies them, so level_needed is the least such factor). pml and pmc are alip with one side:
    level is the bound of that side, and the response contains the levels needed for both sides.

    Out: holds; `level_needed` (for dp `delta_needed`, for alip also `low_level_needed`) and ceiling,
    each as [p, q] or "inf"; worst with report and pair, and for srlip the condition; for ldp of a
    table of at most 150 entries also extreme (true for an extreme point of the ε-LDP polytope) and
    loose, its loose entries [row, column] [Thesis Def 5.5]. For a document: holds, digest, and each
    block's claims; for a prior by stratum there is one claim per `stratum` (its position), among
    the `secrets` that occur there. Also report, the level of the whole report in nats, null unless
    every claim holds. Signatures are not checked.

    Raises InvalidInput, naming the field; DocumentRejected for an invalid document.
    """
    if isinstance(obj, Mapping) and ("payloadType" in obj or "blocks" in obj):
        return _document(obj)
    request = VerifyRequest.from_json(obj)
    # The mechanism is parsed first, so that its errors are reported before those of the claim.
    mechanism, claim = request.source(), request.claim
    return (
        _judged(mechanism, claim)
        | {"ceiling": _pair(ceiling(mechanism))}
        | _in_the_polytope(mechanism, claim)
    )


def _in_the_polytope(mechanism: Mechanism, claim: Claim) -> dict[str, Any]:
    """Return `extreme` and `loose` of a small ε-LDP table, else {} [Thesis ch. 5]."""
    # The thesis defines the polytope only for tables and for LDP of the answer.
    table = table_of(mechanism)
    if claim.notion != "ldp" or claim.level is None or table is None:
        return {}
    if table.answers * table.reports > _MAX_ENTRIES:
        return {}
    loose = loose_entries(table.weights, claim.level)
    return {
        "extreme": is_extreme(table.weights, claim.level),
        "loose": [list(entry) for entry in loose],
    }


def _document(obj: Mapping[str, Any]) -> dict[str, Any]:
    # Serialised again, because the digest is that of the canonical form.
    payload = canonical.dumps(dict(obj))
    if "payloadType" in obj:
        payload = Envelope.from_bytes(payload, SURVEY_TYPE).payload
    document = SurveyDocument.parse(payload)
    blocks: list[dict[str, Any]] = [
        {
            "id": block.id,
            "ceiling": _pair(ceiling(block.mechanism)),
            "claims": [
                claim for promise in block.promises for claim in _claims(block.mechanism, promise)
            ],
        }
        for block in document.blocks
    ]
    holds = all(claim["holds"] for block in blocks for claim in block["claims"])
    # The level is computed from the claims, so it is meaningless if one of them fails.
    report = report_json(document.report_level) if holds else None
    return {
        "holds": holds,
        "digest": document.digest,
        "blocks": blocks,
        "report": report,
        "signatures": "not checked",
    }


def _claims(mechanism: AnyMechanism, promise: Promise) -> Iterator[dict[str, Any]]:
    """Yield the verdict on each claim of a promise, with the secrets in its stratum."""
    for z, claim in promise.numbered_claims:
        verdict = {"notion": claim.notion} | _judged(mechanism, claim)
        if z is not None and promise.prior is not None:
            named = zip(promise.prior.secrets, promise.prior.by_stratum[z], strict=True)
            verdict |= {"stratum": z, "secrets": [name for name, row in named if any(row)]}
        yield verdict


def _judged(mechanism: AnyMechanism, claim: Claim) -> dict[str, Any]:
    try:
        worst_case = worst(mechanism, claim)
    # Document errors become request errors; the fields have the same names.
    except UnsupportedDocument as error:
        raise InvalidInput(Problem.UNSUPPORTED, error.detail, "notion") from None
    except DocumentRejected as error:
        raise InvalidInput(Problem.FIELD_TYPE, error.detail, error.field) from None
    try:
        require_private(mechanism, claim)
        holds = True
    except DocumentRejected:
        holds = False
    needed = {f"{field}_needed": _pair(ratio) for field, ratio in worst_case.needed.items()}
    return {"holds": holds, **needed, "worst": _place(mechanism, worst_case)}


def _place(mechanism: AnyMechanism, worst_case: Worst) -> dict[str, Any]:
    place: dict[str, Any] = {
        "report": mechanism.symbol_json(worst_case.report),  # type: ignore[arg-type]
        "pair": list(worst_case.pair),
    }
    if worst_case.condition is not None:
        place["condition"] = list(worst_case.condition)
    return place


def _pair(ratio: Fraction | None) -> list[int] | str:
    return "inf" if ratio is None else list(ratio.as_integer_ratio())


def _ratio(value: Any) -> tuple[int, int] | None:
    """Return the ratio of a list [p, q], None for null."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise custom(Problem.FIELD_TYPE, "give a ratio [p, q] of two whole numbers")
    with errors_at_the_path():
        return REQUEST.whole(value[0], ""), REQUEST.whole(value[1], "")


def _bounds(value: Any) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list):
        raise custom(Problem.FIELD_TYPE, "give rows of ratios [n, d]")
    return tuple(bound for bound in map(_ratio, value) if bound is not None)


def _ratios(value: Any) -> tuple[tuple[int, int] | None, ...]:
    if not isinstance(value, list):
        raise custom(Problem.FIELD_TYPE, "give rows of ratios [p, q], null for no level")
    return tuple(map(_ratio, value))


_Ratio = Annotated[tuple[int, int] | None, PlainValidator(_ratio)]


class VerifyRequest(MechanismFields):
    """A mechanism and a claim about it; see `verify_json`. The verifier refuses missing levels."""

    notion: Annotated[str, Strict()]
    level: _Ratio = None
    low_level: _Ratio = None
    prior: JointRows | None = None
    lower_bounds: tuple[Annotated[tuple[Any, ...], PlainValidator(_bounds)], ...] | None = None
    attributes: tuple[Whole, ...] | None = None
    delta: _Ratio = None
    levels: tuple[Annotated[tuple[_Ratio, ...], PlainValidator(_ratios)], ...] | None = None
    diagonal: Flag = False
    sensitive: Annotated[int, Strict()] | None = None

    @property
    def claim(self) -> Claim:
        """The claim, with the counts of the prior."""
        names = set(VerifyRequest.model_fields) - set(MechanismFields.model_fields) - {"prior"}
        joint = None if self.prior is None else Prior.from_rows(self.prior).joint
        claim = Claim(joint=joint, **{name: getattr(self, name) for name in names})
        if self.notion not in ONE_SIDED:
            return claim
        if self.low_level is not None:
            raise InvalidInput(
                Problem.FIELD_UNKNOWN, f"{self.notion} has one level, named level", "low_level"
            )
        if self.notion == "pmc":
            claim = replace(claim, level=None, low_level=self.level)
        return replace(claim, notion="alip")
