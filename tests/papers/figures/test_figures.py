# SPDX-License-Identifier: Apache-2.0
"""Figures in a quick run: the numbers match the caption, files are valid, and runs are reproducible."""

import csv
import math
import xml.etree.ElementTree as ET

import pytest
from frankly_protocol.errors import InvalidInput

from papers.catalogue import FIGURES, chosen
from papers.runner import COLUMNS, make
from tests.papers.figures.conftest import Making

PRINTED = ", as printed"
WATCHDOG = {
    name + form
    for name in ("LDP", "ALIP, λ = 0.35", "ALIP, λ = 0.5", "ALIP, λ = 0.65")
    for form in ("", PRINTED)
}
SPLITS = {"ALIP, λ = 0.35", "ALIP, λ = 0.5", "ALIP, λ = 0.65"}
AVERAGES = {"ALIP, λ = 0.5", "ℓ1, λ = 0.5", "ℓ1, λ = 0.65", "χ², λ = 0.5", "χ², λ = 0.65"}
RESPONSES = {"AORR", "SRR", "subset merging"}
ROBUST = {
    "PolyOpt",
    "PolyOpt, s₁ = s₂ kept (as printed)",
    "NR",
    "IR",
    "IR, bounds value by value (ours)",
    "SRR",
    "GRR",
}
LARGE = {"IR", "IR, bounds value by value (ours)", "SRR", "GRR"}
SHAPES: dict[str, dict[str, set[str]]] = {
    "funnel-3": {"a": {"ε-LDP", "ε-LIP"}},
    "funnel-4": {"a": {"ε-LDP", "ε/2-LIP"}},
    "funnel-5": {
        "a": {
            "ε-LIP",
            "SRLIP, joint cone",
            "SRLIP, product with factors chosen in turn",
            "product of Theorem 4, as printed",
        },
        "b": {"promised", "product of Theorem 4, as printed"},
    },
    "funnel-6": {key: {"Opt-LIP", "GRR", "CR", "OUE"} for key in "abcdefgh"},
    "funnel-7": {key: {"GRR", "CR"} for key in "abcdef"},
    "funnel-8": {key: {"CR − GRR"} for key in "abc"},
    "funnel-9": {key: {"GRR", "CR"} for key in "ab"},
    "robust-2": {"a": ROBUST, "b": ROBUST, "c": LARGE, "d": LARGE},
    "robust-3": {"a": ROBUST, "b": ROBUST, "c": LARGE, "d": LARGE},
    "robust-4": {key: {"PolyOpt", "NR", "ε* = ε"} for key in "ab"},
    "robust-5": {"a": {"SRR", "PolyOpt", "IR"}, "b": {"SRR", "PolyOpt", "IR"}, "c": {"SRR", "IR"}, "d": {"SRR", "IR"}},
    "robust-table-2": {
        **{key: {"SRR", "PolyOpt", "PolyOpt, s₁ = s₂ kept (as printed)", "IR"} for key in "ab"},
        **{key: {"SRR", "IR"} for key in "cd"},
    },
    "lift-1": {"a": {"log Ψ", "log Λ"}},
    **dict.fromkeys(("lift-2", "lift-3", "lift-6", "lift-7"),
                    dict.fromkeys("abc", WATCHDOG) | {"d": {name for name in WATCHDOG if name.endswith(PRINTED)}}),
    **dict.fromkeys(("lift-4", "lift-5"), dict.fromkeys("abc", SPLITS)),
    **dict.fromkeys(("lift-8", "lift-9"), dict.fromkeys("abc", RESPONSES)),
    "lift-10": dict.fromkeys("abc", RESPONSES - {"AORR"}),
    **dict.fromkeys(("lift-11", "lift-12"), dict.fromkeys("abc", AVERAGES)),
    "lift-13": {key: {"ALIP", "α = 2", "α = 10", "α = 100"} for key in "abc"},
    "thesis-4.1": {"a": {"ε = 0, m = 2", "ε = 2, m = 2", "ε = 0, m = 5"}},
    "thesis-6.1": {"a": {f"π = {v}" for v in ("0", "0.1", "0.2", "0.3", "0.4", "0.5")}
                   | {"Example 6.1, 1 (π = 0.25)", "Example 6.1, 2 (π = 0.1)", "Example 6.1, 3 (π = 0.9)"},
                   "b": {f"π = {v}" for v in ("0", "0.1", "0.2", "0.3", "0.4", "0.5")}},
    "thesis-6.2": {"a": {name + form for name in ("π = 0.01", "π = 0.1") for form in ("", PRINTED)}},
    "thesis-6.3": {"a": {"sampling", "sampling, as printed (6.12)", "no sampling (6.31)"}},
    "thesis-eq-6.8": {key: {f"p11 = {v}" for v in ("0.3", "0.6", "0.9", "1")} for key in "ab"},
    "thesis-eq-6.22": {key: {f"ε = {v}" for v in ("0.1", "0.25", "0.5", "1", "2")} for key in "ab"},
    "thesis-theorem-6.5": {
        "a": {"π = 0.01", "π = 0.1", "π = 0.3"},
        "b": {name + form for name in ("π = 0.01", "π = 0.1", "π = 0.3") for form in ("", PRINTED)},
    },
    "robust-example-2": {
        "a": {"D_α(P̂‖P*)", "B"},
        "b": {"F", "F′", "F′, as printed", "P̂", "P*"},
        "c": {"best over F", "best over F′ (PolyOpt)"},
    },
}  # fmt: skip
"""Panels and curves, from the captions and the text around them."""
SHARES = {
    name
    for name in SHAPES
    if name.startswith(("lift-", "robust-2", "robust-3", "robust-t", "funnel-6", "funnel-7"))
}
EVERY = sorted(FIGURES)
TIMED = {"funnel-3", "funnel-4", "funnel-5", "lift-8", "lift-9", "lift-10"}


def test_every_figure_exists() -> None:
    expected = (
        {f"funnel-{k}" for k in range(3, 10)} | {f"robust-{k}" for k in range(2, 6)} | {"robust-table-2"}
        | {f"lift-{k}" for k in range(1, 14)} | {"thesis-4.1", "thesis-6.1", "thesis-6.2", "thesis-6.3"}
        | {"robust-example-2", "thesis-eq-6.8", "thesis-eq-6.22", "thesis-theorem-6.5"}
    )  # fmt: skip
    assert set(FIGURES) == expected == set(SHAPES)
    assert [figure.id for figure in chosen("all")] == list(FIGURES)


@pytest.mark.parametrize("name", EVERY)
def test_the_numbers_have_the_captions_shape(made: Making, name: str) -> None:
    lines = made(name).csv.splitlines()
    body = [line for line in lines if not line.startswith("#")]
    rows = list(csv.DictReader(body))
    assert body[0] == ",".join(COLUMNS)
    assert rows
    for row in rows:
        numbers = [float(row[key]) for key in COLUMNS[2:] if row[key]]
        assert row["x"]
        assert row["y"]
        assert all(map(math.isfinite, numbers)), row
        if name in SHARES and row["panel"] == "a":
            assert -1e-9 <= float(row["y"]) <= 1 + 1e-9
        ends = [float(row[key]) for key in ("least", "y", "most") if row[key]]
        assert ends == sorted(ends) or (name == "lift-1" and row["y"])
    values_by_axis: dict[str, set[str]] = {}
    for row in rows:
        values_by_axis.setdefault(row["panel"], set()).add(row["curve"])
    assert values_by_axis == SHAPES[name]
    assert set(values_by_axis) == {panel.key for panel in FIGURES[name].panels}


@pytest.mark.parametrize("name", EVERY)
def test_the_header_says_how_they_were_made(made: Making, name: str) -> None:
    figure, head = (
        FIGURES[name],
        [line for line in made(name).csv.splitlines() if line.startswith("#")],
    )
    assert figure.number in head[0]
    assert any(line.startswith("# seed: ") for line in head)
    assert all(f"# {key}: {value}" in head for key, value in figure.parameters.items())
    assert sum(line.startswith("# paper's text: ") for line in head) == len(made(name).checks) > 0


@pytest.mark.parametrize("name", EVERY)
def test_the_plot_is_well_formed_and_says_what_it_shows(made: Making, name: str) -> None:
    svg = made(name).svg
    root = ET.fromstring(svg)
    texts = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    curves = {curve for curves in SHAPES[name].values() for curve in curves}
    assert curves <= texts
    assert {panel.title for panel in FIGURES[name].panels if panel.title} <= texts
    assert {panel.x for panel in FIGURES[name].panels} <= texts
    assert {panel.y for panel in FIGURES[name].panels} <= texts
    assert "nan" not in svg
    assert "<script" not in svg
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert width >= 430
    assert height > 300


@pytest.mark.parametrize("name", EVERY)
def test_a_rerun_is_the_same_to_the_last_byte(made: Making, making: Making, name: str) -> None:
    once, again = made(name), making(name)
    assert (once.csv, once.svg) == (again.csv, again.svg)
    # The seconds are measured, so they are in a separate file.
    assert bool(once.seconds) == (name in TIMED)
    assert (once.seconds != again.seconds) == (name in TIMED)


@pytest.mark.parametrize("name", EVERY)
def test_claims_for_all_cases_hold_in_a_quick_run(made: Making, name: str) -> None:
    assert made(name).surprises == ()
    decided = [check for check in made(name).checks if check.holds is not None]
    assert all(check.always for check in decided)


@pytest.mark.parametrize(
    ("name", "draws", "field"),
    [
        ("lift-3", None, "--adult"),
        ("lift-2", 0, "--draws"),
        ("lift-2", -1, "--draws"),
        ("lift-2", 10_001, "--draws"),
    ],
)
def test_impossible_figures_are_refused(name: str, draws: int | None, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        make(
            FIGURES[name],
            quick=True,
            timer=lambda: 0.0,
            on_progress=lambda _line: None,
            draws=draws,
        )
    assert refused.value.field == field


@pytest.mark.parametrize("name", ["lift-14", "", "ALL", "funnel-3.svg", "../x"])
def test_an_unknown_figure_is_refused_with_the_list(name: str) -> None:
    with pytest.raises(InvalidInput, match="lift-13"):
        chosen(name)


def test_draws_are_a_prefix_of_more_draws(made: Making) -> None:
    """Draw i does not depend on the number of draws, so extremes only grow with more draws."""
    shorter, longer = (
        make(
            FIGURES["lift-1"],
            quick=True,
            timer=lambda: 0.0,
            on_progress=lambda _line: None,
            draws=n,
        )
        for n in (2, 9)
    )
    assert shorter.rows[0].least is not None
    assert longer.rows[0].least is not None
    assert longer.rows[0].least <= shorter.rows[0].least
