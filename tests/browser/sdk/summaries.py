# SPDX-License-Identifier: Apache-2.0
"""Random surveys with their summaries, and what a Python device says of each after it has verified it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.explanation.explain import Explanation
from frankly_protocol.trust.chain import read_chain
from frankly_sdk import Policy, PolicyRefused
from frankly_server.surveys.definition import parse_value
from frankly_server.surveys.signed_draft import signed_draft
from frankly_server.surveys.summary import ReadTexts, Summary, summary_of
from frankly_server.surveys.trial import drafted, wanted_pairs

from tests.frankly_protocol.samples import NOW
from tests.frankly_sdk.fakes import FakeServer
from tests.frankly_sdk.told import Told
from tests.frankly_server.surveys.random_files import random_file

ORIGIN = "https://collect.example"
URL = f"{ORIGIN}/v1/surveys/{'0' * 32}/reports"
POLICY = Policy(cap="60")
Pieces = dict[str, Any]


@dataclass(frozen=True)
class Summarised:
    """A document, its summary for the admin, and the document's payload as signed."""

    seed: int
    document: SurveyDocument
    summary: Summary

    @property
    def payload(self) -> str:
        return self.document.payload().decode()

    def on_device(self, store: Path) -> Explanation:
        """Return the explanation of a Python device that accepts the signed document."""
        made = signed_draft(self.document, ORIGIN)
        (keys,) = read_chain(made.chain.encode())
        server = FakeServer(self.document, keys=keys, envelope=made.envelope.encode())
        policy = replace(POLICY, final_surveys=(self.document.survey,))
        clock = FixedClock(max(NOW, self.document.issued) + timedelta(minutes=1))
        with server.open(store, link=made.link, policy=policy, clock=clock) as client:
            return client.survey.explain()


def random_summaries(n: int) -> Iterator[Summarised]:
    """Yield n random surveys: files as the pages make them, and documents of every kind of promise."""
    seed = found = 0
    while found < n:
        seed += 1
        document, pairs = _random(seed)
        if document is None:
            continue
        found += 1
        yield Summarised(seed, document, summary_of(document, 1000, pairs))


def _random(seed: int) -> tuple[SurveyDocument | None, Any]:
    """Return a document, None for one that cannot be published or answered, and its wanted pairs."""
    if seed % 2:
        document = Told.of(seed).document
        final = replace(POLICY, final_surveys=(document.survey,))
        try:
            final.check(document, final.level(document), pinned=True, spent=())
        except PolicyRefused:
            return None, ()
        return document, ()
    definition = parse_value(random_file(seed))
    try:
        return drafted(definition, NOW, URL), wanted_pairs(definition)
    except InvalidInput:
        return None, ()


def of_summary(read: ReadTexts) -> Pieces:
    """Return what the admin reads, in the parts that a device has too."""
    return {
        "title": read.title,
        "summary": list(read.summary),
        "groups": [[list(group.names), list(group.sentences)] for group in read.groups],
        "overall": [*read.how_to_read, *read.overall],
        "limits": [read.limits.heading, list(read.limits.lines)],
        "unprotected": [read.unprotected.heading, list(read.unprotected.lines)],
        "sent": [read.sent.heading, list(read.sent.lines)],
    }


def of_device(told: Explanation) -> Pieces:
    """Return the same of a Python device's explanation."""
    sent, _, limits, unprotected, _ = (
        [one.heading, [line.strip() for text in one.paragraphs for line in text.split("\n")]]
        for one in told.details
    )
    return {
        "title": told.title,
        "summary": list(told.summary),
        "groups": [[list(one.names), [*one.sentences, *one.notes]] for one in told.consequences],
        "overall": list(told.overall),
        "limits": limits,
        "unprotected": unprotected,
        "sent": sent,
    }
