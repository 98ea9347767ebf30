# SPDX-License-Identifier: Apache-2.0
"""All other numbers of the folder: each is a fact of the document or of the server, or a fixed text."""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.questions import Question
from frankly_server import evidence
from frankly_server.evidence.content import Cell, Grid, Heading, Open, Quote
from frankly_server.evidence.facts import Facts, State
from frankly_server.evidence.folder import _MAKERS

from tests.frankly_sdk.sentences import sent_length
from tests.frankly_sdk.told import Told
from tests.frankly_server.evidence import test_true_sentences as levels

COUNT = 60
STATE = State(
    made="2026-01-02T03:04:05Z",
    name="asked",
    organisation="main",
    shown="open",
    versions=6,
    link="https://collect.example/s/1",
    signers=("k1", "k2", "k3"),
    threshold=2,
    keys_version=9,
    witnesses=7,
    witness_threshold=4,
    released=1_234,
    releases=((40, "2026-02-02T00:00:00Z"),) * 13,
    people={"viewer": 21, "analyst": 22, "admin": 23, "owner": 24},
    api_keys={"reader": 31, "analyst": 32},
    webhook=True,
    estimates_view=True,
)
"""Every number differs, so that none is stated in the place of another."""
MIN_REPORTS, STEP = 137, 17
UNPROTECTED = (
    "Nothing else that is asked is sent unprotected",
    "Answers are randomised before collection",
    "The server receives randomised symbols only",
    "Nobody in this table sees a randomised answer before its randomisation",
    "My device randomises my answers before it sends them",
)
"""Statements that hold only if no symbol rules out an answer."""


def facts_of(told: Told) -> Facts:
    document = replace(told.document, min_reports=MIN_REPORTS, release_step=STEP)
    return Facts(document, STATE, "en")


def texts(facts: Facts) -> Iterator[str]:
    """Yield every paragraph and every row of the folder, with | between cells; no commands."""
    for make in _MAKERS:
        for item in make(facts).items:
            if isinstance(item, Grid):
                for row in item.rows:
                    yield " | ".join(map(_text, row))
            elif not isinstance(item, Quote):
                yield _text(item)


def _text(item: Cell | Heading) -> str:
    if isinstance(item, (str, Open)):
        return item if isinstance(item, str) else item.about
    return item.text if isinstance(item, Heading) else ""


def fixed_texts() -> str:
    """Return the strings of the folder's source, apart from what is put into them."""
    found = [
        node.value
        for path in Path(evidence.__path__[0]).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return "\n".join(found)


FIXED = fixed_texts()


def equal(*values: Callable[[Facts], object]) -> Callable[..., None]:
    """Return the check that the numbers are these facts."""

    def check(told: Told, *stated: str) -> None:
        facts = facts_of(told)
        assert list(stated) == [str(value(facts)) for value in values]

    return check


def charge(told: Told, factor: str | None, nats: str | None) -> None:
    true = told.answers.odds()
    if factor is None or nats is None:
        assert true is None
    else:
        assert levels.reached(factor, nats, true)


def epsilon(told: Told, nats: str) -> None:
    levels.require_nats(nats, told.answers.odds())


def cells(facts: Facts) -> int:
    """Return the number of combinations of public answers, counted."""
    return len(list(product(*(question.choices for question in facts.document.strata))))


def is_least(told: Told, stated: str) -> None:
    assert int(stated) == MIN_REPORTS


def is_step(told: Told, stated: str) -> None:
    assert int(stated) == STEP


NUMBERS: Sequence[tuple[str, Callable[..., None]]] = (
    (
        r"(\d+) randomised and (\d+) public question\(s\)",
        equal(lambda f: len(f.document.questions), lambda f: len(f.document.strata)),
    ),
    (r"Of (\d+) question\(s\), only symbols", equal(lambda f: len(f.document.questions))),
    (r"The ledger charges (?:no bound|×([\d.]+) \(([\d.]+) nats\)) for all of it", charge),
    (r"ε of the whole report about the answers: ([\d.]+|∞) nats", epsilon),
    (
        r"the answers to (\d+) public question\(s\), which are sent unchanged and divide people into (\d+) groups",
        equal(lambda f: len(f.document.strata), cells),
    ),
    (r"put each report into one of (\d+) groups", equal(cells)),
    (
        r"With fewer than (\d+) released reports there is no estimate; (\d+) report\(s\) of this survey had been "
        r"released when this was written \(([^)]*)\)",
        equal(lambda _: MIN_REPORTS, lambda _: STATE.released, lambda _: STATE.made),
    ),
    (
        r"No release of fewer than (\d+) reports of a group, no estimate from fewer than (\d+)",
        equal(lambda _: STEP, lambda _: MIN_REPORTS),
    ),
    (r"[Bb]atches (?:of|have) at least (\d+) reports of one group", is_step),
    (r"Least number of reports of one group that are released together \| (\d+)", is_step),
    (r"from (\d+) reports on", is_least),
    (r"Reports below which there are no estimates and counts \| (\d+)", is_least),
    (r"(?:the same length,|One report of) (\d+) bytes", sent_length),
    (
        r"(\d+) signature\(s\) of a publisher key are needed, (\d+) valid one\(s\) were found",
        equal(lambda _: STATE.threshold, lambda _: len(STATE.signers)),
    ),
    (
        r"signatures of (\d+) of (\d+) witness",
        equal(lambda _: STATE.witness_threshold, lambda _: STATE.witnesses),
    ),
    (r"\((\d+) nats unless (?:the app|it) sets another\)", equal(lambda _: 5)),
    (
        r"about version (\d+), digest (sha256:[0-9a-f]{64})\.",
        equal(lambda f: f.document.version, lambda f: f.document.digest),
    ),
    (
        r"Releases of this version so far \| (\d+), the newest at ([\w:-]+)",
        equal(lambda _: 13, lambda _: "2026-02-02T00:00:00Z"),
    ),
    (r"Released reports of the survey, all versions \| (\d+)", equal(lambda _: STATE.released)),
    (r"([\w:-]+Z) to ([\w:-]+Z)", equal(lambda f: f.moment("opens"), lambda f: f.moment("closes"))),
    *(
        (rf"People with the role {role} \|[^|]*\| (\d+)", equal(lambda _, n=n: n))
        for role, n in STATE.people.items()
    ),
    *(
        (rf"API keys with the role {role} \|[^|]*\| (\d+)", equal(lambda _, n=n: n))
        for role, n in STATE.api_keys.items()
    ),
)


def _names(facts: Facts) -> list[str]:
    """Return the names and texts of the document that contain digits of their own, longest first."""
    document = facts.document

    def words(question: Question) -> list[str]:
        return [facts.text_of(question), facts.choices_of(question)]

    asked = [*document.questions.values(), *document.strata]
    named = [block.id for block in document.blocks]
    return sorted({*(word for one in asked for word in words(one)), *named}, key=len, reverse=True)


def require_known(told: Told) -> None:
    facts = facts_of(told)
    verified = [line for _, line in levels.statements(told)]
    # Longest first: a statement may be the beginning of another.
    removed = [*sorted(set(verified), key=len, reverse=True), *_names(facts)]
    is_exposed = any(told.odds(i) is None for i in range(len(told.document.blocks)))
    for text in texts(facts):
        assert not (is_exposed and any(words in text for words in UNPROTECTED)), text
        rest = text
        for pattern, check in NUMBERS:
            for found in re.finditer(pattern, rest):
                check(told, *found.groups())
            rest = re.sub(pattern, "\0", rest)
        for words in removed:
            rest = rest.replace(words, "\0")
        for piece in re.split(r"\0| \| ", rest):
            is_number = re.search(r"\d|×|∞|no bound|at most", piece)
            assert not is_number or piece in FIXED, piece


@pytest.mark.slow
def test_every_other_number_is_a_fact(full: bool) -> None:
    """--full tests 500 documents."""
    for seed in range(500 if full else COUNT):
        require_known(Told.of(seed))


FAULTS: dict[str, tuple[str, Any]] = {
    "a charge without its largest block": (
        "frankly_server.evidence.nist.bound_words",
        lambda _: "×1.01 (0.0100 nats)",
    ),
    "exposed answers not said": ("frankly_server.evidence.nist.exposed_words", lambda _: ""),
    "exposed answers not said in the consent": (
        "frankly_server.evidence.people.exposed_words",
        lambda _: "",
    ),
    "questions instead of groups": (
        "frankly_server.evidence.facts.Facts.cells",
        property(lambda facts: len(facts.document.strata)),
    ),
    "a number that no check knows": (
        "frankly_server.evidence.people.NO_WITHDRAWAL",
        "Nobody knows with more than 3 % which report is yours.",
    ),
    "the step as the minimum": (
        "frankly_server.evidence.linddun.answers_words",
        lambda facts: f"No estimate from fewer than {facts.document.release_step}.",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_false_fact_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FAULTS[name])
    with pytest.raises(AssertionError):
        for seed in range(COUNT):
            require_known(Told.of(seed))
