# SPDX-License-Identifier: Apache-2.0
"""Error texts by key: every key has a text, every text is used, and no text repeats an answer."""

import re

import pytest
from playwright.sync_api import Page

from tests.browser.sdk.wire import FOLDERS

pytestmark = pytest.mark.usefixtures("shared_page")
CODE = {path.name: path.read_text("utf-8") for path in FOLDERS["src"].glob("*.js")}
TEXTS = CODE.pop("texts.js")
KEYS = set(re.findall(r"^  (\w+): ", TEXTS, re.MULTILINE))
MAKES = (
    "InvalidInput DocumentRejected UnsupportedDocument ClockError RollbackDetected Equivocation KeyChainError LogError "
    "LinkError InsecureTransport PolicyRefused UnknownChoice NetworkError"
)
ASKS = "reject fault refuse bad matching receiptOf queued"
ONE_LINE = re.compile(
    rf"(?:new (?:{MAKES.replace(' ', '|')})|\b(?:{ASKS.replace(' ', '|')}))\(([^;]*)"
)
# Literals that look like keys but name protocol terms, modules or browser features.
OTHERS = set(
    "low_level lower_bounds design_prior collect_url min_reports delta_cap max_ceiling eps_out_of_range eps_not_finite "
    "eps_format field_type field_missing final_surveys token_invalid insecure_transport unknown_choice too_early "
    "no_receipt content_type work_limit strata_invalid".split()
)


def test_every_text_is_used() -> None:
    literals = set(re.findall(r'"(\w+)"', "".join(CODE.values())))
    assert KEYS - literals == set()
    assert len(KEYS) > 110


def test_every_key_has_a_text(page: Page) -> None:
    """A key is a literal with an underscore among an error's arguments."""
    thrown = [match for content in CODE.values() for match in ONE_LINE.findall(content)]
    keys_used = {
        word
        for arguments in thrown
        for word in re.findall(r'"([a-z0-9]+(?:_[a-z0-9]+)+)"', arguments)
    } - OTHERS
    assert len(keys_used) > 80
    assert keys_used - KEYS == set()
    texts_shown = page.evaluate(
        """async (keys) => {
          const [{inWords}, {rational}] = await Promise.all([import("/sdk/texts.js"), import("/sdk/rational.js")]);
          const ratio = rational(3, 2), figures = [ratio, "1", ratio, "0"];
          const values = {final: figures, budget: figures, budget_delta: [ratio, "0"], ceiling: [ratio]};
          values.no_answer = values.fields = [["a"]];
          values.cap = [null, null, ...figures];
          values.composition = ["one_prior_counts", "a", ...figures];
          values.unknown_name = ["kind"];
          values.text_part = [["a", "b"]];
          values.text_braces = [["{a}"]];
          const refusals = ["no_answers", "answer_no_text", "answer_no_number", "no_choice", "no_question",
            "below_ranges", "no_box_list", "no_box", "boxes_twice", "box_beside_others"];
          for (const key of refusals) values[key] = [["a", "b"]];
          return keys.map((key) => inWords([key, ...(values[key] ?? [1, 2, 3, 4, 5])]));
        }""",
        sorted(KEYS),
    )
    assert [
        text
        for text in texts_shown
        if not isinstance(text, str) or "undefined" in text or " " not in text
    ] == []


REASON = """async ([kind, args, language]) => {
  const [errors, { reasonOf }, { strings }] = await Promise.all(
    ["errors", "reasons", `words.${language}`].map((name) => import(`/sdk/${name}.js`)));
  return reasonOf(new errors[kind](...args), strings, language);
}"""


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_wrong_clock_is_no_bad_survey(page: Page, language: str) -> None:
    """Its code is that of documents that fail the checks; so is that of a page without https one of bad links."""
    for kind, args in (
        ("ClockError", ["expires", "keys_window", 10**12, 10**12 + 1, 0]),
        ("InsecureTransport", ["page", "insecure_page"]),
        ("DocumentRejected", ["type", "payloadType", "payload_type", "x"]),
    ):
        assert page.evaluate(REASON, [kind, args, language]) == ""
    assert page.evaluate(REASON, ["DocumentRejected", ["schema", "v", "expected", "x"], language])
