# SPDX-License-Identifier: Apache-2.0
"""Content of the folder: figures equal independent ones, nothing else is stated, texts stay texts."""

import csv
import html
import io
import json
import os
import re
from base64 import b64decode
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from frankly_design.requests.verify import verify_json
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.tokens import TokenRule
from frankly_server.evidence import FILES, collect, write_folder
from frankly_server.evidence.content import FILL
from frankly_server.evidence.facts import Facts
from frankly_server.evidence.folder import contents
from frankly_server.evidence.linddun import TYPES

from tests.frankly_protocol.sourced import SOURCED
from tests.frankly_server.evidence.conftest import HOSTILE
from tests.frankly_server.web.site import Site
from tests.refusals import refusal


def nats(ratio: Fraction) -> str:
    """Return ln of a ratio with four decimals, rounded up."""
    value = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    return str(value.quantize(Decimal("0.0001"), rounding=ROUND_CEILING))


def factor(ratio: Fraction) -> str:
    """Return a ratio with two decimals, rounded up."""
    value = Decimal(ratio.numerator) / Decimal(ratio.denominator)
    return str(value.quantize(Decimal("0.01"), rounding=ROUND_CEILING))


def payload(site: Site) -> Any:
    """Return the document as JSON values, as the server sends it."""
    return json.loads(b64decode(site.client.get(site.document_path).get_json()["payload"]))


class Text(HTMLParser):
    """Text and tags of a page, without the style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "style":
            self.tags.append(("/style", {}))
            return
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def test_levels_are_those_of_the_document_rounded_up(site: Site, facts: Facts) -> None:
    ceilings = [Fraction(*block["ceiling"]) for block in payload(site)["blocks"]]
    whole = ceilings[0] * ceilings[1]
    files = contents(facts)
    for name in (
        "index.html",
        "nist_sp_800_226.md",
        "dpia.md",
        "consent.md",
        "participants.md",
        "linddun.md",
    ):
        assert f"×{factor(whole)} ({nats(whole)} nats)" in files[name].decode(), name
    lip = Fraction(*payload(site)["blocks"][1]["claims"][0]["level"])
    line = next(
        line
        for line in files["nist_sp_800_226.md"].decode().splitlines()
        if line.startswith("| drinks")
    )
    assert f"lip about “smoking”: ×{factor(lip)} ({nats(lip)} nats)" in line
    assert f"LDP of the block at ×{factor(ceilings[1])} ({nats(ceilings[1])} nats)" in line
    # The exact value lies just above what a rounding to nearest would show, or is shown exactly.
    assert Decimal(factor(whole)) >= Decimal(whole.numerator) / Decimal(whole.denominator)


def test_state_is_that_of_the_server(site: Site, facts: Facts) -> None:
    audit = site.client.get(f"/v1/surveys/{site.survey}/audit").get_json()
    reports = [version["n"] for version in audit["documents"]]
    text = contents(facts)["access_and_retention.md"].decode()
    assert f"| Released reports of the survey, all versions | {sum(reports)} |" in text
    assert "| Releases of this version so far | 1, the newest at 2026-06-02T00:00:00Z |" in text
    assert (
        "| API keys with the role admin | the same by programs, and counts of released batches | 1 |"
        in text
    )
    key = site.services.access.create("reader", "a guest", surveys=[site.survey])
    shared = contents(collect(site.services, "habits"))["access_and_retention.md"].decode()
    site.services.access.revoke(key[13:21])
    assert "| API keys with the role reader | whoever has this link to the results page" in shared
    assert (
        f"| Reports below which there are no estimates and counts | {payload(site)['min_reports']} |"
        in text
    )


# Numbers of the page's own words: laws, sections, checks, threats, files, a date of the source.
FIXED = re.compile(
    r"\b[CT]\d+\b|docs/\S+|spec \d(\.\d)?|Art\. [0-9()]+( (or|and if needed Art\.) \d+|, \d+)?|35\(7\)|"
    r"SP 800-226|nist_sp_800_226|March 2025|December 2023|\(blind: 1 in|δ = 0"
)
SECTIONS = {"2.2", "2.3", "2.4", "2.5", "2.6", "3.1", "3.2", "3.3.1", "3.3.2", "3.3.3", "3.4", "3.7",
            "4.1", "4.2", "4.3", "4.4", "4.5"}  # fmt: skip


def numbers(page: str) -> set[str]:
    text = re.sub(r"sha256[:=][0-9a-f]{64}|\b[0-9a-f]{32,64}\b", " ", Text(page).text)
    return (
        set(re.findall(r"\d{4}-\d\d-\d\dT[\d:]+Z|\d+(?:\.\d+)*", FIXED.sub(" ", text))) - SECTIONS
    )


def test_every_number_is_one_of_the_document_or_the_state(site: Site, facts: Facts) -> None:
    document = payload(site)
    ceilings = [Fraction(*block["ceiling"]) for block in document["blocks"]]
    claims = [Fraction(*block["claims"][0]["level"]) for block in document["blocks"]]
    secret = facts.level.secrets["smoking"]
    ratios = [*ceilings, *claims, ceilings[0] * ceilings[1], secret.level, secret.odds, Fraction(1)]
    derived = {text(ratio) for ratio in ratios if ratio for text in (nats, factor)}
    guesses = set()
    for block in document["blocks"]:
        best = sum(max(column) for column in zip(*block["weights"], strict=True))
        share = Decimal(best) / Decimal(sum(map(sum, block["weights"])))
        guesses.add(str(share.quantize(Decimal("0.001"), rounding=ROUND_CEILING)))
    state = {
        facts.state.made,
        "2026-06-02T00:00:00Z",
        "12",
        "1",
        "0",
        str(facts.document.report_length),
    }
    times = {document[name] for name in ("issued", "opens", "closes")}
    declared = {str(document[name]) for name in ("min_reports", "release_step", "version")}
    counts = {"2", "3", "5"}  # questions and choices; the default cap of a device
    page = contents(facts)["index.html"].decode()
    open_count = set(re.findall(r"Open points: (\d+)|\((\d+)\): ", page))
    opened = {number for pair in open_count for number in pair if number}
    # The server's address is in the document.
    page = page.replace(document["collect_url"].partition("/v1/")[0], "")
    unknown = numbers(page) - derived - guesses - state - times - declared - counts - opened
    assert not unknown
    # The check itself finds a number that nobody computed.
    assert "41.99" in numbers(page.replace("<h1>", "<h1>×41.99 "))


def test_open_points_are_counted_and_listed_once(facts: Facts) -> None:
    files = contents(facts)
    listed = list(csv.reader(io.StringIO(files["open_points.csv"].decode("utf-8-sig"))))[1:]
    assert files["open_points.csv"].startswith(b"\xef\xbb\xbf")  # so that Excel reads UTF-8
    page = Text(files["index.html"].decode()).text
    assert f"Open points: {len(listed)}" in page
    # Once per point, and once where the page explains the mark.
    assert page.count(FILL) == len(listed) + 1
    for part, about in listed:
        name = "registry.yaml" if part == "registry" else f"{part}.md"
        assert f"{FILL}: {about}" in files[name].decode().replace("\\", "")
    marked = sum(
        files[name].decode().count(FILL) for name in FILES if name.endswith((".md", ".yaml"))
    )
    assert marked == len(listed)


def test_the_page_has_no_script_and_loads_nothing(public_facts: Facts) -> None:
    page = contents(public_facts)["index.html"].decode()
    tags = Text(page).tags
    assert {tag for tag, _ in tags}.isdisjoint(
        {"script", "link", "img", "iframe", "object", "form"}
    )
    links = [
        value
        for _, attributes in tags
        for name, value in attributes.items()
        if name in ("href", "src")
    ]
    assert links
    assert all(link is not None and link.startswith("#") for link in links)
    assert not re.search(r"url\(|@import", page)
    assert [
        value
        for _, attributes in tags
        for name, value in attributes.items()
        if name.startswith("on")
    ] == []


def test_hostile_texts_stay_texts(public_facts: Facts) -> None:
    title = public_facts.title
    assert "<script>" in title
    files = contents(public_facts)
    page = files["index.html"].decode()
    assert html.escape(title, quote=False).replace("&#x27;", "'") in page.replace("&#39;", "'")
    for name in FILES:
        text = files[name].decode()
        assert "<script" not in text or name.endswith(".csv"), name
        assert "49" not in re.findall(r"\b49\b", text), name
    for name in ("dpia.md", "consent.md", "participants.md"):
        text = files[name].decode()
        # No character of the title acts as Markdown.
        assert not re.search(r"(?<!\\)\[x", text)
        assert not re.search(r"(?<!\\)`c", text)
        assert not re.search(r"(?<!\\)\| d \\\$", text)


def test_public_answers_are_named_as_unprotected(public_facts: Facts) -> None:
    files = contents(public_facts)
    assert (
        "| Where do you live? | North / South | unchanged, as a public answer |"
        in files["participants.md"].decode()
    )
    assert "My answers to these public questions are sent as I give them: Where do you live?" in (
        files["consent.md"].decode()
    )
    assert "Given the public answers, from the whole report" in files["consent.md"].decode()
    assert HOSTILE.split()[0] in public_facts.title


def test_the_instructed_item_is_named_as_unprotected(public_facts: Facts) -> None:
    files = contents(public_facts)
    said = "the report says whether it was made, not which one was"
    for name, words in (
        ("participants.md", "One / Two | only whether the choice it asks for was made |"),
        ("participants.md", "whether you passed the item"),
        ("participants.md", said),
        ("consent.md", said),
        ("linddun.md", "was answered as it asks; which other choice was made is not sent"),
        ("nist_sp_800_226.md", "was answered as it asks; which other choice was made is not sent"),
    ):
        assert words in files[name].decode(), name
    assert "was answered as it asks" in files["registry.yaml"].decode()


def test_an_invitation_is_named_where_reports_are_said_not_to_be_linked(facts: Facts) -> None:
    document = replace(facts.document, token=TokenRule("invite"))
    files = contents(replace(facts, document=document))
    assert not any(b"not linked to anybody" in data for data in files.values())
    for name in ("consent.md", "participants.md"):
        text = files[name].decode()
        assert "whoever handed it out and reads arriving reports can tell" in text
    assert "whose randomised symbols they are" in files["linddun.md"].decode()


def test_the_evidence_of_mixed_sources_holds_for_people_of_each(facts: Facts) -> None:
    """Those with a blind token must not read that somebody can tell which report is theirs."""
    document = replace(facts.document, strata=SOURCED.strata, token=SOURCED.token)
    files = contents(replace(facts, document=document))
    assert not any(b"not linked to anybody" in data for data in files.values())
    for name in ("consent.md", "participants.md"):
        text = files[name].decode()
        assert (
            "If it is a code that the makers of this survey gave out, whoever handed it out" in text
        )
        assert "it does not show whom it was given to" in text
        assert "Your invitation is sent" not in text
    linddun = files["linddun.md"].decode()
    assert "Whoever handed out an invitation" in linddun
    assert "signed blindly does not show whom it was given to" in linddun
    assert "only an invitation can link it to a person" in files["dpia.md"].decode()


def test_linddun_has_a_row_for_each_of_the_seven_types(facts: Facts) -> None:
    rows = list(csv.reader(io.StringIO(contents(facts)["linddun.csv"].decode("utf-8-sig"))))
    assert [row[0] for row in rows[1:]] == list(TYPES)
    assert len(rows[1:]) == 7
    assert all(cell for row in rows for cell in row)


def test_every_check_that_a_part_names_exists(site: Site, facts: Facts) -> None:
    files = contents(facts)
    listed = set(re.findall(r"^\| (C\d+) ", files["checks.md"].decode(), re.MULTILINE))
    named = set(
        re.findall(r"\bC\d+\b", files["nist_sp_800_226.md"].decode() + files["dpia.md"].decode())
    )
    assert named <= listed
    assert len(listed) == 8
    # The level on the page is what the command of C2 prints for the document of C1.
    envelope = site.client.get(site.document_path).get_json()
    printed = verify_json(envelope)["report"]["answers"]["odds"]
    assert f"({printed} nats)" in files["consent.md"].decode()


@pytest.mark.parametrize(("witnesses", "threshold"), [(None, None), (0, 0), (3, 2)])
def test_a_proof_is_checked_only_if_the_log_has_witnesses(
    facts: Facts, witnesses: int | None, threshold: int | None
) -> None:
    state = replace(facts.state, witnesses=witnesses, witness_threshold=threshold)
    files = contents(replace(facts, state=state))
    assert ("--proof" in files["checks.md"].decode()) is bool(threshold)
    words = {
        None: "There is no transparency log",
        0: "it has no witnesses",
        3: "signatures of 2 of 3 witness",
    }
    assert words[witnesses] in files["linddun.md"].decode()


def test_withdrawal_is_excluded_in_the_words_for_participants(facts: Facts) -> None:
    for name in ("consent.md", "participants.md"):
        assert "Once sent, your answer cannot be withdrawn" in contents(facts)[name].decode()


def test_a_document_that_the_publishers_did_not_sign_is_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    envelope = json.loads(site.services.surveys.envelope(site.survey))
    envelope["signatures"][0]["sig"] = "A" * 86 + "=="
    forged = json.dumps(envelope).encode()
    monkeypatch.setattr(site.services.surveys, "envelope", lambda _: forged)
    assert refusal(DocumentRejected, collect, site.services, "habits").field == "signatures"


def test_files_are_written_into_a_new_or_an_empty_folder(tmp_path: Path, facts: Facts) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        written = write_folder(tmp_path / name, facts)
        assert [path.name for path in written] == list(FILES)
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == sorted(FILES)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "new"]


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_failing_disk_leaves_nothing(
    tmp_path: Path, facts: Facts, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync", fail) if step == "fsync" else (Path, "rename", fail)))
    with pytest.raises(OSError, match="No space") as failed:
        write_folder(tmp_path / "out", facts)
    assert failed.value.filename == str(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_file_put_into_the_folder_meanwhile_is_kept(
    tmp_path: Path, facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    rename = Path.rename

    def late(path: Path, target: Path) -> Path:
        (target / "mine.txt").write_text("mine")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", late)
    assert refusal(InvalidInput, write_folder, tmp_path / "out", facts).field == "out"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_document_whose_promise_does_not_hold_is_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: SurveyDocument) -> None:
        raise DocumentRejected("privacy", "the level is exceeded", "blocks[0].claims[0].level")

    monkeypatch.setattr(SurveyDocument, "require_private", refuse)
    with pytest.raises(DocumentRejected, match="exceeded"):
        collect(site.services, "habits")
