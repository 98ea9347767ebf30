# SPDX-License-Identifier: Apache-2.0
"""The cap on δ in the browser: Python's sums, Python's refusals, Python's words, and one ledger over surveys."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_protocol.audit import Claim, FormLevel, form_level, ledger_total
from frankly_protocol.errors import InvalidInput
from frankly_sdk import Policy
from frankly_sdk.conformance import REFUSED
from frankly_sdk.explain import explain
from playwright.sync_api import Browser, Page

from tests.browser.sdk.conformance import contexts_of
from tests.browser.sdk.test_conformance import command_in
from tests.conformance import driver
from tests.conformance.conftest import Install
from tests.conformance.site import serving
from tests.frankly_protocol.samples import dp_block, ldp_block, survey
from tests.frankly_sdk.test_delta import BAD, UNIT, times

SUMS = """async (cases) => {
  const [{formLevel, ledgerTotal}, {rational}] = await Promise.all([
    import("/sdk/ledger.js"), import("/sdk/rational.js")]);
  const read = (pair) => pair && rational(...pair), said = (ratio) => ratio && ratio.map(String);
  return cases.map(({forms, caps, cap}) => {
    const known = (blocks) => blocks.map((b) => ({...b, ceiling: read(b.ceiling)}));
    const found = forms.map((blocks, i) => formLevel(known(blocks), read(caps[i])));
    const shown = found.map((f) => [f.level, f.ceiling, f.delta, f.free, f.freeDelta].map(said));
    return [shown, said(ledgerTotal(found, read(cap)))];
  });
}"""


@dataclass(frozen=True)
class Promised:
    claim: Claim
    secret: str | None


@dataclass(frozen=True)
class Made:
    """A block as the ledger sees one, and as JSON."""

    id: str
    ceiling: Fraction | None
    promises: tuple[Promised, ...]

    def json(self) -> dict[str, Any]:
        promises = [
            {
                "secret": p.secret,
                "claim": {
                    name: getattr(p.claim, name)
                    for name in ("notion", "level", "low_level", "joint", "delta")
                    if getattr(p.claim, name) is not None
                    or name == "level"
                    or (name, p.claim.notion) == ("low_level", "alip")
                },
            }
            for p in self.promises
        ]
        return {"id": self.id, "ceiling": pair(self.ceiling), "promises": promises}


def pair(ratio: Fraction | None) -> list[int] | None:
    return list(ratio.as_integer_ratio()) if ratio is not None else None


def words(ratio: Fraction | None) -> list[str] | None:
    return [str(n) for n in ratio.as_integer_ratio()] if ratio is not None else None


def made(random: Random, i: int) -> Made:
    """A block that promises a few things; ratios are small, so that ties happen."""

    def ratio() -> tuple[int, int]:
        return random.randint(4, 9), random.randint(2, 4)

    def promise() -> Promised:
        notion = random.choice(["ldp", "dp", "dp", "lip", "alip", "secret-ldp"])
        secret = random.choice(["a", "b"]) if notion in ("lip", "alip", "secret-ldp") else None
        joint = random.choice([((1, 2), (3, 4)), ((2, 2), (3, 4))]) if secret else None
        delta = (random.randint(0, 3), 100) if notion == "dp" else None
        sides = (ratio(), random.choice([ratio(), None])) if notion == "alip" else (ratio(), None)
        level, low = sides if random.random() < 0.5 or notion != "alip" else (sides[1], sides[0])
        return Promised(Claim(notion, level, joint=joint, low_level=low, delta=delta), secret)

    ceiling = None if random.random() < 0.4 else Fraction(*ratio())
    return Made(f"b{i}", ceiling, tuple(promise() for _ in range(random.randint(1, 3))))


def test_sums_are_pythons(page: Page, full: bool) -> None:
    random, cases, expected = Random(12), [], []
    for _ in range(3000 if full else 100):
        forms = [[made(random, i) for i in range(random.randint(1, 4))] for _ in range(random.randint(1, 4))]
        caps, cap = [Fraction(random.randint(0, 6), 100) for _ in forms], Fraction(random.randint(0, 9), 100)
        cases.append(
            {
                "forms": [[b.json() for b in blocks] for blocks in forms],
                "caps": [pair(c) for c in caps],
                "cap": pair(cap),
            }
        )
        found: list[FormLevel] = [form_level(blocks, c) for blocks, c in zip(forms, caps, strict=True)]
        shown = [[words(v) for v in (f.level, f.ceiling, f.delta, f.free, f.free_delta)] for f in found]
        expected.append([shown, words(ledger_total(found, cap))])
    assert page.evaluate(SUMS, cases) == expected
    assert sum(total is None for _, total in expected) > 10
    assert sum(any(f[2] != ["0", "1"] for f in shown) for shown, _ in expected) > 10


POLICY = """(given) => import("/sdk/ledger.js").then(({Policy}) => given.map((options) => {
  try { new Policy(options); return null; } catch (error) { return [error.code, error.field]; }
}))"""
LIMITS = [*BAD, "0", "0.000001", "5", "-1", "1e1", "1e3", "+5", "nan", "64.1", "0.001", "inf"]


@pytest.mark.parametrize(("ours", "theirs"), [("deltaCap", "delta_cap"), ("cap", "cap"), ("maxCeiling", "max_ceiling")])
def test_limits_are_judged_as_python_judges_them(page: Page, ours: str, theirs: str) -> None:
    texts = [value for value in LIMITS if isinstance(value, str)]
    expected: list[list[str | None] | None] = []
    for text in texts:
        try:
            Policy(**{theirs: text})  # type: ignore[arg-type]
            expected.append(None)
        except InvalidInput as error:
            expected.append([error.code, error.field])
    assert page.evaluate(POLICY, [{ours: text} for text in texts]) == expected
    assert {None, "eps_format", "eps_out_of_range", "eps_not_finite"} <= {e and e[0] for e in expected}


def test_what_may_fail_is_explained_in_pythons_words(page: Page) -> None:
    document = survey(dp_block("q"), ldp_block())
    said = page.evaluate(
        """async ([text, cap]) => {
          const modules = ["canonical", "documents", "explain", "ledger"].map((name) => import(`/sdk/${name}.js`));
          const [canonical, documents, explaining, ledger] = await Promise.all(modules);
          const bytes = canonical.bytesOf(text), survey = documents.readSurvey(bytes, await canonical.digestOf(bytes));
          return String(explaining.explain(survey, ["ab"], "en", new ledger.Policy({deltaCap: cap}).allowed));
        }""",
        [document.payload().decode(), times(1)],
    )
    assert said == str(explain(document, ("ab",), "en", UNIT))
    assert "This fails with a chance of at most 0.001%, which this app allows." in said


def in_python(name: str, given: Any) -> driver.Outcome:
    return driver.in_this_process(name, given)


def both(browser: Browser) -> list[Callable[[str, Any], driver.Outcome]]:
    return [in_python, command_in(contexts_of(browser))]


def test_both_sdks_spend_delta_alike(browser: Browser, tmp_path: Path) -> None:
    """A cap of one δ: an answer at ε = 1, then one that does not fit, and one that needs no δ."""
    steps: list[list[tuple[int, str | None]]] = []
    for i, run in enumerate(both(browser)):
        told: list[tuple[int, str | None]] = []
        with serving() as site:
            install = Install(run, site, tmp_path / str(i))
            for n, block in enumerate([dp_block("affair")] * 2 + [ldp_block(epsilon="1")]):
                site.show(site.make(block, survey_id=f"{n + 1:032x}"))
                assert install.init(cap="5", delta_cap=times(1)).status == 0
                install.answer()
                told.append((install.told[-1].status, install.told[-1].code))
            assert len(site.posted) == 2
        steps.append(told)
    assert steps[0] == steps[1]
    assert steps[0][1] == (REFUSED, "policy_budget")


def test_without_a_cap_both_count_the_ceiling_and_say_why(browser: Browser, tmp_path: Path) -> None:
    for i, run in enumerate(both(browser)):
        with serving() as site:
            install = Install(run, site, tmp_path / str(i))
            site.show(site.make(dp_block("affair")))
            install.init(cap="64", delta_cap=times(1)[:-1])
            refused = install.answer()
            assert (refused.status, refused.code) == (REFUSED, "policy_cap")
            assert (
                "inf nats (its promises fail with a chance of up to 0.000000954, and this app allows "
                in refused.body["detail"]
            )


def test_what_an_earlier_version_kept_counts_its_ceiling(page: Page) -> None:
    """Records without `free`: null and 0, as the Python store reads its own."""
    found = page.evaluate(
        """async () => {
          const [{ledgerTotal}, {rational}] = await Promise.all([import("/sdk/ledger.js"), import("/sdk/rational.js")]);
          const old = {level: rational(2), ceiling: rational(3)}, level = rational(5), freeDelta = rational(1, 10);
          const fresh = {level, ceiling: null, free: level, freeDelta};
          return [rational(1, 10), rational(1, 11)].map((cap) => ledgerTotal([old, fresh], cap)?.map(String) ?? null);
        }"""
    )
    assert found == [["15", "1"], None]
