# SPDX-License-Identifier: Apache-2.0
"""Plans with power, guessed shares, simultaneous margins and several blocks, compared with simulations."""

import json
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest
from frankly_analyst import Plan
from frankly_design.form import FormQuestion, FormRequest, design_form
from frankly_design.kinds.decoder import decoder, shares
from frankly_design.kinds.parts import part_table
from frankly_design.requests.design_form import parts_about
from frankly_design.requests.plan import plan_json
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from scipy import stats

WARNER: dict[str, Any] = {"weights": [[12, 4], [4, 12]], "bits": 4}
GRR: dict[str, Any] = {"prior": {"joint": [[1, 1, 1, 1]]}, "notion": "ldp", "mechanism": "grr"}
Z, BETA = stats.norm.ppf(0.975), stats.norm.ppf(0.8)
BLOCKS: dict[str, Any] = {"blocks": [{"choices": 2}, {"choices": 4}], "mechanism": "grr"}


def plan_for(**fields: Any) -> dict[str, Any]:
    asked = parse_json(json.dumps(fields).encode(), decimals=True)
    return dict(plan_json(asked, lambda: 0.0))


def warner(p: float, n: int, rng: np.random.Generator, runs: int) -> np.ndarray:
    """Return the estimated shares of yes in simulated surveys of n reports."""
    yes = rng.binomial(n, 0.25 + 0.5 * p, size=runs)
    return np.asarray((yes / n - 0.25) / 0.5)


def test_reports_for_a_power_by_hand() -> None:
    """The variance of one report is at most 1, attained at a share of one half."""
    value = plan_for(**WARNER, solve_for="n", margin=0.05, power=0.8, against="value")
    assert value["n"] == int(np.ceil(((Z + BETA) / 0.05) ** 2))
    groups = plan_for(**WARNER, solve_for="n", margin=0.05, power=0.8)
    assert groups["n"] == int(np.ceil(2 * ((Z + BETA) / 0.05) ** 2))
    assert groups["power"] == 0.8


@pytest.mark.parametrize("power", [0.8, 0.95])
@pytest.mark.parametrize("against", ["groups", "value"])
def test_the_planned_power_is_what_happens(power: float, against: str, full: bool) -> None:
    """The test applies z-tests at 5 % to simulated surveys, at the shares where the plan is tight."""
    n = plan_for(**WARNER, solve_for="n", margin=0.1, power=power, against=against)["n"]
    rng, runs = np.random.default_rng(4), 200_000 if full else 20_000
    if against == "value":
        first, second, reports = warner(0.55, n, rng, runs), np.full(runs, 0.45), 1
    else:
        first, second, reports = warner(0.55, n, rng, runs), warner(0.45, n, rng, runs), 2

    def variance(p: np.ndarray) -> np.ndarray:
        rate = 0.25 + 0.5 * p
        return np.asarray(rate * (1 - rate) / 0.25 / n)

    spread = variance(first) + (variance(second) if reports == 2 else 0)
    rejected = np.mean(np.abs(first - second) > Z * np.sqrt(spread))
    error = sqrt(power * (1 - power) / runs)
    assert power - 3.5 * error - 0.002 <= rejected <= power + 3.5 * error + 0.006


def test_the_margin_at_a_guess_is_what_happens(full: bool) -> None:
    """For GRR at shares of 94, 2, 2 and 2 %, fewer reports suffice than at the worst shares."""
    guess = [0.94, 0.02, 0.02, 0.02]
    plan = plan_for(**GRR, epsilon="3", solve_for="n", margin=0.04, guess=guess)
    n = plan["at_guess"]["n"]
    assert n < plan["n"]
    e = float(np.exp(3))
    on, off = e / (e + 3), 1 / (e + 3)
    rates = off + (on - off) * np.array(guess)
    rng, runs = np.random.default_rng(1), 100_000 if full else 20_000
    shares = (rng.multinomial(n, rates, size=runs) / n - off) / (on - off)
    again = plan_for(**GRR, epsilon="3", solve_for="margin", n=n, guess=guess)["at_guess"]
    assert again["margin"] == pytest.approx(0.04, rel=2e-3)
    np.testing.assert_allclose(again["margins"], Z * shares.std(axis=0), rtol=0.03)
    assert again["n"] is None


def test_a_simultaneous_margin_holds_for_all_choices_at_once() -> None:
    plan = plan_for(**GRR, epsilon="1", solve_for="margin", n=2000, method="simultaneous")
    alone = plan_for(**GRR, epsilon="1", solve_for="margin", n=2000)
    wider = stats.norm.ppf(1 - 0.025 / 4)
    assert plan["margin"] == pytest.approx(alone["margin"] * wider / Z)
    e = float(np.exp(1))
    on, off = e / (e + 3), 1 / (e + 3)
    p = np.full(4, 0.25)
    rates = np.random.default_rng(2).multinomial(2000, off + (on - off) * p, size=20_000) / 2000
    within = np.all(np.abs((rates - off) / (on - off) - p) <= plan["margins"], axis=1)
    assert within.mean() >= 0.95 - 3.5 * sqrt(0.05 * 0.95 / 20_000)


INVERTED: dict[str, dict[str, Any]] = {
    "power": {**WARNER, "power": 0.9},
    "power against a value": {**WARNER, "power": 0.9, "against": "value"},
    "simultaneous": {**GRR, "epsilon": "1", "method": "simultaneous"},
    "population": {**WARNER, "power": 0.8, "population": 5000},
    "blocks": {**BLOCKS, "epsilon": "3"},
    "a form": {"form": {"questions": [{"choices": 3}, {"choices": 2}], "epsilon": "2"}, "power": 0.8},
}  # fmt: skip


@pytest.mark.parametrize("name", INVERTED)
def test_reports_and_margin_invert_each_other(name: str) -> None:
    asked = INVERTED[name]
    n = plan_for(**asked, solve_for="n", margin=0.08)["n"]
    assert plan_for(**asked, solve_for="margin", n=n)["margin"] <= 0.08 + 1e-12
    # Levels of several blocks are whole thousandths, so n is minimal only up to this rounding.
    fewer = n - 1 if name != "blocks" else int(0.99 * n)
    assert plan_for(**asked, solve_for="margin", n=fewer)["margin"] > 0.08


def test_a_finite_population_needs_fewer_reports_for_a_power() -> None:
    asked = {**WARNER, "solve_for": "n", "margin": 0.1, "power": 0.8}
    assert plan_for(**asked, population=5000)["n"] < plan_for(**asked)["n"]


def test_epsilon_is_divided_so_that_margins_are_equal() -> None:
    plan = plan_for(**BLOCKS, solve_for="margin", n=3000, epsilon="2")
    levels = [round(1000 * float(block["epsilon"])) for block in plan["blocks"]]
    assert sum(levels) == 2000

    # Every other division into hundredths has wider margins; these are computed by hand for
    # randomised response.
    def margin(level: float, k: int) -> float:
        e = np.exp(level)
        on, off = e / (e + k - 1), 1 / (e + k - 1)
        shares = np.linspace(0, 1, 2001)
        rate = off + (on - off) * shares
        return float(Z * np.sqrt(np.max(rate * (1 - rate)) / 3000) / (on - off))

    widest = [max(margin(a / 100, 2), margin(2 - a / 100, 4)) for a in range(10, 191)]
    assert plan["margin"] <= min(widest) * 1.001
    assert plan["margins"] == pytest.approx([plan["margin"]] * 2, rel=5e-3)
    assert plan["equal_split_margin"] == pytest.approx(max(margin(1, 2), margin(1, 4)), rel=1e-3)
    needed = plan_for(**BLOCKS, solve_for="epsilon", n=3000, margin=plan["margin"])
    assert float(needed["epsilon"]) == pytest.approx(2, abs=0.004)


def test_guesses_of_blocks_by_hand() -> None:
    """Under GRR, a share p is reported at the rate off + (on − off)·p."""
    guess = [0.9, 0.05, 0.03, 0.02]
    blocks = [{"choices": 2}, {"choices": 4, "guess": guess}]
    plan = plan_for(blocks=blocks, mechanism="grr", epsilon="2", solve_for="n", margin=0.05)

    def margin(shares: list[float], epsilon: float, n: int) -> float:
        off = 1 / (np.exp(epsilon) + len(shares) - 1)
        gain = 1 - len(shares) * off
        rates = off + gain * np.array(shares)
        return float(Z * np.sqrt(max(rates * (1 - rates)) / n) / gain)

    def margins(n: int) -> list[float]:
        levels = [float(block["epsilon"]) for block in plan["blocks"]]
        return [margin([0.5, 0.5], levels[0], n), margin(guess, levels[1], n)]

    assert plan["at_guess"]["margins"] == pytest.approx(margins(plan["n"]), rel=1e-6)
    least = plan["at_guess"]["n"]
    assert max(margins(least)) <= 0.05 < max(margins(least - 1))


def test_guesses_of_a_form_by_enumeration() -> None:
    """A question without a guess has its expected shares; its answers are independent."""
    guess = [0.9, 0.06, 0.04]
    form = {"questions": [{"choices": 3, "guess": guess}, {"choices": [3, 1]}], "epsilon": "2"}
    plan = plan_for(form=form, solve_for="margin", n=900)
    questions = (FormQuestion((1, 1, 1)), FormQuestion((3, 1)))
    designed = design_form(FormRequest(questions, Fraction(2)))
    for i, shares_of_choices in enumerate((guess, [0.75, 0.25])):
        [part] = parts_about(designed, (i,))
        assert designed.mechanism.parts[part] == (i,)
        table = part_table(designed.mechanism, (part,))
        scores = decoder(table, shares(table.answers), questions[i].prior).floats()
        rates = np.array(shares_of_choices) @ np.array(table.weights) / table.total
        variances = scores**2 @ rates - (scores @ rates) ** 2
        n = 900 * plan["shown"][i]
        assert plan["at_guess"]["margins"][i] == pytest.approx(Z * sqrt(max(variances) / n))


def test_a_form_needs_fewer_reports_at_a_guess() -> None:
    question = {"choices": 4, "guess": [0.97, 0.01, 0.01, 0.01]}
    plan = plan_for(form={"questions": [question], "epsilon": "4"}, solve_for="n", margin=0.02)
    assert plan["at_guess"]["n"] < plan["n"]
    again = plan_for(
        form={"questions": [question], "epsilon": "4"}, solve_for="margin", n=plan["at_guess"]["n"]
    )
    assert again["at_guess"]["margin"] <= 0.02 < again["margin"]


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "power by chebyshev": ({**WARNER, "power": 0.8, "method": "chebyshev"}, "unsupported", "method"),
    "too little power": ({**WARNER, "power": 0.2}, "field_type", "power"),
    "certainty": ({**WARNER, "power": 1}, "field_type", "power"),
    "no power": ({**WARNER, "against": "value"}, "field_missing", "power"),
    "a guess of 2": ({**WARNER, "guess": [1, 1]}, "prior_sum", "guess"),
    "three guesses": ({**WARNER, "guess": [0.5, 0.3, 0.2]}, "prior_shape", "guess"),
    "a negative guess": ({**WARNER, "guess": [-0.5, 1.5]}, "field_type", "guess[0]"),
    "a guess of a block": ({"blocks": [{"choices": 2, "guess": [0.5, 0.6]}, {"choices": 2}], "epsilon": "1"},
                           "prior_sum", "blocks[0].guess"),
    "a short guess": ({"form": {"questions": [{"choices": 3, "guess": [0.5, 0.5]}], "epsilon": "1"}},
                      "prior_shape", "form.questions[0].guess"),
    "a guess of all blocks": ({**BLOCKS, "epsilon": "1", "guess": [0.5, 0.5]}, "field_unknown", "guess"),
    "one block": ({"blocks": [{"choices": 2}], "epsilon": "1"}, "field_type", "blocks"),
    "blocks of no level": ({**BLOCKS}, "field_missing", "epsilon"),
    "blocks of little": ({**BLOCKS, "epsilon": "0.01"}, "eps_out_of_range", "epsilon"),
    "blocks with targets": ({**BLOCKS, "epsilon": "1", "targets": "shares"}, "field_unknown", "targets"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_cannot_be_are_refused(name: str) -> None:
    asked, code, field = REFUSED[name]
    with pytest.raises(InvalidInput) as refused:
        plan_for(**asked, solve_for="margin", n=400)
    assert (refused.value.code, refused.value.field) == (code, field)


def test_the_client_prints_power_guesses_and_blocks() -> None:
    plan = Plan.from_json(
        plan_for(**WARNER, solve_for="n", margin=0.05, power=0.8, guess=[0.9, 0.1])
    )
    assert "a difference of 5.00 points is detected with a chance of 80%" in str(plan)
    assert f"{plan.guessed_n} reports in each suffice there" in str(plan)
    # n is the size of one group; a reader who took n as the total would recruit half of the people
    # needed.
    assert str(plan).startswith(f"{plan.n} reports in each of two groups or waves")
    assert "<th>difference</th>" in plan._repr_html_()
    assert "±" not in plan._repr_html_()
    value = Plan.from_json(
        plan_for(**WARNER, solve_for="n", margin=0.05, power=0.8, against="value")
    )
    assert (plan.against, value.against) == ("groups", "value")
    assert "groups" not in str(value)
    blocks = Plan.from_json(plan_for(**BLOCKS, solve_for="margin", n=3000, epsilon="2"))
    assert f"block 2: ε {blocks.blocks[1][0]}, ±" in str(blocks)
    assert "<br>block 1" in blocks._repr_html_()
