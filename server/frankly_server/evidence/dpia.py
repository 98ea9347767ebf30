# SPDX-License-Identifier: Apache-2.0
"""Skeleton of a data-protection impact assessment, by the points of GDPR Art. 35(7)."""

from frankly_design.requests.whole_report import cost_words

from frankly_server.evidence.content import Cell, FolderPart, Grid, Heading, Open
from frankly_server.evidence.facts import Facts, answers_words, delta_words, exposed_words
from frankly_server.evidence.linddun import TYPES


def dpia(facts: Facts) -> FolderPart:
    """Return the part: points a to d, then what else Art. 35 asks for."""
    return FolderPart(
        "dpia",
        "Data-protection impact assessment (skeleton, GDPR Art. 35(7))",
        [
            "A skeleton: whether an assessment is needed, and whether it is complete, is for the controller to "
            "decide. It is not legal advice.",
            Heading("(a) Description of the processing and its purposes"),
            Grid(("Point", "Description"), _description(facts)),
            Heading("Questions"),
            Grid(("Question", "Answers", "Sent"), questions(facts)),
            Heading("(b) Necessity and proportionality"),
            Grid(("Point", "Assessment"), _necessity(facts)),
            Heading("(c) Risks to the rights and freedoms of respondents"),
            "Threats and what limits them are in the part on LINDDUN. Likelihood and severity depend on the people "
            "asked.",
            Grid(
                ("Type", "Likelihood and severity"),
                [(name, Open(f"likelihood and severity of: {name.lower()}")) for name in TYPES],
            ),
            Heading("(d) Measures, and evidence for them"),
            Grid(("Measure", "Evidence"), _measures(facts)),
            Heading("Consultation and decision"),
            Grid(
                ("Point", "Result"),
                [
                    (
                        "Advice of the data protection officer, Art. 35(2)",
                        Open("advice of the data protection officer"),
                    ),
                    (
                        "Views of respondents or their representatives, Art. 35(9)",
                        Open("views of respondents"),
                    ),
                    (
                        "Prior consultation, Art. 36",
                        Open("whether the supervisory authority is consulted"),
                    ),
                    ("Decision, date and name", Open("decision, date and name")),
                ],
            ),
        ],
    )


def questions(facts: Facts) -> list[tuple[Cell, ...]]:
    """Return one row per question: text, choices, and how the answer is sent."""
    document = facts.document
    private = [
        (
            facts.text_of(question),
            facts.choices_of(question),
            "unchanged: every symbol stands for one answer"
            if block.mechanism.sends_unchanged
            else f"randomised (block {block.id}"
            + (", some results rule out answers)" if block.ceiling is None else ")"),
        )
        for block in document.blocks
        for question in block.questions
    ]
    public = [
        (facts.text_of(question), facts.choices_of(question), "unchanged, as a public answer")
        for question in document.strata
    ]
    item = facts.document.instructed
    if item is not None:
        asked = item.question
        public.append(
            (
                facts.text_of(asked),
                facts.choices_of(asked),
                "only whether the choice it asks for was made",
            )
        )
    return [*private, *public]


def _description(facts: Facts) -> list[tuple[Cell, ...]]:
    return [
        ("Title", facts.title),
        ("Controller", Open("name and contact of the controller")),
        ("Purpose", Open("purpose of the survey")),
        ("Legitimate interest, if it is the basis", Open("legitimate interest, if any")),
        (
            "People asked",
            Open("who is asked, how many, how they are reached; children or dependants"),
        ),
        (
            "Special categories or criminal data",
            Open("whether a question is about data of Art. 9 or 10"),
        ),
        (
            "Operation",
            "A device verifies the signed document, randomises the answers, and sends one report. The server stores "
            "reports, counts them in batches, and computes estimates from the counts.",
        ),
        ("Time", f"{facts.moment('opens')} to {facts.moment('closes')}"),
        ("Collected at", facts.server),
        (
            "Place of processing, transfers",
            Open("country of the server; transfers to third countries"),
        ),
        ("Processors", Open("processors and their contracts")),
        ("Recipients and storage", "see the part on access and retention"),
    ]


def _necessity(facts: Facts) -> list[tuple[Cell, ...]]:
    document = facts.document
    return [
        ("Legal basis", Open("legal basis, Art. 6 and if needed Art. 9")),
        ("Necessity of each question", Open("why each question is needed for the purpose")),
        ("Less intrusive ways", Open("alternatives that were considered")),
        (
            "Minimisation by design",
            f"Of {len(document.questions)} question(s), only symbols that the devices draw are collected. "
            f"{exposed_words(facts)} {answers_words(facts)}".replace("  ", " "),
        ),
        (
            "Public questions",
            Open("why the public questions must be asked unprotected")
            if document.strata
            else "none",
        ),
        (
            "Information of respondents",
            "see the parts on consent and on information for participants",
        ),
        (
            "Access, rectification, erasure, objection",
            "Not offered for a sent report: "
            + (
                "only an invitation can link it to a person."
                if facts.is_invited
                else "it is not linked to anybody, and a respondent cannot prove that one is theirs."
            ),
        ),
        (
            "How requests are answered",
            Open("contact, and the answer to such requests (Art. 11, 12)"),
        ),
    ]


def _measures(facts: Facts) -> list[tuple[Cell, ...]]:
    document = facts.document
    delta = delta_words(facts)
    return [
        ("Randomisation on the device before sending", "C2, C4, C5"),
        (answers_words(facts), "C2, C4"),
        *([(delta, "C2")] if delta else []),
        (cost_words(facts.level), "C6"),
        (
            f"No release of fewer than {document.release_step} reports of a group, no estimate from fewer than "
            f"{document.min_reports}",
            "C7",
        ),
        ("Signed, unchangeable document; exact verification by every device", "C3, C4"),
        ("Roles, and an audit trail of staff actions", "C8"),
        (
            "Measures of the organisation",
            Open("training, contracts, incident response, security of devices"),
        ),
    ]
