# SPDX-License-Identifier: Apache-2.0
"""Sources in Chromium (spec 3.11): refusals, the source of a link, and tokens of each source's own."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from frankly_protocol import canonical
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.invite_codes import new_code, token_of_code
from frankly_protocol.trust.tokens import encode_token
from playwright.sync_api import Browser, Page

from tests.browser.accessible import findings
from tests.browser.sdk.site import SURVEY, Site, hosted, visit
from tests.browser.sdk.test_invitations import SHOW, sent_tokens
from tests.browser.sdk.test_same_as_python import judged_by_browser
from tests.browser.sdk.wire import Wire
from tests.frankly_protocol.samples import NOW, sealed
from tests.frankly_protocol.sourced import ACCEPTED, REFUSED, SOURCED, edited
from tests.frankly_protocol.trust.samples import spki
from tests.frankly_server.intake.test_tokens import ISSUER

CODES = {"schema": "document_schema", "type": "document_type"}


@pytest.mark.usefixtures("shared_page")
def test_documents_with_sources_are_judged_as_in_python(page: Page) -> None:
    edits = [*ACCEPTED.values(), *(edit for edit, _, _ in REFUSED.values())]
    expected = [None] * len(ACCEPTED) + [[CODES[r], field] for _, r, field in REFUSED.values()]
    envelopes = [sealed(canonical.dumps(edited(edit))) for edit in edits]
    judged = zip([*ACCEPTED, *REFUSED], expected, judged_by_browser(page, envelopes), strict=True)
    assert [one for one in judged if one[1] != one[2]] == []


@pytest.fixture
def link(wire: Wire) -> str:
    rules = {"class": TokenRule("invite"), "list": TokenRule("invite")}
    rule = TokenRule(
        "sources", question="came", rules=rules | {"panel": TokenRule("rsa-pss", spki(ISSUER))}
    )
    return wire.publish(replace(SOURCED, strata=SOURCED.strata[1:], token=rule))


def show(page: Page, link: str, entry: str = "sdk") -> None:
    page.evaluate(SHOW, [link, NOW.timestamp() * 1000, entry, {}])
    page.get_by_label("yes").check()


def send(page: Page) -> None:
    page.get_by_role("button").click()
    page.get_by_role("status").get_by_text("Thank you").wait_for()
    assert page.evaluate("violations") == []


@pytest.mark.parametrize("entry", ["sdk", "bundle"])
def test_the_link_answers_the_question_of_the_source(
    page: Page, wire: Wire, link: str, entry: str
) -> None:
    code = new_code()
    show(page, f"{link}&source=list&invite={code}", entry)
    source = page.get_by_label("list")
    assert (source.is_checked(), source.is_disabled()) == (True, True)
    assert page.get_by_label("class").is_disabled()
    assert not page.get_by_label("Invitation").is_visible()
    assert findings(page) == []
    send(page)
    assert sent_tokens(wire) == [encode_token(token_of_code(code, "ab" * 16))]
    assert json.loads(wire.posted[0])["strata"] == {"came": "list"}


def test_without_a_source_in_the_link_people_are_asked(page: Page, wire: Wire, link: str) -> None:
    show(page, f"{link}&source=nobody")
    page.get_by_label("Invitation").fill(code := new_code())
    page.get_by_role("button").click()
    assert page.locator(".error:not(:empty)").count() == 1
    page.get_by_label("class").check()
    send(page)
    assert sent_tokens(wire) == [encode_token(token_of_code(code, "ab" * 16))]
    assert json.loads(wire.posted[0])["strata"] == {"came": "class"}


ANSWER = """async ([link, at, strata, token]) => {
  const { withSeams } = await import("/sdk/testing.js"), { Client } = await import("/sdk/core.js");
  const client = await Client.open(link, withSeams({ spreadMs: 0, store: null }, { now: () => at }));
  try {
    return (await client.answer({ affair: "yes" }, { strata, token })).status;
  } catch ({ code, field }) {
    return [code, field];
  } finally {
    client.close();
  }
}"""


def test_an_issuer_s_token_is_for_its_own_source(page: Page, wire: Wire, link: str) -> None:
    page.evaluate("""async () => { window.blinded = await import("/sdk/blind.js"); }""")
    rule = {
        "kind": "sources",
        "question": "came",
        "rules": {"panel": {"kind": "rsa-pss", "key": spki(ISSUER)}},
    }
    request = page.evaluate(
        """async ([rule, survey]) => {
          window.request = await blinded.blind({ token: rule, survey }, "panel");
          return [...request.blinded];
        }""",
        [rule, "ab" * 16],
    )
    key = ISSUER.private_numbers()
    signed = pow(int.from_bytes(bytes(request)), key.d, key.public_numbers.n).to_bytes(256)
    token = page.evaluate(
        "(signed) => blinded.finalize(request, Uint8Array.from(signed))", list(signed)
    )
    at = NOW.timestamp() * 1000

    def answer(strata: dict[str, str], given: str | None, source: str = "") -> object:
        return page.evaluate(ANSWER, [f"{link}{source}", at, strata, given])

    assert answer({"came": "class"}, token) == ["token_invalid", "token"]
    assert answer({"came": "radio"}, token) == ["unknown_choice", "came"]
    assert answer({}, token) == ["unknown_choice", "came"]
    assert answer({}, encode_token(bytes(32)), "&source=panel") == ["token_invalid", "token"]
    assert wire.posted == []
    assert answer({}, token, "&source=panel") == "sent"
    assert [json.loads(one)["strata"]["came"] for one in wire.posted] == ["panel"]


SOURCES = (
    "  - {{id: came, text: {{en: 'Who invited you?'}}, choices: [{{id: class, label: {{en: Class 7b}}}}, "
    "{{id: list, label: {{en: A list}}}}, {{id: panel, label: {{en: A panel}}}}]}}\n"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    file = SURVEY.replace("strata:\n", f"strata:\n{SOURCES}")
    rule = "tokens: {kind: sources, question: came}\naccept_small_cells: true\n"
    with hosted(tmp_path_factory.mktemp("sources"), rule, ("en",), file) as served:
        yield served


def test_people_of_three_sources_answer_on_the_hosted_page(browser: Browser, site: Site) -> None:
    for source in ("class", "list", "panel"):
        (code,) = site.services.invites.make("habits", 1, codes=True, source=source)
        page = visit(browser, f"{site.link}&source={source}&invite={code}")
        for name in ("In the south", "Yes", "Never"):
            page.get_by_label(name).check()
        page.locator("button[type=submit]").click()
        page.get_by_role("status").filter(has_text="arrived").wait_for()
        page.context.close()
    page = visit(browser, f"{site.link}&source=list&invite={code}")
    for name in ("In the south", "Yes", "Never"):
        page.get_by_label(name).check()
    page.locator("button[type=submit]").click()
    page.get_by_text("does not accept this invitation").wait_for()
    page.context.close()
    counts = site.services.invites.counts(site.survey)
    assert {source: (one.made, one.used) for source, one in counts.items()} == {
        "class": (1, 1),
        "list": (1, 1),
        "panel": (1, 1),
    }
