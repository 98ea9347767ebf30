# SPDX-License-Identifier: Apache-2.0
"""A draft as a document that a device accepts, signed with keys that nothing else ever trusts.

A page shows it with the element that respondents use, which verifies it like any other document.
"""

from dataclasses import dataclass

from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import KEYS_TYPE, SURVEY_TYPE, Envelope, SigningKey
from frankly_protocol.trust import KeysDocument, Role, write_chain
from frankly_protocol.trust.invite_codes import new_code
from frankly_protocol.trust.keys import MAX_VALIDITY

from frankly_server.intake.invites import invite_part
from frankly_server.surveys.definition import SurveyDefinition


@dataclass(frozen=True, slots=True)
class SignedDraft:
    """A signed draft: the link with its pin, the chain of its keys and the envelope, as served."""

    link: str
    chain: str
    envelope: str


def shown_definition(definition: SurveyDefinition, ask: str | None) -> SurveyDefinition:
    """Return a draft as shown now, whenever it opens. ask : as in `FormDefinition`, for its form."""
    form = definition.form
    times = dict.fromkeys(("opens", "closes", "expires"))
    asked = None if form is None else form.model_copy(update={"ask": ask})
    return definition.model_copy(update={**times, "form": asked, "page": None})


def signed_draft(document: SurveyDocument, origin: str) -> SignedDraft:
    """Return a document of `trial.drafted`, signed with new keys. origin : scheme and host of the server."""
    root, publisher = SigningKey.generate(), SigningKey.generate()
    keys = KeysDocument(
        1,
        document.issued,
        document.issued + MAX_VALIDITY,
        Role((root.public,), 1),
        Role((publisher.public,), 1),
    )
    chain = write_chain([Envelope.seal(KEYS_TYPE, keys.payload(), [root]).to_bytes()])
    envelope = Envelope.seal(SURVEY_TYPE, document.payload(), [publisher]).to_bytes()
    source = sorted(document.token.invites)[:1] if document.token else []
    invite = "".join(invite_part(name, new_code()) for name in source)
    link = f"{origin}/s/{document.survey}#{document.digest.replace(':', '=')}{invite}"
    return SignedDraft(link, chain.decode(), envelope.decode())
