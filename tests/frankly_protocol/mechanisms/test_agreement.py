# SPDX-License-Identifier: Apache-2.0
"""Agreement mechanisms: the sampler's exact law, the level, and refused parameters and symbols."""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest
from frankly_protocol.audit import Claim, require_private, stated_ceiling, worst
from frankly_protocol.errors import DocumentRejected, InvalidInput, RandomnessError
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool

from tests.frankly_protocol.audit.definitions import agreement_table
from tests.frankly_protocol.audit.worlds import agreement as random_form
from tests.frankly_protocol.mechanisms.laws import draw_numbers, law
from tests.refusals import refusal

CUTS = Cover(4, None, ((0b0001, 3), (0b1110, 3), (0b0111, 2), (0b1000, 2)))
FORM = AgreementMechanism(
    4,
    5,
    2,
    (3, 4, 2),
    ((0,), (1,), (2,), (0, 2)),
    (
        Component(9, 2, (Pool((0,), 1, Cover(3, 1), 2), Pool((1,), 1, CUTS))),
        Component(4, 1, (Pool((2,), 1, Cover(2, 1)),)),
        Component(3, 2, (Pool((1,), 1, Cover(4, 2)), Pool((3,), 1, Cover(6, 2)))),
    ),
)
EQUAL = AgreementMechanism(
    5,
    7,
    1,
    (3, 3, 3, 3),
    ((0,), (1,), (2,), (3,)),
    (Component(32, 2, (Pool((0, 1, 2, 3), 2, Cover(3, 1)),)),),
)
FORMS = [
    FORM,
    EQUAL,
    *(
        random_form(Random(seed), sizes)
        for seed, sizes in enumerate([(2,), (2, 3), (2, 2), (3, 3)])
    ),
]


@pytest.mark.parametrize(
    "number", [0, pytest.param(1, marks=pytest.mark.full_only), *range(2, len(FORMS))]
)
def test_the_sampler_draws_the_published_law(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = FORMS[number]
    draw_numbers(monkeypatch)
    expected = agreement_table(mechanism)
    for row, truth in enumerate(product(*map(range, mechanism.choices))):
        drawn = law(lambda number, truth=truth: mechanism.sample(truth, number))
        assert drawn == {y: column[row] for y, column in expected.items()}
        assert sum(drawn.values()) == 1


@pytest.mark.parametrize("mechanism", FORMS, ids=range(len(FORMS)))
def test_figures_equal_those_of_the_law(mechanism: AgreementMechanism) -> None:
    expected = agreement_table(mechanism)
    truths = list(product(*map(range, mechanism.choices)))
    assert list(mechanism.symbols()) == list(expected)
    assert mechanism.reports == len(expected)
    for symbol, column in expected.items():
        assert [mechanism.probability(symbol, truth) for truth in truths] == column
    ratio = max(max(column) / min(column) for column in expected.values())
    assert ratio == mechanism.level == worst(mechanism, Claim("ldp", (1, 1))).ratio
    assert stated_ceiling(mechanism) == ratio
    for question, guess in enumerate(mechanism.guesses):
        right = Fraction(0)
        for column in expected.values():
            by_choice: defaultdict[int, Fraction] = defaultdict(Fraction)
            for truth, chance in zip(truths, column, strict=True):
                by_choice[truth[question]] += chance
            right += max(by_choice.values())
        assert guess == right / len(truths)


def test_questions_drawn() -> None:
    assert FORM.questions_drawn == (1, 3)
    assert EQUAL.questions_drawn == (2, 2)


def test_only_ldp_at_its_level_can_be_promised() -> None:
    require_private(FORM, Claim("ldp", (5, 2)))
    require_private(FORM, Claim("ldp", (3, 1)))
    error = refusal(DocumentRejected, require_private, FORM, Claim("ldp", (5 * 2**40 - 1, 2**41)))
    assert (error.reason, error.field) == ("privacy", "level")
    error = refusal(DocumentRejected, require_private, FORM, Claim("dp", (3, 1), delta=(1, 2)))
    assert (error.reason, error.field) == ("privacy", "notion")


def test_a_cover_that_is_not_uniform_would_break_the_level() -> None:
    """With {0}, {0, 1}, {2}, the sum of weights depends on the answer, so one ratio is too large."""
    with pytest.raises(InvalidInput, match="equally often"):
        Cover(3, None, ((0b001, 1), (0b011, 1), (0b100, 1)))
    sets, agree = ({0}, {0, 1}, {2}), 2
    rows = []
    for x in range(3):
        weights = [agree if x in held else 1 for held in sets]
        rows.append([Fraction(w, sum(weights)) for w in weights])
    assert max(max(column) / min(column) for column in zip(*rows, strict=True)) > agree


def test_without_random_bits_no_symbol_is_drawn() -> None:
    def none(_: int) -> int:
        raise OSError

    with pytest.raises(RandomnessError):
        FORM.sample((0, 0, 0), none)


def test_the_number_of_random_bits_does_not_depend_on_the_answers() -> None:
    for seed in range(200):
        requested = []
        for truth in product(range(3), range(4), range(2)):
            source = Random(seed)
            sizes: list[int] = []

            def bits(n: int, source: Random = source, sizes: list[int] = sizes) -> int:
                sizes.append(n)
                return source.getrandbits(n)

            FORM.sample(truth, bits)
            requested.append(tuple(sizes))
        assert len(set(requested)) == 1


@pytest.mark.parametrize("mechanism", FORMS, ids=range(len(FORMS)))
def test_parameters_and_symbols_survive_a_round_trip(mechanism: AgreementMechanism) -> None:
    assert AgreementMechanism.from_params(mechanism.params_json()) == mechanism
    longest = len(str(mechanism.longest_symbol_json()))
    for symbol in mechanism.symbols():
        value = mechanism.symbol_json(symbol)
        assert mechanism.check_symbol(value) == symbol
        assert len(str(value)) <= longest


def params(**changes: Any) -> dict[str, Any]:
    return {**FORM.params_json(), **changes}


def component(**changes: Any) -> dict[str, Any]:
    """Return parameters with a changed first component."""
    first, *others = FORM.params_json()["components"]
    return params(components=[{**first, **changes}, *others])


def pool(**changes: Any) -> dict[str, Any]:
    """Return parameters with a changed first pool."""
    first, *others = FORM.params_json()["components"][0]["pools"]
    return component(pools=[{**first, **changes}, *others])


BAD: list[tuple[Any, str]] = [
    (None, "params"),
    ({}, "params.agree"),
    (params(bits=3), "bits"),
    (params(bits=True), "bits"),
    (params(agree=1), "agree"),
    (params(agree=2.5), "agree"),
    (params(disagree=0), "disagree"),
    (params(agree=2**53), "agree"),
    (params(choices=[]), "choices"),
    (params(choices=[2] * 101), "choices"),
    (params(choices=[1, 4, 2]), "choices[0]"),
    (params(choices=[3, 65, 2]), "choices[1]"),
    (params(choices=["3", 4, 2]), "choices[0]"),
    (params(parts=[[0], [1], [2], []]), "parts[3]"),
    (params(parts=[[0], [1], [2], [2, 0]]), "parts[3]"),
    (params(parts=[[0], [1], [2], [2, 2]]), "parts[3]"),
    (params(parts=[[0], [1], [2], [0, 3]]), "parts[3]"),
    (params(parts=[[0], [1], [2], [0]]), "parts"),
    (params(parts=3), "parts"),
    (params(choices=[3, 4, 2, 2]), "parts"),
    (params(components=[]), "components"),
    (params(components=FORM.params_json()["components"][:2]), "parts"),
    (component(chance=0), "components[0].chance"),
    (component(chance=8), "components"),
    (component(threshold=0), "components[0].threshold"),
    (component(threshold=4), "components[0].threshold"),
    (component(pools=[]), "components[0].pools"),
    (component(pools=[3]), "components[0].pools[0]"),
    (component(other=1), "components[0]"),
    (pool(parts=[]), "components[0].pools[0].parts"),
    (pool(parts=[4]), "components[0].pools[0].parts"),
    (pool(parts=[0, 0], pick=1), "components[0].pools[0].parts"),
    (pool(parts=[0, 1]), "components[0].pools[0].parts"),
    (pool(parts=[1]), "components[0].pools"),
    (pool(pick=2), "components[0].pools[0].pick"),
    (pool(pick=0), "components[0].pools[0].pick"),
    (pool(score=0), "components[0].pools[0].score"),
    (pool(score=9), "components[0].pools[0].score"),
    (pool(cover=0), "components[0].pools[0].cover"),
    (pool(cover=3), "components[0].pools[0].cover"),
    (pool(cover="1"), "components[0].pools[0].cover"),
    (pool(cover=True), "components[0].pools[0].cover"),
    (pool(cover=[["1", 1]]), "components[0].pools[0].cover"),
    (pool(cover=[["1", 1], ["1", 1]]), "components[0].pools[0].cover"),
    (pool(cover=[["1", 1], ["2", 1]]), "components[0].pools[0].cover"),
    (pool(cover=[["0", 1], ["3", 1], ["4", 1]]), "components[0].pools[0].cover"),
    (pool(cover=[["7", 1], ["3", 1]]), "components[0].pools[0].cover"),
    (pool(cover=[["8", 1], ["7", 1]]), "components[0].pools[0].cover[0]"),
    (pool(cover=[["01", 1], ["6", 1]]), "components[0].pools[0].cover[0]"),
    (pool(cover=[["1", 0], ["6", 1]]), "components[0].pools[0].cover[0]"),
    (pool(cover=[["1"], ["6", 1]]), "components[0].pools[0].cover[0]"),
    (pool(cover=[["1", 2**53 - 1], ["6", 2**53 - 1]]), "components[0].pools[0].cover"),
]


@pytest.mark.parametrize(("value", "field"), BAD)
def test_parameters_that_are_no_mechanism(value: Any, field: str) -> None:
    error = refusal(InvalidInput, AgreementMechanism.from_params, value)
    assert (error.code, error.field) == ("weights_invalid", field)


def test_covers_have_a_limit_of_sets() -> None:
    with pytest.raises(InvalidInput):
        Cover(64, 3)
    with pytest.raises(InvalidInput):
        Cover(256, None, tuple((1 << i | 1, 1) for i in range(1, 1 << 12)))


BAD_SYMBOLS: list[tuple[Any, str]] = [
    *((value, "y_type") for value in (None, 3, "0", [0, -1], [0, 0.0, 1], [True], [[0]])),
    ([], "symbol_unknown"),
    ([3], "symbol_unknown"),
    ([1], "symbol_unknown"),
    ([1, 2], "symbol_unknown"),
    ([1, 2, 0, 0], "symbol_unknown"),
    ([1, 2, 2], "symbol_unknown"),
    ([1, 0, 0], "symbol_unknown"),
    ([0, 1, 0, 0, 0], "symbol_unknown"),
    ([0, 0, 3, 1, 0], "symbol_unknown"),
    ([0, 0, 0, 1, 4], "symbol_unknown"),
    ([2, 1, 6, 3, 0], "symbol_unknown"),
]


@pytest.mark.parametrize(("value", "code"), BAD_SYMBOLS)
def test_symbols_that_are_never_sent(value: Any, code: str) -> None:
    error = refusal(InvalidInput, FORM.check_symbol, value)
    assert error.code == code
    assert str(value) not in str(error)


def test_parts_of_a_pool_come_in_order_and_once() -> None:
    assert EQUAL.check_symbol([0, 1, 2, 3, 0]) == (0, 1, 2, 3, 0)
    for value in ([0, 3, 0, 1, 2], [0, 1, 0, 1, 2]):
        with pytest.raises(InvalidInput):
            EQUAL.check_symbol(value)
