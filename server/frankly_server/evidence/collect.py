# SPDX-License-Identifier: Apache-2.0
"""Reading of the facts from a server's services."""

from collections import Counter

from frankly_protocol.clock import format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.evidence.facts import Facts, State
from frankly_server.services import Services
from frankly_server.surveys.survey_state import shown_state


def collect(services: Services, survey: str, language: str | None = None) -> Facts:
    """Return the facts of the newest version of a survey, given by name or id.

    language : of the document's texts; None for the document's first.

    The signatures and every promise are verified first. Raises InvalidInput: survey_unknown,
    not_found for a survey that was never published, unsupported for a document with arms, field_type
    for a language that the document lacks, key_file; DocumentRejected if too few current publisher
    keys have signed the document or a promise does not hold.
    """
    summary = services.surveys.summary(survey)
    if summary.link is None:
        raise InvalidInput(
            Problem.NOT_FOUND,
            "this survey is a draft: there is no signed document until `frankly survey publish`",
            "survey",
        )
    envelope = services.surveys.envelope(summary.survey_id)
    keys = services.keys.trusted()
    sealed = Envelope.from_bytes(envelope, SURVEY_TYPE)
    sealed.verify(keys.publisher.keys, keys.publisher.threshold)
    document = SurveyDocument.from_envelope(envelope)
    document.require_private()
    if document.arms is not None:
        # The folder describes one list of questions and one level of the report; each arm has its own.
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "this survey has arms, and evidence is written for surveys without arms only, so far; the sheets to print "
            "describe each arm",
            "survey",
        )
    chosen = document.languages[0] if language is None else language
    if chosen not in document.languages:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            f"the survey's languages are {', '.join(document.languages)}",
            "language",
        )
    state_row = services.lifecycle.get(summary.survey_id)
    with services.database.reading("evidence") as tx:
        batches = tx.batches.of_document(document.digest)
        released = tx.batches.number(summary.survey_id)
        versions = len(tx.documents.versions(summary.survey_id))
        people = tx.accounts.of_organisation(state_row.organisation)
        api_keys = tx.api_keys.all()
        webhook = tx.webhooks.get(summary.survey_id)
    shown = shown_state(summary, state_row)
    state = State(
        made=format_time(services.surveys.now()),
        name=summary.name,
        organisation=state_row.organisation,
        # Commands call a survey open that the pages call live.
        shown="open" if shown == "live" else shown,
        versions=versions,
        link=summary.link,
        signers=sorted(sealed.signers(keys.publisher.keys)),
        threshold=keys.publisher.threshold,
        keys_version=keys.version,
        witnesses=None if keys.log is None else len(keys.log.witnesses),
        witness_threshold=None if keys.log is None else keys.log.threshold,
        released=released,
        releases=sorted({(batch.release, batch.released) for batch in batches}),
        people=Counter(person.role for person in people if person.disabled is None),
        api_keys=Counter(
            key.role
            for key in api_keys
            if key.revoked is None
            and key.organisation == state_row.organisation
            and (not key.surveys or summary.survey_id in key.surveys)
        ),
        webhook=webhook is not None,
        estimates_view=services.settings.estimates_view,
    )
    return Facts(document, state, chosen)
