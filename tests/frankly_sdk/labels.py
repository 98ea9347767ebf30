# SPDX-License-Identifier: Apache-2.0
"""The sentences of a label, and the law of the report that each number in them must equal or bound.

As in `sentences`, a sentence that no pattern describes is an error.
"""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby, permutations, product
from math import ceil

from frankly_protocol.blocks import Block
from frankly_protocol.mechanisms import AgreementMechanism, AnyMechanism

from tests.frankly_protocol.audit.definitions import table
from tests.frankly_protocol.audit.leakage import Ratio
from tests.frankly_sdk.texts import LABEL_GRADE
from tests.frankly_sdk.told import Told
from tests.reading import grade

MOST_WORDS = 90
_HALF = Fraction(1, 200)
"""Half of one person in 100."""
Range = tuple[Fraction, Fraction]


def chances(told: Told, i: int, q: int) -> tuple[Range, Range, Range, bool]:
    """Return the least and the largest chances of a symbol, by enumeration, over all answers to block i.

    It fits the true answer to question q but not every answer; it fits a given other answer but not
    every answer; it says nothing, whatever the other answers are. And True if a symbol of none of
    these kinds can be sent.
    """
    sizes = told.case.shape.questions[i]
    truths, size = list(product(*map(range, sizes))), sizes[q]
    own, other, silent, is_joint = [], [], [], False
    for truth in truths:
        hits, misses = [Fraction(0)] * size, Fraction(0)
        for column in told.columns(i):
            law = dict(zip(truths, column, strict=True))
            likely = [sum(p for x, p in law.items() if x[q] == a) for a in range(size)]
            fitting = {a for a in range(size) if all(likely[a] >= p for p in likely)}
            if all(p == law[(*x[:q], 0, *x[q + 1 :])] for x, p in law.items()):
                misses += law[truth]
            elif len(fitting) == size:
                is_joint = True
            else:
                for a in fitting:
                    hits[a] += law[truth]
        own.append(hits[truth[q]])
        other += [hits[a] for a in range(size) if a != truth[q]]
        silent.append(misses)
    least, most = (
        [min(found) for found in (own, other, silent)],
        [max(own), max(other), max(silent)],
    )
    return (least[0], most[0]), (least[1], most[1]), (least[2], most[2]), is_joint


def require_people(stated: str, true: Range, *, exact: bool = True) -> None:
    """Fail unless numbers of 100 people are the true ones, to the nearest; `exact` if no bound will do."""
    numbers = stated.split("–")
    for text, chance, side in zip((numbers[0], numbers[-1]), true, (-1, 1), strict=True):
        if text in ("<1", ">99"):
            assert 0 < chance < 1
            assert (chance < _HALF) if text == "<1" else (chance >= 1 - _HALF)
            continue
        stated_chance = Fraction(int(text), 100)
        assert abs(stated_chance - chance) <= _HALF or (
            not exact and side * (stated_chance - chance) > 0
        )
        assert stated_chance not in (0, 1) or stated_chance == chance or not exact


def is_exact(mechanism: AnyMechanism) -> bool:
    """Return False if the ways of drawing differ by answer: their ranges are added, which may be too wide."""
    if not isinstance(mechanism, AgreementMechanism):
        return True
    pools = [pool for component in mechanism.components for pool in component.pools]
    return all(pool.cover.size for pool in pools) and max(map(len, mechanism.parts)) == 1


def is_unchanged(told: Told, i: int) -> bool:
    return all(sum(map(bool, column)) == 1 for column in told.columns(i))


def is_random(told: Told, i: int) -> bool:
    """Return True if some answer has more than one symbol."""
    return any(0 < chance < 1 for column in told.columns(i) for chance in column)


def is_plain(told: Told, i: int, q: int) -> bool:
    """Return True if every symbol has a single possible answer to question q."""
    truths = list(product(*map(range, told.case.shape.questions[i])))
    return all(
        len({x[q] for x, chance in zip(truths, column, strict=True) if chance}) == 1
        for column in told.columns(i)
    )


def has_plain(told: Told) -> bool:
    """Return True if chance plays no part in some answer."""
    return any(
        not is_random(told, i) or any(is_plain(told, i, q) for q in range(len(block.questions)))
        for i, block in enumerate(told.document.blocks)
        if not is_unknown(block)
    ) or any(is_unchanged(told, i) for i in range(len(told.document.blocks)))


def is_unknown(block: Block) -> bool:
    """Return True for blocks whose chances the SDK does not compute for one question."""
    return block.mechanism.kind in ("unary", "subset") and len(block.questions) > 1


def sources(told: Told) -> set[str]:
    return {q.ask_if.question for q in told.document.questions.values() if q.ask_if}


def names(told: Told) -> dict[str, str]:
    """Return the words that the person reads, numbered if they repeat."""
    words = {
        one: q.text["en"] if q.box is None else f"{q.box.text['en']} – {q.box.label['en']}"
        for one, q in told.document.questions.items()
    }
    alike = {
        word: [one for one in words if words[one] == word] for word in dict.fromkeys(words.values())
    }
    return {
        one: word if len(alike[word]) == 1 else f"{word} ({alike[word].index(one) + 1})"
        for one, word in words.items()
    }


NUMBERS = re.compile(
    r"(?:About (\S+) of 100 people send nothing about this question\. )?Of 100 people with your "
    r"answer, about (\S+) send a result that fits it\. Of 100 people with any other answer, about "
    r"(\S+) do too\."
)
HINT = "Other questions depend on this one, so what is sent about them hints at it."
TOGETHER = "Together with your answers to other questions, it may tell more."


def require_consequences(told: Told) -> None:
    """Fail unless every question has its consequences, and every number in them is true."""
    told_of = {
        one: consequence
        for consequence in told.explanation.consequences
        for one in consequence.questions
    }
    asked = [q for block in told.document.blocks for q in block.questions]
    assert sorted(told_of) == sorted(q.id for q in asked)
    assert names(told) == {
        one: said
        for consequence in told.explanation.consequences
        for one, said in zip(consequence.questions, consequence.names, strict=True)
    }
    for i, block in enumerate(told.document.blocks):
        for q, question in enumerate(block.questions):
            consequence = told_of[question.id]
            require_consequence(told, i, q, " ".join(consequence.sentences), consequence.notes)


ALONE = re.compile(
    r"Someone who was 50% sure that you answered “(.*)” can become (\d+)% sure at most from the result about this "
    r"question alone\. Someone who was 5% sure can become (\d+)% sure at most\. This holds whatever else they know\."
)


def require_alone(told: Told, i: int, notes: Sequence[str]) -> None:
    """Check what is said of single answers to block i against its law and against its promises."""
    block, said = told.document.blocks[i], dict[str, tuple[str, str]]()
    for note in notes:
        found = ALONE.fullmatch(note)
        assert found is not None or note in (HINT, TOGETHER), note
        if found is not None:
            said[found[1]] = found[2], found[3]
    assert len(said) == sum(note not in (HINT, TOGETHER) for note in notes)
    promised = promised_alone(told, i)
    assert set(said) == {block.questions[0].choices[s].label["en"] for s in promised}
    for s, promise in promised.items():
        half, few = said[block.questions[0].choices[s].label["en"]]
        # No belief in the other answers lifts that in s more than all of it on a single one.
        assert max(posteriors(told, i, s, Fraction(1, 2))) * 100 <= int(half)
        assert max(posteriors(told, i, s, Fraction(1, 20))) * 100 <= int(few)
        assert (int(half), int(few)) == (ceil(after(50, promise)), ceil(after(5, promise)))


def posteriors(told: Told, i: int, s: int, prior: Fraction) -> list[Fraction]:
    """Return what a belief in answer s becomes after each symbol, for beliefs in the other answers.

    Each of them has all that is left, or they share it equally or as 1 : 2 : 3 and so on.
    """
    found = list[Fraction]()
    for column in told.columns(i):
        others = [p for x, p in enumerate(column) if x != s]
        shares = [[int(x == z) for x in range(len(others))] for z in range(len(others))]
        for weights in (*shares, [1] * len(others), [*range(1, len(others) + 1)]):
            rest = sum(w * p for w, p in zip(weights, others, strict=True)) / Fraction(sum(weights))
            if total := prior * column[s] + (1 - prior) * rest:
                found.append(prior * column[s] / total)
    return found


def promised_alone(told: Told, i: int) -> dict[int, Fraction]:
    """Return the bounds on P(y|s) / P(y|x), for all y and x, of the answers s whose pairs alone have them."""
    block, found = told.document.blocks[i], dict[int, Fraction]()
    if len(block.questions) > 1 or block.questions[0].box:
        return {}
    odds = told.odds(i)
    for claim in (promise.claim for promise in block.promises if promise.claim.levels):
        levels = {
            pair: (claim.levels or ())[pair[0]][pair[1]]
            for pair in permutations(range(block.mechanism.answers), 2)
        }
        for s in range(block.mechanism.answers):
            of_s = [ratio for (x, _), ratio in levels.items() if x == s]
            if None in of_s or None not in levels.values():
                continue
            ratios = [
                Fraction(*ratio) * Fraction(*(claim.level or (1, 1))) for ratio in of_s if ratio
            ]
            bounds = [max(ratios), *([found[s]] if s in found else []), *([odds] if odds else [])]
            found[s] = min(bounds)
    return {s: bound for s, bound in found.items() if bound <= 99}


def require_consequence(told: Told, i: int, q: int, text: str, notes: Sequence[str]) -> None:
    block = told.document.blocks[i]
    require_alone(told, i, notes)
    is_source = block.questions[q].id in sources(told)
    if is_unchanged(told, i) or (not is_unknown(block) and is_plain(told, i, q)):
        assert text == "Your answer to this question is sent just as you give it."
        return
    assert (HINT in notes) == is_source
    if is_unknown(block):
        assert text == told.explanation.blocks[i].guess_words
        return
    own, other, silent, is_joint = chances(told, i, q)
    assert (TOGETHER in notes) == is_joint
    if silent[0] == 1 and not is_source:
        assert text == "What you send says nothing about this question."
        return
    if own[1] == 0:
        assert text == "On its own, what you send says nothing about this question."
        return
    found = NUMBERS.fullmatch(text)
    assert found is not None, text
    exact = is_exact(block.mechanism)
    require_people(found[2], own, exact=exact)
    require_people(found[3], other, exact=exact)
    if found[1] is None:
        assert silent[1] < _HALF or is_source
    else:
        require_people(found[1], silent, exact=exact)


def after(before: int, odds: Fraction) -> Fraction:
    """Return how many of 100 people a suspicion can rise to."""
    prior = Fraction(before, 100)
    return 100 * odds * prior / (1 - prior + odds * prior)


def require_belief(odds: Ratio, half: str, few: str) -> None:
    assert odds is not None
    assert after(5, odds) <= int(few) < 100
    assert after(50, odds) <= int(half) < 100


def belief(told: Told, given: str | None, half: str, few: str) -> None:
    assert bool(given) == bool(told.document.open_questions)
    odds = told.answers.odds()
    require_belief(odds, half, few)
    if odds is not None and told.level.answers.odds == odds:
        assert (int(few), int(half)) == (ceil(after(5, odds)), ceil(after(50, odds)))


def belief_secret(told: Told, given: str | None, secret: str, half: str, few: str) -> None:
    assert bool(given) == bool(told.document.open_questions)
    for rows in told.secrets(secret):
        require_belief(rows.odds(), half, few)


def nearly(told: Told) -> None:
    odds = told.answers.odds()
    assert odds is None or odds > 99 or told.level.answers.odds != odds


def fitting(told: Told) -> None:
    assert any(
        "that fits it" in text for one in told.explanation.consequences for text in one.sentences
    )


def asked(told: Told, most: str | None, n: str, minutes: str, host: str) -> None:
    document, count = told.document, 0
    for block in document.blocks:
        shown = len({q.box.of if q.box else q.id for q in block.questions})
        is_simple = not any(q.box or q.ask_if for q in block.questions)
        form = block.mechanism
        if block.asks_drawn and is_simple and isinstance(form, AgreementMechanism):
            shown = max(drawn(form))
        count += shown
    assert int(n) == count + len(document.open_questions)
    assert int(minutes) == -(-int(n) // 6)
    assert document.collect_url.startswith(f"https://{host}/")
    assert bool(most) == (bool(sources(told)) or any(block.asks_drawn for block in document.blocks))


def drawn(form: AgreementMechanism) -> set[int]:
    """Return how many questions the symbols that can be sent are about."""
    symbols = [symbol for symbol in table(form) if isinstance(symbol, tuple)]
    return {len({q for part in symbol[1::2] for q in form.parts[part]}) for symbol in symbols}


def given_away(told: Told) -> None:
    assert has_plain(told)


def in_the_clear(told: Told, n: str) -> None:
    assert int(n) == len(told.document.strata) > 1


def in_the_clear_alone(told: Told, question: str) -> None:
    (stratum,) = told.document.strata
    assert stratum.text["en"] == question


def item(told: Told) -> None:
    assert told.document.instructed is not None


def mixed(told: Told) -> None:
    assert not told.document.open_questions
    assert not has_plain(told)


def mixed_rest(told: Told) -> None:
    assert any(is_random(told, i) for i in range(len(told.document.blocks)))


def unsure(told: Told) -> None:
    odds = told.answers.odds()
    assert odds is not None
    assert odds <= 99


def picked(told: Told, low: str, high: str | None, every: str) -> None:
    """Check against the law: the questions of the parts in each symbol that can be sent."""
    (block,) = told.document.blocks
    form = block.mechanism
    assert isinstance(form, AgreementMechanism)
    assert int(every) == len(block.questions)
    assert (min(drawn(form)), max(drawn(form))) == (int(low), int(high or low))


def nothing_else(told: Told) -> None:
    assert not sources(told)


def invited(told: Told) -> None:
    assert kinds_of_tokens(told) == {"invite"}


def invited_some(told: Told) -> None:
    assert kinds_of_tokens(told) == {"invite", "rsa-pss"}


def kinds_of_tokens(told: Told) -> set[str]:
    """Return the kinds of the tokens that people can have, of all sources."""
    rule = told.document.token
    return set() if rule is None else {one.kind for one in (rule.rules.values() or [rule])}


_FIGURES = r"can become (\d+)% sure at most, never certain\. Someone who was 5% sure can become (\d+)% sure at most\. "
_KNOWING = r"Someone (who knows what you send as it is, and )?(?:who )?was 50% sure "
_TABLES = r"This holds as long as these tables are true\."
PATTERNS: tuple[tuple[str, Callable[..., None]], ...] = (
    (r"(Up to )?(\d+) questions?, about (\d+) min\. Results go to (\S+)\.", asked),
    (r"At least one of your answers is sent without a change by chance\.", given_away),
    (
        r"(\d+) answers? (?:is|are) sent as you give (?:it|them); a note at (?:the|each) question says so\.",
        in_the_clear,
    ),
    (r"Your answer to “(.*)” is sent just as you give it\.", in_the_clear_alone),
    (r"One item only checks if you read\.", item),
    (r"This device changes your answers by chance\. The result leaves it, not your answers\.", mixed),
    (r"This device changes all other answers by chance first\.", mixed_rest),
    (r"From it nobody can be sure what you answered, not even those who ask\.", unsure),
    (r"From the result nobody can be sure of your other answers, not even those who ask\.", unsure),
    (r"The result may still make someone almost sure of an answer\.", nearly),
    (r"Whoever invited you can tell which result is yours\.", invited),
    (r"Whoever gave you a survey code can recognise your result\.", invited_some),
    (
        r"A result fits the answers that it comes from most often\.",
        fitting,
    ),
    (
        rf"{_KNOWING}how you answered(?: one of the other questions,)? {_FIGURES}This holds whatever else they know\.",
        belief,
    ),
    (
        r"Someone who knows only the published tables( and what you send as it is)?, and was 50% sure of your "
        rf"“(.*)”, can become (\d+)% sure at most\. Someone who was 5% sure can become (\d+)% sure at most\. {_TABLES}",
        belief_secret,
    ),
    (r"Chance picks (\d+)(?:–(\d+))? of (\d+) questions\.", picked),
    (r"Nothing is sent about the others\.", nothing_else),
    (r"The server may see your network address, like any website\.", lambda _: None),
)  # fmt: skip


def require_label(told: Told) -> None:
    """Check every sentence of a label, and that it says all that it must."""
    explanation = told.explanation
    require_consequences(told)
    for text in (*explanation.summary, *explanation.overall):
        matches = [(check, m) for one, check in PATTERNS if (m := re.fullmatch(one, text))]
        assert len(matches) == 1, f"{len(matches)} patterns describe this sentence: {text}"
        ((check, match),) = matches
        check(told, *match.groups())
    assert sum(len(text.split()) for text in explanation.summary) <= MOST_WORDS
    assert grade(" ".join(explanation.summary)) <= LABEL_GRADE
    said = " ".join(explanation.summary)
    unchanged = [is_unchanged(told, i) for i in range(len(told.document.blocks))]
    assert ("sent without a change by chance" in said) == has_plain(told)
    strata = len(told.document.strata)
    assert ("answers are sent as you give them" in said) == (strata > 1)
    assert ("Your answer to" in said) == (strata == 1)
    assert ("One item" in said) == (told.document.instructed is not None)
    kinds = kinds_of_tokens(told)
    assert ("invited you" in said) == (kinds == {"invite"})
    assert ("a survey code" in said) == (len(kinds) > 1)
    beliefs = [
        text for text in explanation.overall if "“" not in text and "A result fits " not in text
    ]
    assert len(beliefs) == (not all(unchanged))
    texts = [
        explanation.title,
        *(paragraph for section in explanation.details for paragraph in section.paragraphs),
    ]
    for one, key in ((list(group), key) for key, group in groupby(texts)):
        assert explanation.words.count(key) >= len(one)
    for text in (" ".join(explanation.summary), *explanation.overall):
        assert f"\n\n{text}\n\n" in explanation.words
    for consequence in explanation.consequences:
        said_of = (*consequence.sentences, *consequence.notes)
        lines = "\n".join(("; ".join(consequence.names), *said_of))
        assert f"\n\n{lines}\n\n" in explanation.words
