# SPDX-License-Identifier: Apache-2.0
"""Codebooks: every variable and choice of the document, in HTML, CSV and DDI, and from the command."""

import base64
import csv
import io
import json
from contextlib import closing
from dataclasses import replace
from html.parser import HTMLParser
from math import ceil, log
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from frankly_analyst import Analyst, Codebook, InvalidRequest, Unreachable
from frankly_protocol.audit import Claim
from frankly_protocol.blocks import Choice, Question
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.promises import Promise
from frankly_server.cli import front

from tests.contract.test_arms import FILE as ARMS
from tests.frankly_analyst.conftest import Served
from tests.frankly_protocol.every_kind import block, form_block
from tests.frankly_protocol.samples import ldp_block, question, sealed, survey
from tests.frankly_server.web.site import make_site

NASTY = "<script>alert(1)</script> & \"quotes\" 'so'"
DDI = "{ddi:codebook:2_5}"


def _document() -> SurveyDocument:
    first = ldp_block("weight")
    scaled = Question(
        "weight",
        {"en": NASTY},
        (
            Choice("no", {"en": "=1+1"}, low=0),
            Choice("prefer-not", {"en": NASTY}, role="no_answer"),
        ),
    )
    blocks = (replace(first, questions=(scaled,)), block("unary", "lip", "ldp"), form_block())
    return replace(
        survey(*blocks), strata=(question("region", "north", "south"),), title={"en": NASTY}
    )


@pytest.fixture(scope="module")
def book() -> Codebook:
    return Codebook.from_envelope(json.loads(sealed(_document().payload())))


def _expected() -> list[tuple[str, str, int]]:
    document = _document()
    questions = [q for b in document.blocks for q in b.questions] + list(document.strata)
    return [(q.id, c.id, i) for q in questions for i, c in enumerate(q.choices, start=1)]


def test_every_choice_is_a_line_of_the_csv(book: Codebook) -> None:
    lines = list(csv.DictReader(io.StringIO(book.to_csv())))
    assert [(line["variable"], line["choice"], int(line["value"])) for line in lines] == _expected()
    assert lines[0]["label"] == "'=1+1"  # a spreadsheet must not evaluate the label
    assert (lines[0]["from"], lines[1]["role"]) == ("0", "no_answer")
    assert {line["kind"] for line in lines if line["variable"] == "region"} == {"public"}
    assert book.digest == _document().digest


def test_promises_equal_those_of_the_document_in_nats(book: Codebook) -> None:
    by_name = {v.name: v for v in book}
    for one in _document().blocks:
        for question_ in one.questions:
            variable = by_name[question_.id]
            levels = [p.claim.level for p in one.promises]
            assert variable.promise == "; ".join(
                f"{p.claim.notion} level {ceil(log(n / d) * 10_000) / 10_000:.4f}"
                for p, (n, d) in zip(one.promises, levels, strict=True)
            )
            assert one.ceiling is not None
            assert variable.ceiling == f"{ceil(log(one.ceiling) * 10_000) / 10_000:.4f}"
            assert (variable.block, variable.mechanism) == (one.id, one.mechanism_name)
    assert (by_name["region"].promise, by_name["region"].ceiling) == ("", "")


@pytest.mark.parametrize(
    ("claim", "promise"),
    [
        (Claim("dp", (2, 1), delta=(1, 2)), "dp level 0.6932 δ 0.5"),
        (Claim("dp", (2**53 - 1, 1), delta=(1, 3000)), "dp level 36.7369 δ 0.0003334"),
        (
            Claim("metric-ldp", (2, 1), levels=((None, (2, 1)), ((3, 2), None))),
            "metric-ldp level 1.0987 to 1.3863 by pair of answers",
        ),
        (
            Claim("metric-ldp", (3, 1), levels=((None, (1, 1)), (None, None))),
            "metric-ldp level 1.0987 to 1.0987 by pair of answers, none for 1 of 2 pairs",
        ),
    ],
)
def test_a_promise_has_every_number_of_its_claim(claim: Claim, promise: str) -> None:
    one = replace(ldp_block("weight"), promises=(Promise(claim),))
    envelope = json.loads(sealed(survey(one).payload()))
    (variable,) = Codebook.from_envelope(envelope)
    assert variable.promise == promise


def test_variables_of_one_name_say_which_arm_asks_them(tmp_path: Path) -> None:
    survey = ARMS.replace(b"name: split", b"name: habits")
    made = make_site(tmp_path / "home", f"sqlite:///{tmp_path / 'frankly.db'}", survey)
    with closing(made.services):
        envelope = made.services.surveys.envelope(made.survey)
    book = Codebook.from_envelope(json.loads(envelope))
    twins = [(v.kind, v.arms, v.label) for v in book if v.name == "paid"]
    assert sorted(twins) == [
        ("public", ("clear",), "Paid cash? (arm clear)"),
        ("randomised", ("strong",), "Did you pay in cash? (arm strong)"),
        ("randomised", ("weak",), "Did you pay anybody in cash? (arm weak)"),
    ]
    # What every arm asks names none.
    assert {v.label for v in book if not v.arms} == {"Do you have a car?", "Where?"}
    lines = {line["text"] for line in csv.DictReader(io.StringIO(book.to_csv()))}
    assert lines == {v.label for v in book}
    page, root = _Page(), ET.fromstring(book.to_ddi())
    page.feed(book.to_html())
    assert page.links == [f"#{name}" for name in page.ids]
    assert len(set(page.ids)) == len(book)
    variables = list(root.iter(DDI + "var"))
    assert len({one.get("ID") for one in variables}) == len(book)
    assert {one.findtext(DDI + "labl") for one in variables} == lines


class _Page(HTMLParser):
    """Start tags, ids, internal links and text of a page; tags must be properly nested and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name == "href":
                self.links.append(str(value))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_plain_and_complete(book: Codebook) -> None:
    page = _Page()
    page.feed(book.to_html())
    assert page.open == []
    assert "script" not in page.tags
    assert page.links == [f"#{name}" for name in page.ids]
    assert page.tags.count("section") == len(book) == len(set(page.ids))
    assert page.tags.count("tr") == len(book) + len(_expected())
    assert page.text.count(NASTY) == 5  # twice in titles, twice in the question, once in a label
    assert 'lang="en"' in book.to_html()


def test_ddi_has_every_variable_and_category(book: Codebook) -> None:
    root = ET.fromstring(book.to_ddi())
    assert (root.tag, root.get("version")) == (DDI + "codeBook", "2.5")
    found = [
        (variable.get("name"), label, int(value))
        for variable in root.iter(DDI + "var")
        for category in variable.iter(DDI + "catgry")
        for label, value in [
            (category.findtext(DDI + "labl"), str(category.findtext(DDI + "catValu")))
        ]
    ]
    labels = {(v.name, c.value): c.label for v in book for c in v.categories}
    assert found == [(name, labels[name, value], value) for name, _, value in _expected()]
    assert root.findtext(f"{DDI}stdyDscr/{DDI}citation/{DDI}titlStmt/{DDI}titl") == NASTY
    order = [child.tag.removeprefix(DDI) for child in next(root.iter(DDI + "var"))]
    assert order == ["labl", "qstn", "catgry", "catgry", "notes"]  # the schema's order


def test_text_and_notebook_view_name_every_choice(book: Codebook) -> None:
    for name, choice, _ in _expected():
        assert name in str(book)
        assert choice in book._repr_html_()


def test_the_client_and_the_command_write_the_same_files(
    served: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    book = Analyst(served.url, served.site.analyst_key).codebook("habits", "xx")
    assert [v.name for v in book] == ["smokes", "drinks", "region"]
    assert book.digest == served.site.digest
    files = book.write(tmp_path / "a" / "b")
    monkeypatch.setenv("FRANKLY_API_KEY", served.site.analyst_key)
    out = tmp_path / "command"
    assert front.run(["codebook", "habits", "--url", served.url, "--out", str(out), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["files"]
    assert [Path(name).read_bytes() for name in written] == [path.read_bytes() for path in files]
    with pytest.raises(InvalidRequest, match="cannot be written"):
        book.write(files[0])
    assert front.run(["codebook", "nothing", "--url", served.url, "--out", str(out)]) == 3


@pytest.mark.parametrize(
    "envelope",
    [{}, {"payload": "?"}, {"payload": base64.b64encode(b"[]").decode()}, {"payload": 3}, []],
    ids=str,
)
def test_invalid_documents_have_no_codebook(
    served: Served, envelope: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyst = Analyst(served.url, served.site.analyst_key)
    monkeypatch.setattr(analyst, "_ask", lambda *_: envelope)
    with pytest.raises(Unreachable, match="not from a Frankly server"):
        analyst.codebook("0" * 32)
