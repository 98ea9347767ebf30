# SPDX-License-Identifier: Apache-2.0
"""Page of the terms that the admin pages use, each with an example; `m.term` of the templates links to them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Final

from apiflask import APIBlueprint
from flask import Response

from frankly_server.surveys.strengths import FACTORS, WORDS
from frankly_server.web.admin.pages import render
from frankly_server.web.security import needs

STRENGTH: Final = "strength"
"""Entry that has the table of strengths."""
_STRONG: Final = WORDS.index("Strong")
_SURE: Final = ceil(100 * Decimal(FACTORS[_STRONG]) / (1 + Decimal(FACTORS[_STRONG])))
"""Percents to which a strong protection raises one half at most."""


@dataclass(frozen=True, slots=True)
class Word:
    """A term. id : anchor of its entry. text : up to three sentences. example : "" for a term of experts."""

    id: str
    name: str
    text: str
    example: str = ""


_RESULTS: Final = (
    Word(
        "answer",
        "Answer, report",
        "An answer is what somebody says. The answer to a protected question stays on the device: a report is sent "
        "instead, which as a rule is drawn by chance and says no more about the answer than the protection allows. "
        "Where these pages count answers, they count reports.",
        "Somebody answers “Yes”. The report may say “Yes” or “No”; the protection decides how often each.",
    ),
    Word(
        "released",
        "Released answers",
        "Answers that arrive are not counted at once but at a release, several with the same public answers "
        "together. "
        "Results use released answers only, so that no two results differ by a single answer. When a survey has "
        "ended "
        "and too few are left for a release, these are deleted.",
        "With the usual step of 10, seven answers from the north wait until ten from the north have arrived.",
    ),
    Word(
        "minimum",
        "Minimum",
        "The number of released answers that a result needs; with fewer, no estimate is shown. It counts for each "
        "question, and for each group that is shown separately.",
        "With a minimum of 100, a question about which 80 answers are released has no result yet.",
    ),
    Word(
        "estimate",
        "Estimate",
        "A result that is computed from all reports together. The chances with which devices draw are known, so the "
        "shares of the answers can be estimated although no single answer is known. Before it is adjusted, an "
        "estimate "
        "can lie below 0% or above 100%.",
        "40% of the reports say “Yes”. From the chances it follows that about 25% of the answers were “Yes”.",
    ),
    Word(
        "margin",
        "Margin, “19 of 20”",
        "How far a result may be off, up or down. If nothing else is said, margins are computed so that the "
        "truth lies "
        "within them in about 19 of 20 surveys (95%). They allow for chance alone: not for people who do not "
        "take part, "
        "or do not say the truth.",
        "A result of 40% with a margin of 5 points: the true share is probably between 35% and 45%.",
    ),
    Word(
        "points",
        "Points",
        "Percentage points: the difference of two percentages. Of a mean or another number, the whole range "
        "counts as "
        "100 points.",
        "From 40% to 45% are 5 points.",
    ),
    Word(
        "interval",
        "Interval, confidence",
        "An interval has two ends, between which the truth probably lies. The confidence says in how many surveys it "
        "is meant to: 95% is 19 of 20.",
        "“25% (20% to 31%)”: the estimate is 25%, and its interval goes from 20% to 31%.",
    ),
    Word(
        "standard-error",
        "Standard error",
        "How much a result typically varies by chance. One part is due to privacy, that is to what devices draw; the "
        "other to having asked some people only.",
        "With many answers, the ends of an interval at 95% are about two standard errors away from the result.",
    ),
    Word(
        "census",
        "Census, population",
        "The population is everybody whom a result is about. In a census all of them have answered, so that only "
        "what devices draw makes results uncertain.",
        "All 300 people of a firm have answered: a census. 120 of them have answered: a sample.",
    ),
    Word(
        "joint-table",
        "Joint table",
        "A table of two questions, with the share of each combination of their answers. Of questions that are "
        "protected together it has to be asked for before publishing, and takes some precision from single "
        "questions.",
        "Whether smokers sleep worse needs the table of “Do you smoke?” and “Do you sleep well?”.",
    ),
    Word(
        "who-reads",
        "Item that shows who reads",
        "A question that asks for one given choice. Who ticks at random often misses it, so that it shows about "
        "how many "
        "do. Only whether the choice was made is sent, unprotected.",
        "“To show that you read this, please choose Sometimes.”",
    ),
    Word(
        "refused",
        "Refused reports",
        "Reports that the server did not store, by reason. They are counted in no result.",
        "A report that arrives after the survey has closed is refused.",
    ),
)
_PROTECTION: Final = (
    Word(
        "protection",
        "Protection",
        "What a question's reports may say about the person who answers: what is sensitive, and how strongly it is "
        "protected. It is published with the survey, and the device checks it before anything is sent.",
        "Protected: the answer itself. Strength: Strong.",
    ),
    Word(
        STRENGTH,
        "Strength",
        "A name for how much larger a report can make the odds of what is protected: at most by the factor in the "
        "table. The stronger the protection, the wider the margins. If no name fits, the pages say “set in numbers”.",
        f"Somebody who thinks that “Yes” and “No” are equally likely can become at most {_SURE}% sure of one of "
        f"them by a "
        f"report with the strength {WORDS[_STRONG]}.",
    ),
    Word(
        "odds",
        "Odds",
        "How likely something is, compared with its opposite. They change by a factor, where percentages do not.",
        "1 in 4 are odds of 1 to 3. Three times these odds are 3 to 3, that is 1 in 2.",
    ),
    Word(
        "sensitive",
        "Sensitive answer",
        "Of some questions only one answer is sensitive. Then nobody can become much surer that somebody gave it; "
        "about the other answers a report may say more.",
        "Of “Have you taken drugs?”, “Yes” is sensitive, while “No” needs no secret.",
    ),
    Word(
        "gives-away",
        "What the answer gives away",
        "Something sensitive that can be guessed from the answer. Then the protection limits what a report says "
        "about that, if "
        "the counts are right; about the answer itself it may say more.",
        "The question is about the neighbourhood, which may give away how much somebody earns.",
    ),
    Word(
        "counts",
        "Counts",
        "A table of how many people have each value of what is protected, by answer. It comes from public data or a "
        "pilot, and is published with the survey. The protection of what an answer gives away rests on it.",
        "In the south 120 people with a low income and 40 with a high one; in the north 30 and 60.",
    ),
    Word(
        "together",
        "Protected together",
        "Several questions with one protection: its strength is for the answers to all of them together. "
        "Questions that "
        "are protected by themselves add up: who sends reports about three of them says more than about one.",
        "Ten questions are protected together, Strong: whatever is sent about them changes odds by at most "
        f"×{FACTORS[_STRONG]}, not by that much for each of the ten.",
    ),
    Word(
        "drawn",
        "Drawn questions",
        "Of questions that are protected together, each person is usually asked only a few. Their device draws "
        "which, by "
        "chance and before anything is answered. So only a part of the answers is about each question.",
        "If each person is asked one of five questions, 400 people give about 80 answers to each.",
    ),
    Word(
        "public",
        "Public question",
        "A question whose answer is sent as it is, without protection, to compare groups. It is not for "
        "anything sensitive.",
        "The age group, if that is no secret.",
    ),
    Word(
        "budget",
        "Budget of a device, cost",
        "What an app allows all surveys on a device to reveal about a person, in total. Each answered survey "
        "costs some "
        "of it, and it is never renewed. A survey that costs more than is left is not answered, unless the app "
        "makes an "
        "exception for it.",
        "An app allows 5, and a survey costs 2: afterwards 3 are left for others.",
    ),
)
_PUBLISHING: Final = (
    Word(
        "version",
        "Version, link",
        "What is published is a version: its questions and protection never change. What is edited afterwards "
        "becomes "
        "the next version, with a link of its own; older links show theirs until it closes. The end of a link "
        "makes sure "
        "that everybody gets exactly this version.",
        "A typing error is corrected after publishing: version 2 has a new link, and who has the old one still "
        "sees version 1.",
    ),
    Word(
        "invitation",
        "Invitation",
        "A personal link, or a code to type, that can be used once. The server stores a fingerprint of each code and "
        "whether it was used: no person and no time.",
        "Each of 300 members gets a card with a code of their own.",
    ),
    Word(
        "embed",
        "Embed",
        "To show the survey in your own web page or app, by a few lines of code.",
        "The survey appears in the middle of a club's own page.",
    ),
    Word(
        "webhook",
        "Webhook",
        "A message that the server sends to another program of yours, when the survey has closed or its target "
        "is met.",
        "Your team's chat says that the survey has closed.",
    ),
    Word(
        "utc",
        "UTC",
        "The world's common time, in which these pages give times and days.",
        "12:00 UTC is 13:00 in Berlin in winter, and 14:00 in summer.",
    ),
)
_EXPERTS: Final = (
    Word(
        "nats",
        "Level, ε, nats",
        "A level ε, in nats, stands for a factor of e to the power of ε.",
        "1 nat is a factor of 2.72, and 0.69 nats are a factor of 2.",
    ),
    Word(
        "ldp",
        "LDP, local differential privacy",
        "Whatever is sent, it was at most e^ε times as likely from one true answer as from any other.",
    ),
    Word(
        "metric-ldp",
        "Metric LDP",
        "LDP with a level of its own for each pair of answers; some pairs may be without a promise.",
    ),
    Word(
        "secret-ldp",
        "LDP of a secret",
        "Whatever is sent, it was at most e^ε times as likely from one secret as from any other, if the counts "
        "are right.",
    ),
    Word(
        "lip",
        "LIP, local information privacy",
        "No report makes a secret likelier or less likely by more than a factor of e^ε, if the counts are right.",
    ),
    Word(
        "alip",
        "ALIP, PML",
        "LIP with one level for each direction, of which one may be left out; with the upper level alone it is "
        "pointwise "
        "maximal leakage (PML).",
    ),
    Word(
        "srlip",
        "SRLIP",
        "LIP even for somebody who knows some of the answers that are randomised together, whichever they are.",
    ),
    Word(
        "rldp",
        "Robust LDP, RLDP",
        "LDP of a secret, under every distribution that the counts leave plausible.",
    ),
    Word(
        "mechanism",
        "Mechanism",
        "The chances with which a device draws each report, for each answer. It is published with the survey.",
    ),
    Word(
        "certificate",
        "Certificate",
        "What a mechanism reaches, beside a bound that none with the same promise can beat, where one is known.",
    ),
    Word(
        "backstop",
        "Backstop",
        "A promise of LDP with a larger level, in addition to one that rests on counts: it holds even if the "
        "counts are wrong.",
    ),
    Word(
        "digest",
        "Digest",
        "A fingerprint (SHA-256) of the exact bytes of a version: other bytes have another one.",
    ),
    Word(
        "log",
        "Transparency log",
        "A public list of every version that this server has published, which only grows. Who has checked it "
        "before, with the "
        "command frankly audit, notices if an entry was changed or removed.",
    ),
)
GROUPS: Final[Mapping[str, tuple[Word, ...]]] = {
    "Answers and results": _RESULTS,
    "Protection": _PROTECTION,
    "Publishing and sharing": _PUBLISHING,
    "For experts": _EXPERTS,
}


def every_word() -> Iterator[Word]:
    """Yield the terms of all groups."""
    for group in GROUPS.values():
        yield from group


def add_to(routes: APIBlueprint) -> None:
    """Add the page."""

    @routes.get("/words")
    @needs("viewer")
    def words() -> Response:
        strengths = list(zip(WORDS, FACTORS, strict=True))
        return render("words.html", groups=GROUPS, strengths=strengths, of_strengths=STRENGTH)
