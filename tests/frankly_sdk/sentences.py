# SPDX-License-Identifier: Apache-2.0
"""The sentences of an explanation, and what each number in them must equal or bound.

The true values come from the law of the report in a random small world
(tests/frankly_protocol/audit/worlds.py), by brute force. A sentence that no pattern of the tables
describes is an error, so that a new number cannot be stated without a computation of its own.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from math import prod

from frankly_protocol.asking import Asking
from frankly_protocol.audit import Charge, total_charge
from frankly_protocol.blocks import Block
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    ProductMechanism,
)
from frankly_protocol.mechanisms.agreement import Plan
from frankly_protocol.questions import Question
from frankly_protocol.report import MAX_TOKEN

from tests.frankly_protocol.audit.definitions import needed, table
from tests.frankly_protocol.audit.leakage import Ratio, Rows
from tests.frankly_protocol.audit.worlds import Source
from tests.frankly_sdk.labels import kinds_of_tokens, require_label
from tests.frankly_sdk.told import Told
from tests.narrowing import present

TENTH = Fraction(1, 2000)
"""Half of the last digit of a chance that is shown in tenths of a per cent."""
HUNDREDTH = Fraction(1, 100)
"""The last digit of a ratio."""
THOUSANDTH = Fraction(1, 100_000)
"""The last digit of a bound on a chance, in per cent."""
ENDLESS = 1 << 24
Check = Callable[..., None]


def require_bound(stated: Fraction, true: Ratio) -> None:
    """Fail if the true value exceeds what is stated."""
    assert true is not None
    assert true <= stated


def is_reached(stated: Fraction, true: Ratio, digit: Fraction = HUNDREDTH) -> bool:
    """Return True if the statement is the true value, rounded up in its last digit."""
    # A level with numbers above 2^53 is itself rounded up, by far less than a digit.
    return true is not None and 0 <= stated - true < digit + Fraction(1, 10**8)


def require_reached(stated: Fraction, true: Ratio, digit: Fraction = HUNDREDTH) -> None:
    """Fail unless the statement is the true value, rounded up in its last digit."""
    assert is_reached(stated, true, digit), (float(stated), true)


def require_near(stated: Fraction, true: Fraction) -> None:
    """Fail unless a chance in tenths of a per cent is the true one; only certainty is shown as such."""
    assert abs(stated - true) <= (TENTH if TENTH < true < 1 - TENTH else 2 * TENTH)
    assert (stated in (0, 1)) == (true in (0, 1))


def require_nats(stated: str, true: Ratio) -> None:
    """Fail unless ln(true), rounded up to four decimals, is stated; ∞ for no bound."""
    if true is None:
        assert stated == "∞"
        return
    nats, ratio = Decimal(stated), Decimal(true.numerator) / Decimal(true.denominator)
    slack = Decimal("1e-20")
    assert (nats - Decimal("0.0001")).exp() - slack < ratio <= nats.exp() + slack


def share(percent: str) -> Fraction:
    """Return a share that is written in per cent."""
    return Fraction(percent) / 100


# Sentences about one block.


def asked_once(told: Told, i: int, text: str, choices: str) -> None:
    questions = [one for one in told.document.blocks[i].questions if one.text["en"] == text]
    assert choices in [" / ".join(c.label["en"] for c in one.choices) for one in questions]


def asked_by_boxes(told: Told, i: int, text: str, labels: str) -> None:
    boxes = [one.box for one in told.document.blocks[i].questions if one.box]
    assert " / ".join(box.label["en"] for box in boxes if box.text["en"] == text) == labels


def known_beforehand(told: Told, text: str, source: str) -> None:
    assert (text, source) in known_shares(told)


def known_shares(told: Told) -> list[tuple[str, str]]:
    """Return the text of each question whose shares are known, and their source."""
    asked = [one for block in told.document.blocks for one in block.questions]
    return [
        (one.text["en"], one.anchor.source)
        for one in asked
        if one.anchor is not None and one.anchor.counts
    ]


def drawn_arm(told: Told, n: str, arm: str) -> None:
    """The view is what the arm of the whole document asks, and there are so many arms."""
    whole, view = present(told.document.whole), told.document
    arms = present(whole.arms).arms
    assert (len(arms), arm) == (int(n), view.arm)
    asked = next(one.blocks for one in arms if one.id == arm)
    assert tuple(block.id for block in view.blocks) == asked


def asked_again(told: Told, text: str) -> None:
    assert text in repeated_questions(told)


def repeated_questions(told: Told) -> list[str]:
    """Return the text of each question that asks an earlier one a second time."""
    asked = [one for block in told.document.blocks for one in block.questions]
    return [one.text["en"] for one in asked if one.anchor is not None and one.anchor.repeats]


def names_of(block: Block) -> list[str]:
    """Return the name under which each question is known to its reader, numbered if words repeat."""
    words = [
        one.text["en"] if one.box is None else f"{one.box.text['en']} – {one.box.label['en']}"
        for one in block.questions
    ]
    seen: dict[str, int] = defaultdict(int)
    names = []
    for word in words:
        seen[word] += 1
        names.append(f"{word} ({seen[word]})" if words.count(word) > 1 else word)
    return names


def guesses(told: Told, i: int) -> tuple[Fraction, list[Fraction]]:
    """Return the chances that the best guess is right: of all answers at once, and of each question's.

    All combinations of answers are equally likely.
    """
    sizes = told.case.shape.questions[i]
    truths = list(product(*map(range, sizes)))
    whole, single = Fraction(0), [Fraction(0)] * len(sizes)
    for column in told.columns(i):
        whole += max(column) / len(truths)
        for j, size in enumerate(sizes):
            by_choice = [Fraction(0)] * size
            for truth, chance in zip(truths, column, strict=True):
                by_choice[truth[j]] += chance / len(truths)
            single[j] += max(by_choice)
    return whole, single


def guess_of_all(told: Told, i: int, guess: str, blind: str) -> None:
    require_near(share(guess), guesses(told, i)[0])
    require_near(share(blind), Fraction(1, prod(told.case.shape.questions[i])))


def guess_of_one(told: Told, i: int, guess: str, blind: str) -> None:
    assert len(told.document.blocks[i].questions) == 1
    guess_of_all(told, i, guess, blind)


def guess_of_many(told: Told, i: int, name: str, guess: str, blind: str) -> None:
    chances = guesses(told, i)[1]
    named = names_of(told.document.blocks[i]).index(name)
    assert chances[named] == max(chances)
    require_near(share(guess), chances[named])
    require_near(share(blind), Fraction(1, told.case.shape.questions[i][named]))


def unchanged(told: Told, i: int) -> None:
    assert all(sum(map(bool, column)) == 1 for column in told.columns(i))


def named_answer(told: Told, i: int, low: str, high: str | None) -> None:
    columns = told.columns(i)
    chances = [column[x] for x, column in enumerate(columns)]
    assert len(columns) == len(columns[0])
    for x, column in enumerate(columns):
        assert all(chance < column[x] for z, chance in enumerate(column) if z != x)
    require_near(share(low), min(chances))
    require_near(share(high or low), max(chances))


def yes_or_no(told: Told, i: int, keep: str, flip: str) -> None:
    laws = table(told.mechanisms[i])
    answers = range(len(told.columns(i)[0]))
    for x, z in product(answers, answers):
        chance = sum(column[x] for symbol, column in laws.items() if int(str(symbol)) >> z & 1)
        require_near(share(keep if x == z else flip), Fraction(chance))


def one_set(told: Told, i: int, size: str, answers: str, inside: str) -> None:
    laws = table(told.mechanisms[i])
    assert all(int(str(symbol)).bit_count() == int(size) for symbol in laws)
    for x in range(int(answers)):
        chance = sum(column[x] for symbol, column in laws.items() if int(str(symbol)) >> x & 1)
        require_near(share(inside), Fraction(chance))
    assert len(told.columns(i)[0]) == int(answers)


def many_symbols(told: Told, i: int, n: str) -> None:
    assert int(n) == len(told.columns(i))


def symbols_of(told: Told, i: int, answer: str, chances: str, rest: str | None) -> None:
    labels = [[c.label["en"] for c in one.choices] for one in told.document.blocks[i].questions]
    x = [" / ".join(joint) for joint in product(*labels)].index(answer)
    laws = {
        " and ".join(map(str, symbol if isinstance(symbol, tuple) else (symbol,))): column[x]
        for symbol, column in table(told.mechanisms[i]).items()
    }
    for name, percent in re.findall(r"([\d and]+) with a chance of ([\d.]+)%", chances):
        require_near(share(percent), laws.pop(name.strip()))
    left = [chance for chance in laws.values() if chance]
    assert bool(left) == bool(rest)
    assert sum(left) < Fraction(1, 100_000)


def drawn_questions(told: Told, i: int, low: str, high: str | None, every: str) -> None:
    form = told.mechanisms[i]
    assert isinstance(form, AgreementMechanism)
    numbers, drawn = set(), defaultdict(list)
    for symbol, column in table(form).items():
        assert isinstance(symbol, tuple)
        parts = symbol[1::2]
        numbers.add(sum(len(form.parts[part]) for part in parts))
        drawn[parts].append(column)
    assert (min(numbers), max(numbers)) == (int(low), int(high or low))
    assert int(every) == len(told.document.blocks[i].questions)
    # The answers do not influence which questions are drawn.
    for columns in drawn.values():
        assert len({sum(column) for column in zip(*columns, strict=True)}) == 1


def boxes_count(told: Told, i: int, together: str | None) -> None:
    assert all(one.box for one in told.document.blocks[i].questions)
    assert bool(together) == told.document.blocks[i].asks_drawn
    for asked in asked_by_plan(told, i) if together else ():
        boxes = {one.box.of for one in asked if one.box}
        for one in told.document.blocks[i].questions:
            assert one.box is None or (one.box.of in boxes) == (one in asked)


def asked_by_plan(told: Told, i: int) -> Iterator[list[Question]]:
    """Yield the questions that are asked for each plan of block i; other forms keep one plan."""
    asking = Asking(told.document.blocks)
    plans = {block.id: next(every_plan(form)) for block, form in asking.forms}
    block, form = told.document.blocks[i], told.mechanisms[i]
    assert isinstance(form, AgreementMechanism)
    for plan in every_plan(form):
        yield list(asking.asked(plans | {block.id: plan}))


def every_plan(form: AgreementMechanism) -> Iterator[Plan]:
    """Yield the plans of the reports that can be sent."""
    for symbol in table(form):
        assert isinstance(symbol, tuple)
        yield Plan(symbol[0], symbol[1::2])


def asked_drawn(told: Told, i: int) -> None:
    block, form = told.document.blocks[i], told.mechanisms[i]
    assert isinstance(form, AgreementMechanism)
    assert block.asks_drawn
    for plan, asked in zip(every_plan(form), asked_by_plan(told, i), strict=True):
        picked = {block.questions[j].id for part in plan.parts for j in form.parts[part]}
        named = picked | {one.ask_if.question for one in asked if one.ask_if}
        boxes = {one.box.of for one in block.questions if one.box and one.id in named}
        assert named & {one.id for one in block.questions} <= {one.id for one in asked}
        for one in block.questions:
            if one in asked:
                assert one.id in named or (one.box and one.box.of in boxes)


def likelier_sets(told: Told, i: int, ratio: str) -> None:
    columns = told.columns(i)
    # A set may be so large that every report of its component holds enough true answers.
    assert {max(column) / min(column) for column in columns} <= {Fraction(1), true_ratio(told, i)}
    require_reached(Fraction(ratio), true_ratio(told, i))


def true_ratio(told: Told, i: int) -> Fraction:
    form = told.mechanisms[i]
    assert isinstance(form, AgreementMechanism)
    return Fraction(form.agree, form.disagree)


def form_odds(told: Told, i: int, ratio: str) -> None:
    require_bound(Fraction(ratio), told.odds(i))
    require_reached(Fraction(ratio), true_ratio(told, i))


def free_odds(told: Told, i: int, ratio: str) -> None:
    require_reached(Fraction(ratio), told.odds(i))


def promised(told: Told, i: int, notions: Sequence[str], about: str | None) -> list[Source]:
    """Return the sources of a block's promises of some notions about a secret."""
    own = {id(promise) for promise in told.document.blocks[i].promises}
    return [
        source
        for source in told.case.sources
        if id(source.promise) in own
        and source.promise.claim.name in notions
        and source.promise.secret == about
    ]


def worst(rows: Sequence[Rows], measure: Callable[[Rows], Ratio]) -> Ratio:
    values = [measure(row) for row in rows]
    return None if None in values else max(value for value in values if value is not None)


def secret_growth(told: Told, i: int, source: Source) -> Ratio:
    return worst(told.alone(i, source), Rows.growth)


def secret_shrinkage(told: Told, i: int, source: Source) -> Ratio:
    return worst(told.alone(i, source), Rows.shrinkage)


def secret_lift(told: Told, i: int, source: Source) -> Ratio:
    return worst(told.alone(i, source), Rows.lift)


def lift_beside(told: Told, i: int, source: Source) -> Ratio:
    return worst(told.alone(i, source, beside=True), Rows.lift)


def secret_odds(told: Told, i: int, source: Source) -> Ratio:
    odds = worst(told.alone(i, source), Rows.odds)
    if source.promise.claim.notion != "rldp":
        return odds
    # Under all laws that the bounds allow, of which the world's is one.
    level = needed(told.mechanisms[i], source.promise.claim)["level"]
    assert odds is not None
    assert level is not None
    assert odds <= level
    return level


def about_secret(notions: Sequence[str], *measures: Callable[[Told, int, Source], Ratio]) -> Check:
    """Return the check of a sentence on a promise about a secret.

    The sentence gives the readers against whom the promise holds, the secret, a level for each of
    `measures`, and the source of the table. It must state exactly the levels that one such promise
    of the block needs in the world where its table is true.
    """

    def check(told: Told, i: int, given: str, name: str, *rest: str) -> None:
        *levels, text = rest
        sources = _of_readers(told, given, promised(told, i, notions, name))
        assert any(
            source.promise.source == text
            and all(
                is_reached(Fraction(level), measure(told, i, source))
                for level, measure in zip(levels, measures, strict=True)
            )
            for source in sources
        )

    return check


def sure(told: Told, i: int, given: str, percent: str, name: str, value: str, _: str) -> None:
    r, s = map(int, value.removeprefix("s").split("-"))
    assert any(
        is_reached(share(percent), told.posterior(i, source), THOUSANDTH)
        for source in _of_readers(told, given, promised(told, i, ["dpv"], name))
        if (source.secret, source.promise.claim.sensitive) == (r, s)
    )


def _of_readers(told: Told, given: str, sources: Sequence[Source]) -> list[Source]:
    """Return the promises that hold for the readers of whom a sentence speaks."""
    is_stratified = given == ", given your public answers"
    assert is_stratified or bool(given) == bool(told.document.strata)
    return [source for source in sources if source.promise.is_stratified == is_stratified]


def answer_chance(told: Told, i: int, ratio: str, percent: str) -> None:
    require_reached(share(percent), least_delta(told, i, Fraction(ratio)), THOUSANDTH)


def least_delta(told: Told, i: int, stated: Fraction) -> Fraction:
    """Return the least δ at the level of the (ε, δ) promise that is stated, rounded up."""
    levels = {
        Fraction(*(source.promise.claim.level or (1, 1)))
        for source in promised(told, i, ["dp"], None)
    }
    (level,) = (one for one in levels if is_reached(stated, one))
    return max(
        sum((max(Fraction(0), c[x] - level * c[z]) for c in told.columns(i)), Fraction(0))
        for x, z in permutations(range(len(told.columns(i)[0])), 2)
    )


def pairs_of_answers(
    told: Told, i: int, least: str | None, most: str, unlimited: str | None, of: str | None
) -> None:
    assert any(
        is_reached(Fraction(least or most), min(levels))
        and is_reached(Fraction(most), max(levels))
        and (len(levels), int(of or pairs)) == (pairs - int(unlimited or 0), pairs)
        for pairs, levels in levels_of_pairs(told, i)
    )


def levels_of_pairs(told: Told, i: int) -> Iterator[tuple[int, list[Fraction]]]:
    """Yield the number of pairs and the levels of each metric-ldp promise, which hold for its pairs."""
    pairs = list(permutations(range(len(told.columns(i)[0])), 2))
    for source in promised(told, i, ["metric-ldp"], None):
        claim, levels = source.promise.claim, []
        for x, z in pairs:
            if ratio := (claim.levels or ())[x][z]:
                levels.append(Fraction(*(claim.level or (1, 1))) * Fraction(*ratio))
                assert all(column[x] <= levels[-1] * column[z] for column in told.columns(i))
        yield len(pairs), levels


def endless(told: Told, i: int, unprotected: str | None) -> None:
    odds = told.odds(i)
    assert odds is None or odds > ENDLESS
    has_delta = any(p.claim.delta for p in told.document.blocks[i].promises)
    assert bool(unprotected) != has_delta


# Sentences about the whole report.


def secret_belief(told: Told, name: str, lift: str | None, odds: str, provided: str) -> None:
    rows = told.secrets(name)
    if lift is not None:
        require_bound(Fraction(lift), worst(rows, Rows.lift))
    require_bound(Fraction(odds), worst(rows, Rows.odds))
    if provided == "whatever else is known":
        # Under some prior the belief changes by nearly as much as the odds.
        for stated in (odds, lift or odds):
            require_bound(Fraction(stated), told.answers.odds())


def only_odds(told: Told, name: str, odds: str, provided: str) -> None:
    secret_belief(told, name, None, odds, provided)


def secret_chance(
    told: Told, odds: str, name: str, lift: str | None, percent: str, provided: str
) -> None:
    rows = [*told.secrets(name), *([told.answers] if provided.startswith("whatever") else [])]
    for one in rows:
        assert one.odds_excess(Fraction(odds)) <= share(percent)
        assert lift is None or one.lift_excess(Fraction(lift)) <= share(percent)


def public_belief(told: Told, name: str, lift: str, odds: str) -> None:
    rows = told.strata(name)
    for bound, measure in ((Fraction(lift), Rows.lift), (Fraction(odds), Rows.odds)):
        require_bound(bound, worst(rows, measure))


def answers_bound(told: Told, odds: str) -> None:
    require_reached(Fraction(odds), told.answers.odds())


def answers_chance(told: Told, odds: str, percent: str) -> None:
    assert told.answers.odds_excess(Fraction(odds)) <= share(percent)


def answers_open(told: Told, names: str) -> None:
    approximate = {line.block for line in told.level.lines if line.counted_by == "dp"}
    for i, block in enumerate(told.document.blocks):
        has_bound = told.odds(i) is not None or block.id in approximate
        assert has_bound != (f"“{block.id}”" in names)


def sure_at_last(told: Told, percent: str, name: str, value: str) -> None:
    require_bound(share(percent), min(told.posteriors(name, value)))


NATS = r"[\d.∞]+"
LEFT = rf"(?P<left>{NATS}) of the (?P<cap>{NATS}) nats that this app allows you in all are left"
COST_OF_BLOCK = rf"(\S+) by its (ceiling|\(ε, δ\) promise), ({NATS})"
BUDGETS = (
    rf"You have answered this already\. It costs nothing more; {LEFT}\.",
    rf"You cannot answer this here: it would cost (?P<cost>{NATS}) nats, and {LEFT}\.",
    rf"Answering this uses up for good all (?P<cap>{NATS}) nats that this app allows you\. Nothing else can be "
    r"answered afterwards\.",
    rf"Answering costs (?P<cost>{NATS}) nats(?: and a δ of (?P<delta>{NATS}))?[;.] {LEFT}, (?P<after>{NATS}) after "
    r"it\.",
)


def costs(told: Told, nats: str | None, blocks: str, *rest: str | None) -> None:
    by_block, total, chance = re.findall(COST_OF_BLOCK, blocks), Charge(Fraction(1)), Fraction(0)
    assert [name for name, _, _ in by_block] == [block.id for block in told.document.blocks]
    for i, (_, how, stated) in enumerate(by_block):
        charge = Charge(told.odds(i)) if how == "ceiling" else _approximate(told, i)
        require_nats(stated, charge.odds)
        total = total_charge([total, charge])
        chance += charge.delta
    require_nats(nats or "∞", total.odds)
    delta, otherwise, budget = rest
    assert bool(delta) == bool(chance)
    ceilings = total_charge(Charge(told.odds(i)) for i in range(len(by_block)))
    if delta and otherwise:
        require_reached(Fraction(delta), chance, chance / 100)
        require_nats(otherwise, ceilings.odds)
    used = sum((charge.delta for charge in told.spent), Fraction(0))
    fits = used + chance <= Fraction(told.policy.delta_cap)
    _require_budget(told, str(budget), total if fits else ceilings)


def _approximate(told: Told, i: int) -> Charge:
    """Return the least δ of the block's (ε, δ) promises below its ceiling, with its level."""
    ceiling = told.odds(i)
    claims = [p.claim for p in told.document.blocks[i].promises if p.claim.delta]
    pairs = [(Fraction(*(c.delta or (0, 1))), Fraction(*(c.level or (1, 1)))) for c in claims]
    delta, odds = min(pair for pair in pairs if ceiling is None or pair[1] < ceiling)
    return Charge(odds, delta)


def _require_budget(told: Told, sentence: str, charge: Charge) -> None:
    """Check the budget's sentence against the charges, which are added up here."""
    (found,) = (match for one in BUDGETS if (match := re.fullmatch(one, sentence)))
    stated, cap = found.groupdict(), Decimal(told.policy.cap)
    spent = prod((one.odds or Fraction(1) for one in told.spent), start=Fraction(1))
    together = None if charge.odds is None else _ln(charge.odds * spent)
    assert stated["cap"] == str(cap)
    assert stated.get("left", f"{_left(cap, spent)}") == f"{_left(cap, spent)}"
    assert sentence.startswith("You have answered") == told.is_answered
    if sentence.startswith("You cannot"):
        assert together is None or together > cap
    if "uses up for good" in sentence:
        assert together is None or together > cap
        assert spent == 1
    if cost := stated.get("cost"):
        require_nats(cost, charge.odds)
    if after := stated.get("after"):
        assert charge.odds is not None
        assert after == f"{_left(cap, charge.odds * spent)}"
        assert bool(stated["delta"]) == bool(charge.delta)
    if delta := stated.get("delta"):
        require_reached(Fraction(delta), charge.delta, charge.delta / 100)


def _ln(ratio: Fraction) -> Decimal:
    nats = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    return nats.quantize(Decimal("0.0001"), rounding="ROUND_CEILING")


def _left(cap: Decimal, spent: Fraction) -> Decimal:
    return max(cap - _ln(spent), Decimal(0)).quantize(Decimal("0.0001"), rounding="ROUND_FLOOR")


def sent(told: Told, n: str, template: str) -> None:
    """Check the length of every report, and the shapes of the symbols, from all that can be sent."""
    document = told.document
    sent_length(told, n)
    shapes = [_shape(mechanism)[0] for mechanism in told.mechanisms]
    told_as = {one.id: "your public answer" for one in document.strata}
    if document.instructed:
        told_as[document.instructed.id] = "passed or failed"
    told_as |= arm_of(told)
    public = ",".join(f'"{name}":"{value}"' for name, value in sorted(told_as.items()))
    token = '"your token"' if document.token else "null"
    assert template == (
        f'{{"v":1,"doc":"{document.digest}","id":<32 random hex digits>,"y":[{",".join(shapes)}],'
        f'"strata":{{{public}}},"token":{token}}}'
    )


def arm_of(told: Told) -> dict[str, str]:
    """Return what a report says of the arm; nothing without arms."""
    document = told.document
    return {} if document.arms is None else {document.arms.id: present(document.arm)}


def sent_length(told: Told, n: str) -> None:
    """Check the length of every report: that of the longest one."""
    document = told.document
    strata = {one.id: max((c.id for c in one.choices), key=len) for one in document.strata}
    if document.instructed:
        strata[document.instructed.id] = "passed"
    strata |= arm_of(told)  # the other arms of these tests have no longer reports
    longest = [_shape(mechanism)[1] for mechanism in told.mechanisms]
    report = {"v": 1, "doc": document.digest, "id": "0" * 32, "y": longest, "strata": strata,
              "token": "A" * MAX_TOKEN if document.token else None}  # fmt: skip
    assert int(n) == len(json.dumps(report, separators=(",", ":")))


def _shape(mechanism: AnyMechanism) -> tuple[str, object]:
    """Return how a symbol is described, and one of the longest symbols in JSON."""
    symbols = list(table(mechanism))
    if isinstance(mechanism, AgreementMechanism):
        listed = [list(symbol) for symbol in symbols if isinstance(symbol, tuple)]
        low, high = min(map(len, listed)), max(map(len, listed))
        count = f"{high}" if low == high else f"{low} to {high}"
        drawn = f"<{count} numbers: which questions were drawn, and a set of answers for each>"
        return f"[{drawn}]", max(listed, key=lambda symbol: len(str(symbol)))
    if isinstance(mechanism, ProductMechanism):
        most = [max(part) for part in zip(*symbols, strict=True)]
        return f"[{','.join(f'0–{part}' for part in most)}]", most
    if isinstance(mechanism, DenseMechanism):
        largest = max(int(str(symbol)) for symbol in symbols)
        return f"0–{largest}", largest
    digits = -(-mechanism.answers // 4)
    return f"<{digits} hex {'digit' if digits == 1 else 'digits'}>", "f" * digits


# The tables: a pattern for every sentence, and the check of its numbers.

X = r"×([\d.]+)"
P = r"([\d.]+)%"
NAME = r"“([^”]*)”"


def _no_number(told: Told, *_: object) -> None:
    """The check of a sentence that states no number, which its pattern makes sure of."""


def _of_kinds(*kinds: str) -> Check:
    """Return the check of a sentence on the tokens that holds for people with any of the kinds."""

    def check(told: Told) -> None:
        assert kinds_of_tokens(told) == set(kinds)

    return check


def _alone(bound: str) -> str:
    return (
        rf"From this alone(|, given your public answers|, for readers who ignore your public answers), {bound}\. "
        r"This holds as long as this published table is true: (.*?)\.(?: Against readers who know your public "
        r"answers, this promise does not hold\. Only the other limits do\.)?"
    )


BLOCK: tuple[tuple[str, Check], ...] = (
    (r"([^()]*\?) \(((?!any of: |a number, of)[^()]*)\)", asked_once),
    (r"([^()]*\?) \(a number, of which only the range is used: ([^()]*)\)", asked_once),
    (r"([^()]*\?) \(any of: ([^()]*)\)", asked_by_boxes),
    (r"Your device skips questions \D*", _no_number),
    (
        rf"If all answers are equally common, someone who guesses your answer from the random result alone is right "
        rf"{P} of the time\. A blind guess would be right {P} of the time\.",
        guess_of_one,
    ),
    (
        rf"If all combinations of answers are equally common, someone who guesses all of these answers at once from "
        rf"the random result alone is right {P} of the time\. A blind guess would be right {P} of the time\.",
        guess_of_all,
    ),
    (
        rf"Suppose that all combinations of answers are equally common\. Then {NAME} is the question that is easiest "
        rf"to guess from the random result alone: a guess at it is right {P} of the time\. A blind guess at it would "
        rf"be right {P} of the time\.",
        guess_of_many,
    ),
    (
        r"Your answer to this is sent unchanged: every symbol that can be sent stands for one answer\.",
        unchanged,
    ),
    (
        rf"The random result names your true answer with a chance of {P}(?: to {P}, which depends on the "
        r"answer)?[;.] [Oo]therwise it names another one\.",
        named_answer,
    ),
    (
        rf"The random result is a yes or a no for every answer\. The true one gets a yes with a chance of {P}, any "
        rf"other one with a chance of {P}\.",
        yes_or_no,
    ),
    (
        rf"The random result is a set of (\d+) of the (\d+) answers; the true one is among them with a chance of "
        rf"{P}\.",
        one_set,
    ),
    (
        r"The random result is one of (\d+) symbols\. The signed survey lists their chances for every answer\.",
        many_symbols,
    ),
    (r"The random result is one of these symbols:", _no_number),
    (r"if your answer is (.*?): (.*?)(, any other with a chance below 0\.001%)?\.", symbols_of),
    (
        r"Your device picks (\d+)(?: to (\d+))? of these (\d+) questions at random; your answers do not influence "
        r"which\. The report is about (?:this question|these questions) only\.",
        drawn_questions,
    ),
    (
        r"Each box counts as a question of its own here(; all boxes of a question are asked together)?\.",
        boxes_count,
    ),
    (
        r"Of these questions, you are asked only the ones picked, and those that another question you are asked "
        r"depends on\.",
        asked_drawn,
    ),
    (
        r"The report consists of random sets of possible answers\. Sets that contain your true answers are likelier: "
        r"a report of which enough sets contain your true answers has ([\d.]+) times the chance that it would have "
        r"with other answers, which they do not contain\. The chances are listed in the signed survey\.",
        likelier_sets,
    ),
    (
        rf"From this alone, odds between any two ways of answering all of these questions change by at most {X}\. "
        r"This holds whatever else is known\.",
        form_odds,
    ),
    (
        _alone(rf"belief about your {NAME} changes by at most {X}"),
        about_secret(["lip"], secret_lift),
    ),
    (
        _alone(
            rf"belief about your {NAME} changes by at most {X}, even for those who know some of your answers to it"
        ),
        about_secret(["srlip"], lift_beside),
    ),
    (
        _alone(rf"belief about your {NAME} grows by at most {X} and shrinks by at most ÷([\d.]+)"),
        about_secret(["alip"], secret_growth, secret_shrinkage),
    ),
    (
        _alone(rf"belief about your {NAME} grows by at most {X}, but may shrink without limit"),
        about_secret(["pml"], secret_growth),
    ),
    (
        _alone(
            rf"belief about your {NAME} shrinks by at most ÷([\d.]+), but may grow without limit"
        ),
        about_secret(["pmc"], secret_shrinkage),
    ),
    (
        _alone(rf"odds about your {NAME} change by at most {X}"),
        about_secret(["secret-ldp", "rldp"], secret_odds),
    ),
    (_alone(rf"nobody can be surer than {P} that your {NAME} is {NAME}"), sure),
    (
        rf"From this alone, odds between two answers to it change by at most {X}\. This holds whatever else is "
        rf"known\.",
        free_odds,
    ),
    (
        rf"From this alone, no result is more than {X} as likely with one answer to it as with another\. A chance of "
        rf"at most {P} may come on top\. This holds whatever else is known\.",
        answer_chance,
    ),
    (
        rf"From this alone, odds of one answer to it against another grow by at most (?:{X} to )?{X}"
        r"(?:, depending on the two)?(?: \(no limit is promised for (\d+) of (\d+) pairs\))?\. "
        r"This holds whatever else is known\.",
        pairs_of_answers,
    ),
    (
        rf"Even if that is not true, this alone changes odds by at most {X}\. This also protects the answer itself\.",
        free_odds,
    ),
    (
        r"If that is not true, this alone may change odds by more than ×16 million: some symbols all but rule out "
        r"some answers\.( The answer itself is not protected\.|)",
        endless,
    ),
)
"""Sentences about one block; a check gets the document, the block's position and the pattern's groups."""

WHOLE = ("From the whole report", "Given your public answers, from")
HEAD = r"(?:From the whole report|Given your public answers, from all else in the report)"
PROVIDED = (
    r"\. This holds (whatever else is known|as long as the published tables about it are true)"
    r"(?:\. For the odds, “[^”]*” is counted by its promise and every other block by its limit)?\."
)
REPORT: tuple[tuple[str, Check], ...] = (
    (r"A survey", _no_number),
    (r"The survey’s own words: “Please answer\.”", _no_number),
    (r"The report is made here, on this device; \D*", _no_number),
    (
        r"These answers are sent as you give them, not randomised: (?:public-\d\?(?:; )?)+",
        _no_number,
    ),
    (
        r"One item, “check\?”, asks for one given choice\. Only whether you chose it is sent, \D*",
        _no_number,
    ),
    (
        r"How all people together answer “([^”]*)” is known beforehand \(([^)]*)\)\. This shows how many people "
        r"answer at random; it changes nothing about how your answer is sent\.",
        known_beforehand,
    ),
    (
        r"This survey has (\d+) versions\. Your device draws one of them at random before it asks anything, and the "
        r"report names it\. All that is said here is about the version “([^”]*)”\.",
        drawn_arm,
    ),
    (
        r"“([^”]*)” is asked a second time\. Whether both answers are the same shows how many people "
        r"answer at random; it changes nothing about how your answers are sent\.",
        asked_again,
    ),
    (r"Your invitation is sent with the report, unchanged\.\D*", _of_kinds("invite")),
    (r"Your token is sent with the report, unchanged\.\D*", _of_kinds("rsa-pss")),
    (
        r"Your invitation or token is sent with the report, unchanged\. If it is a code \D* If it was signed \D*",
        _of_kinds("invite", "rsa-pss"),
    ),
    (r"“Given your public answers” means: \D*", _no_number),
    (r"Signed by: (?:[0-9a-f]{16}(?:, )?)+\. A signature says \D*", _no_number),
    (r"Whoever runs the server can see your network address\D*", _no_number),
    (
        rf"{HEAD}, belief about your {NAME} changes by at most {X}, and odds between two of its values by at most "
        rf"{X}{PROVIDED}",
        secret_belief,
    ),
    (rf"{HEAD}, odds about your {NAME} change by at most {X}{PROVIDED}", only_odds),
    (
        rf"{HEAD}, no result is more than {X} as likely with one value of your {NAME} as with another\."
        rf"(?: Nor is any result more than {X} as likely with one value as on average\. Each time, a| A) chance of "
        rf"at most {P} may come on top{PROVIDED}",
        secret_chance,
    ),
    (rf"{HEAD}, no limit is promised on what can be learnt about your {NAME}\.", _no_number),
    (
        rf"{HEAD}, nobody can be surer than {P} that your {NAME} is {NAME}\. This holds as long as the published "
        r"tables about it are true\.",
        sure_at_last,
    ),
    (
        rf"Your public answers alone can change belief about your {NAME} by up to {X} and odds by up to {X}\. This "
        r"holds as long as the published tables about it are true\.",
        public_belief,
    ),
    (rf"What your public answers alone reveal about your {NAME} has no known limit\.", _no_number),
    (
        rf"{HEAD}, odds about your answers themselves change by at most {X}\. This holds whatever else is known\.",
        answers_bound,
    ),
    (
        rf"{HEAD}, no result is more than {X} as likely with one set of answers as with another\. A chance of at "
        rf"most {P} may come on top\. This holds whatever else is known\.",
        answers_chance,
    ),
    (r"The answers themselves are not all protected: no limit holds for (.*)\.", answers_open),
    (
        rf"Answer(?:ing everything costs ({NATS}) nats of what|ing uses up for good all that) this app allows you(?: "
        rf"in all)? \((.*?)\)\.(?: It also uses up ([\d.]+) of the δ that the app allows; if less than that is left, "
        rf"it costs ({NATS}) nats\.)? (.*)",
        costs,
    ),
    (r"What is sent, once, padded with spaces to (\d+) bytes: (.*)", sent),
)
"""Sentences about the whole report; a check gets the document and the pattern's groups."""


def require_true(told: Told) -> None:
    """Check every sentence of an explanation."""
    explanation = told.explanation
    blocks = {block.words: i for i, block in enumerate(explanation.blocks)}
    document, texts = told.document, [told.explanation.title]
    if document.consent:
        texts.append(f"The survey’s own words: “{document.consent['en']}”")
    details = [text for section in explanation.details for text in section.paragraphs]
    said = [text for one in explanation.details for text in (one.heading, *one.paragraphs)]
    assert explanation.words.split("\n\n")[: len(texts)] == texts
    assert explanation.words.endswith("\n\n" + "\n\n".join(said))
    require_label(told)
    for paragraph in (*texts, *details):
        i = blocks.get(paragraph)
        for line in paragraph.split("\n"):
            check, found = only(BLOCK if i is not None else REPORT, line.strip())
            check(told, *([] if i is None else [i]), *found)
    require_complete(told, [line.strip() for line in explanation.words.split("\n")])


def require_complete(told: Told, lines: Sequence[str]) -> None:
    """Fail if a sentence is missing, or says of all readers what holds given the public answers."""
    document = told.document
    for secret in told.level.secrets:
        assert any(line.startswith(WHOLE) and f"“{secret}”" in line for line in lines)
    for line in lines:
        assert not line.startswith(WHOLE[bool(not document.strata)])
    texts = "; ".join(question.text["en"] for question in document.strata)
    assert any(line.endswith(f"not randomised: {texts}") for line in lines) == bool(texts)
    told_shares = sum("is known beforehand (" in line for line in lines)
    assert told_shares == len(known_shares(told))
    for _, source in known_shares(told):
        assert any(f"({source})" in line for line in lines)
    tokens = [line for line in lines if " is sent with the report, unchanged. " in line]
    assert len(tokens) == bool(document.token)
    repeated = [line for line in lines if "is asked a second time" in line]
    assert [line[1 : line.index("”")] for line in repeated] == repeated_questions(told)
    for block, told_block in zip(document.blocks, told.explanation.blocks, strict=True):
        assert told_block.words.count("From this alone, ") + told_block.words.count(
            "From this alone, given"
        ) >= len(block.promises)
        has_rule = any(question.ask_if for question in block.questions)
        assert ("Your device skips questions" in told_block.words) == has_rule


def only(table: tuple[tuple[str, Check], ...], line: str) -> tuple[Check, Sequence[str]]:
    """Return the check of the only pattern that describes a line, and the groups of the pattern."""
    matches = [(check, found) for one, check in table if (found := re.fullmatch(one, line))]
    assert len(matches) == 1, f"{len(matches)} patterns describe this sentence: {line}"
    ((check, match),) = matches
    return check, match.groups()
