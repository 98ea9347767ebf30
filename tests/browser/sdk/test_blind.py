# SPDX-License-Identifier: Apache-2.0
"""Blind signatures in the browser: the vectors of RFC 9474, and tokens that the server accepts."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.tokens import check_token
from playwright.sync_api import Page

from examples.issuer import Issuer

VECTORS = json.loads(
    (Path(__file__).parents[2] / "frankly_sdk" / "rfc9474.json").read_text("utf-8")
)
N, E, D = (int(VECTORS["key"][name], 16) for name in ("n", "e", "d"))
SPKI = (
    rsa.RSAPublicNumbers(E, N)
    .public_key()
    .public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    .hex()
)
SURVEY = "ab" * 16

VECTOR = """async ({vector: v, spki, r}) => {
  const {VARIANTS, readKey, prepare, blindWith, finalizeMessage} = await import("/sdk/blind.js");
  const {hex, unhex} = await import("/sdk/canonical.js");
  const key = await readKey(unhex(spki)), variant = VARIANTS[v.name];
  const prepared = prepare(unhex(v.msg), variant);
  const [factor, inverse] = [r, v.inv].map((digits) => BigInt(`0x${digits}`));
  const blinded = await blindWith(key, unhex(v.msg_prefix + v.msg), unhex(v.salt), factor, inverse);
  const signature = await finalizeMessage(key, blinded, unhex(v.blind_sig), variant);
  return [variant, prepared.length, hex(blinded.request), hex(signature)];
}"""


@pytest.mark.parametrize("vector", VECTORS["variants"], ids=lambda vector: vector["name"])
def test_the_vectors_of_the_rfc(vector: dict[str, Any], shared_page: Page) -> None:
    r = format(pow(int(vector["inv"], 16), -1, N), "x")
    variant, size, request, signature = shared_page.evaluate(
        VECTOR, {"vector": vector, "spki": SPKI, "r": r}
    )
    expected = {"saltBytes": vector["salt_bytes"], "isRandomized": vector["is_randomized"]}
    assert variant == expected
    assert size == (len(vector["msg"]) + len(vector["msg_prefix"])) / 2
    assert (request, signature) == (vector["blinded_msg"], vector["sig"])


BLIND = """async ({rule, survey}) => {
  const {blind} = await import("/sdk/blind.js"), {hex} = await import("/sdk/canonical.js");
  window.pending = await blind({token: rule, survey});
  return hex(pending.blinded);
}"""
FINALIZE = """async (signature) => {
  const {finalize} = await import("/sdk/blind.js"), {unhex} = await import("/sdk/canonical.js");
  return finalize(pending, unhex(signature)).catch(({name, code, field}) => [name, code, field]);
}"""


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer({f"member {i}" for i in range(20)})


def test_a_token_of_the_issuer_is_accepted(issuer: Issuer, shared_page: Page) -> None:
    given = {"rule": issuer.rule.to_json(), "survey": SURVEY}
    requests, spent = set(), set()
    for i in range(4):
        blinded = shared_page.evaluate(BLIND, given)
        signature = issuer.sign(f"member {i}", bytes.fromhex(blinded))
        assert signature is not None
        token = shared_page.evaluate(FINALIZE, signature.hex())
        spent.add(check_token(issuer.rule, SURVEY, token))
        requests.add(blinded)
    assert len(requests) == len(spent) == 4


def test_a_wrong_response_is_refused(issuer: Issuer, shared_page: Page) -> None:
    blinded = shared_page.evaluate(BLIND, {"rule": issuer.rule.to_json(), "survey": SURVEY})
    signature = issuer.sign("member 9", bytes.fromhex(blinded))
    assert signature is not None
    wrong = [
        "",
        "00" * 256,
        "ff" * 256,
        signature[:-1].hex(),
        signature[:-1].hex() + f"{signature[-1] ^ 1:02x}",
    ]
    for response in wrong:
        refused = shared_page.evaluate(FINALIZE, response)
        assert refused == ["InvalidInput", "token_invalid", "blind_signature"], response[:8]


@pytest.mark.parametrize("rule", [None, TokenRule("invite"), TokenRule("rsa-pss", "A" * 64)])
def test_a_survey_without_an_issuer_is_refused(rule: TokenRule | None, shared_page: Page) -> None:
    script = f"(given) => ({BLIND})(given).catch((error) => error.code)"
    given = {"rule": rule and rule.to_json(), "survey": SURVEY}
    assert shared_page.evaluate(script, given) == "token_invalid"


def test_the_lines_of_the_docs(issuer: Issuer, shared_page: Page, root: Path) -> None:
    page = (root / "docs" / "browser.md").read_text("utf-8")
    _, _, after = page.partition('import { blind, finalize } from "@frankly/sdk/blind";\n')
    lines = after.partition("```")[0].replace("https://issuer.example", "")
    shared_page.route(
        "**/sign/CODE",
        lambda route: route.fulfill(
            body=issuer.sign("member 19", route.request.post_data_buffer or b"") or b""
        ),
    )
    script = f"""async (survey) => {{
      const {{blind, finalize}} = await import("/sdk/blind.js"), client = {{survey}};
      {lines}
      return token;
    }}"""
    token = shared_page.evaluate(script, {"token": issuer.rule.to_json(), "survey": SURVEY})
    assert check_token(issuer.rule, SURVEY, token)
