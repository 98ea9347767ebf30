# SPDX-License-Identifier: Apache-2.0
"""Token rules in survey files, and the resulting rules in documents."""

from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from frankly_protocol.errors import InvalidInput
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.tokens import encode_token
from frankly_server.surveys.definition import SurveyDefinition, parse_definition
from frankly_server.surveys.drafting import Place, draft_blocks, draft_document

from tests.frankly_server.surveys.samples import data, value

_PUBLIC = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
RSA = encode_token(generate_private_key(65537, 2048).public_key().public_bytes(*_PUBLIC))
ED25519 = encode_token(Ed25519PrivateKey.generate().public_key().public_bytes(*_PUBLIC))
PLACE = Place("ab" * 16, 1, None, datetime(2026, 5, 1, tzinfo=UTC), "https://collect.example/r")


@pytest.mark.parametrize(
    ("tokens", "rule"),
    [
        (None, None),
        ({"kind": "invite"}, TokenRule("invite")),
        ({"kind": "rsa-pss", "key": RSA}, TokenRule("rsa-pss", RSA)),
    ],
    ids=["none", "invite", "rsa-pss"],
)
def test_the_documents_rule_is_the_files(tokens: Any, rule: TokenRule | None) -> None:
    one_block = {("blocks",): value()["blocks"][:1]}
    definition = parse_definition(data(one_block | ({("tokens",): tokens} if tokens else {})))
    assert SurveyDefinition.from_json(definition.to_json()) == definition
    assert draft_document(definition, draft_blocks(definition), PLACE).token == rule


BAD: dict[str, tuple[Any, str, str]] = {
    "no kind": ({"key": RSA}, "field_missing", "tokens.kind"),
    "unknown kind": ({"kind": "blind"}, "definition_invalid", "tokens.kind"),
    "unknown field": ({"kind": "invite", "count": "3"}, "field_unknown", "tokens.count"),
    "invite with a key": ({"kind": "invite", "key": RSA}, "definition_invalid", "tokens"),
    "issuer without a key": ({"kind": "rsa-pss"}, "definition_invalid", "tokens"),
    "not base64url": ({"kind": "rsa-pss", "key": "=" * 400}, "definition_invalid", "tokens.key"),
    "not RSA": ({"kind": "rsa-pss", "key": ED25519}, "definition_invalid", "tokens.key"),
}


@pytest.mark.parametrize("name", BAD)
def test_rules_without_redeemable_tokens_are_refused_by_name(name: str) -> None:
    tokens, code, field = BAD[name]
    with pytest.raises(InvalidInput) as caught:
        parse_definition(data({("tokens",): tokens}))
    assert (caught.value.code, caught.value.field) == (code, field)
    assert RSA not in caught.value.detail
