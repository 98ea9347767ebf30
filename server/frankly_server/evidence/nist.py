# SPDX-License-Identifier: Apache-2.0
"""Answers to the evaluation points of NIST SP 800-226, in its order."""

from typing import Final

from frankly_design.requests.whole_report import cost_words, level_table
from frankly_protocol.audit import DEVICE_CAP, ln_up

from frankly_server.evidence.content import Cell, FolderPart, Grid, Heading, Open
from frankly_server.evidence.facts import (
    Facts,
    answers_words,
    bound_words,
    delta_words,
    exposed_words,
    guess_words,
    item_words,
    posterior_words,
    promise_words,
    relation_words,
)

SOURCE: Final = (
    "NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees: the final version "
    "is of March 2025. Order, headings and section numbers here are those of its initial public "
    "draft (December 2023), the text from which these answers were prepared: compare them with the "
    "final version before you cite a section."
)
_HEADERS: Final = ("Section", "Point", "Answer", "Check")


def nist(facts: Facts) -> FolderPart:
    """Return the part: the pyramid from its top to its bottom, then the tables of levels."""
    return FolderPart(
        "nist_sp_800_226",
        "NIST SP 800-226: evaluation of the guarantee",
        [
            SOURCE,
            Heading("Top of the pyramid: the guarantee"),
            Grid(_HEADERS, _top(facts)),
            Heading("Middle: algorithms and correctness, utility, bias"),
            Grid(_HEADERS, _middle(facts)),
            Heading("Bottom: query and threat model, side channels, security, data collection"),
            Grid(_HEADERS, _bottom(facts)),
            *levels(facts),
        ],
    )


def levels(facts: Facts) -> list[Heading | Grid | Cell]:
    """Return tables of the levels of the whole report and of each block."""
    document = facts.document
    headers, rows = level_table(facts.level, has_strata=bool(document.strata))
    blocks = [
        (
            block.id,
            promise_words(promise),
            relation_words(promise, block, has_strata=bool(document.strata)),
            guess_words(facts, block),
        )
        for block in document.blocks
        for promise in block.promises
    ]
    return [
        Heading("Level of the whole report"),
        Grid(headers, rows),
        *(
            [
                "Lines about a secret hold if its published table is true; the last line always holds."
            ]
            if facts.level.secrets
            else []
        ),
        *posterior_words(facts),
        cost_words(facts.level),
        Heading("Promises of each block, and their relation to LDP"),
        Grid(
            ("Block", "Promise", "Relation to LDP", "A guess from one report is right about"),
            blocks,
        ),
        "Chances of a guess are for equally common combinations of answers. All levels are rounded up.",
    ]


def _top(facts: Facts) -> list[tuple[Cell, ...]]:
    document, answers = facts.document, facts.level.answers
    notions = ", ".join(dict.fromkeys(block.notion for block in document.blocks))
    prior = (
        "A promise under a prior is not differential privacy; the ceiling of its block, in the table below, is, "
        "where there is one. "
        if facts.priors
        else ""
    )
    delta = delta_words(facts)
    public = (
        (
            f"Not protected: the answers to {len(document.strata)} public question(s), which are sent "
            f"unchanged and divide people into {facts.cells} groups. "
            if document.strata
            else "There are no public questions. "
        )
        + item_words(facts)
        + (exposed_words(facts) or "Nothing else that is asked is sent unprotected.")
        + " "
    )
    return [
        (
            "2.2",
            "Privacy parameter ε",
            f"ε of the whole report about the answers: {ln_up(answers.odds)} nats. {answers_words(facts)}",
            "C2, C4",
        ),
        (
            "2.3",
            "Variant of differential privacy",
            ("Pure and local" if answers.odds else "Local, without a finite ε of the whole report")
            + f"; levels are exact ratios of whole numbers. Promised notions: {notions}. {prior}"
            f"{delta or 'No promise has a δ.'}",
            "C2",
        ),
        (
            "2.4",
            "Unit of privacy",
            "One respondent: everything that a device sends for this version, all blocks together "
            "(user level). Compared are any two sets of answers of one person. That a person takes part is "
            "not hidden. A person with several devices, or whose device has lost its memory, can send again and "
            "reveals more. A device answers one version of a survey. Another survey costs again; a device adds all "
            "costs and refuses above "
            f"its app's cap ({DEVICE_CAP} nats unless the app sets another).",
            "C5, C6",
        ),
        (
            "2.5",
            "Comparison with other guarantees",
            "Compare only figures of local models with the same unit and δ = 0. A level of a secret "
            "(belief) and a level of answers (odds) are different units; the tables name them.",
            "C2",
        ),
        (
            "2.6",
            "Mixing with other data releases",
            public
            + "The released counts are sums of the randomised reports: computing with them costs no "
            "further privacy.",
            "C2, C7",
        ),
        (
            "",
            "Other releases about the same people",
            Open("other data about the same people that you publish"),
            "",
        ),
    ]


def _middle(facts: Facts) -> list[tuple[Cell, ...]]:
    document = facts.document
    names = ", ".join(f"{block.id}: {block.mechanism_name}" for block in document.blocks)
    scores = any(
        choice.score is not None
        for question in document.questions.values()
        for choice in question.choices
    )
    kinds = "shares and joint shares" + (", means of scores" if scores else "")
    return [
        (
            "3.1",
            "Mechanisms",
            f"Randomised response with published probabilities: {names}. The probabilities are whole-number "
            "weights in the signed document; every device verifies each of them before anything is "
            "sent.",
            "C2, C4",
        ),
        (
            "3.1",
            "Correctness",
            "Server and device verify every promise in exact arithmetic. A second verifier, written from the "
            "specification in another language, repeats it.",
            "C4",
        ),
        (
            "3.2",
            "Utility and accuracy",
            "Every estimate is published with its interval and method. With fewer than "
            f"{document.min_reports} released reports there is no estimate; {facts.state.released} "
            f"report(s) of this survey had been released when this was written ({facts.state.made}).",
            "C7",
        ),
        ("", "Accuracy that you need", Open("margin of error that the purpose needs"), ""),
        ("3.3.1", "Systemic bias", Open("groups that the survey may miss or harm"), ""),
        ("3.3.2", "Human bias", Open("wording of questions, recruitment, reading of results"), ""),
        (
            "3.3.3",
            "Statistical bias",
            "Estimates invert the published probabilities and are not rounded into a possible range unless "
            "this is asked for. False answers and several reports of one person are not prevented"
            + (", except that each report needs a token." if document.token else "."),
            "C7",
        ),
        (
            "3.4 to 3.7",
            "Kinds of analysis",
            f"Counting: {kinds}, from counts of randomised symbols. Regressions are fitted to released counts. No "
            "synthetic data, no unstructured data.",
            "C7",
        ),
    ]


def _bottom(facts: Facts) -> list[tuple[Cell, ...]]:
    document, state = facts.document, facts.state
    return [
        (
            "4.1",
            "Query model",
            f"Data release: counts of batches of at least {document.release_step} reports of one group, at the "
            f"end of every {document.release_every} (UTC). Analysts query released counts only, so that no "
            "query costs privacy.",
            "C7",
        ),
        (
            "4.2",
            "Threat model: local",
            "Respondent and device are trusted. Curator (the server and its operator), analysts and the "
            f"public are not. {exposed_words(facts) or 'The server receives randomised symbols only.'}",
            "C5",
        ),
        ("", "Devices", Open("who controls the devices and apps on which people answer"), ""),
        (
            "4.3",
            "Floating-point arithmetic",
            "None in a privacy decision: probabilities, levels and draws are whole numbers.",
            "C4",
        ),
        (
            "4.3",
            "Timing and other side channels",
            f"Every report has the same length, {document.report_length} bytes, "
            "and by default waits for a random moment. "
            "A person who hesitates sends later. Network address and browser headers are visible to the "
            "server's operator unless a relay is used.",
            "C5",
        ),
        (
            "4.4",
            "Data security",
            "A copy of the database contains symbols, and neither names nor addresses of respondents. The "
            f"document is signed; {state.threshold} signature(s) of a publisher key are needed, "
            f"{len(state.signers)} valid one(s) were found.",
            "C3, C4",
        ),
        (
            "4.4",
            "Access control",
            "Roles and their numbers are in the part on access and retention.",
            "C8",
        ),
        (
            "",
            "Security of hosting and backups",
            Open("who runs the server, its encryption, backups and updates"),
            "",
        ),
        (
            "4.5",
            "Data collection exposure",
            f"{len(document.questions)} randomised and {len(document.strata)} public question(s). "
            f"{exposed_words(facts) or 'Answers are randomised before collection.'} The ledger charges "
            f"{bound_words(facts.level.cost.odds)} for all of it.",
            "C2, C6",
        ),
        ("", "Necessity", Open("why each question needs to be asked at all"), ""),
    ]
