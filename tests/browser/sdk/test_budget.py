# SPDX-License-Identifier: Apache-2.0
"""Ledger previews, final surveys and strata in a browser: figures and refusals equal those of the
Python SDK."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_sdk import Policy, PolicyRefused
from playwright.sync_api import Page

from tests.browser.sdk.reports import BUDGET
from tests.browser.sdk.wire import Wire
from tests.frankly_protocol.samples import NOW, dp_block, ldp_block, lip_block, survey
from tests.frankly_sdk.fakes import FakeServer, payable_survey
from tests.frankly_sdk.test_budget import LEAKY, Person, stratified_survey, xor_survey

AT = int(NOW.timestamp() * 1000)
VISIT = """async ([link, at, policy, answer]) => {
  const {withSeams} = await import("/sdk/testing.js");
  const {Client} = await import("/sdk/index.js"), results = [];
  const look = async (client) => {
    const budget = await client.budget(), {toString: _, ...figures} = budget;
    results.push({figures, words: String(budget), explanation: String(client.explain("en", budget))});
  };
  try {
    const client = await Client.open(link, withSeams({spreadMs: 0, policy}, {now: () => at}));
    await look(client);
    if (answer) {
      results.push((await client.answer(answer.choices, {strata: answer.strata})).status);
      await look(client);
    }
    client.close();
  } catch (error) {
    if (!error.code) throw error;
    results.push([error.code, error.field, error.detail]);
  }
  return results;
}"""


def in_python(
    store: Path, document: SurveyDocument, link: str, policy: Policy, answer: dict[str, Any] | None
) -> list[Any]:
    """Visit with the Python SDK; return the budgets and receipts, or the refusal."""
    results: list[Any] = []
    try:
        with FakeServer(document=document).open(store, link=link, policy=policy) as client:

            def look() -> None:
                budget = client.budget()
                figures = {BUDGET.get(name, name): value for name, value in asdict(budget).items()}
                explanation = str(client.survey.explain("en", budget))
                results.append(
                    {"figures": figures, "words": str(budget), "explanation": explanation}
                )

            look()
            if answer is not None:
                results.append(client.answer(answer["choices"], strata=answer["strata"]).status)
                look()
    except PolicyRefused as error:
        results.append(
            [error.code, error.field, error.detail.replace("final_surveys", "finalSurveys")]
        )
    return results


def visit_with_both(
    page: Page,
    wire: Wire,
    store: Path,
    document: SurveyDocument,
    *,
    final: bool = False,
    **answer: str,
) -> list[Any]:
    """Visit a survey with both SDKs at a cap of 4 nats, and answer it if `answer` is set; return
    the equal results."""
    link = wire.publish(document, document.survey)
    served = wire.documents[document.survey]
    public = {name: value for name, value in answer.items() if name == "region"}
    private = {name: value for name, value in answer.items() if name not in public}
    choices = {"choices": private, "strata": public} if answer else None
    names = [document.survey] if final else []
    results = page.evaluate(
        VISIT, [link, AT, {"cap": "4", "deltaCap": "0.000001", "finalSurveys": names}, choices]
    )
    policy = Policy(cap="4", delta_cap="0.000001", final_surveys=tuple(names))
    assert results == in_python(store, served, link, policy, choices)
    return results


def numbered(i: int, document: SurveyDocument) -> SurveyDocument:
    return replace(document, survey=f"{i:032x}")


def test_the_figures_shown_are_the_figures_charged(page: Page, wire: Wire, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    (before, status, after) = visit_with_both(
        page, wire, store, numbered(1, payable_survey()), affair="yes", marriage="good"
    )
    assert status == "sent"
    assert before["figures"]["leftAfter"] == after["figures"]["left"] == "1.9013"
    assert before["words"] in before["explanation"]
    (before, _, after) = visit_with_both(
        page, wire, store, numbered(2, survey(dp_block("q"))), q="no"
    )
    assert before["figures"]["delta"] != "0"
    (before,) = visit_with_both(page, wire, store, numbered(3, survey(ldp_block(epsilon="0.5"))))
    assert before["figures"]["left"] == after["figures"]["left"] == "0.9013"
    (refused,) = visit_with_both(page, wire, store, numbered(4, survey(ldp_block(epsilon="1"))))
    assert refused[0] == "policy_budget"


def test_a_survey_that_would_use_up_the_budget_for_ever_is_refused_unless_it_is_named(
    page: Page, wire: Wire, tmp_path: Path
) -> None:
    store, endless = tmp_path / "s.db", survey(lip_block("q"))
    (refused,) = visit_with_both(page, wire, store, endless)
    assert refused[:2] == ["policy_final", "blocks"]
    (before, status, after) = visit_with_both(page, wire, store, endless, final=True, q="good")
    assert (before["figures"]["cost"], before["figures"]["isFinal"], status) == (
        "inf",
        True,
        "sent",
    )
    assert (after["figures"]["left"], after["figures"]["isAnswered"]) == ("0.0000", True)
    (refused,) = visit_with_both(page, wire, store, numbered(2, survey(ldp_block(epsilon="0.01"))))
    assert refused[0] == "policy_budget"
    (refused,) = visit_with_both(page, wire, store, numbered(3, survey(lip_block("q"))), final=True)
    assert "must be answered before any other survey" in refused[2]


def test_a_promise_that_public_answers_undo_is_refused_also_when_pinned_and_named(
    page: Page, wire: Wire, tmp_path: Path
) -> None:
    """With S = X xor Z, every published table is correct, but the report reveals everything."""
    for final in (False, True):
        (refused,) = visit_with_both(page, wire, tmp_path / "s.db", xor_survey(), final=final)
        assert refused[:2] == ["policy_composition", "blocks"]
        assert "counts for every stratum" in refused[2]


def test_with_a_prior_for_each_stratum_a_survey_is_accepted(
    page: Page, wire: Wire, tmp_path: Path
) -> None:
    mild = [
        Person(n, z, {"hiv": s}, (x,))
        for z in range(2)
        for s in range(2)
        for x, n in enumerate((5 + s + z, 4 + s))
    ]
    document = stratified_survey(LEAKY, mild)
    (before, status, _) = visit_with_both(
        page, wire, tmp_path / "s.db", document, final=True, x="c1", region="r0"
    )
    assert status == "sent"
    assert "Given your public answers" in before["explanation"]
    assert "Your public answers alone can change belief about your “hiv”" in before["explanation"]


def test_nothing_of_the_level_is_computed_while_the_store_is_locked(page: Page, wire: Wire) -> None:
    status = page.evaluate(
        """async ([link, at, choices]) => {
          const {withSeams} = await import("/sdk/testing.js");
          const {Client} = await import("/sdk/index.js");
          const client = await Client.open(link, withSeams({spreadMs: 0}, {now: () => at}));
          // From here on the survey throws if a level is computed again.
          const promises = {get: () => { throw new Error("again"); }};
          for (const block of client.survey.blocks) Object.defineProperty(block, "promises", promises);
          return (await client.answer(choices)).status;
        }""",
        [wire.publish(), AT, {"affair": "yes", "marriage": "good"}],
    )
    assert status == "sent"


ELEMENT = """async ([link, at, names, attribute]) => {
  const {FranklySurvey} = await import("/sdk/element.js"), element = new FranklySurvey();
  const {withSeams} = await import("/sdk/testing.js");
  element.options = withSeams({spreadMs: 0, ...(!attribute && {policy: {finalSurveys: names}})}, {now: () => at});
  if (attribute) element.setAttribute("final-surveys", names.join(" \\n"));
  const ended = new Promise((done) => {
    element.addEventListener("frankly-error", (event) => done(event.detail.code));
    const look = () => {
      const words = element.shadowRoot.querySelector(".words");
      words ? done(words.textContent) : setTimeout(look, 20);
    };
    element.addEventListener("frankly-opened", look);
  });
  element.setAttribute("link", link);
  document.querySelector("main").append(element);
  return ended;
}"""


@pytest.mark.parametrize("attribute", [True, False])
def test_an_element_opts_in_by_name_and_shows_what_is_left(
    page: Page, wire: Wire, attribute: bool
) -> None:
    link = wire.publish(survey(lip_block("q")))
    assert page.evaluate(ELEMENT, [link, AT, ["cd" * 16], attribute]) == "policy_final"
    shown_text = page.evaluate(ELEMENT, [link, AT, ["cd" * 16, "ab" * 16], attribute])
    assert "Answering this uses up for good all 5 nats that this app allows you" in shown_text
    shown_text = page.evaluate(
        ELEMENT, [wire.publish(payable_survey(), "ef" * 16), AT, [], attribute]
    )
    assert (
        "5.0000 of the 5 nats that this app allows you in all are left, 2.9013 after it."
        in shown_text
    )
