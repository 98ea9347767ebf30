# SPDX-License-Identifier: Apache-2.0
"""Cap on δ in the browser: limits are parsed as in Python, and surveys share one ledger."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_sdk import Policy
from frankly_sdk.cli import REFUSED
from playwright.sync_api import Browser, Page

from tests.browser.sdk.conformance import contexts_of
from tests.browser.sdk.conftest import command_in
from tests.conformance import driver
from tests.conformance.conftest import Install
from tests.conformance.site import serving
from tests.frankly_protocol.samples import dp_block, ldp_block
from tests.frankly_sdk.fakes import BAD_DELTA_CAPS, times

pytestmark = pytest.mark.usefixtures("shared_page")
POLICY = """(given) => import("/sdk/ledger.js").then(({Policy}) => given.map((options) => {
  try { new Policy(options); return null; } catch (error) { return [error.code, error.field]; }
}))"""
LIMITS = [
    *BAD_DELTA_CAPS,
    "0",
    "0.000001",
    "5",
    "-1",
    "1e1",
    "1e3",
    "+5",
    "nan",
    "64.1",
    "0.001",
    "inf",
]


@pytest.mark.parametrize(
    ("browser_name", "python_name"),
    [("deltaCap", "delta_cap"), ("cap", "cap"), ("maxCeiling", "max_ceiling")],
)
def test_limits_are_judged_as_python_judges_them(
    page: Page, browser_name: str, python_name: str
) -> None:
    texts = [value for value in LIMITS if isinstance(value, str)]
    expected: list[list[str | None] | None] = []
    for text in texts:
        try:
            Policy(**{python_name: text})  # type: ignore[arg-type]
            expected.append(None)
        except InvalidInput as error:
            expected.append([error.code, error.field])
    assert page.evaluate(POLICY, [{browser_name: text} for text in texts]) == expected
    assert {None, "eps_format", "eps_out_of_range", "eps_not_finite"} <= {
        e and e[0] for e in expected
    }


def in_python(name: str, request: Any) -> driver.Outcome:
    return driver.in_this_process(name, request)


def both_sdks(browser: Browser) -> list[Callable[[str, Any], driver.Outcome]]:
    return [in_python, command_in(contexts_of(browser))]


def test_both_sdks_spend_delta_alike(browser: Browser, tmp_path: Path) -> None:
    """The cap allows one δ: one answer at ε = 1 fits, the next does not, and a third needs no δ."""
    steps: list[list[tuple[int, str | None]]] = []
    for i, run in enumerate(both_sdks(browser)):
        outcomes: list[tuple[int, str | None]] = []
        with serving() as site:
            install = Install(run, site, tmp_path / str(i))
            for n, block in enumerate([dp_block("affair")] * 2 + [ldp_block(epsilon="1")]):
                site.show(site.make(block, survey_id=f"{n + 1:032x}"))
                assert install.init(cap="5", delta_cap=times(1)).status == 0
                install.answer()
                outcomes.append((install.outcomes[-1].status, install.outcomes[-1].code))
            assert len(site.posted) == 2
        steps.append(outcomes)
    assert steps[0] == steps[1]
    assert steps[0][1] == (REFUSED, "policy_budget")


def test_without_a_cap_both_sdks_charge_the_ceiling_and_say_why(
    browser: Browser, tmp_path: Path
) -> None:
    for i, run in enumerate(both_sdks(browser)):
        with serving() as site:
            install = Install(run, site, tmp_path / str(i))
            site.show(site.make(dp_block("affair")))
            install.init(cap="64", delta_cap=times(1)[:-1])
            refused = install.answer()
            assert (refused.status, refused.code) == (REFUSED, "policy_cap")
            assert (
                "inf nats (its promises need a δ of 0.000000954, and this app allows "
                in refused.body["detail"]
            )
