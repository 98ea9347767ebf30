# SPDX-License-Identifier: Apache-2.0
"""Section Benches of docs/measured.md, a summary of the results in docs/bench/ that leaves no miss out."""

import json
import re
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

OF = {"python": "3.11", "machine": "x", "load": [0.5, 1.0]}
ROW = {
    "item": 1, "case": "2×5, one prior", "value": 0.64583868, "bound": 0.7, "gap": 0.0541613, "seconds": 0.0123456,
    "baseline": "local search: 30 of 40 as good", "baseline_value": 0.5, "baseline_seconds": 0.1,
    "limit": "gap ≤ 0.1",
    "holds": True, "ratio": 8.1,
}  # fmt: skip


@pytest.fixture
def performance(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(root / "bench"))
    return import_module("_performance")


@pytest.fixture
def results(root: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (root / "docs/bench").glob("*.json")]


def generated(performance: Any, root: Path) -> str:
    return str((root / "docs" / "measured.md").read_text().partition(performance.MARK)[2])


def page(
    performance: Any, monkeypatch: pytest.MonkeyPatch, folder: Path, *bodies: dict[str, Any]
) -> str:
    (folder / "bench").mkdir()
    for body in bodies:
        (folder / "bench" / f"{body['bench']}.json").write_text(json.dumps(OF | body))
    monkeypatch.setattr(performance, "DOCS", folder)
    return str(performance.section())


def test_the_section_is_generated_from_its_figures(performance: Any, root: Path) -> None:
    for path, text in performance.files().items():
        assert path.read_text() == text, "run python bench/_performance.py"
    written = generated(performance, root)
    assert len(written.splitlines()) < 350


def test_every_stored_target_is_counted_and_every_miss_listed(
    performance: Any, root: Path, results: list[dict[str, Any]]
) -> None:
    written = generated(performance, root)
    for result in results:
        name = result["bench"]
        section = next(part for part in written.split("\n### ") if f"bench/{name}.json" in part)
        counts = [
            (int(met), int(targets))
            for met, targets in re.findall(r" \| \**(\d+) of (\d+)\** \|", section)
        ]
        met, targets = (sum(numbers) for numbers in zip((0, 0), *counts, strict=True))
        rows = [row["holds"] for row in result.get("rows", ()) if row["holds"] is not None]
        short, asked = result.get("short", []), result.get("asked", {})
        assert targets == len(rows) + len(asked), name
        assert met == sum(rows) + len(asked) - len(short), name
        missed = section.partition("Missed:")[2]
        for figure in short:
            assert f"- `{figure}`: " in missed
        for cell in result.get("missed", ()):
            line = next(
                line for line in missed.splitlines()
                if line.startswith(f"- `{cell['demand']}`") and f", {cell['design']}: " in line
            )  # fmt: skip
            assert (
                f"{cell['kind']}, {cell['truth']}, n = {cell['n']}, no. {cell['target']}: " in line
            )
        assert missed.count("; target") == len(short) + rows.count(False)
        for cell in result.get("exceptions", ()):
            where = f"{cell['kind']}, {cell['truth']}, n = {cell['n']}, no. {cell['target']}: "
            start = (
                f"- `{cell['demand']}` ≤ {result['usual'][cell['demand']]:g}, {cell['design']}: "
            )
            assert any(line.startswith(start) and where in line for line in section.splitlines()), (
                cell
            )


def test_words_are_about_stored_figures(performance: Any, results: list[dict[str, Any]]) -> None:
    """No pattern, reason or item has outlived its figure."""
    stored = {result["bench"]: result for result in results}
    for bench, words in performance.WORDS.items():
        if bench == "introduction":
            continue
        figures = [name for name in stored[bench] if isinstance(stored[bench][name], int | float)]
        for pattern in words.get("figures", {}):
            assert any(fnmatchcase(name, pattern) for name in figures), pattern
        assert set(words.get("reasons", {})) <= set(stored[bench].get("short", ())), bench
        items = {str(row["item"]) for row in stored[bench].get("rows", ())}
        assert set(words.get("items", {})) == items, bench


def test_a_missed_row_is_listed_with_its_figures(
    performance: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    missed = ROW | {"case": "Adult | one", "gap": 0.1000004, "holds": False, "ratio": 20.0}
    unjudged = ROW | {"item": 2, "holds": None, "limit": ""}
    text = page(
        performance, monkeypatch, tmp_path, {"bench": "design", "rows": [ROW, missed, unjudged]}
    )
    assert "| [Design](#design) | **1 of 2** |" in text
    line = next(line for line in text.splitlines() if line.startswith("| 1. "))
    assert line.split(" | ")[1:] == [
        "gap ≤ 0.1", "**1 of 2**", "0.012", "0.646", "0.1", "local search", "1.29", "8.1 to 20 |",
    ]  # fmt: skip
    listed = [line for line in text.splitlines() if line.startswith("- ")]
    assert listed == [
        "- 1, Adult | one: value 0.646, bound 0.7, gap 0.1000004, seconds 0.0123, baseline_value 0.5, ratio 20;"
        " target gap ≤ 0.1."
    ]


def test_missed_figures_are_listed_with_their_reasons(
    performance: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sdk = {
        "bench": "sdk", "import_sdk_s": 0.20004, "ratio_fastest_grr_2": 6.32646, "ratio_fastest_grr_16": 4.0,
        "other": 3.0,
        "asked": {"import_sdk_s": "≤ 0.2", "ratio_fastest_grr_2": "≤ 5", "ratio_fastest_grr_16": "≤ 5"},
        "short": ["import_sdk_s", "ratio_fastest_grr_2"],
    }  # fmt: skip
    reasons = {"ratio_fastest_grr_2": "The fastest peer draws floats."}
    monkeypatch.setitem(performance.WORDS["sdk"], "reasons", reasons)
    text = page(performance, monkeypatch, tmp_path, sdk)
    assert "| import the SDK | 0.2 s | ≤ 0.2 s | **0 of 1** |" in text
    assert " | 4 to 6.33 | ≤ 5 | **1 of 2** |" in text
    assert "- `import_sdk_s`: 0.20004 s; target ≤ 0.2 s. No reason is stated." in text
    assert "- `ratio_fastest_grr_2`: 6.33; target ≤ 5. The fastest peer draws floats." in text
    assert "other" not in text.partition("| what |")[2].replace("other libraries", "")


def test_exceptions_are_listed_after_the_misses(
    performance: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cell = {
        "demand": "width", "figure": 3.14159, "coverage": 0.9, "design": "a", "kind": "shares",
        "truth": "even", "n": 50,
    }  # fmt: skip
    new = {
        "bench": "new", "late": 2, "asked": {"late": "≤ 1"}, "short": ["late"],
        "exceptions": [cell | {"target": 1}, cell | {"target": 2, "figure": 1.20016}], "usual": {"width": 1.2},
    }  # fmt: skip
    text = page(performance, monkeypatch, tmp_path, new)
    missed, _, exceptions = text.partition("Missed:")[2].partition("Exceptions:")
    assert missed.split("\n")[2] == "- `late`: 2; target ≤ 1. No reason is stated."
    assert (
        exceptions.split()
        == (
            "- `width` ≤ 1.2, a: shares, even, n = 50, no. 1: 3.14; shares, even, n = 50, no. 2: 1.2002."
        ).split()
    )


def test_a_bench_without_words_is_on_the_page_with_its_misses(
    performance: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    new = {
        "bench": "new", "late_ms": 12.345, "asked": {"late_ms": "≤ 10", "width": "≤ 1.2", "lost": "≤ 0"},
        "short": ["late_ms", "lost", "unbounded"], "width": 1.1, "unbounded": 7,
        "missed": [
            {"demand": "width", "figure": 1.20016, "coverage": 0.9, "design": "a", "kind": "shares", "truth": "even",
             "n": 50, "target": n} for n in (1, 2)
        ],
    }  # fmt: skip
    text = page(performance, monkeypatch, tmp_path, new)
    assert "| [new](#new) | **1 of 4** |" in text
    assert "| `late_ms` | 12 ms | ≤ 10 ms | **0 of 1** |" in text
    assert "| `unbounded` | 7 |  | **0 of 1** |" in text
    assert [line for line in text.splitlines() if line.startswith("- ")] == [
        "- `late_ms`: 12 ms; target ≤ 10 ms. No reason is stated.",
        "- `lost`: not stored; target ≤ 0. No reason is stated.",
        "- `unbounded`: 7; target not stored. No reason is stated.",
        "- `width` ≤ 1.2, a: shares, even, n = 50, no. 1: 1.2002; shares, even, n = 50, no. 2: 1.2002.",
    ]


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0123456, 2, "0.012"), (218, 2, "220"), (1605.5, 2, "1,600"), (2038159.4, 2, "2,000,000"), (0.1, 2, "0.1"),
        (3.07e-05, 2, "3.1e-05"), (0.99501, 3, "0.995"), (0.9996, 3, "1"), (1605.5, 3, "1,610"), (11186, 3, "11,186"),
        (-3.2444, 3, "-3.24"), (0.0, 3, "0"), (0.0, 2, "0"),
    ],
)  # fmt: skip
def test_times_have_two_significant_digits_and_other_figures_three(
    performance: Any, value: float, digits: int, text: str
) -> None:
    assert performance.significant(value, digits) == text
    assert (performance.TIMING, performance.OTHER) == (2, 3)


@pytest.mark.parametrize(
    ("value", "target", "text"),
    [
        (1.20016, "≤ 1.2", "1.2002"), (0.7996, "≥ 0.8", "0.7996"), (2.641, "≤ 2.64", "2.641"), (10.53, "≤ 3.5", "10.5"),
        (1 + 2**-52, "≤ 1", "1.0000000000000002"), (1.5, "", "1.5"), (0.33, "gap ≤ 1e-06, ≤ 60 s", "0.33"),
    ],
)  # fmt: skip
def test_rounding_never_hides_a_miss(
    performance: Any, value: float, target: str, text: str
) -> None:
    assert performance.beside(value, target, 3) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [([], ""), ([1.5], "1.5 KB"), ([2.0, 1.0], "1 to 2 KB"), ([9.0, 1.0, 2.0], "1 to 9 KB, median 2"),
     ([3.0] * 3, "3 KB")],
)  # fmt: skip
def test_a_line_has_least_largest_and_median(
    performance: Any, values: list[float], text: str
) -> None:
    assert performance.span(values, 3, " KB") == text
