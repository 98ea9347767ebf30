# SPDX-License-Identifier: Apache-2.0
"""Texts, HTML of notebooks, data frames and plots: nothing is lost, every text is escaped."""

import re
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import frankly_design as fd
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from frankly_design.estimate.flags import SENTENCES
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import UnaryMechanism

from tests.frankly_design.interface.given import FOUR_BITS, JOINT, with_mechanism
from tests.refusals import refusal

mpl.use("Agg")
from matplotlib import pyplot as plt

LABELS = ["<b>yes</b>", 'no & "never"', "it's <img src=x onerror=alert(1)>"]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def labelled(mechanism: Any = FOUR_BITS) -> fd.Design:
    return with_mechanism(
        fd.design(pd.Series([1, 2, 3], index=LABELS), fd.LDP(1), mechanism="grr"), mechanism
    )


class Balanced(HTMLParser):
    """Parser that checks that tags are balanced and known, and collects tables and texts."""

    ALLOWED = ("p", "strong", "table", "thead", "tbody", "tr", "th", "td")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self.styles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.ALLOWED, tag
        assert [name for name, _ in attrs] in ([], ["style"])
        self.styles += [str(value) for _, value in attrs]
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open and self.open[-1] in ("th", "td"):
            self.rows[-1][-1] += data


def parsed(html: str) -> Balanced:
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


FIGURES = [
    "ε of the answer's LDP, nats",
    "information, nats",
    "variance, one report",
    "error of the best guess",
    "bound of the total variance of the shares",
    "reaches the bound",
]


# -- designs ---------------------------------------------------------------------------------------


def test_a_design_prints_its_figures_and_its_channel() -> None:
    made = fd.design(JOINT, fd.LIP("0.25"))
    head, *lines = repr(made).splitlines()
    assert head == f"optimal (dense, 4 answers, {made.reports} reports)"
    values = (made.answer_ldp, made.information, made.variance, made.hamming, made.bound)
    for line, name, value in zip(lines, FIGURES, values, strict=False):
        assert line.startswith(name)
        assert line[len(name) :].strip() == f"{value:.6g}"
    assert lines[5].split() == ["reaches", "the", "bound", "yes"]
    assert lines[6].split() == ["Q(y|x)", *(f"y{y}" for y in range(made.reports))]
    table = [line.split() for line in lines[7:]]
    assert [row[0] for row in table] == ["0", "1", "2", "3"]
    assert [row[1:] for row in table] == [[f"{q:.4f}" for q in row] for row in made.channel]


def test_a_family_says_that_it_has_no_bound() -> None:
    lines = repr(fd.design([[1, 2, 3]], fd.LDP(1), mechanism="grr")).splitlines()
    assert not [line for line in lines if line.startswith(("bound", "reaches"))]


def test_the_html_of_a_design_has_every_number_and_escapes_every_label() -> None:
    made = labelled()
    html = made._repr_html_()
    found = parsed(html)
    assert "<b>" not in html
    assert "<img" not in html
    assert found.texts[:2] == ["grr", ": 3 answers, 4 reports"]
    channel, figures = found.rows[:4], found.rows[4:]
    assert channel[0] == ["Q(y|x)", "y0", "y1", "y2", "y3"]
    assert [row[0] for row in channel[1:]] == LABELS
    assert [row[1:] for row in channel[1:]] == [
        [f"{w / 16:.4f}" for w in row] for row in FOUR_BITS.weights
    ]
    assert figures[0] == ["figure", "value"]
    assert [row[0] for row in figures[1:]] == FIGURES[:4]
    assert figures[1][1] == f"{made.answer_ldp:.6g}"


def test_colours_are_the_chances() -> None:
    styles = parsed(labelled()._repr_html_()).styles
    chances = [w / 16 for row in FOUR_BITS.weights for w in row]
    assert len(styles) == len(chances)
    for style, chance in zip(styles, chances, strict=True):
        opacity = re.search(r"rgba\(31,78,156,([0-9.]+)\);color:(white|inherit)", style)
        assert opacity
        assert float(opacity[1]) == pytest.approx(chance, abs=0.0050001)
        assert opacity[2] == ("white" if chance > 0.8 else "inherit")


@pytest.mark.parametrize("answers", [24, 25])
def test_a_large_channel_is_left_out_but_not_its_figures(answers: int) -> None:
    made = fd.design([[1] * answers], fd.LDP(1), mechanism="grr")
    shown = answers <= 24
    assert len(repr(made).splitlines()) == (5 + 1 + answers if shown else 5)
    found = parsed(made._repr_html_())
    assert len(found.rows) == (1 + answers if shown else 0) + 5
    assert [row[0] for row in found.rows[-4:]] == FIGURES[:4]


def test_sets_beyond_any_table_still_print() -> None:
    made = fd.design([[1] * 40], fd.LDP(1))
    assert f"subset, 40 answers, {made.reports} reports" in repr(made)
    parsed(made._repr_html_())
    assert refusal(InvalidInput, made.plot).code == "unsupported"


def test_the_frame_of_a_design_is_its_channel() -> None:
    frame = labelled().to_frame()
    assert frame.shape == (3, 4)
    assert (list(frame.index), list(frame.columns), frame.index.name) == (
        LABELS,
        ["y0", "y1", "y2", "y3"],
        "answer",
    )
    assert frame.to_numpy().tolist() == [[w / 16 for w in row] for row in FOUR_BITS.weights]


def test_the_plot_of_a_design_has_a_cell_for_each_chance() -> None:
    made = labelled()
    ax = made.plot()
    (image,) = ax.images
    assert image.get_array().tolist() == made.channel.tolist()
    assert image.get_clim() == (0, 1)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("report y", "answer x")
    assert [text.get_text() for text in ax.get_yticklabels()] == LABELS
    assert [text.get_text() for text in ax.get_xticklabels()] == ["y0", "y1", "y2", "y3"]
    ax.figure.canvas.draw()
    given = plt.figure().subplots()
    assert made.plot(given) is given
    sets = labelled(UnaryMechanism(4, 3, 12, 4)).plot()
    held = [[label for x, label in enumerate(LABELS) if mask >> x & 1] for mask in range(8)]
    assert [text.get_text() for text in sets.get_xticklabels()] == [
        f"{{{', '.join(labels)}}}" for labels in held
    ]


# -- listings --------------------------------------------------------------------------------------


def test_a_comparison_prints_every_figure() -> None:
    found = fd.compare(JOINT, fd.LIP("0.25"), ["optimal", "grr"])
    head, *lines = repr(found).splitlines()
    assert head.split() == list(found[0])
    for line, row in zip(lines, found, strict=True):
        assert line.split() == [
            f"{v:.6g}" if isinstance(v, float) else str(v) for v in row.values()
        ]
    html = parsed(found._repr_html_())
    assert html.rows == [list(found[0]), *(line.split() for line in lines)]
    frame = found.to_frame()
    assert frame.shape == (2, 7)
    assert list(frame.columns) == list(found[0])
    assert frame.to_dict("records") == list(found)
    assert (found[-1], found[:1]) == (found[1], [found[0]])


def test_an_empty_listing_prints_its_title() -> None:
    empty = fd.Listing("<Nothing>", [], ())
    assert (repr(empty), len(empty)) == ("<Nothing>", 0)
    assert parsed(empty._repr_html_()).rows == [["<Nothing>"]]
    assert empty.plot().lines[0].get_xdata().tolist() == []


def test_a_frontier_is_a_line_and_a_comparison_has_named_points() -> None:
    frontier = fd.frontier(JOINT, fd.LIP("0.25"), 3)
    assert frontier.to_frame().shape == (3, 4)
    ax = frontier.plot()
    (line,) = ax.lines
    assert line.get_xdata().tolist() == [row["information"] for row in frontier]
    assert line.get_ydata().tolist() == [row["variance"] for row in frontier]
    assert (line.get_linestyle(), line.get_marker()) == ("-", "o")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("information", "variance")
    assert not ax.texts
    compared = fd.compare([[1, 2, 3]], fd.LDP(1), ["grr", "oue", "symmetric-unary"])
    ax = compared.plot("normalised_information", "hamming", plt.figure().subplots())
    assert ax.lines[0].get_linestyle() == "None"
    assert len(ax.lines[0].get_xdata()) == 3
    assert [text.get_text().strip() for text in ax.texts] == ["grr", "oue", "symmetric-unary"]
    assert [text.xy for text in ax.texts] == [
        (row["normalised_information"], row["hamming"]) for row in compared
    ]
    assert ax.get_xlabel() == "normalised information"
    ax.figure.canvas.draw()


# -- measures and estimates ------------------------------------------------------------------------


def test_the_html_of_measures_has_every_printed_number() -> None:
    found = fd.measure(np.eye(3), [[1, 2, 3], [2, 1, 1]], sensitive=0)
    html = parsed(found._repr_html_())
    assert html.rows[0] == ["measure", "value", "meaning"]
    assert [row[0] for row in html.rows[1:]] == list(found.to_series().index)
    for name, value, _ in html.rows[1:]:
        assert float(value) == pytest.approx(found[name], rel=2e-5)
        assert (
            not name.startswith(("lip", "alip", "secret", "answer", "dpv"))
            or float(value) >= found[name]
        )
    assert ["ceiling", "inf", "e^ε of the answer's LDP"] in html.rows


def estimates(counts: Any = (30, 9, 21, 40), **options: Any) -> fd.Estimates:
    return labelled().estimate(counts=counts, **options)


def test_estimates_print_every_number_and_their_notes() -> None:
    found = estimates(confidence_level=0.9)
    head, *lines = repr(found).splitlines()
    assert re.split(r" {2,}", head) == [
        "100 reports",
        "estimate",
        "standard error",
        "low (90%)",
        "high (90%)",
    ]
    rows, notes = lines[:3], lines[3:]
    numbers = np.column_stack([found.shares, found.standard_errors, found.interval()])
    for line, label, row in zip(rows, LABELS, numbers, strict=True):
        assert line.startswith(label)
        assert line[len(label) :].split() == [f"{v:.4f}" for v in row]
    of_rows = zip(LABELS, found.figures.row_flags, strict=True)
    assert notes == [
        *(SENTENCES[flag] for flag in found.figures.flags),
        *(f"{label}: {SENTENCES[flag]}" for label, flags in of_rows for flag in flags),
    ]
    assert notes
    html = found._repr_html_()
    parser = parsed(html)
    assert "<b>" not in html
    assert [row[0] for row in parser.rows[1:]] == LABELS
    assert [row[1:] for row in parser.rows[1:]] == [[f"{v:.4f}" for v in row] for row in numbers]
    assert parser.texts[-len(notes) :] == notes


def test_the_frame_of_estimates_has_a_row_for_each_target() -> None:
    found = estimates()
    frame = found.to_frame("clt")
    assert frame.shape == (3, 4)
    assert list(frame.index) == LABELS
    assert frame["estimate"].tolist() == found.shares.tolist()
    assert frame["standard_error"].tolist() == found.standard_errors.tolist()
    assert frame[["low", "high"]].to_numpy().tolist() == found.interval("clt").tolist()
    assert frame["low"].to_numpy() == pytest.approx(
        found.shares - 1.959963985 * found.standard_errors
    )
    pairs = fd.design([[10, 20], [30, 15]], fd.SecretLDP(1), mechanism="secret-rr").estimate(
        counts=[10, 20, 30, 40]
    )
    assert list(pairs.to_frame().index) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_the_plot_of_estimates_has_a_bar_for_each_target() -> None:
    found = estimates(confidence_level=0.9)
    ax = found.plot()
    (points,), (lines,) = ax.lines, ax.collections
    assert points.get_xdata().tolist() == found.shares.tolist()
    assert points.get_ydata().tolist() == [0, 1, 2]
    ends = np.array([segment[:, 0] for segment in lines.get_segments()])
    inside = (found.interval()[:, 0] <= found.shares) & (found.shares <= found.interval()[:, 1])
    assert inside.all()
    assert ends == pytest.approx(found.interval(), abs=1e-12)
    assert ax.get_xlabel() == "share, with 90% interval (score)"
    assert [text.get_text() for text in ax.get_yticklabels()] == LABELS
    assert ax.yaxis_inverted()
    ax.figure.canvas.draw()
    given = plt.figure().subplots()
    assert found.plot(given, "chebyshev") is given
    assert given.get_xlabel().endswith("(chebyshev)")


@pytest.mark.parametrize("counts", [(0, 0, 0, 0), (1, 0, 0, 0)], ids=["none", "one"])
def test_few_reports_still_print_and_plot(counts: Any) -> None:
    found = estimates(counts)
    assert f"{sum(counts)} reports" in repr(found)
    parsed(found._repr_html_())
    found.plot().figure.canvas.draw()
    assert found.to_frame().shape == (3, 4)


@pytest.mark.parametrize(
    "plot", [lambda: labelled().plot(), lambda: estimates().plot(), lambda: fd.Listing("", [], ()).plot()],
    ids=["design", "estimates", "listing"],
)  # fmt: skip
def test_without_matplotlib_a_plot_says_what_to_install(
    plot: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = refusal(InvalidInput, plot)
    assert (error.code, error.field) == ("unsupported", "ax")
    assert "install it" in error.detail


def test_columns_of_a_printed_table_begin_at_the_same_place() -> None:
    head, *lines = repr(labelled()).splitlines()[5:]
    width = max(map(len, LABELS))
    assert head.index("y0") == width + 2
    for line, label in zip(lines, LABELS, strict=True):
        assert line[:width].rstrip() == label
        assert [line[place - 1 : place + 6] for place in map(head.index, ("y0", "y1", "y2"))] == [
            f" {w / 16:.4f}" for w in FOUR_BITS.weights[LABELS.index(label)][:3]
        ]
