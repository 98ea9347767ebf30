# SPDX-License-Identifier: Apache-2.0
"""RSA blind signatures of RFC 9474, the requester's side: prepare, blind, finalize.

The signer sees a uniformly random number and learns nothing about the message. For surveys use
`frankly_sdk.tokens`, which chooses variant and message. Python's integer arithmetic is not
constant-time. This is acceptable here, because each secret is used for one request only, on its
owner's device.
"""

import hashlib
import math
import secrets
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.base import draw, draw_below
from frankly_protocol.problems import Problem

__all__ = ["VARIANTS", "Blinded", "Variant", "blind", "finalize", "prepare"]

PREFIX_BYTES: Final = 32
_HASH_BYTES = 48  # SHA-384, in every variant


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the RFC's four variants (section 5).

    salt_bytes : length of the salt of PSS: 48, or 0 for PSSZERO.
    is_randomized : True if 32 random bytes are put before the message, which is needed if an
        observer could guess the message.
    """

    salt_bytes: int
    is_randomized: bool


VARIANTS: Final = {
    "RSABSSA-SHA384-PSS-Randomized": Variant(48, is_randomized=True),
    "RSABSSA-SHA384-PSSZERO-Randomized": Variant(0, is_randomized=True),
    "RSABSSA-SHA384-PSS-Deterministic": Variant(48, is_randomized=False),
    "RSABSSA-SHA384-PSSZERO-Deterministic": Variant(0, is_randomized=False),
}


@dataclass(frozen=True, slots=True)
class Blinded:
    """A blinded message.

    request : the bytes for the signer, as long as the modulus.
    prepared : the message to be signed, with its random prefix if the variant has one; secret
        until the signature is used.
    inverse : removes the blinding; always secret, because it links request and signature.
    """

    request: bytes
    prepared: bytes = field(repr=False)
    inverse: int = field(repr=False)


def prepare(message: bytes, variant: Variant) -> bytes:
    """Return the message to blind, with a random prefix if the variant has one (section 4.1).

    Raises RandomnessError if the system provides no random bytes.
    """
    return (random_bytes(PREFIX_BYTES) if variant.is_randomized else b"") + message


def blind(key: RSAPublicKey, prepared: bytes, variant: Variant) -> Blinded:
    """Blind a prepared message for the owner of a key (section 4.2).

    Raises RandomnessError; InvalidInput if the key's modulus has a factor in common with the
    message, which happens only if the key is not an RSA key.
    """
    n = key.public_numbers().n
    while math.gcd(r := draw_below(n, secrets.randbits), n) != 1 or r == 0:
        pass
    return blind_with(key, prepared, random_bytes(variant.salt_bytes), r)


def blind_with(key: RSAPublicKey, prepared: bytes, salt: bytes, r: int) -> Blinded:
    """Blind with a given salt and blinding factor; for `blind`, and for the vectors of the RFC."""
    numbers = key.public_numbers()
    n, e, size = numbers.n, numbers.e, _size(key)
    m = int.from_bytes(_pss_encoded(prepared, salt, n.bit_length() - 1))
    if math.gcd(m, n) != 1:
        raise InvalidInput(Problem.TOKEN_INVALID, "the issuer's key is no RSA key", "key")
    return Blinded((m * pow(r, e, n) % n).to_bytes(size), prepared, pow(r, -1, n))


def finalize(
    key: RSAPublicKey, blinded: Blinded, blind_signature: bytes, variant: Variant
) -> bytes:
    """Return the signature of the prepared message, after checking it (section 4.4).

    Raises InvalidInput if the signer's response is not a signature of the request.
    """
    n, size = key.public_numbers().n, _size(key)
    given: object = blind_signature  # apps pass the value that their HTTP library returns
    if not isinstance(given, bytes) or len(given) != size or (z := int.from_bytes(given)) >= n:
        raise _refused()
    signature = (z * blinded.inverse % n).to_bytes(size)
    pss = padding.PSS(padding.MGF1(hashes.SHA384()), variant.salt_bytes)
    try:
        key.verify(signature, blinded.prepared, pss, hashes.SHA384())
    except InvalidSignature:
        raise _refused() from None
    return signature


def _pss_encoded(message: bytes, salt: bytes, bits: int) -> bytes:
    """Return EMSA-PSS-ENCODE of a message (RFC 8017, section 9.1.1), with SHA-384 and MGF1."""
    size = -(-bits // 8)
    digest = hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest()
    block = bytes(size - len(salt) - _HASH_BYTES - 2) + b"\x01" + salt
    masked = bytearray(x ^ y for x, y in zip(block, _mask(digest, len(block)), strict=True))
    masked[0] &= 0xFF >> (8 * size - bits)
    return bytes(masked) + digest + b"\xbc"


def _mask(seed: bytes, size: int) -> bytes:
    """Return the mask of MGF1 with SHA-384 (RFC 8017, appendix B.2.1)."""
    counters = range(-(-size // _HASH_BYTES))
    return b"".join(hashlib.sha384(seed + i.to_bytes(4)).digest() for i in counters)[:size]


def _size(key: RSAPublicKey) -> int:
    return -(-key.key_size // 8)


def random_bytes(size: int) -> bytes:
    """Return random bytes of the operating system; raises RandomnessError without them."""
    return draw(8 * size, secrets.randbits).to_bytes(size)


def _refused() -> InvalidInput:
    return InvalidInput(
        Problem.TOKEN_INVALID,
        "the issuer's response is not a signature of this request; ask the issuer again",
        "blind_signature",
    )
