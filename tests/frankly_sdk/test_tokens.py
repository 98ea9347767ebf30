# SPDX-License-Identifier: Apache-2.0
"""Blind signatures: the vectors of RFC 9474, and tokens from request to report."""

import json
import secrets
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from frankly_protocol.errors import InvalidInput, RandomnessError
from frankly_protocol.tokens import TokenRule
from frankly_sdk import blind_rsa
from frankly_sdk.testing import FakeServer, make_survey
from frankly_sdk.tokens import blind, finalize

from examples.issuer import Issuer, create_app
from tests.frankly_sdk.drivers import driver  # noqa: F401
from tests.refusals import refusal

VECTORS = json.loads((Path(__file__).with_name("rfc9474.json")).read_text("utf-8"))
NUMBERS = {name: int(value, 16) for name, value in VECTORS["key"].items()}
N, E, D = NUMBERS["n"], NUMBERS["e"], NUMBERS["d"]
KEY = rsa.RSAPublicNumbers(E, N).public_key()
SURVEY = "ab" * 16


@pytest.mark.parametrize("vector", VECTORS["variants"], ids=lambda vector: vector["name"])
def test_the_vectors_of_the_rfc(vector: dict[str, Any]) -> None:
    """The vectors of appendix A give the blinded message, the blind signature, and the signature."""
    variant = blind_rsa.VARIANTS[vector["name"]]
    assert variant == blind_rsa.Variant(vector["salt_bytes"], is_randomized=vector["is_randomized"])
    prefix, message = bytes.fromhex(vector["msg_prefix"]), bytes.fromhex(vector["msg"])
    prepared = blind_rsa.prepare(message, variant)
    assert prepared.endswith(message)
    assert len(prepared) - len(message) == len(prefix) == 32 * variant.is_randomized
    r = pow(int(vector["inv"], 16), -1, N)
    blinded = blind_rsa.blind_with(KEY, prefix + message, bytes.fromhex(vector["salt"]), r)
    assert blinded.request.hex() == vector["blinded_msg"]
    signed = pow(int(vector["blinded_msg"], 16), D, N).to_bytes(512)
    assert signed.hex() == vector["blind_sig"]
    assert blind_rsa.finalize(KEY, blinded, signed, variant).hex() == vector["sig"]


@pytest.mark.parametrize("name", blind_rsa.VARIANTS)
@pytest.mark.parametrize("bits", [2048, 2050])
def test_drawn_requests_are_signed_and_differ(name: str, bits: int) -> None:
    """Another library's key numbers sign the requests, and its verification checks the encoding."""
    variant, private = blind_rsa.VARIANTS[name], rsa.generate_private_key(65537, bits)
    key, numbers = private.public_key(), private.private_numbers()
    requests = [
        blind_rsa.blind(key, blind_rsa.prepare(b"message", variant), variant) for _ in range(2)
    ]
    assert requests[0].request != requests[1].request
    for blinded in requests:
        z = pow(int.from_bytes(blinded.request), numbers.d, key.public_numbers().n)
        signature = blind_rsa.finalize(key, blinded, z.to_bytes(-(-bits // 8)), variant)
        assert pow(int.from_bytes(signature), 65537, key.public_numbers().n) > 0
        assert "prepared" not in repr(blinded)
        assert str(blinded.inverse) not in repr(blinded)


@pytest.fixture(scope="module")
def issuer_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def issuer(issuer_key: rsa.RSAPrivateKey) -> Issuer:
    return Issuer({f"member {i}" for i in range(9)}, issuer_key)


def ask(issuer: Issuer, person: str, blinded: bytes) -> Any:
    return create_app(issuer).test_client().post(f"/sign/{person}", data=blinded)


@pytest.mark.usefixtures("driver")
def test_a_token_from_the_issuer_to_the_report(issuer: Issuer, tmp_path: Path) -> None:
    server = FakeServer(make_survey({"smokes": ["no", "yes"]}, token=issuer.rule))
    document = server.document
    request = blind(document.token, document.survey)
    token = finalize(request, ask(issuer, "member 0", request.blinded).data)
    again = ask(issuer, "member 0", blind(document.token, document.survey).blinded)
    assert again.status_code == ask(issuer, "stranger", request.blinded).status_code == 403
    with server.open(tmp_path / "a.db") as client:
        assert client.answer({"smokes": "yes"}, token=token).code == "accepted"
    with server.open(tmp_path / "b.db") as client:
        assert client.answer({"smokes": "no"}, token=token).code == "token_spent"
    with server.open(tmp_path / "c.db") as client, pytest.raises(InvalidInput):
        other = blind(document.token, "cd" * 16)  # a token for another survey
        token = finalize(other, ask(issuer, "member 1", other.blinded).data)
        client.answer({"smokes": "no"}, token=token)
    assert len(server.reports) == 1
    assert request.blinded.hex() not in repr(server.requests)


BAD_RESPONSES: dict[str, Callable[[bytes], Any]] = {
    "empty": lambda signature: b"",
    "a text": lambda signature: signature.hex(),
    "too short": lambda signature: signature[:-1],
    "too long": lambda signature: b"\0" + signature,
    "another number": lambda signature: signature[:-1] + bytes([signature[-1] ^ 1]),
    "beyond the modulus": lambda signature: b"\xff" * len(signature),
    "zero": lambda signature: bytes(len(signature)),
    "nothing": lambda signature: None,
}


@pytest.mark.parametrize("case", BAD_RESPONSES)
def test_a_wrong_response_is_refused(case: str, issuer: Issuer) -> None:
    request = blind(issuer.rule, SURVEY)
    private = issuer.key.private_numbers()
    signed = pow(int.from_bytes(request.blinded), private.d, private.public_numbers.n)
    response = BAD_RESPONSES[case](signed.to_bytes(256))
    error = refusal(InvalidInput, finalize, request, response)
    assert (error.code, error.field) == ("token_invalid", "blind_signature")


@pytest.mark.parametrize("rule", [None, TokenRule("invite"), TokenRule("rsa-pss", "A" * 64)])
def test_a_survey_without_an_issuer_is_refused(rule: TokenRule | None) -> None:
    assert refusal(InvalidInput, blind, rule, SURVEY).code == "token_invalid"


def test_without_randomness_there_is_no_request(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    randbits = secrets.randbits
    for which in range(4):  # nonce, prefix, salt and blinding factor
        draws = count()

        def broken(bits: int, which: int = which, draws: Iterator[int] = draws) -> int:
            if next(draws) == which:
                raise OSError
            return randbits(bits)

        with monkeypatch.context() as patched:
            patched.setattr("frankly_sdk.blind_rsa.secrets.randbits", broken)
            with pytest.raises(RandomnessError):
                blind(issuer.rule, SURVEY)
