# SPDX-License-Identifier: Apache-2.0
"""The table of final codes is the same in the protocol, both SDKs, the vectors and the conformance suite."""

import json
import re
from pathlib import Path

import pytest
from frankly_protocol.problems import FINAL

from tests.conformance import test_answers as suite
from tests.vectors import from_replies, second_answers

ROOT = Path(__file__).resolve().parents[2]
OURS = {(problem.status, problem.code) for problem in FINAL}


def of_protocol() -> set[tuple[int, str]]:
    page = (ROOT / "docs" / "protocol.md").read_text("utf-8")
    table = page.partition("| status | final codes |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (\d{3}) \| (.*) \|$", table, re.MULTILINE)
    return {(int(status), code) for status, codes in rows for code in re.findall(r"`(\w+)`", codes)}


def of_browser() -> set[tuple[int, str]]:
    source = (ROOT / "client_sdk" / "browser" / "src" / "problems.js").read_text("utf-8")
    table = source.partition("export const FINAL = {")[2].partition("};")[0]
    rows = re.findall(r'(\d{3}): "([a-z_ ]+)"', table)
    return {(int(status), code) for status, codes in rows for code in codes.split()}


def of_vectors() -> set[tuple[int, str]]:
    cases = json.loads((ROOT / "tests" / "vectors" / "replies.json").read_text("ascii"))["cases"]
    return {(case["status"], case["before"][1]) for case in cases if case["before"][0] == "refused"}


@pytest.mark.parametrize("table", [of_protocol, of_browser, of_vectors])
def test_the_table_is_the_same_everywhere(table: object) -> None:
    assert table() == OURS  # type: ignore[operator]


def test_the_suite_and_the_second_implementation_have_the_same_table() -> None:
    assert {(status, code) for code, status in suite.FINAL.items()} == OURS
    second = second_answers.FINAL.items()
    assert {(status, code) for status, codes in second for code in codes} == OURS


def test_later_codes_are_stated_and_not_final() -> None:
    later = {problem.code for problem in from_replies.LATER}
    assert not later & {code for _, code in OURS}
    assert suite.LATER.keys() - {"a_code_of_the_future"} <= later
    page = (ROOT / "docs" / "protocol.md").read_text("utf-8")
    stated = page.partition("After anything else")[2].partition("Reports are tried")[0]
    codes = set(re.findall(r"`(\w+)`", stated))
    assert {"json_invalid", "survey_unknown", "token_invalid"} <= codes <= later
