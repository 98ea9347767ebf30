# SPDX-License-Identifier: Apache-2.0
"""Claims that are ambiguous or have a field that their notion ignores, which are refused by name."""

from dataclasses import replace
from typing import Any

import pytest
from frankly_protocol.audit import NOTIONS, PRIOR_BASED, PRIOR_FREE, Claim, require_private, worst
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.errors import DocumentRejected, UnsupportedDocument
from frankly_protocol.mechanisms import DenseMechanism

from tests.frankly_protocol.audit.definitions import needed
from tests.refusals import refusal

MECHANISM = DenseMechanism(4, ((7, 9), (6, 10), (9, 7), (8, 8)))
JOINT = ((1, 2, 0, 4), (3, 1, 1, 1))
BOUNDS = (((1, 4), (1, 2)), ((2, 3), (1, 3)))
PAIRS = tuple(tuple((3, 2) if x != z else None for z in range(4)) for x in range(4))
GOOD: dict[str, Claim] = {
    "ldp": Claim("ldp", (2, 1)),
    "dp": Claim("dp", (4, 3), delta=(1, 8)),
    "secret-ldp": Claim("secret-ldp", (2, 1), JOINT),
    "lip": Claim("lip", (2, 1), JOINT),
    "alip": Claim("alip", (2, 1), JOINT, low_level=(3, 2)),
    "srlip": Claim("srlip", (2, 1), JOINT, attributes=(2, 2)),
    "rldp": Claim("rldp", (2, 1), lower_bounds=BOUNDS),
    "dpv": Claim("dpv", (4, 5), JOINT, sensitive=1),
    "metric-ldp": Claim("metric-ldp", (1, 1), levels=PAIRS),
}
OPTIONAL: dict[str, Any] = {
    "joint": JOINT,
    "low_level": (2, 1),
    "attributes": (2, 2),
    "lower_bounds": BOUNDS,
    "diagonal": True,
    "sensitive": 0,
    "delta": (1, 9),
    "levels": PAIRS,
}
BELONGS = {
    *(("joint", n) for n in ("secret-ldp", "lip", "alip", "srlip", "dpv")),
    ("low_level", "alip"),
    ("attributes", "srlip"),
    ("lower_bounds", "rldp"),
    ("diagonal", "rldp"),
    ("sensitive", "dpv"),
    ("delta", "dp"),
    ("levels", "metric-ldp"),
}


def test_every_notion_has_a_valid_claim_and_is_listed_as_prior_based_or_prior_free() -> None:
    assert tuple(GOOD) == NOTIONS
    assert (
        set(PRIOR_BASED)
        == set(NOTIONS) - {"ldp", "dp", "metric-ldp"}
        == set(NOTIONS) - set(PRIOR_FREE)
    )
    for claim in GOOD.values():
        require_private(MECHANISM, claim)


BAD_LEVELS: list[Any] = [
    None,
    2,
    "21",
    (2,),
    (2, 1, 1),
    (0, 1),
    (-2, -1),
    (1, 0),
    (2.0, 1),
    (True, 1),
    (MAX_INT + 1, MAX_INT + 1),
    (MAX_INT, MAX_INT + 1),
]


@pytest.mark.parametrize("level", BAD_LEVELS, ids=str)
@pytest.mark.parametrize("notion", NOTIONS)
def test_malformed_levels(notion: str, level: Any) -> None:
    if not (notion == "alip" and level is None):
        refused(replace(GOOD[notion], level=level), "level")
    if notion == "alip" and level is not None:
        refused(replace(GOOD[notion], low_level=level), "low_level")


@pytest.mark.parametrize("notion", NOTIONS)
def test_a_ratio_is_at_least_one_and_a_probability_at_most_one(notion: str) -> None:
    require_private(
        MECHANISM, replace(GOOD[notion], level=(MAX_INT, MAX_INT if notion == "dpv" else 1))
    )
    refused(replace(GOOD[notion], level=(5, 4) if notion == "dpv" else (4, 5)), "level")


@pytest.mark.parametrize("field", OPTIONAL)
@pytest.mark.parametrize("notion", NOTIONS)
def test_data_that_belong_to_another_notion(notion: str, field: str) -> None:
    if (field, notion) not in BELONGS:
        data: Any = {field: OPTIONAL[field]}
        refused(replace(GOOD[notion], **data), "prior" if field == "joint" else field)


BAD_DATA: list[tuple[str, Any, str]] = [
    ("alip", {"level": None, "low_level": None}, "level"),
    ("alip", {"low_level": (1, 2)}, "low_level"),
    ("metric-ldp", {"levels": None}, "levels"),
    ("metric-ldp", {"levels": ()}, "levels"),
    ("metric-ldp", {"levels": PAIRS[:3]}, "levels"),
    ("metric-ldp", {"levels": (*PAIRS[:3], PAIRS[3][:3])}, "levels[3]"),
    ("metric-ldp", {"levels": (*PAIRS[:3], ((3, 2),) * 4)}, "levels[3]"),
    ("metric-ldp", {"levels": (*PAIRS[:3], ((2, 3), None, None, None))}, "levels[3]"),
    ("metric-ldp", {"levels": (*PAIRS[:3], (None, (1, 0), None, None))}, "levels[3]"),
    ("metric-ldp", {"levels": (*PAIRS[:3], (None, 2, None, None))}, "levels[3]"),
    ("metric-ldp", {"levels": (*PAIRS[:3], (None, (1.5, 1), None, None))}, "levels[3]"),
    ("metric-ldp", {"levels": ((None,) * 4,) * 4}, "levels"),
    ("srlip", {"attributes": None}, "attributes"),
    ("srlip", {"attributes": 4}, "attributes"),
    ("srlip", {"attributes": ()}, "attributes"),
    ("srlip", {"attributes": (2, 3)}, "attributes"),
    ("srlip", {"attributes": (2, 2.0)}, "attributes"),
    ("srlip", {"attributes": (-2, -2)}, "attributes"),
    ("srlip", {"attributes": (2, 2, 1)}, "attributes"),
    ("rldp", {"lower_bounds": None}, "lower_bounds"),
    ("rldp", {"lower_bounds": 1}, "lower_bounds"),
    ("rldp", {"lower_bounds": (1, 2)}, "lower_bounds"),
    ("rldp", {"lower_bounds": ()}, "lower_bounds"),
    ("rldp", {"lower_bounds": (((1, 4),) * 4,)}, "lower_bounds"),
    ("rldp", {"lower_bounds": (((1, 4),) * 2, ((1, 4),) * 3)}, "lower_bounds[1]"),
    ("rldp", {"lower_bounds": (((1, 9),),) * 3}, "lower_bounds[0]"),
    ("rldp", {"lower_bounds": (((1, 9),) * 2,) * 3}, "lower_bounds[0]"),
    ("rldp", {"lower_bounds": (BOUNDS[0], (1, 2))}, "lower_bounds[1]"),
    ("rldp", {"lower_bounds": (BOUNDS[0], ((1, 2), (1, 2, 3)))}, "lower_bounds[1]"),
    ("rldp", {"lower_bounds": (BOUNDS[0], ((1, 2), (1, 0)))}, "lower_bounds[1]"),
    ("rldp", {"lower_bounds": (BOUNDS[0], ((1, 2), (-1, 2)))}, "lower_bounds[1]"),
    ("rldp", {"lower_bounds": (BOUNDS[0], ((1, 2), (-1, -2)))}, "lower_bounds[1]"),
    ("rldp", {"lower_bounds": (BOUNDS[0], ((1, 2), (0.5, 1)))}, "lower_bounds[1]"),
    ("rldp", {"lower_bounds": (BOUNDS[0], ((1, 2), (1, MAX_INT + 1)))}, "lower_bounds[1]"),
    ("rldp", {"lower_bounds": (BOUNDS[0], ((3, 2), (0, 1)))}, "lower_bounds[1]"),
    (
        "rldp",
        {"lower_bounds": (((1, 2), (MAX_INT // 2 + 1, MAX_INT)), BOUNDS[1])},
        "lower_bounds[0]",
    ),
    ("rldp", {"diagonal": 1}, "diagonal"),
    ("rldp", {"diagonal": None}, "diagonal"),
    *(
        ("dp", {"delta": delta}, "delta")
        for delta in [None, 0, (0,), (1, 1), (-1, 2), (0, 0), (0.5, 1), (0, MAX_INT + 1)]
    ),
    ("dpv", {"sensitive": None}, "sensitive"),
    ("dpv", {"sensitive": -1}, "sensitive"),
    ("dpv", {"sensitive": 2}, "sensitive"),
    ("dpv", {"sensitive": 1.0}, "sensitive"),
    ("dpv", {"sensitive": True}, "sensitive"),
]
BAD_JOINTS: list[tuple[Any, str]] = [
    (None, "prior"),
    (4, "prior"),
    ((1, 2), "prior"),
    ((), "prior"),
    (JOINT[:1], "prior"),
    ((JOINT[0], (1, 2, 3)), "prior.joint[1]"),
    ((JOINT[0], (0, 0, 0, 0)), "prior.joint[1]"),
    ((JOINT[0], (1, 1, 1, -1)), "prior.joint[1]"),
    ((JOINT[0], (1, 1, 1, 1.0)), "prior.joint[1]"),
    ((JOINT[0], (1, 1, 1, True)), "prior.joint[1]"),
    ((JOINT[0], (1, 1, 1, MAX_INT + 1)), "prior.joint[1]"),
]


@pytest.mark.parametrize(("notion", "changes", "field"), BAD_DATA)
def test_data_that_do_not_fit(notion: str, changes: Any, field: str) -> None:
    refused(replace(GOOD[notion], **changes), field)


@pytest.mark.parametrize(("joint", "field"), BAD_JOINTS)
@pytest.mark.parametrize("notion", [n for field, n in sorted(BELONGS) if field == "joint"])
def test_priors_that_do_not_fit(notion: str, joint: Any, field: str) -> None:
    refused(replace(GOOD[notion], joint=joint), field)


@pytest.mark.parametrize("notion", ["", "LDP", "DP", "trust-me", None, ("ldp",), ["ldp"]])
def test_the_error_for_an_unknown_notion_suggests_an_update(notion: Any) -> None:
    for call in (worst, require_private):
        error = refusal(UnsupportedDocument, call, MECHANISM, replace(GOOD["ldp"], notion=notion))
        assert error.field == "notion"


def test_a_mechanism_without_a_claim_is_refused() -> None:
    with pytest.raises(DocumentRejected, match="nothing is promised"):
        require_private(MECHANISM)


def test_a_malformed_claim_is_refused_at_any_place_of_an_intersection() -> None:
    bad = replace(GOOD["lip"], joint=None)
    for claims in ((bad, GOOD["ldp"]), (GOOD["ldp"], bad)):
        with pytest.raises(DocumentRejected, match="lip: the prior needs a row"):
            require_private(MECHANISM, *claims)


def test_bounds_without_slack_and_bounds_of_zero_are_well_formed() -> None:
    for row in (((1, 3), (2, 3)), ((0, 1), (0, 7)), ((1, 1), (0, 1))):
        claim = replace(GOOD["rldp"], lower_bounds=(row, row))
        assert worst(MECHANISM, claim).needed == needed(MECHANISM, claim)


def refused(claim: Claim, field: str) -> None:
    """Check that both entry points refuse the claim, with a message that begins with the notion."""
    for call in (worst, require_private):
        error = refusal(DocumentRejected, call, MECHANISM, claim)
        assert (error.reason, error.field) == ("privacy", field)
        assert error.detail.startswith(claim.notion + ": ")
        assert "report" not in error.detail  # the fault is in the claim's form
