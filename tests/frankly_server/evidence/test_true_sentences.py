# SPDX-License-Identifier: Apache-2.0
"""The folder's statements on privacy, compared with the law of the reports on random documents."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from frankly_design.requests import whole_report
from frankly_protocol.audit import report_level
from frankly_protocol.mechanisms import AgreementMechanism
from frankly_server.evidence import facts as stated
from frankly_server.evidence import registry
from frankly_server.evidence.facts import Facts
from frankly_server.evidence.people import bounds_words

from tests.frankly_protocol.audit.leakage import Ratio, Rows
from tests.frankly_sdk import sentences
from tests.frankly_sdk.sentences import is_reached, require_bound, require_nats, require_reached
from tests.frankly_sdk.told import Told

COUNT = 150
BOUND = r"×([\d.]+) \(([\d.]+) nats\)"
NAME = r"“([^”]*)”"
CHANCE = Fraction(1, 100)
"""A chance has three significant digits."""


def facts_of(told: Told) -> Facts:
    state: Any = SimpleNamespace()
    return Facts(told.document, state, "en")


def statements(told: Told) -> list[tuple[int | None, str]]:
    """Return every statement on privacy, with the position of its block."""
    facts, document = facts_of(told), told.document
    lines: list[tuple[int | None, str]] = [(None, line) for line in bounds_words(facts)]
    lines += [(None, line) for line in stated.posterior_words(facts)]
    lines += [(None, whole_report.cost_words(facts.level))]
    if shown := stated.exposed_words(facts):
        lines.append((None, shown))
    if delta := stated.delta_words(facts):
        lines.append((None, delta))
    # Only the statements on secrets are the registry's own.
    details = registry._loss(facts)["privacy_parameters_details"].split("\n\n")
    lines += [(None, line) for line in details if line.startswith("About")]
    headers, rows = whole_report.level_table(facts.level, has_strata=bool(document.strata))
    lines += [(None, " | ".join(row)) for row in rows]
    assert len(headers) == (4 if document.strata else 3)
    for i, block in enumerate(document.blocks):
        lines.append((i, stated.guess_words(facts, block)))
        for promise in block.promises:
            has_strata = bool(document.strata)
            relation = stated.relation_words(promise, block, has_strata=has_strata)
            lines += [(i, stated.promise_words(promise)), (i, relation)]
            is_void = has_strata and promise.secret is not None and not promise.is_stratified
            assert ("is void against readers" in relation) == is_void
            assert (relation == "This is LDP: it holds under every prior.") == (
                promise.claim.notion == "ldp"
            )
    return lines


def same(factor: str, nats: str) -> bool:
    """Return True if a factor and nats, both rounded up, may be those of one ratio."""
    with localcontext(prec=30):
        low, high = (Decimal(nats) - Decimal("0.0001")).exp(), Decimal(nats).exp()
        return low - Decimal("1e-9") <= Decimal(factor) <= high + Decimal("0.01")


def reached(factor: str, nats: str, true: Ratio) -> bool:
    """Return True if both are those of the true value, rounded up."""
    return same(factor, nats) and is_reached(Fraction(factor), true)


def of_answers(told: Told, factor: str, nats: str) -> None:
    assert reached(factor, nats, told.answers.odds())


def of_secret(told: Told, name: str, *levels: str) -> None:
    *lift, factor, nats, provided = levels
    rows = told.secrets(name)
    assert same(factor, nats)
    require_bound(Fraction(factor), sentences.worst(rows, Rows.odds))
    if lift:
        assert same(*lift)
        require_bound(Fraction(lift[0]), sentences.worst(rows, Rows.lift))
    if provided == "whatever else is known":
        require_bound(Fraction(factor), told.answers.odds())


def of_registry(told: Told, name: str, given: str, *levels: str | None) -> None:
    factor, nats = levels
    assert bool(given) == bool(told.document.strata)
    if factor and nats:
        assert same(factor, nats)
        require_bound(Fraction(factor), sentences.worst(told.secrets(name), Rows.odds))
    else:
        assert told.document.report_level.secrets[name].odds is None


def posterior(told: Told, name: str, value: str, chance: str) -> None:
    require_bound(Fraction(chance), min(told.posteriors(name, value)))


def cost(told: Told, nats: str) -> None:
    require_nats(nats, told.answers.odds())


def with_delta(told: Told, delta: str, _: str, *bound: str | None) -> None:
    level = report_level(told.document, Fraction(1))
    require_reached(Fraction(delta), level.cost.delta, level.cost.delta * CHANCE)
    odds, nats = bound
    if odds and nats:
        assert told.answers.odds_excess(Fraction(odds)) <= Fraction(delta)
        require_nats(nats, level.answers.odds)
    else:
        assert told.answers.odds() is None


def table_of_answers(told: Told, belief: str, odds: str, _: str | None) -> None:
    true = told.answers.odds()
    assert belief == odds
    assert odds == "∞" if true is None else is_reached(Fraction(odds), true)


def table_of_secret(told: Told, name: str, belief: str, odds: str, public: str | None) -> None:
    rows = told.secrets(name)
    for factor, measure in ((belief, Rows.lift), (odds, Rows.odds)):
        if factor != "∞":
            require_bound(Fraction(factor), sentences.worst(rows, measure))
    if public not in (None, "∞"):
        require_bound(Fraction(public or 0), sentences.worst(told.strata(name), Rows.odds))


def guess_of_easiest(told: Told, i: int, words: str, name: str, chance: str, blind: str) -> None:
    (asked,) = (one for one in told.document.blocks[i].questions if one.id == name)
    box = asked.box
    assert words == (asked.text["en"] if box is None else f"{box.text['en']} ({box.label['en']})")
    guess(told, i, name, chance, blind)


def guess(told: Told, i: int, name: str | None, chance: str, blind: str) -> None:
    whole, single = sentences.guesses(told, i)
    sizes = told.case.shape.questions[i]
    if name is None:
        true, choices = whole, len(told.columns(i)[0])
    else:
        j = [one.id for one in told.document.blocks[i].questions].index(name)
        true, choices = single[j], sizes[j]
        assert true == max(single)
    require_reached(Fraction(chance), true, true * CHANCE)
    assert int(blind) == choices


def guess_of_one(told: Told, i: int, chance: str, blind: str) -> None:
    assert len(told.case.shape.questions[i]) == 1
    guess(told, i, None, chance, blind)


def promise_of_secret(
    notions: Sequence[str], *measures: Callable[[Told, int, Any], Ratio]
) -> Callable[..., None]:
    """Return the check of a promise, which states a factor and nats for each of the measures."""

    def check(told: Told, i: int, name: str, *levels: str) -> None:
        pairs = list(zip(levels[::2], levels[1::2], strict=True))
        assert any(
            all(
                reached(factor, nats, measure(told, i, source))
                for (factor, nats), measure in zip(pairs, measures, strict=True)
            )
            for source in sentences.promised(told, i, notions, name)
        )

    return check


def promise_of_answer(told: Told, i: int, factor: str, nats: str) -> None:
    assert reached(factor, nats, told.odds(i))


def promise_of_pairs(told: Told, i: int, factor: str, nats: str, *unlimited: str | None) -> None:
    without, of = unlimited
    assert any(
        reached(factor, nats, max(levels))
        and (len(levels), int(of or pairs)) == (pairs - int(without or 0), pairs)
        for pairs, levels in sentences.levels_of_pairs(told, i)
    )


def promise_with_delta(told: Told, i: int, factor: str, nats: str, delta: str) -> None:
    assert same(factor, nats)
    least = sentences.least_delta(told, i, Fraction(factor))
    require_reached(Fraction(delta), least, least * CHANCE)


def promised_posterior(told: Told, i: int, name: str, value: str, chance: str) -> None:
    s = int(value.rpartition("-")[2])
    trues = [
        told.posterior(i, source)
        for source in sentences.promised(told, i, ["dpv"], name)
        if source.promise.claim.sensitive == s
    ]
    assert any(is_reached(Fraction(chance), true, true * CHANCE) for true in trues)


def relation(told: Told, i: int, factor: str | None, nats: str | None) -> None:
    true = told.odds(i)
    if factor is None or nats is None:
        # A ceiling above 2^53 − 1 is not stated.
        assert true is None or true > 2**53 - 1
    else:
        assert reached(factor, nats, true)


def without_limit(told: Told, name: str) -> None:
    secret = told.document.report_level.secrets[name]
    assert None in (secret.level, secret.odds)


def without_bound(told: Told, names: str) -> None:
    blocks = [block.id for i, block in enumerate(told.document.blocks) if told.odds(i) is None]
    assert names == ", ".join(blocks)


def exposed(told: Told, names: str) -> None:
    """Some symbol of each of these blocks, and of no others, rules out some answer."""
    partly = [
        block.id
        for i, block in enumerate(told.document.blocks)
        if told.odds(i) is None and not all(sum(map(bool, c)) == 1 for c in told.columns(i))
    ]
    assert names == ", ".join(partly)


def unchanged(told: Told, names: str, partly: str | None) -> None:
    for i, block in enumerate(told.document.blocks):
        is_sent = all(sum(map(bool, column)) == 1 for column in told.columns(i))
        assert is_sent == (block.id in names.split(", "))
    if partly:
        exposed(told, partly)


def nothing(told: Told, *_: object) -> None:
    """The check of a statement without a number."""


CEILING = rf"(?:none, so this block gives no LDP\.|LDP of the block at {BOUND}\.)"
REPORT: tuple[tuple[str, Callable[..., None]], ...] = (
    (
        rf"(?:From|Given (?:your|the) public answers, from) the whole report, belief about {NAME} changes by at most "
        rf"{BOUND} and odds by at most {BOUND}, (.*)\.",
        of_secret,
    ),
    (
        rf"(?:From|Given your public answers, from) the whole report, odds about {NAME} change by at most {BOUND}, "
        rf"(.*)\.",
        of_secret,
    ),
    (
        rf"About {NAME}(, given the public answers|): odds (?:no bound|{BOUND}), if the published tables are true\.",
        of_registry,
    ),
    (rf"No limit is promised on what can be learnt about {NAME}\.", without_limit),
    (
        r"Answers in these blocks are sent unchanged: ([^.]*)\.(?: In these blocks some results rule out, or all but "
        r"rule out, some answers: ([^.]*)\.)?",
        unchanged,
    ),
    (
        r"In these blocks some results rule out, or all but rule out, some answers: ([^.]*)\.",
        exposed,
    ),
    (
        rf"(?:From|Given the public answers, from) the whole report, odds about the answers themselves, or about "
        rf"anything else, change by at most {BOUND}, whatever else is known\.",
        of_answers,
    ),
    (
        r"The answers themselves are not all protected: no bound holds for ((?:block-\d(?:, )?)+), so there is no "
        r"finite level of local differential privacy for the whole report\.",
        without_bound,
    ),
    (
        rf"After the whole report, the probability that {NAME} is {NAME} is at most ([\d.]+), if the published table "
        r"is true\.",
        posterior,
    ),
    (
        r"Answering costs ([\d.]+) nats of a device's budget, 5 nats unless its app sets another\.",
        cost,
    ),
    (
        r"Answering permanently uses up a device's whole budget \(5 nats unless its app sets another\)\.",
        nothing,
    ),
    (
        r"In an app that accepts \(ε, δ\) promises with δ = ([\d.]+), (there is still no finite bound for the whole "
        r"report|(?:given the public answers, )?no set of reports is more than ×([\d.]+) \(e to ([\d.]+)\) as likely "
        r"with one set of answers as with another, plus δ = [\d.]+)\. With a probability up to δ a report may reveal "
        r"an answer\. By default δ is 0, and such promises are not used\.",
        with_delta,
    ),
    (
        r"the answers themselves, or anything else \| ×([\d.∞]+) \| ×([\d.∞]+)(?: \| (–))?",
        table_of_answers,
    ),
    (r"(s\d) \| ×([\d.∞]+) \| ×([\d.∞]+)(?: \| ×([\d.∞]+))?", table_of_secret),
)
BLOCK: tuple[tuple[str, Callable[..., None]], ...] = (
    (
        rf"the answer to {NAME} \(([\w-]+)\), the easiest to guess: at most ([\d.]+) \(blind: 1 in (\d+)\)",
        guess_of_easiest,
    ),
    (r"the answer: at most ([\d.]+) \(blind: 1 in (\d+)\)", guess_of_one),
    (
        r"all answers of the block at once()?: at most ([\d.]+) \(blind: 1 in (\d+)\)",
        lambda told, i, _, *numbers: guess(told, i, None, *numbers),
    ),
    (rf"ldp: {BOUND}", promise_of_answer),
    (rf"dp: {BOUND}, δ = ([\d.]+)", promise_with_delta),
    (
        rf"metric-ldp: pairs of answers, at most {BOUND}(?:, no level for (\d+) of (\d+) pairs)?",
        promise_of_pairs,
    ),
    (rf"lip about {NAME}: {BOUND}", promise_of_secret(["lip"], sentences.secret_lift)),
    (rf"srlip about {NAME}: {BOUND}", promise_of_secret(["srlip"], sentences.lift_beside)),
    (
        rf"(?:secret-ldp|rldp) about {NAME}: {BOUND}",
        promise_of_secret(["secret-ldp", "rldp"], sentences.secret_odds),
    ),
    (
        rf"alip about {NAME}: belief up {BOUND}, down {BOUND}",
        promise_of_secret(["alip"], sentences.secret_growth, sentences.secret_shrinkage),
    ),
    (
        rf"pml about {NAME}: belief up {BOUND}, down no bound",
        promise_of_secret(["pml"], sentences.secret_growth),
    ),
    (
        rf"pmc about {NAME}: belief up no bound, down {BOUND}",
        promise_of_secret(["pmc"], sentences.secret_shrinkage),
    ),
    (rf"dpv about {NAME}: P\({NAME} \| report\) at most ([\d.]+)", promised_posterior),
    (r"This is LDP: it holds under every prior\.", nothing),
    (rf"Needs no prior\. Ceiling: {CEILING}", relation),
    (
        rf"Not LDP: it (?:is void against readers who know the public answers|holds if the published (?:bounds "
        rf"are|table is) true \([^)]*\))\. The ceiling holds under every prior: {CEILING}",
        relation,
    ),
)


def require_true(told: Told) -> None:
    has_strata = bool(told.document.strata)
    for i, line in statements(told):
        assert not line.startswith("From the whole report" if has_strata else "Given ")
        assert ("given the public answers, no set" in line) == (has_strata and "no set of" in line)
        check, found = sentences.only(REPORT if i is None else BLOCK, line)
        check(told, *([] if i is None else [i]), *found)


def test_every_number_of_the_folder_is_true(full: bool) -> None:
    """--full tests 2,000 documents."""
    for seed in range(2_000 if full else COUNT):
        require_true(Told.of(seed))


def _belief_as_odds(level: Any, true: Any = whole_report.level_factors) -> Any:
    return [replace(row, odds=row.belief) for row in true(level)]


def _largest_ratio(form: AgreementMechanism) -> int:
    gains = [chance * n for chance, n in zip(form.guesses, form.choices, strict=True)]
    return gains.index(max(gains))


def _own_level(
    promise: Any, block: Any, *, has_strata: bool, true: Any = stated.relation_words
) -> str:
    level = SimpleNamespace(ceiling=block.ratio)
    return str(true(promise, level, has_strata=has_strata))


FAULTS: dict[str, tuple[str, Any]] = {
    "the question with the largest ratio": (
        "frankly_protocol.mechanisms.AgreementMechanism.easiest",
        property(_largest_ratio),
    ),
    "belief as odds": ("frankly_design.requests.whole_report.level_factors", _belief_as_odds),
    "the promise as the ceiling": ("frankly_server.evidence.facts.relation_words", _own_level),
    "ratios rounded down": (
        "frankly_server.evidence.facts.times",
        lambda ratio: f"{ratio.numerator * 100 // ratio.denominator / 100:.2f}",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_false_statement_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FAULTS[name])
    with pytest.raises(AssertionError):
        for seed in range(COUNT):
            require_true(Told.of(seed))
