# SPDX-License-Identifier: Apache-2.0
"""English texts for respondents: understood with eight years of school (Flesch-Kincaid)."""

import re
from collections.abc import Iterator
from itertools import product

import pytest
from frankly_protocol.explanation.explain import explain
from frankly_server.web.hosted import hosted_page

from tests.frankly_sdk.fakes import payable_survey
from tests.frankly_sdk.texts import ENGLISH, GRADE, PARTS
from tests.reading import grade, syllables

# Texts above the grade, with the reason.
EXCEPTIONS = {
    "element.invitation": "a label of one word; the formula is about sentences",
    "element.language": "a label of one word",
    "element.sending": "a label of one word",
    "element.each": "a label of two words",
    "element.try_question": "a label of one word",
    "element.try_answer": "a label of one word",
    "page.title": "a label of one word",
}
# Sentence parts with a bound, and the sentences that they can stand in: frames -> bounds.
COMPOSED: dict[str, dict[tuple[str, ...], tuple[str, ...]]] = {
    "promises": {
        ("alone",): ("pairs", "pairs_range", "pairs_open", "answer", "answer_delta"),
        ("by_table", "by_table_within", "by_table_beside"): (
            *("sure", "pml", "pmc", "alip", "lip", "srlip", "odds"),
        ),
    },
    "whole": {
        ("subject", "subject_given"): (
            *("unlimited", "sure", "odds", "lift", "delta", "delta_lift"),
            *("answers", "answers_delta"),
        )
    },
}


def forms(part: str, name: str) -> list[str]:
    """Return a text, or all its plural forms."""
    text = ENGLISH[part][name]
    return [text] if isinstance(text, str) else list(text.values())


def filled(text: str, **values: str) -> str:
    """Fill a text in; figures and an author's own words count as one short word each."""
    return re.sub(r"\{(\w+)\}", lambda name: values.get(name[1], "2"), text)


def composed() -> Iterator[tuple[str, str]]:
    """Yield every sentence made of a frame and a bound, as explain() composes them."""
    promises, budget = ENGLISH["promises"], ENGLISH["budget"]
    for part, groups in COMPOSED.items():
        for frames, bounds in groups.items():
            for frame, bound in product(frames, bounds):
                said = filled(ENGLISH[part][bound], bound=filled(promises["pairs_range"]))
                for form in _limited(said) if part == "whole" else (said,):
                    yield f"{part}.{frame}({bound})", filled(ENGLISH[part][frame], bound=form)
    for frame in ("answered", "not_enough", "costs", "costs_delta"):
        yield f"budget.{frame}(left)", filled(budget[frame], left=filled(budget["left"]))


def _limited(bound: str) -> Iterator[str]:
    """Yield a bound of the whole report with what it depends on, and how it is counted."""
    for name in ("always", "if_true"):
        said = filled(ENGLISH["whole"][name], bound=bound)
        yield said
        yield filled(ENGLISH["whole"]["counted"], bound=said)


def texts() -> Iterator[tuple[str, str]]:
    """Yield every English text by its name, filled in."""
    for part in PARTS:
        for name in ENGLISH[part]:
            for form in forms(part, name):
                text = filled(form)
                if re.search("[a-z]", text) and "{bound}" not in form:
                    yield f"{part}.{name}", text
    yield from composed()


def too_hard(named: Iterator[tuple[str, str]]) -> dict[str, float]:
    """Return the texts above the grade, with theirs."""
    return {name: round(grade(text), 1) for name, text in named if grade(text) > GRADE}


def test_every_english_text_can_be_read_after_eight_years_of_school() -> None:
    assert set(too_hard(texts())) == set(EXCEPTIONS)


def test_every_frame_and_every_bound_is_measured() -> None:
    for part, groups in COMPOSED.items():
        named = {name for frames, bounds in groups.items() for name in (*frames, *bounds)}
        framed = {name for name in ENGLISH[part] if "{bound}" in ENGLISH[part][name]}
        begun = {name for name in ENGLISH[part] if ENGLISH[part][name][0].islower()}
        assert (framed | begun) - named <= {"always", "if_true", "counted"}


def test_a_whole_explanation_is_at_the_grade() -> None:
    document = payable_survey()
    words = str(explain(document, document.report_level, ("0" * 16,)))
    said = "\n".join(line for line in words.splitlines() if "{" not in line)
    assert grade(said) <= GRADE


def test_the_hosted_page_s_own_sentences_are_at_the_grade() -> None:
    page, _ = hosted_page()
    [unscripted] = re.findall("<noscript>(.*)</noscript>", page, re.DOTALL)
    said = re.sub("<[^>]*>", "", unscripted)
    assert "JavaScript" in said
    assert grade(" ".join(said.split())) <= GRADE


# Sentences that stood in these texts before.
HARD = [
    "Someone who guesses your answer from the random result alone is right 2 of the time; with a blind "
    "guess, 2, if all answers are equally common.",
    "Answering permanently uses up everything that this app allows you.",
    "From the whole report, odds about your “smoking” change by at most ×3, as long as the published "
    "tables about it are true.",
]  # fmt: skip


@pytest.mark.parametrize("text", HARD)
def test_a_hard_sentence_is_found(text: str) -> None:
    assert too_hard(iter([("hard", text)])) != {}


def test_syllables_are_those_of_the_dictionary() -> None:
    counts = {"unless": 2, "device": 2, "randomised": 3, "survey": 2, "answers": 2, "chance": 1, "table": 2,
        "tables": 2, "published": 2, "people": 2, "made": 1, "invitation": 4, "belief": 2, "guesses": 2,
        "server’s": 2, "one-way": 2, "7.3": 1}  # fmt: skip
    assert {word: syllables(word) for word in counts} == counts


def test_the_grade_is_that_of_the_formula() -> None:
    # 2 sentences, 9 words, 10 syllables
    assert grade("The cat sat on the mat. It was happy.") == pytest.approx(
        0.39 * 4.5 + 11.8 * 10 / 9 - 15.59
    )
