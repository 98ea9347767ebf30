# SPDX-License-Identifier: Apache-2.0
"""Shared code of benches (medians, spread, bounds), and benches without a test module of their own."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def bench(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(root / "bench"), *sys.path])
    return importlib.import_module


def test_a_result_has_medians_spread_and_failed_bounds(
    bench: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    runner = bench("_runner")
    samples = {"ratio_a": [2.0, 0.5, 1.0], "b_s": [3.0], "ratio_c": [0.4, 0.6]}
    result = runner.Result(
        "some",
        samples,
        at_most={"ratio_a": 1.0, "b_s": 2.5},
        at_least={"ratio_c": 0.6},
        extra={"part": True},
    )
    assert result.figures == {"ratio_a": 1.0, "b_s": 3.0, "ratio_c": 0.5}
    assert result.short == ["b_s", "ratio_c"]
    with pytest.raises(SystemExit, match="1"):
        runner.print_result(result, as_json=True, before=0.5)
    written = json.loads(capsys.readouterr().out)
    assert written["spread"] == {"ratio_a": [0.5, 2.0], "ratio_c": [0.4, 0.6]}
    assert written["asked"] == {"ratio_a": "≤ 1", "b_s": "≤ 2.5", "ratio_c": "≥ 0.6"}
    assert (written["short"], written["holds"], written["part"], written["load"][0]) == (
        result.short,
        False,
        True,
        0.5,
    )
    with pytest.raises(SystemExit, match="0"):
        runner.print_result(
            runner.Result("good", {"ratio_a": [1.0]}, at_most={"ratio_a": 1.0}),
            as_json=False,
            before=0.5,
        )
    assert "ratio_a             1             1             1  ≤ 1" in capsys.readouterr().out


def test_trials_take_turns_after_one_for_the_caches(bench: Any) -> None:
    calls: list[str] = []
    trials = {name: lambda name=name: calls.append(name) or float(len(calls)) for name in "ab"}
    assert bench("_runner").turns(trials, 2) == {"a": [3.0, 5.0], "b": [4.0, 6.0]}
    assert calls == ["a", "b"] * 3


@pytest.mark.full_only
def test_verification_is_measured(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = bench("verify")
    documents = verify.limits.worst
    small, refused = (
        [(name, make, 4) for name, make, _ in documents.families()],
        {"some": documents.many_secrets(20)},
    )
    monkeypatch.setattr(verify, "ROUNDS", 1)
    monkeypatch.setattr(verify.limits, "ROUNDS", 1)
    monkeypatch.setattr(documents, "families", lambda: small)
    monkeypatch.setattr(documents, "too_large", lambda: refused)
    result = verify.measure()
    assert min(result.figures.values()) > 0
    assert {"ratio_ldp_64x64_plain", "ratio_lip_64_secrets_plain"} <= set(result.figures)


def test_the_browser_sdk_is_measured_and_weighed_as_the_pages_say(
    bench: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = bench("browser")
    monkeypatch.setattr(browser, "ROUNDS", 3)
    figures = browser.measure().figures
    assert 0 < figures["ratio_verify_sample_plain"] < 1
    page = (root / "docs" / "browser.md").read_text()
    for name in ("core", "core_with_all", "index", "element"):
        assert f"{figures[f'{name}_kb']:.1f} KB" in page, name


def test_the_sdk_is_measured_beside_peers(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure our SDK and one peer, both in the current environment, so that nothing is downloaded."""
    sdk, peer = bench("sdk"), bench("_sdk.peer")
    for name, value in {
        "SIZES": (2,),
        "CALLS": 3,
        "ROUNDS": 2,
        "IMPORT_ROUNDS": 2,
        "REPORT_ROUNDS": 1,
    }.items():
        monkeypatch.setattr(sdk, name, value)
    monkeypatch.setattr(
        sdk, "environment", lambda name: Path(sys.executable) if name == sdk.OURS else None
    )
    result = sdk.measure()
    assert result.figures["peers_missing"] == len(peer.PEERS)
    assert len(result.samples["frankly_sdk_grr_2_us"]) == 2
    assert {"import_dependencies_s", "seal_send_erase_s", "import_sdk_s"} <= set(result.figures)
    assert result.demands == {
        "ratio_import_dependencies": "≤ 1.25",
        "ratio_import_with_http": "≤ 2",
    }


def test_bounds_of_estimates_follow_the_kind_of_figure(bench: Any) -> None:
    cases = {
        "ratio_latency": (1.6, "≤ 1.5"), "ratio_stored_shares": (1.4, "≤ 1.5"),
        "coverage_exact_errors_below": (3.1, "≤ 3"),
        "mse_ratio_pure_ldp_grr_unbiased": (1.1, "≤ 1"), "mse_ratio_multi_freq_ldpy_grr_projected": (1.0, "≤ 1.01"),
        "ratio_pure_ldp_grr_counts": (9.0, "≥ 10"), "ratio_pure_ldp_grr_reports": (2.0, "≥ 1"), "ours_grr_s": (9.0, ""),
    }  # fmt: skip
    result = bench("estimate").result({name: [value] for name, (value, _) in cases.items()}, {})
    assert {name: result.demands.get(name, "") for name in cases} == {
        name: limit for name, (_, limit) in cases.items()
    }
    assert set(result.short) == {
        "ratio_latency", "coverage_exact_errors_below", "mse_ratio_pure_ldp_grr_unbiased", "ratio_pure_ldp_grr_counts",
    }  # fmt: skip
