# SPDX-License-Identifier: Apache-2.0
"""Device rules of the browser SDK: respondents, persistent storage, and hosts that accept reports."""

from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.sdk.servers import FIRST, JSON, SURVEY, UNPINNED, Server, answered, opened
from tests.browser.sdk.wire import Wire
from tests.frankly_protocol.samples import sealed


@pytest.fixture
def ours(wire: Wire) -> Server:
    return Server(wire, "ours")


# Spellings of one respondent's key.
SPELLINGS = ["Zoé", " Zoé", "Zoé\t", "Zoe\u0301", "\u00a0Zoe\u0301 "]


def test_keys_of_respondents_that_look_the_same_are_one(page: Page, ours: Server) -> None:
    assert opened(page, ours, ours.show(FIRST)) is None
    statuses = [answered(page, respondent=key) for key in (*SPELLINGS, "zoé", "Zoe", "Zo é")]
    assert statuses == ["sent", *["already_answered"] * 4, *["sent"] * 3]


def test_a_key_stored_before_normalisation_is_still_known(page: Page, ours: Server) -> None:
    """Before the SDK normalised keys, each spelling had a separate ledger."""
    assert opened(page, ours, ours.show(FIRST)) is None
    assert answered(page, respondent="Zoé") == "sent"
    respell = """async () => {
      const {hex, bytesOf} = await import("/sdk/canonical.js"), [row] = await client.store.all("answers");
      const survey = "cd".repeat(16);
      const salt = await client.store.get("salt", 0);
      const key = await crypto.subtle.importKey("raw", salt, {name: "HMAC", hash: "SHA-256"}, false, ["sign"]);
      const name = hex(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytesOf(" Zoé"))));
      await client.store.change("answers", [name, row.chain, survey], () => ({...row, respondent: name, survey}));
    }"""
    page.evaluate(respell)
    assert opened(page, ours, ours.show(FIRST, "cd" * 16)) is None
    assert answered(page, respondent=" Zoé") == "already_answered"
    spent = """async (key) => {
      const names = await client.store.respondentNames(key);
      return (await client.store.spent(names)).length;
    }"""
    assert page.evaluate(spent, " Zoé") == 2
    assert page.evaluate(spent, "Zoé") == 1


@pytest.mark.parametrize(
    ("key", "code"), [(" ", "field_missing"), ("\t\u00a0", "field_missing"), (7, "field_type")]
)
def test_an_empty_or_invalid_respondent_key_is_refused(
    page: Page, ours: Server, key: Any, code: str
) -> None:
    assert opened(page, ours, ours.show(FIRST)) is None
    assert answered(page, respondent=key) == code
    assert ours.wire.posted == []


# Name -> behaviour of navigator.storage.persist().
PERSIST = {
    "granted": "() => Promise.resolve(true)",
    "denied": "() => Promise.resolve(false)",
    "rejected": "() => Promise.reject(new TypeError())",
    "thrown": "() => { throw new TypeError(); }",
    "never answered": "() => new Promise(() => {})",
    "no promise": "() => undefined",
}


@pytest.mark.parametrize("name", PERSIST)
def test_the_first_seal_requests_persistent_storage_without_waiting(
    page: Page, ours: Server, name: str
) -> None:
    page.evaluate(
        f"""() => {{
          window.asked = 0;
          const said = {PERSIST[name]};
          navigator.storage.persist = () => {{ window.asked++; return said(); }};
        }}"""
    )
    assert opened(page, ours, ours.show(FIRST)) is None
    assert page.evaluate("asked") == 0
    assert answered(page) == "sent"
    assert page.evaluate("asked") == 1
    assert opened(page, ours, ours.show(FIRST, "cd" * 16)) is None
    assert answered(page) == "sent"
    assert page.evaluate("asked") == 1


def test_a_browser_without_persistent_storage_seals_too(page: Page, ours: Server) -> None:
    page.evaluate("Object.defineProperty(navigator, 'storage', {value: undefined})")
    assert opened(page, ours, ours.show(FIRST)) is None
    assert answered(page) == "sent"


# (collect URL, hosts that the app allows) -> the code; the link's host is ours.example.
COLLECTORS: list[tuple[str, list[str], str | None]] = [
    ("https://ours.example/in", [], None),
    ("https://ours.example:8443/in", [], None),
    ("https://OURS.example/in", [], None),
    ("https://other.example/in", [], "document_host"),
    ("https://other.example/in", ["other.example"], None),
    ("https://other.example/in", ["example", "a.other.example"], "document_host"),
    ("https://a.ours.example/in", [], "document_host"),
    ("http://ours.example/in", [], "insecure_transport"),
    ("http://127.0.0.1:9200/_bulk?x=1", [], "insecure_transport"),
    ("http://127.0.0.1:9200/in", ["127.0.0.1", "127.0.0.1:9200"], "insecure_transport"),
    ("https://localhost/in", ["localhost"], "insecure_transport"),
    ("http://[::1]:9200/in", ["[::1]"], "insecure_transport"),
]


@pytest.mark.parametrize(("address", "hosts", "code"), COLLECTORS)
def test_reports_go_to_the_links_host_or_one_the_app_names(
    page: Page, ours: Server, address: str, hosts: list[str], code: str | None
) -> None:
    link = ours.show(FIRST)
    document = replace(FIRST, collect_url=address)
    ours.put(f"/v1/surveys/{SURVEY}/document", JSON, sealed(document.payload()))
    assert opened(page, ours, link, UNPINNED | {"collectHosts": hosts}) == code
