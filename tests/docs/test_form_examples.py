# SPDX-License-Identifier: Apache-2.0
"""Section "A form" of docs/design.md: every example with its figures, every key, every fault."""

import json
import re
import time
from fractions import Fraction
from typing import Any

import pytest
from frankly_design.requests.design import design_json
from frankly_design.requests.design_form import FormFields, FormQuestionFields
from frankly_protocol.audit import Claim, level_for, require_private
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import AgreementMechanism

from tests.docs.test_design_examples import GUIDE, ROOT, design

FOLDER = ROOT / "docs" / "examples" / "design" / "forms"
SECTION = GUIDE.split("\n## A form\n")[1].split("\n## ")[0]
(_BLOCK,) = re.findall(r"^```json\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
REQUEST: dict[str, Any] = json.loads(_BLOCK)


def table(first: str) -> list[list[str]]:
    """Return the cells of the section's table whose header begins with `first`."""
    below = SECTION.split(f"\n| {first} |")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in below.splitlines()[2:]]


@pytest.mark.parametrize("row", table("file"), ids=lambda row: row[0])
def test_an_example_has_the_figures_of_the_table_and_keeps_its_level(row: list[str]) -> None:
    (link,) = re.findall(r"\((\S+)\)", row[0])
    data = (ROOT / "docs" / link).read_bytes()
    answer = design_json(parse_json(data, decimals=True), time.monotonic)
    compared = ("few_questions", "one_question", "separate_blocks")
    figures = (answer["value"], *(answer[name]["value"] for name in compared))
    assert figures == pytest.approx(tuple(map(float, row[2:])), rel=1e-4)
    mechanism = AgreementMechanism.from_params(answer["params"])
    require_private(
        mechanism, Claim("ldp", level_for(Fraction(json.loads(data)["form"]["epsilon"])))
    )


def test_every_example_is_in_the_table() -> None:
    linked = {re.findall(r"\((\S+)\)", row[0])[0] for row in table("file")}
    assert linked == {file.relative_to(ROOT / "docs").as_posix() for file in FOLDER.glob("*.json")}


def test_the_guide_names_every_key() -> None:
    named = {key for row in table("key of `form`") for key in re.findall(r"`(\w+)`", row[0])}
    assert named == set(FormFields.model_fields) | set(FormQuestionFields.model_fields)
    answer = design(REQUEST)
    told = {key for row in table("key of the response") for key in re.findall(r"`(\w+)`", row[0])}
    assert told == set(answer)
    assert set(answer["questions"][0]) == {"variance", "shown"}
    assert set(answer["cross_tables"][0]) == {"questions", "variance", "shown"}


@pytest.mark.parametrize("row", table("form has"), ids=lambda row: row[0])
def test_invalid_forms_are_refused_as_the_guide_says(row: list[str]) -> None:
    change, code, field, _ = row
    with pytest.raises(InvalidInput) as caught:
        design({"form": {**REQUEST["form"], **json.loads(change.strip("`"))}})
    assert (caught.value.code, caught.value.field) == (code.strip("`"), field.strip("`"))


def test_the_decision_states_the_same_figures() -> None:
    """It rounds the table's figures for ten questions with five choices."""
    page = ROOT / "docs" / "adr" / "0026-one-level-for-a-whole-form.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    (row,) = (row for row in table("file") if "ten-questions" in row[0])
    assert all(f"{float(cell):,.0f}" in text for cell in (row[2], row[5]))
