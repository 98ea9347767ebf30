# SPDX-License-Identifier: Apache-2.0
"""Consent text and information sheet for participants."""

from typing import Final

from frankly_design.requests.whole_report import cost_words
from frankly_protocol.audit import DEVICE_CAP

from frankly_server.evidence.content import Cell, FolderPart, Grid, Heading, Open, Quote
from frankly_server.evidence.dpia import questions
from frankly_server.evidence.facts import (
    Facts,
    answers_words,
    bound_words,
    delta_words,
    exposed_words,
    guess_words,
    posterior_words,
)

NO_WITHDRAWAL: Final = (
    "Once sent, your answer cannot be withdrawn, changed or shown to you: it is not linked to anybody, and nobody, "
    "not even you, can tell which report is yours."
)
_INVITED: Final = (
    "Once sent, your answer cannot be withdrawn or changed. Your invitation is sent with it: whoever handed it out "
    "and reads arriving reports can tell which random result is yours."
)
_INVITED_SOME: Final = (
    "Once sent, your answer cannot be withdrawn or changed. Your invitation or token is sent with it. If it is a code "
    "that the makers of this survey gave out, whoever handed it out and reads arriving reports can tell which random "
    "result is yours. If it was signed without being seen, it does not show whom it was given to."
)


def consent(facts: Facts) -> FolderPart:
    """Return the consent text."""
    document = facts.document
    own: list[Quote | str] = (
        ["The survey's own words, from the signed document:", Quote(facts.consent)]
        if facts.consent
        else []
    )
    sent = exposed_words(facts) or "My device randomises my answers before it sends them."
    return FolderPart(
        "consent",
        "Consent",
        [
            Quote(facts.title),
            *own,
            "I have read the information for participants. I know that:",
            sent,
            *([_public(facts)] if document.strata else []),
            *([_ITEM] if document.instructed else []),
            answers_words(facts),
            _withdrawal(facts),
            "I can stop at any time before I send.",
            Open("name and contact of the controller, purpose, and whom to ask"),
            "I agree to take part.",
        ],
    )


def participants(facts: Facts) -> FolderPart:
    """Return the information sheet for participants."""
    document = facts.document
    delta, exposed = delta_words(facts), exposed_words(facts)
    guesses = [(block.id, guess_words(facts, block)) for block in document.blocks]
    return FolderPart(
        "participants",
        "Information for participants",
        [
            Quote(facts.title),
            Grid(
                ("Point", "Information"),
                [
                    (
                        "Who asks",
                        Open(
                            "name and contact of the controller and of its data protection officer"
                        ),
                    ),
                    ("Why", Open("purpose of the survey and legal basis")),
                    (
                        "Whether you must take part",
                        Open("that taking part is voluntary, and what happens otherwise"),
                    ),
                    ("When", f"{facts.moment('opens')} to {facts.moment('closes')}"),
                    ("Complaints", Open("the supervisory authority to which people can complain")),
                ],
            ),
            Heading("What is asked, and what is randomised"),
            Grid(("Question", "Answers", "Sent"), questions(facts)),
            Heading("What leaves your device"),
            f"One report of {document.report_length} bytes, the same for everybody: a random number as its name, the "
            "survey's digest, and a result for each block of questions, which your device draws."
            + (" Your public answers are in it unchanged." if document.strata else "")
            + (f" {_ITEM}" if document.instructed else "")
            + (" Your token is in it." if document.token else ""),
            Heading("What it can reveal"),
            *bounds_words(facts),
            *([exposed] if exposed else []),
            *([delta] if delta else []),
            *posterior_words(facts),
            Grid(("Block", "A guess from your report alone is right about"), guesses),
            "Chances are for equally common combinations of answers.",
            cost_words(facts.level),
            f"Your app adds up what all surveys cost, and never lets more than its limit pass ({DEVICE_CAP} nats "
            "unless it sets another).",
            Heading("Who sees what"),
            Grid(("Who", "Sees"), _seen(facts)),
            Heading("What cannot be undone, and what this does not protect from"),
            _withdrawal(facts),
            "Your network address is visible to the server's operator, unless your app uses a relay. Whoever controls "
            "your device sees everything on it. Nobody can prevent that somebody forces you to answer.",
            Heading("How long it is kept"),
            Open("when the reports are erased"),
        ],
    )


def bounds_words(facts: Facts) -> list[str]:
    """Return one sentence per declared secret, then one about the answers."""
    given = "Given your public answers, from" if facts.document.strata else "From"
    lines = []
    for name, secret in facts.level.secrets.items():
        if secret.odds is None or secret.level is None:
            lines.append(f"No limit is promised on what can be learnt about “{name}”.")
            continue
        free = (secret.level, secret.odds) == (facts.level.answers.level, facts.level.answers.odds)
        condition = (
            "whatever else is known"
            if free
            else "as long as the published tables about it are true"
        )
        belief = (
            f"belief about “{name}” changes by at most {bound_words(secret.level)} and odds"
            if secret.unit == "lift"
            else f"odds about “{name}” change"
        )
        lines.append(
            f"{given} the whole report, {belief} by at most {bound_words(secret.odds)}, {condition}."
        )
    return [*lines, answers_words(facts)]


def _withdrawal(facts: Facts) -> str:
    """Return that nothing can be withdrawn, and who can tell which report is whose."""
    if facts.is_mixed:
        return _INVITED_SOME
    return _INVITED if facts.is_invited else NO_WITHDRAWAL


def _seen(facts: Facts) -> list[tuple[Cell, ...]]:
    document, shown = facts.document, facts.ruling_out
    return [
        (
            "The server and its operator",
            "the report: the results that your device draws"
            + (", public answers" if document.strata else "")
            + (", whether you passed the item" if document.instructed else "")
            + ("; your token" if document.token else ""),
        ),
        (
            "Analysts",
            f"estimates and counts, from {document.min_reports} reports on; never a single report",
        ),
        ("Everybody else", "the signed survey, and the number of released reports"),
        (
            "Nobody but you and your device",
            "your answers to the questions marked as randomised"
            + (f", except what the results of {shown} show" if shown else ""),
        ),
    ]


_ITEM: Final = (
    "One item asks for a given choice: the report says whether it was made, not which one was."
)


def _public(facts: Facts) -> str:
    asked = "; ".join(facts.text_of(question) for question in facts.document.strata)
    return f"My answers to these public questions are sent as I give them: {asked}"
