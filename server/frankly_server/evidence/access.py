# SPDX-License-Identifier: Apache-2.0
"""Roles and what they see, minimum of reports, releases, and how long data stay."""

from typing import Final

from frankly_server.accounts.roles import ROLES
from frankly_server.evidence.content import Cell, FolderPart, Grid, Heading, Open
from frankly_server.evidence.facts import Facts, exposed_words
from frankly_server.keys.access import READER

_MAY: Final = {
    "viewer": "surveys, numbers of reports, links and estimates",
    "analyst": "the same, and downloads of estimates",
    "admin": "the same, and drafts; publishes and runs surveys, makes API keys",
    "owner": "the same, and the audit trail; manages accounts",
}
_BY_PROGRAM: Final = "the same by programs, and counts of released batches"
_BY_LINK: Final = (
    "whoever has this link to the results page: its estimates, until an admin withdraws the link"
)


def access(facts: Facts) -> FolderPart:
    """Return the part."""
    return FolderPart(
        "access_and_retention",
        "Who can see what, and for how long",
        [
            Heading("Roles"),
            Grid(("Who", "Sees or may do", "How many"), _roles(facts)),
            exposed_words(facts)
            or "Nobody in this table sees a randomised answer before its randomisation: it does not reach the "
            "server.",
            Heading("Minimum of reports and releases"),
            Grid(("Rule", "Value"), _rules(facts)),
            Heading("Retention"),
            Grid(("Data", "Kept until"), _retention(facts)),
        ],
    )


def _roles(facts: Facts) -> list[tuple[Cell, ...]]:
    state = facts.state
    people = [
        (f"People with the role {role}", _MAY[role], str(state.people.get(role, 0)))
        for role in ROLES
    ]
    keys = [
        (f"API keys with the role {role}", _BY_LINK if role == READER else _BY_PROGRAM, str(number))
        for role, number in sorted(state.api_keys.items())
    ]
    return [
        *people,
        *keys,
        (
            "The operator of server and database",
            "each report: randomised symbols, public answers, random id, before its release also its order; network "
            "addresses as they connect",
            Open("people with access to the machine, the database and its backups"),
        ),
        (
            "Respondents and the public",
            "the signed document, keys and log, the number of released reports",
            "everybody",
        ),
        (
            "Receiver of webhooks",
            "that the survey closed or reached its number of reports; no symbols",
            "one address is set" if state.webhook else "none is set",
        ),
    ]


def _rules(facts: Facts) -> list[tuple[Cell, ...]]:
    document, state = facts.document, facts.state
    newest = state.releases[-1] if state.releases else None
    released = "none" if newest is None else f"{len(state.releases)}, the newest at {newest[1]}"
    return [
        ("Reports below which there are no estimates and counts", str(document.min_reports)),
        (
            "Least number of reports of one group that are released together",
            str(document.release_step),
        ),
        (
            "Time of releases",
            f"end of every {document.release_every}, UTC; never because of a report or request",
        ),
        (
            "Reports of small groups after closing",
            "released without their public answers if they are enough together, otherwise deleted uncounted",
        ),
        ("Releases of this version so far", released),
        ("Released reports of the survey, all versions", str(state.released)),
        ("State of the survey", state.shown),
    ]


def _retention(facts: Facts) -> list[tuple[Cell, ...]]:
    document, state = facts.document, facts.state
    token: list[tuple[Cell, ...]] = (
        [("Hashes of tokens", "the database is deleted; the report that spent one is not recorded")]
        if document.token
        else []
    )
    view: list[tuple[Cell, ...]] = (
        [("Estimates in the database, for SQL", "the survey is erased")]
        if state.estimates_view
        else []
    )
    return [
        ("Answers", "the device has drawn the report; they are not written and not sent"),
        (
            "Report on the device",
            "the server has acknowledged it; then symbols and id are overwritten or deleted",
        ),
        (
            "Reports and counts on the server",
            f"the operator runs frankly survey erase {state.name}",
        ),
        ("Day on which that will be done", Open("date of the erasure of reports")),
        *view,
        *token,
        ("Signed documents, keys and log", "always: they are the record of what was promised"),
        ("Audit trail of staff actions", "the database is deleted"),
        ("Backups and database archives", Open("how long backups and archives are kept")),
        ("Addresses in logs of hosts, proxies and relays", Open("how long network logs are kept")),
    ]
