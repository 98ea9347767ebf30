# SPDX-License-Identifier: Apache-2.0
"""Redemption of tokens: one report each, bound to a survey (docs/protocol.md §10).

An invite is 32 random bytes that the survey's operator hands out. A token of an outside issuer is a
blind RSA signature (RFC 9474, RSABSSA-SHA384-PSS-Randomized): 32 random bytes chosen when blinding,
a nonce of 32 bytes, and the signature over both and the survey. When redeemed, it is an ordinary
RSASSA-PSS signature that cannot be linked to the request in which it was issued.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.tokens import TokenRule

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

INVITE_BYTES = NONCE_BYTES = PREFIX_BYTES = 32
KEY_BITS = (2048, 4096)
_CONTEXT = b"frankly.token/1\x00"
_SALT = 48  # as long as SHA-384's output


class TokenVerifier(Protocol):
    """Checks tokens without a store; the store records which of them are spent."""

    def spend_hash(self, survey: str, token: str) -> str:
        """Return the 64 hex digits under which a token is marked as spent.

        Raises InvalidInput(token_invalid).
        """
        ...


@dataclass(frozen=True, slots=True)
class InviteVerifier:
    """Checks the form of invites; only the store knows which exist, and for which survey."""

    def spend_hash(self, survey: str, token: str) -> str:  # noqa: ARG002 - the store binds an invite to its survey
        """Return SHA-256 of the token's bytes."""
        raw = _decoded(token)
        if len(raw) != INVITE_BYTES:
            raise _invalid()
        return hashlib.sha256(raw).hexdigest()


class RsaPssVerifier:
    """Checks tokens that an issuer signed blindly; key : as for `issuer_key`."""

    def __init__(self, key: str) -> None:
        self._public = issuer_key(key)

    def spend_hash(self, survey: str, token: str) -> str:
        """Return SHA-256 of the signed message, so all signatures of it count as one token."""
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415  as above
        from cryptography.hazmat.primitives.asymmetric import padding  # noqa: PLC0415

        raw = _decoded(token)
        if len(raw) != PREFIX_BYTES + NONCE_BYTES + self._public.key_size // 8:
            raise _invalid()
        # RFC 9474 (Randomized): the random prefix is part of the signed message.
        prefix, nonce = raw[:PREFIX_BYTES], raw[PREFIX_BYTES : PREFIX_BYTES + NONCE_BYTES]
        message = prefix + token_message(survey, nonce)
        pss = padding.PSS(padding.MGF1(hashes.SHA384()), _SALT)
        try:
            self._public.verify(raw[PREFIX_BYTES + NONCE_BYTES :], message, pss, hashes.SHA384())
        except InvalidSignature:
            raise _invalid() from None
        return hashlib.sha256(message).hexdigest()


def issuer_key(key: str) -> "RSAPublicKey":
    """Read an issuer's key: DER SubjectPublicKeyInfo in base64url without padding.

    Raises InvalidInput(token_invalid) unless it is an RSA key of 2048 to 4096 bits.
    """
    # Imported here because loading RSA takes longer than everything else that devices use from
    # the cryptography package.
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_der_public_key  # noqa: PLC0415

    try:
        public = load_der_public_key(_decoded(key))
    except (ValueError, UnsupportedAlgorithm):
        public = None
    if not isinstance(public, RSAPublicKey) or not KEY_BITS[0] <= public.key_size <= KEY_BITS[1]:
        raise InvalidInput(
            Problem.TOKEN_INVALID,
            "the issuer's key must be RSA with 2048 to 4096 bits",
            "token.key",
        )
    return public


def check_token(
    rule: TokenRule | None, survey: str, token: str | None, source: object = None
) -> str | None:
    """Return the hash under which a report's token is spent, None if the survey has no token rule.

    source : that of the report, if the survey has sources. Raises InvalidInput: token_invalid for a
    missing, unexpected or invalid token, strata_invalid for an unknown source.
    """
    if rule is None:
        if token is not None:
            raise InvalidInput(Problem.TOKEN_INVALID, "this survey takes no token", "token")
        return None
    if token is None:
        raise InvalidInput(
            Problem.TOKEN_INVALID, "this survey needs the token you were given", "token"
        )
    return token_verifier(rule.rule_for(source)).spend_hash(survey, token)


def token_verifier(rule: TokenRule) -> TokenVerifier:
    """Return the verifier for the rule of one source; raises InvalidInput(token_invalid) for an unusable key."""
    return InviteVerifier() if rule.key is None else RsaPssVerifier(rule.key)


def token_message(survey: str, nonce: bytes) -> bytes:
    """Return the message to blind and sign: a fixed context, the survey's id and the nonce."""
    return _CONTEXT + bytes.fromhex(survey) + nonce


def encode_token(raw: bytes) -> str:
    """Return base64url without padding, the form in which tokens and issuer keys are sent."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _decoded(text: str) -> bytes:
    """Read base64url without padding, in its one canonical spelling only."""
    try:
        raw = base64.b64decode(
            text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True
        )
    except (UnicodeEncodeError, binascii.Error, ValueError):
        raise _invalid() from None
    # b64decode ignores the unused bits of the last digit: a second spelling must not be a new
    # token.
    if encode_token(raw) != text:
        raise _invalid()
    return raw


def _invalid() -> InvalidInput:
    """Return the same error for every fault, so that a guesser learns nothing from it."""
    return InvalidInput(
        Problem.TOKEN_INVALID,
        "the token is not valid for this survey; use the one that you were given",
        "token",
    )
