# SPDX-License-Identifier: Apache-2.0
"""Tokens of an outside issuer: blind a request, turn the issuer's response into a token (spec 6.4).

    request = blind(survey.document.token, survey.document.survey)
    token = finalize(request, ask_the_issuer(request.blinded))
    client.answer(choices, token=token)

The issuer sees who requests a token, and a random number. It cannot recognise the token later, when
it is used.
"""

from dataclasses import dataclass, field

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.tokens import (
    NONCE_BYTES,
    check_token,
    encode_token,
    issuer_key,
    token_message,
)

from frankly_sdk import blind_rsa

__all__ = ["TokenRequest", "blind", "finalize"]

_VARIANT = blind_rsa.VARIANTS["RSABSSA-SHA384-PSS-Randomized"]


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request for one token. Keep it until the issuer has responded, and then forget it.

    blinded : the bytes for the issuer.
    """

    rule: TokenRule
    survey: str
    blinded: bytes
    _secrets: blind_rsa.Blinded = field(repr=False)


def blind(rule: TokenRule | None, survey: str) -> TokenRequest:
    """Return a new request for a token of a survey.

    rule : the document's `token`.
    survey : the survey's id; the token is valid for this survey only.

    Raises InvalidInput(token_invalid) if the survey takes no tokens of an issuer, or its key cannot
    be used, and RandomnessError.
    """
    if rule is None or rule.key is None:
        raise InvalidInput(
            Problem.TOKEN_INVALID, "this survey takes no tokens of an issuer", "token"
        )
    key = issuer_key(rule.key)
    message = token_message(survey, blind_rsa.random_bytes(NONCE_BYTES))
    blinded = blind_rsa.blind(key, blind_rsa.prepare(message, _VARIANT), _VARIANT)
    return TokenRequest(rule, survey, blinded.request, blinded)


def finalize(request: TokenRequest, blind_signature: bytes) -> str:
    """Return the token, in base64url, after checking that the survey's server will accept it.

    Raises InvalidInput(token_invalid) if the response is not a signature of this request.
    """
    if request.rule.key is None:
        raise InvalidInput(Problem.TOKEN_INVALID, "this request names no issuer", "token")
    secret = request._secrets  # noqa: SLF001  of this module's own class
    signature = blind_rsa.finalize(issuer_key(request.rule.key), secret, blind_signature, _VARIANT)
    prefix, message = (
        secret.prepared[: blind_rsa.PREFIX_BYTES],
        secret.prepared[blind_rsa.PREFIX_BYTES :],
    )
    token = encode_token(prefix + message[-NONCE_BYTES:] + signature)
    check_token(request.rule, request.survey, token)
    return token
