# SPDX-License-Identifier: Apache-2.0
"""Calibration of families: the verifier accepts every family under every notion and refuses the
next less private member."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from frankly_design.notions.ball_bounds import lower_bounds
from frankly_design.notions.prior import Prior, pairs
from frankly_protocol.audit import Claim, level_for, require_private, worst
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import (
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

from tests.frankly_design.families.asking import (
    JOINT,
    ROBUST,
    ask,
    exact,
    floats,
    lip_of,
    mechanism_of,
)

E = level_for(Fraction(1, 2))
TABLE = tuple(map(tuple, JOINT))
EPSILONS = [
    [None if x == z else f"{0.4 + 0.1 * x + 0.3 * z:.1f}" for z in range(4)] for x in range(4)
]
NOTIONS: dict[str, tuple[dict[str, Any], tuple[Claim, ...]]] = {
    "ldp": ({"notion": "ldp", "epsilon": "0.5"}, (Claim("ldp", E),)),
    "lip": ({"notion": "lip", "epsilon": "0.5"}, (Claim("lip", E, TABLE),)),
    "secret-ldp": ({"notion": "secret-ldp", "epsilon": "0.5"}, (Claim("secret-ldp", E, TABLE),)),
    "alip": (
        {"notion": "alip", "epsilon_low": "0.5", "epsilon_high": None},
        (Claim("alip", None, TABLE, low_level=E),),
    ),
    "srlip": (
        {"notion": "srlip", "epsilon": "0.5", "attributes": [2, 2]},
        (Claim("srlip", E, TABLE, attributes=(2, 2)),),
    ),
    "metric-ldp": (
        {"notion": "metric-ldp", "epsilons": EPSILONS},
        (
            Claim(
                "metric-ldp",
                (1, 1),
                levels=tuple(tuple(e and level_for(Fraction(e)) for e in row) for row in EPSILONS),
            ),
        ),
    ),
    "dpv": ({"notion": "dpv", "dpv": "0.45"}, (Claim("dpv", (9, 20), TABLE, sensitive=1),)),
    "dp": ({"notion": "dp", "epsilon": "0.5", "delta": "0.1"}, (Claim("dp", E, delta=(1, 10)),)),
    "lip and a cap": (
        {"notion": "lip", "epsilon": "0.5", "ceiling_cap": "1"},
        (Claim("lip", E, TABLE), Claim("ldp", level_for(Fraction(1)))),
    ),
}
CALIBRATED = (
    "grr",
    "oue",
    "symmetric-unary",
    "subset-selection",
    "product-sanitisation",
    "discrete-exponential",
)


def more_open(mechanism: Mechanism) -> Mechanism:
    """Return the family's next member, with one unit of 2^-48 less noise."""
    if isinstance(mechanism, UnaryMechanism):
        symmetric = mechanism.keep + mechanism.flip == mechanism.denominator
        keep = mechanism.keep + symmetric
        return UnaryMechanism(mechanism.bits, mechanism.answers, keep, mechanism.flip - 1)
    if isinstance(mechanism, SubsetMechanism):
        return SubsetMechanism(
            mechanism.bits, mechanism.answers, mechanism.size, mechanism.inside + 1
        )
    if isinstance(mechanism, ProductMechanism):
        # rounding: the factors share one parameter, and one unit of it may leave a factor unchanged
        opened = [more_open(factor) for factor in mechanism.factors]
        return ProductMechanism(tuple(f for f in opened if isinstance(f, DenseMechanism)))
    a = mechanism.answers
    rows = [
        [w + (a - 1 if x == y else -1) for y, w in enumerate(row)]
        for x, row in enumerate(mechanism.weights)
    ]
    return DenseMechanism(mechanism.bits, tuple(map(tuple, rows)))


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("family", CALIBRATED)
def test_a_family_uses_up_its_promise(family: str, notion: str) -> None:
    options, claims = NOTIONS[notion]
    response = ask(family, **options)
    mechanism = mechanism_of(response)
    require_private(mechanism, *claims)
    assert response["identifiable"] is True
    with pytest.raises(DocumentRejected):
        require_private(more_open(mechanism), *claims)


@pytest.mark.parametrize("family", CALIBRATED)
def test_a_family_under_rldp_takes_pairs(family: str) -> None:
    response = ask(family, notion="rldp", epsilon="0.5", robust=ROBUST)
    mechanism = mechanism_of(response)
    assert mechanism.answers == 8
    bounds = lower_bounds(TABLE, 2, 750, "0.05")
    claim = Claim("rldp", E, lower_bounds=bounds)
    require_private(mechanism, claim)
    with pytest.raises(DocumentRejected):
        require_private(more_open(mechanism), claim)


@pytest.mark.parametrize(
    "family", ["grr", "oue", "symmetric-unary", "subset-selection", "conditional-reporting"]
)
def test_the_realised_lip_is_the_requested_one(family: str) -> None:
    response = ask(family, notion="lip", epsilon="0.5")
    joint = pairs(Prior.from_rows(JOINT)).joint if family == "conditional-reporting" else JOINT
    assert lip_of(floats(mechanism_of(response)), joint) == pytest.approx(0.5, abs=1e-9)
    assert 0.5 - 1e-9 < response["measures"]["lip"] <= 0.5


@pytest.mark.parametrize("family", ["grr", "oue", "symmetric-unary", "subset-selection"])
def test_figures_equal_those_of_the_listed_reports(family: str) -> None:
    response = ask(family, notion="lip", epsilon="0.5")
    mechanism = mechanism_of(response)
    Q, p = floats(mechanism), np.array(JOINT).sum(axis=0) / 750
    assert response["matrix"] == [[pytest.approx(v, abs=1e-15) for v in row] for row in Q.tolist()]
    expected = p @ Q
    positive = expected > 0
    information = np.sum(p[:, None] * Q[:, positive] * np.log(Q[:, positive] / expected[positive]))
    assert response["information"] == pytest.approx(information, rel=1e-9)
    inverse = np.linalg.inv(Q[:, positive] / expected[positive] @ Q[:, positive].T)
    least = np.trace(inverse) - p @ p
    # Sets are decoded by counting their answers, not by a matrix over all sets.
    slack = 1.1 if isinstance(mechanism, UnaryMechanism | SubsetMechanism) else 1 + 1e-9
    assert least * (1 - 1e-9) <= response["variance"] <= least * slack
    assert all(sum(row) == 1 for row in exact(mechanism))


@pytest.mark.parametrize(
    ("family", "options", "ratio"),
    [
        ("grr", {"alpha": "1"}, np.e),
        ("oue", {"alpha": "1"}, np.e),
        ("symmetric-unary", {"alpha": "1"}, np.e),
        ("subset-selection", {"alpha": "1"}, np.e),
        ("product-sanitisation", {"alpha": "1"}, np.e),
        ("discrete-exponential", {"alpha": "1"}, np.e),
        ("secret-rr", {"alpha": "1"}, np.e**2),
    ],
)
def test_a_family_with_its_own_parameter_returns_the_needed_level(
    family: str, options: Any, ratio: float
) -> None:
    response = ask(family, **options)
    (claim,) = response["parameters"]["claims"]
    promised = Fraction(*claim["level"])
    needed = worst(mechanism_of(response), Claim("ldp", (1, 1))).ratio
    assert needed is not None
    assert needed <= promised <= needed + Fraction(1, 2**40)
    assert ratio * (1 - 1e-9) < promised <= ratio * (1 + 1e-12)
    assert response["parameters"][
        "alpha" if "alpha" in response["parameters"] else "k"
    ] == pytest.approx(1, abs=1e-9)


def test_an_open_level_of_every_notion_is_the_realised_one() -> None:
    for notion, key in (("lip", "lip"), ("secret-ldp", "secret_ldp"), ("ldp", "answer_ldp")):
        response = ask("grr", notion=notion, alpha="1")
        (claim,) = response["parameters"]["claims"]
        assert np.log(claim["level"][0] / claim["level"][1]) == pytest.approx(
            response["measures"][key], rel=1e-9
        )
    response = ask("grr", notion="alip", alpha="1")
    (claim,) = response["parameters"]["claims"]
    for side, key in (("level", "alip_high"), ("low_level", "alip_low")):
        assert np.log(claim[side][0] / claim[side][1]) == pytest.approx(
            response["measures"][key], rel=1e-9
        )


REFUSED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "no level": ("grr", {"notion": "lip"}, "field_missing", "epsilon"),
    "warner of four": ("warner", {"notion": "ldp", "epsilon": "1"}, "unsupported", "mechanism"),
    "binary of four": ("binary", {"notion": "ldp", "epsilon": "1"}, "unsupported", "mechanism"),
    "mangat under ldp": ("mangat", {"joint": [[3, 1]], "notion": "ldp", "epsilon": "1"}, "unsupported", "notion"),
    "mangat without a notion": ("mangat", {"joint": [[3, 1]], "p00": 0.5}, "unsupported", "notion"),
    "mangat under lip": (
        "mangat", {"joint": [[3, 1]], "notion": "lip", "epsilon": "1"}, "mechanism_not_certified", "mechanism",
    ),
    "super-binary under dp": (
        "super-binary-mangat", {"notion": "dp", "epsilon": "1", "delta": "0.1"}, "unsupported", "notion",
    ),
    "super-binary too open": (
        "super-binary-mangat", {"joint": [[3, 1, 1]], "notion": "dpv", "dpv": "0.3"},
        "mechanism_not_certified", "mechanism",
    ),
    "half of binary": ("binary", {"joint": [[3, 1]], "p00": "0.7"}, "field_missing", "p11"),
    "binary without a finite level": (
        "binary", {"joint": [[3, 1]], "p00": 1, "p11": 0.5}, "mechanism_not_certified", "mechanism",
    ),
    "binary under lip": ("binary", {"joint": [[3, 1]], "notion": "lip", "epsilon": "1"}, "unsupported", "notion"),
    "watchdog under ldp": ("watchdog", {"notion": "ldp", "epsilon": "1"}, "unsupported", "notion"),
    "watchdog with a cap": (
        "watchdog", {"notion": "lip", "epsilon": "0.4", "ceiling_cap": 3}, "mechanism_not_certified", "mechanism",
    ),
    "averages under secret-ldp": (
        "subset-rr", {"notion": "secret-ldp", "epsilon": "1", "lift_measure": "l1"}, "unsupported", "notion",
    ),
    "secret-rr of the answer": (
        "secret-rr", {"notion": "ldp", "epsilon": "1"}, "mechanism_not_certified", "mechanism",
    ),
    "secret-rr without a level": ("secret-rr", {"notion": "dpv", "dpv": "0.5"}, "field_missing", "alpha"),
    "parts of a pair": (
        "conditional-reporting", {"notion": "srlip", "epsilon": "1", "attributes": [2, 2]}, "unsupported", "notion",
    ),
    "reporting beyond its level": (
        "conditional-reporting", {"notion": "lip", "epsilon": "0.1", "alpha": "2"},
        "mechanism_not_certified", "mechanism",
    ),
    "one value of u": (
        "grr", {"joint": [[3], [1]], "notion": "lip", "epsilon": "1"}, "prior_shape", "prior.joint[0]",
    ),
    "polyopt under lip": ("polyopt", {"notion": "lip", "epsilon": "1"}, "unsupported", "notion"),
    "non-robust under rldp": (
        "non-robust", {"notion": "rldp", "epsilon": "1", "robust": ROBUST}, "unsupported", "notion",
    ),
    "identity": (
        "grr", {"notion": "lip", "epsilon": "3", "accept_identity": False}, "identity_mechanism", "epsilon",
    ),
    "cannot be estimated": (
        "watchdog", {"notion": "lip", "epsilon": "0.25", "accept_unidentifiable": False},
        "not_identifiable", "mechanism",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    family, options, code, field = REFUSED[case]
    with pytest.raises(InvalidInput) as caught:
        ask(family, **options)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert len(caught.value.detail) > 10
