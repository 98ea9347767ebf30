# SPDX-License-Identifier: Apache-2.0
"""Conversion of notebooks to pages: run the cells and show their outputs.

Only Python is needed. The output of a cell is the text that it prints and the value of its last
line: a plot of matplotlib as a picture, HTML or SVG if the value has such a form, otherwise text.
"""

import ast
import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_DIGEST: Final = re.compile(r"[0-9a-f]{32,}")
_SIMULATED: Final = "as run by the tests on simulated reports"

Picture = Callable[[Any, int], str]
"""Function (matplotlib figure, its number on the page from 1) that returns the file's name."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A cell that has run: its source, printed output, and the value of its last line or None."""

    is_code: bool
    source: str
    printed: str = ""
    value: Any = None


def cells(file: Path) -> list[Mapping[str, Any]]:
    """Return the cells of a notebook's file."""
    return list(json.loads(file.read_text(encoding="utf-8"))["cells"])


def run(file: Path, names: dict[str, Any] | None = None) -> Iterator[Ran]:
    """Run the code cells in order, in one namespace, and yield every cell.

    names : the namespace, to which the cells add names.
    """
    names = {} if names is None else names
    for number, cell in enumerate(cells(file)):
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            yield Ran(is_code=False, source=source)
            continue
        tree, last = ast.parse(source), None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
        place, value = f"{file.name}[{number}]", None
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(tree, place, "exec"), names)  # noqa: S102 - our own notebooks
            if last is not None:
                value = eval(compile(last, place, "eval"), names)  # noqa: S307
        yield Ran(is_code=True, source=source, printed=printed.getvalue(), value=value)


def page(
    file: Path,
    ran: Iterator[Ran],
    *,
    made_by: str = "tests.frankly_analyst.notebooks",
    note: str = _SIMULATED,
    picture: Picture | None = None,
) -> str:
    """Return a notebook as Markdown, with the outputs of its cells; digests become `…`.

    made_by : the module that writes the page. note : how the notebook ran. picture : names, and may
    write, the pictures of plots; with None, a page says only that there is a plot.
    """
    comment = f"<!-- made by `python -m {made_by}`; edit examples/notebooks -->"
    head = f"Notebook `examples/notebooks/{file.name}`, {note}."
    parts, plots = [], 0
    for cell in ran:
        if not cell.is_code:
            parts.append(cell.source)
            continue
        plots += _is_plot(cell.value)
        parts += [_fenced("python", cell.source), *_outputs(cell, picture, plots)]
    title, *others = parts
    # The note is placed below the title, which must be the first heading of the page.
    heading, _, rest = title.partition("\n")
    return (
        "\n\n".join([comment, heading, head, rest.strip(), *others]).replace("\n\n\n\n", "\n\n")
        + "\n"
    )


def _is_plot(value: Any) -> bool:
    """Return True for axes and other parts of a figure of matplotlib."""
    return hasattr(getattr(value, "figure", None), "savefig")


def _outputs(cell: Ran, picture: Picture | None, number: int) -> Iterator[str]:
    if cell.printed.strip():
        yield _fenced("text", _portable(cell.printed))
    if cell.value is None:
        return
    if _is_plot(cell.value):
        figure = cell.value.figure
        title = _described(figure)
        yield f"*{title}*" if picture is None else f"![{title}]({picture(figure, number)})"
        return
    for name in ("_repr_svg_", "_repr_html_"):
        form = getattr(cell.value, name, None)
        if form is not None:
            yield _block(_portable(form()))
            return
    yield _fenced("text", _portable(str(cell.value)))


def _described(figure: Any) -> str:
    """Return the labels of the figure's first axes as a title."""
    axes = figure.axes[0]
    return "Plot: " + " against ".join(filter(None, [axes.get_ylabel(), axes.get_xlabel()]))


def _portable(text: str) -> str:
    return _DIGEST.sub("…", text)


def _fenced(language: str, body: str) -> str:
    lines = "\n".join(line.rstrip() for line in body.strip("\n").splitlines())
    return f"```{language}\n{lines}\n```"


def _block(html: str) -> str:
    """Return HTML as one block of Markdown: without styles, which the pages' policy forbids, or blank lines."""
    html = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
    html = re.sub(r' (?:style|border)="[^"]*"', "", html)
    lines = [line.strip() for line in html.splitlines() if line.strip()]
    return "\n".join(['<div class="output">', *lines, "</div>"])
