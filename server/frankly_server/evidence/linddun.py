# SPDX-License-Identifier: Apache-2.0
"""Threats by the seven types of LINDDUN, with what limits each and what remains."""

from typing import Final

from frankly_server.evidence.content import Cell, FolderPart, Grid, Open
from frankly_server.evidence.facts import Facts, answers_words, item_words

TYPES: Final = (
    "Linking",
    "Identifying",
    "Non-repudiation",
    "Detecting",
    "Data disclosure",
    "Unawareness",
    "Non-compliance",
)
HEADERS: Final = ("Type", "Threat", "What limits it", "What remains", "Source")


def linddun(facts: Facts) -> FolderPart:
    """Return the part: one row per type."""
    return FolderPart(
        "linddun",
        "LINDDUN: threats to respondents",
        [
            "T-numbers are promises of docs/spec/9-threats.md; privacy.md and security.md are in docs.",
            Grid(HEADERS, rows(facts)),
        ],
    )


def rows(facts: Facts) -> list[tuple[Cell, ...]]:
    """Return one row per type, in the order of the name."""
    document, state = facts.document, facts.state
    carried = {
        None: "No token is sent.",
        "invite": "The invitation is sent with the report: whoever handed it out and reads arriving reports can "
        "tell whose randomised symbols they are.",
        "rsa-pss": "The token was signed blindly: it does not show whom it was given to.",
    }[document.token.weakest if document.token else None]
    if facts.is_mixed:
        carried = (
            "An invitation or a token is sent with the report. Whoever handed out an invitation and reads arriving "
            "reports can tell whose randomised symbols they are; a token that was signed blindly does not show whom "
            "it was given to."
        )
    groups = (
        f"Public answers put each report into one of {facts.cells} groups; small groups can single people out. "
        if document.strata
        else "There are no public answers. "
    ) + item_words(facts)
    log = (
        "There is no transparency log."
        if state.witnesses is None
        else "A transparency log lists every version, so that it can be audited; it has no witnesses, so "
        "devices do not rely on it."
        if not facts.is_witnessed
        else f"A transparency log lists every version; devices that use it need signatures of "
        f"{state.witness_threshold} of {state.witnesses} witness(es)."
    )
    own = (
        "The survey has a consent text of its own."
        if facts.consent
        else "The survey has no consent text of its own."
    )
    return [
        (
            TYPES[0],
            "Reports of one person are linked with each other or with other data.",
            "A report has a random id; address, user agent, order and a time finer than the release's are not stored. "
            "One randomised value per block, respondent and version, also after crashes.",
            f"{carried} Until its release, a report's row shows its order of arrival in PostgreSQL.",
            "T1, T2, T15; spec 7.4; privacy.md",
        ),
        (
            TYPES[1],
            "A report leads to a person.",
            "The server asks for no name or account. "
            f"Batches have at least {document.release_step} reports of one group.",
            groups + "The network address is visible to the server's operator, or to a relay's.",
            "T1, T15; privacy.md",
        ),
        (
            TYPES[2],
            "A person can be held to what they answered.",
            f"{answers_words(facts)} A respondent cannot prove which report is theirs.",
            "With an invitation a report can be attributed"
            + (
                f"; it shows the answers of {shown}."
                if (shown := facts.unchanged)
                else ", but it is still random."
            )
            if facts.is_invited
            else "An attacker who controls the device reads the answer as it is typed.",
            "T16; privacy.md",
        ),
        (
            TYPES[3],
            "It becomes known that a person took part.",
            f"All reports have the same length, {document.report_length} bytes, "
            "and by default wait for a random moment.",
            "The operator and the network see that a device connects. A device shows afterwards that this survey was "
            "answered there, never the answer.",
            "T1, T9, T16",
        ),
        (
            TYPES[4],
            "An answer becomes known.",
            f"{answers_words(facts)} Analysts get estimates and counts of batches, from "
            f"{document.min_reports} reports on.",
            "What the level allows. Promises that rest on a table hold only if it is true; the ceilings hold always."
            if facts.priors
            else "What the level allows, and what is known about the group anyway.",
            "T1, T4, T5, T14, T15",
        ),
        (
            TYPES[5],
            "People do not know what happens, or cannot influence it.",
            f"Before sending, a device shows questions, probabilities, level, cost and the bytes. {own}",
            "A sent answer cannot be withdrawn, corrected or shown to its author"
            + (
                ". Only an invitation can link it to a person."
                if facts.is_invited
                else ", because it is not linked to anybody."
            ),
            "spec 4; privacy.md",
        ),
        (
            TYPES[6],
            "Processing differs from what was stated, or from the law.",
            f"The document is signed and cannot be changed. {log} Staff actions are in an audit trail that "
            "the database does not let change.",
            Open("legal basis, contracts and approvals"),
            "T4, T6; security.md",
        ),
    ]
