# SPDX-License-Identifier: Apache-2.0
"""An issuer of tokens: it decides who may answer, and cannot link an answer to a person."""

import secrets
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flask import Flask, Response, request
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.tokens import encode_token


@dataclass
class Issuer:
    """Signs one blinded request for each eligible person.

    eligible : codes of the people who may answer, as in a list of members; each code can be used
        for one signature. Use a separate key for each survey, because the person who requests a
        signature chooses the survey for which it is valid.

    For trials only: a real issuer stores the key and the list safely, and signs in constant time.
    """

    eligible: set[str]
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    @property
    def rule(self) -> TokenRule:
        """The survey's token rule, with the public key."""
        der = self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return TokenRule("rsa-pss", encode_token(der))

    def sign(self, person: str, blinded: bytes) -> bytes | None:
        """Return the blind signature (RFC 9474, section 4.3); None for a used or unknown code."""
        numbers = self.key.private_numbers()
        n, e, m = numbers.public_numbers.n, numbers.public_numbers.e, int.from_bytes(blinded)
        size = (self.key.key_size + 7) // 8
        if person not in self.eligible or len(blinded) != size or m >= n:
            return None
        self.eligible.discard(person)
        # Blinded again, because the time of this power must not depend on a number chosen by
        # others.
        r = secrets.randbelow(n - 2) + 2
        s = pow(m * pow(r, e, n), numbers.d, n) * pow(r, -1, n) % n
        if pow(s, e, n) != m:  # a fault in this computation could reveal the key
            raise ArithmeticError
        return s.to_bytes(size)


def create_app(issuer: Issuer) -> Flask:
    """Return the web service: POST /sign/CODE, blinded bytes in, blind signature out."""
    app = Flask(__name__)

    @app.post("/sign/<person>")
    def sign(person: str) -> Response:
        signature = issuer.sign(person, request.get_data())
        kind = "application/octet-stream"
        return Response(signature, 200, mimetype=kind) if signature else Response(status=403)

    return app
