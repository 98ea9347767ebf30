# SPDX-License-Identifier: Apache-2.0
"""Rules of `report_level` and `total_charge`, tested one at a time; `test_random_worlds` tests soundness."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from frankly_protocol.audit import Charge, Claim, ReportLevel, report_level, total_charge, worst
from frankly_protocol.audit.data import Joint
from frankly_protocol.blocks import Prior, Promise
from frankly_protocol.mechanisms import DenseMechanism
from hypothesis import given
from hypothesis import strategies as st

from tests.frankly_protocol.audit.leakage import Leakage
from tests.frankly_protocol.audit.worlds import Shape
from tests.frankly_protocol.samples import (
    dp_block,
    joints,
    ldp_block,
    lip_block,
    mechanisms,
    survey,
)

TABLE = ((3, 1), (1, 3))
OTHER_TABLE = ((2, 1), (1, 2))
BY_STRATUM = (((2, 1), (1, 4)), ((3, 3), (1, 1)))
BALL = (((0, 1),), ((0, 1),))
NO_DELTA = Fraction(0)


@dataclass(frozen=True)
class Entry:
    """The fields of a block that its level depends on."""

    id: str
    promises: tuple[Promise, ...]
    ceiling: Fraction | None


@dataclass(frozen=True)
class Form:
    """The fields of a document that its level depends on."""

    blocks: tuple[Entry, ...]
    strata: tuple[object, ...] = ()


def promise(
    notion: str = "lip",
    level: Any = (5, 1),
    tables: tuple[Joint, ...] = (TABLE,),
    *,
    secret: str = "s",
    values: tuple[str, ...] = ("no", "yes"),
    **data: Any,
) -> Promise:
    """Return a promise about a secret."""
    if notion == "rldp":
        return Promise(Claim(notion, level, **data), None, secret, "counts")
    prior = Prior(secret, values, tables, "counts")
    return Promise.under(Claim(notion, level, prior.table, **data), prior)


def entry(name: str, ceiling: int | Fraction | None, *promises: Promise) -> Entry:
    """Return a block, which promises its ceiling unless it has other promises."""
    bound = None if ceiling is None else Fraction(ceiling)
    return Entry(
        name, promises or (Promise(Claim("ldp", (bound or Fraction(1)).as_integer_ratio())),), bound
    )


def dp(name: str, level: int, delta: tuple[int, int], ceiling: int | None) -> Entry:
    """Return a block that promises (ln level, delta)-DP."""
    return entry(name, ceiling, Promise(Claim("dp", (level, 1), delta=delta)))


def form(*blocks: Entry, delta_cap: Fraction = NO_DELTA) -> ReportLevel:
    """Return the level of a document without public questions."""
    return report_level(Form(blocks), delta_cap)


def in_strata(*blocks: Entry) -> ReportLevel:
    """Return the level of a document with public questions."""
    return report_level(Form(blocks, ("region",)))


FREE = entry("free", Fraction(3, 2))
LEAKY = entry("leaky", None, promise())
CAPPED = entry("capped", 7, promise())
OTHER = entry("other", 4, promise(level=(2, 1), secret="t"))


def test_ceilings_of_prior_free_blocks_multiply_to_the_level_and_the_cost() -> None:
    level = form(FREE, FREE)
    assert (level.answers.level, level.answers.odds, level.cost) == (Fraction(9, 4),) * 2 + (
        Charge(Fraction(9, 4)),
    )
    assert (level.odds, level.ceiling, dict(level.secrets)) == (Fraction(9, 4), Fraction(9, 4), {})
    assert [(line.block, line.counted_by) for line in level.lines] == [("free", "ceiling")] * 2


def test_one_block_counts_its_promise_about_a_secret_and_its_ceiling_as_cost() -> None:
    level = form(FREE, LEAKY)
    secret = level.secrets["s"]
    assert (secret.level, secret.odds, secret.counted) == (
        Fraction(15, 2),
        Fraction(75, 2),
        "leaky",
    )
    assert (level.answers.odds, level.cost.odds, level.odds) == (None, None, Fraction(75, 2))


def test_a_second_block_about_the_same_secret_counts_its_ceiling() -> None:
    assert form(LEAKY, LEAKY).secrets["s"].level is None
    assert form(LEAKY, CAPPED).secrets["s"].level == 35
    assert form(CAPPED, CAPPED).secrets["s"].level == 35


def test_every_secret_has_its_own_bound_and_the_largest_is_the_reports() -> None:
    level = form(CAPPED, OTHER)
    assert {name: secret.level for name, secret in level.secrets.items()} == {"s": 20, "t": 14}
    # In odds, the product of the ceilings counts: 7 · 4, compared with 25 · 4 and 4 · 7.
    assert {(secret.odds, secret.counted) for secret in level.secrets.values()} == {(28, None)}
    assert level.odds == 28
    assert (
        form(LEAKY, OTHER).secrets["t"].level is None
    )  # nothing limits the leaky block's leakage about t
    assert form(LEAKY, OTHER).odds is None


def test_the_level_of_a_real_document() -> None:
    free, based = ldp_block(), lip_block()
    level = survey(free, based).report_level
    assert free.ceiling is not None
    assert based.ratio is not None
    assert level.secrets["affair"].level == free.ceiling * based.ratio
    assert level.secrets["affair"].odds == free.ceiling * based.ratio**2
    approximate = report_level(survey(dp_block()), Fraction(1, 1 << 10))
    assert approximate.cost == Charge(
        Fraction(*(dp_block().promises[0].claim.level or (0, 1))), Fraction(1, 1 << 20)
    )


def test_a_level_shows_the_least_protected_secret_and_the_cost() -> None:
    with_delta = report_level(survey(dp_block()), Fraction(1, 1 << 10))
    shown = [
        (form(LEAKY, OTHER), "'t' change by at most inf nats; cost inf nats"),
        (form(FREE), "the answers change by at most 0.4055 nats; cost 0.4055 nats"),
        (with_delta, "the answers change by at most 1.0001 nats; cost 1.0001 nats, δ 0.000000954"),
    ]
    for level, text in shown:
        assert repr(level) == f"<ReportLevel: odds of {text}>"


UNITS = [
    (promise("secret-ldp"), "odds", 5, 5),
    (promise("lip"), "lift", 5, 25),
    (promise("srlip", attributes=(2,)), "lift", 5, 25),
    (promise("alip", low_level=(7, 1)), "lift", 7, 35),
    (promise("alip", low_level=None), "lift", None, None),
    (promise("alip", level=None, low_level=(7, 1)), "lift", None, None),
    (promise("rldp", lower_bounds=BALL), "odds", 5, 5),
    (promise("dpv", level=(1, 2), sensitive=0), "lift", None, None),
]


@pytest.mark.parametrize(("claimed", "unit", "level", "odds"), UNITS, ids=range(len(UNITS)))
def test_the_level_is_in_the_notions_unit_and_converted_to_odds(
    claimed: Promise, unit: str, level: Any, odds: Any
) -> None:
    secret = form(entry("b", None, claimed), FREE).secrets["s"]
    assert (secret.unit, secret.counted) == (unit, None if odds is None else "b")
    assert secret.level == (None if level is None else level * Fraction(3, 2))
    assert secret.odds == (None if odds is None else odds * Fraction(3, 2))


def test_the_level_of_mixed_units_is_a_lift() -> None:
    both = form(
        entry("a", 7, promise("secret-ldp")), entry("b", 7, promise("lip", (4, 1)))
    ).secrets["s"]
    assert (both.unit, both.level, both.odds, both.counted) == ("lift", 28, 35, "a")


@pytest.mark.slow
@given(mechanisms(bits=5), st.data())
def test_the_units_convert(mechanism, data) -> None:  # type: ignore[no-untyped-def]
    joint = data.draw(joints(mechanism.answers))
    levels = worst(mechanism, Claim("alip", (1, 1), joint, low_level=(1, 1))).needed
    odds, lift = (
        worst(mechanism, Claim(notion, (1, 1), joint)).ratio for notion in ("secret-ldp", "lip")
    )
    if odds is None:
        return
    assert levels["level"] is not None
    assert levels["low_level"] is not None
    assert lift is not None
    assert lift <= odds <= levels["level"] * levels["low_level"] <= lift**2


def test_under_one_prior_the_least_promise_counts_and_of_several_priors_the_largest() -> None:
    both = form(entry("b", None, promise(level=(3, 1)), promise("secret-ldp", (4, 1)))).secrets["s"]
    assert (both.level, both.odds) == (3, 4)
    apart = form(
        entry("b", None, promise(level=(3, 1)), promise(level=(6, 1), tables=(OTHER_TABLE,)))
    ).secrets["s"]
    assert (apart.level, apart.odds) == (6, 36)
    balls = [promise("rldp", (n, 1), lower_bounds=(((1, n),), ((0, 1),))) for n in (2, 4)]
    assert form(entry("b", None, *balls)).secrets["s"].level == 4
    open_ended = promise("alip", tables=(OTHER_TABLE,), low_level=None)
    assert form(entry("b", None, promise(), open_ended)).secrets["s"].level is None


NAMED_TWICE = [
    ("the same values", promise(values=("yes", "no")), 10),
    ("other values", promise(values=("never", "often")), 40),
    ("more values", promise(values=("no", "yes", "maybe"), tables=(((1, 1), (1, 1), (1, 1)),)), 40),
    ("values without names", promise("rldp", lower_bounds=BALL), 40),
]


@pytest.mark.parametrize(
    ("second", "odds"), [case[1:] for case in NAMED_TWICE], ids=[case[0] for case in NAMED_TWICE]
)
def test_no_promise_counts_if_blocks_give_one_secret_different_values(
    second: Promise, odds: int
) -> None:
    first = entry("first", 20, promise("secret-ldp", (5, 1)))
    assert form(first, entry("second", 2, second)).secrets["s"].odds == odds
    assert form(entry("both", 20, promise("secret-ldp", (5, 1)), second)).secrets["s"].level == 5


def test_two_balls_of_one_name_may_be_about_two_secrets() -> None:
    ball = promise("rldp", lower_bounds=BALL)
    assert form(entry("first", 20, ball), entry("second", 2, ball)).secrets["s"].odds == 40


def test_approximate_levels_add_with_their_deltas_as_far_as_the_cap_goes() -> None:
    first, second = dp("a", 2, (1, 100), None), dp("b", 3, (1, 50), 10)
    assert form(first, second).cost == Charge(None)
    assert form(first, second, delta_cap=Fraction(1, 100)).cost == Charge(
        Fraction(20), Fraction(1, 100)
    )
    full_cap = form(first, second, delta_cap=Fraction(3, 100))
    assert full_cap.cost == Charge(Fraction(6), Fraction(3, 100))
    assert (full_cap.answers.odds, full_cap.answers.delta) == (6, Fraction(3, 100))
    assert [line.counted_by for line in full_cap.lines] == ["dp", "dp"]
    assert form(second, delta_cap=Fraction(1)).cost.odds == 3
    assert form(dp("c", 30, (1, 50), 10), delta_cap=Fraction(1)).cost == Charge(Fraction(10))
    two_promises = entry("d", None, *second.promises, *first.promises)
    assert form(two_promises, delta_cap=Fraction(1)).cost == Charge(Fraction(2), Fraction(1, 100))


def test_a_secret_has_the_delta_of_the_blocks_that_count_one() -> None:
    approximate = dp("a", 2, (1, 100), None)
    beside = form(LEAKY, approximate, delta_cap=Fraction(1, 10)).secrets["s"]
    assert (beside.level, beside.odds, beside.delta) == (10, 50, Fraction(1, 100))
    assert form(LEAKY, approximate).secrets["s"].level is None
    both = entry("both", None, promise("secret-ldp", (2, 1)), *dp("", 3, (1, 50), None).promises)
    counted = form(both, delta_cap=Fraction(1)).secrets["s"]
    assert (counted.odds, counted.delta, counted.counted) == (2, 0, "both")
    # In lift, the promise counts: 3 instead of 4. In odds, the (ε, δ) promise counts: 4 instead of
    # 9.
    apart = entry("apart", None, promise(level=(3, 1)), *dp("", 4, (1, 50), None).promises)
    mixed = form(apart, delta_cap=Fraction(1)).secrets["s"]
    assert (mixed.level, mixed.odds, mixed.delta) == (3, 4, Fraction(1, 50))


def test_beyond_the_cap_on_delta_the_ledger_charges_ceilings() -> None:
    level = form(dp("b", 3, (1, 50), 10), delta_cap=Fraction(1, 50))
    assert level.charge(Fraction(1, 50)) == Charge(Fraction(3), Fraction(1, 50))
    assert level.charge(Fraction(1, 51)) == Charge(Fraction(10))


def test_charges_of_several_surveys_multiply_and_their_deltas_add() -> None:
    assert total_charge([]) == Charge(Fraction(1))
    approximate, pure = Charge(Fraction(3), Fraction(1, 50)), Charge(Fraction(5, 2))
    assert total_charge([approximate, pure, approximate]) == Charge(
        Fraction(45, 2), Fraction(1, 25)
    )
    assert total_charge([approximate, Charge(None)]) == Charge(None, Fraction(1, 50))
    assert total_charge([form(CAPPED).cost, form(CAPPED).cost]).odds == 49


def test_a_bound_on_a_posterior_multiplies_and_is_no_level() -> None:
    bounded = entry("d", None, promise("dpv", (1, 4), sensitive=1))
    level = form(bounded, FREE, FREE)
    assert [(p.block, p.secret, p.sensitive, p.bound) for p in level.posteriors] == [
        ("d", "s", 1, Fraction(9, 16))
    ]
    assert form(FREE, bounded).posteriors[0].bound == Fraction(3, 8)
    assert form(bounded, LEAKY).posteriors[0].bound == 1
    assert form(bounded, OTHER, OTHER).posteriors[0].bound == 1


def test_with_public_answers_a_promise_counts_only_if_it_holds_in_every_stratum() -> None:
    pooled, within = promise("secret-ldp"), promise("secret-ldp", tables=BY_STRATUM)
    assert in_strata(entry("b", 9, pooled)).secrets["s"].odds == 9
    assert in_strata(entry("b", 9, within)).secrets["s"].odds == 5
    assert (
        in_strata(entry("b", 9, within, pooled)).secrets["s"].odds == 9
    )  # the pooled prior may be the true one
    swapped = promise(
        "secret-ldp", (6, 1), BY_STRATUM[::-1]
    )  # the pooled table is the same, but the prior differs
    assert in_strata(entry("b", 9, within, swapped)).secrets["s"].odds == 6
    assert in_strata(entry("b", None, promise("rldp", lower_bounds=BALL))).secrets["s"].odds is None
    assert in_strata(LEAKY, FREE).answers.odds is None
    bounded = [promise("dpv", (1, 4), tables, sensitive=1) for tables in ((TABLE,), BY_STRATUM)]
    assert [p.bound for p in in_strata(entry("b", None, *bounded), FREE).posteriors] == [
        1,
        Fraction(3, 8),
    ]


def test_the_leakage_of_public_answers_alone_is_read_from_the_tables() -> None:
    # P(s) = 9/16, 7/16; P(s | first stratum) = 3/8, 5/8; P(s | second stratum) = 3/4, 1/4.
    secret = in_strata(entry("b", 9, promise(tables=BY_STRATUM))).secrets["s"]
    assert (secret.strata_lift, secret.strata_odds) == (Fraction(7, 4), Fraction(7, 3))
    assert (form(CAPPED).secrets["s"].strata_lift, form(CAPPED).secrets["s"].strata_odds) == (1, 1)
    certain = (((2, 1), (0, 0)), ((1, 1), (1, 1)))
    for tables in (certain, (TABLE,)):
        secret = in_strata(entry("b", 9, promise(tables=tables))).secrets["s"]
        assert (secret.strata_lift, secret.strata_odds) == (None, None)
    unknown = in_strata(entry("b", 9, promise(tables=BY_STRATUM), promise())).secrets["s"]
    assert (unknown.strata_lift, unknown.strata_odds) == (None, None)
    uneven = (((1, 1), (1, 1)), ((5, 5), (1, 1)))
    largest = in_strata(
        entry("b", 9, promise(tables=BY_STRATUM)), entry("c", 2, promise(tables=uneven))
    ).secrets["s"]
    assert (largest.strata_lift, largest.strata_odds) == (2, 3)


def test_given_answers_to_other_blocks_the_cost_holds_but_no_promise() -> None:
    """With S = X1 xor X2, X1 is independent of S, but not for a reader who knows X2."""
    mechanism, silent = DenseMechanism(4, ((12, 4), (4, 12))), DenseMechanism(4, ((16,), (16,)))
    trivial = promise("srlip", (1, 1), (((1, 1), (1, 1)),), attributes=(2,))
    level = form(entry("first", 3, trivial), entry("second", 1))
    world: dict[tuple[tuple[int, ...], tuple[int, ...], int], int] = {
        ((x ^ y,), (x, y), 0): 1 for x in (0, 1) for y in (0, 1)
    }
    leakage = Leakage(Shape((2,), ((2,), (2,)), (), {}), [mechanism, silent], world)
    assert [rows.odds() for _, rows in leakage.about(0)] == [level.secrets["s"].odds] == [1]
    assert [rows.odds() for _, rows in leakage.about(0, 1, (0,))] == [3, 3]
    assert level.cost.odds == 3
