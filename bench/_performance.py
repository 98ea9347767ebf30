# SPDX-License-Identifier: Apache-2.0
"""Section "Benches" of docs/measured.md, a summary of the results of benches in docs/bench/.

``python bench/_performance.py [JSON …]`` stores results of benches (``run.py bench NAME --json``),
then rewrites the section and its picture. A partial result (some items, some panels, --loaded)
replaces only that part. `_performance.toml` contains its words.
"""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from typing import Any

from _runner import markdown

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `papers` is not an installed package
from _growth.plots import PANELS, svg

DOCS = Path(__file__).resolve().parents[1] / "docs"
WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
MARK = "<!-- Below this line: written by bench/_performance.py -->\n"
"""End of the part of the page that is written by hand."""
TIMING, OTHER = 2, 3
"""Significant digits; times on a shared machine vary too much for more than two."""
_UNITS = {"_per_s": "", "_s": " s", "_ms": " ms", "_us": " µs", "_kb": " KB", "_mb": " MB"}
Row = dict[str, Any]


def main(results: Sequence[str]) -> None:
    """Store each result and write the page."""
    for path in results:
        _file(json.loads(Path(path).read_text()))
    for home, text in files().items():
        home.write_text(text)


def files() -> dict[Path, str]:
    """Return the contents of the page, and of its picture if growth was measured."""
    pictures = {
        DOCS / "bench" / f"{result['bench']}.svg": svg(result["points"], _where(result))
        for result in _results()
        if "points" in result
    }
    home = DOCS / "measured.md"
    by_hand = home.read_text().partition(MARK)[0]
    return {home: by_hand + MARK + section()} | pictures


def _results() -> list[Row]:
    """Return all stored results, those without words last."""
    stored = {path.stem: json.loads(path.read_text()) for path in (DOCS / "bench").glob("*.json")}
    return [stored[name] for name in (*WORDS, *sorted(stored.keys() - WORDS)) if name in stored]


def _where(result: Row) -> str:
    """Return machine, Python and load; at a load of 2 both cores are busy."""
    machine = f"{result['machine']}, Python {result['python']}"
    note, load = f"Measured on 2 cores of a shared machine ({machine}).", result.get("load")
    busy = f" Load average during the run: {min(load):.1f} to {max(load):.1f}." if load else ""
    return note + busy


def _file(result: Row) -> None:
    home = DOCS / "bench" / f"{result['bench']}.json"
    before = json.loads(home.read_text()) if home.exists() else {}
    home.write_text(json.dumps(_with_the_rest(before, result), indent=1) + "\n")


def _with_the_rest(before: Row, result: Row) -> Row:
    """Return a result completed from the previous one: other items, panels, figures of a part."""
    both = {"load": [*before.get("load", []), *result["load"]]} if "load" in result else {}
    for table, part in {"rows": "item", "points": "panel"}.items():
        if table in result:
            fresh = {row[part] for row in result[table]}
            unchanged = [row for row in before.get(table, []) if row[part] not in fresh]
            rows = sorted([*unchanged, *result[table]], key=lambda row: row[part])
            about = {k: result[k] for k in ("bench", "python", "machine", "load") if k in result}
            # Beside its rows the form bench has figures of ten forms.
            more = {k: v for k, v in (before | result).items() if k == "questions_asked"}
            return about | (both if unchanged else {}) | {table: rows} | more
    if not result.get("part"):
        return result
    short = [name for name in before.get("short", []) if name not in result] + result["short"]
    both |= {name: before.get(name, {}) | result.get(name, {}) for name in ("spread", "asked")}
    return before | result | both | {"part": False, "short": short, "holds": not short}


def section() -> str:
    """Return the written section: a line per bench, then a part about each."""
    results, benches = _results(), []
    for result in results:
        verdicts = [row["holds"] for row in result.get("rows", ())]
        verdicts += [name not in result.get("short", ()) for name in _targets(result)]
        title, met = _words(result)["title"], _met(verdicts) or "no targets"
        anchor = re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.lower()))
        benches.append({"bench": f"[{title}](#{anchor})", "targets met": met})
    parts = [line for result in results for line in _part(result)]
    return "\n".join([WORDS["introduction"], *markdown(benches), *parts]) + "\n"


def _part(result: Row) -> Iterator[str]:
    """Yield the lines about one bench; a field that its result lacks has none."""
    name, words = result["bench"], _words(result)
    source = Path(__file__).with_name(f"{name}.py")
    yield from ("", f"### {words['title']}", "")
    if source.exists():
        yield (ast.get_docstring(ast.parse(source.read_text())) or "").split("\n\n")[0]
    yield f"`python3 run.py bench {name}`. {_where(result)} All rows: [{name}.json](bench/{name}.json)."
    yield from ("", words["note"]) if "note" in words else ()
    yield from ("", f"![{words['picture']}](bench/{name}.svg)") if "picture" in words else ()
    for rows in (_items(result), _figures(result), _curves(result), result.get("areas")):
        yield from ("", *markdown(rows)) if rows else ()
    if missed := [*_missed(result)]:
        yield from ("", "Missed:", "", *missed)
    if result.get("exceptions"):
        usual = {name: f"≤ {bound:g}" for name, bound in result["usual"].items()}
        yield from ("", words["exceptions"], "", *_cells(result["exceptions"], usual))


def _words(result: Row) -> Row:
    words: Row = WORDS.get(result["bench"], {})
    empty = {"items": {}, "figures": {}, "reasons": {}, "exceptions": "Exceptions:"}
    return {"title": result["bench"]} | empty | words


def _targets(result: Row) -> dict[str, str]:
    """Return the targets of plain figures as text, "" if only a miss is stored."""
    missed: dict[str, str] = dict.fromkeys(result.get("short", ()), "")
    return missed | dict(result.get("asked", {}))


def _met(verdicts: Iterable[bool | None]) -> str:
    """Return how many targets are met, in bold unless all are; None : no target."""
    judged = [verdict for verdict in verdicts if verdict is not None]
    text = f"{sum(judged)} of {len(judged)}" if judged else ""
    return text if all(judged) else f"**{text}**"


def _grouped(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by the values of some keys, in the order of their first occurrence."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def _items(result: Row) -> list[Row]:
    """Return a line per item, target and baseline."""
    # Details of a single row, such as a number of designs, follow the name of its baseline.
    rows = [row | {"baseline": row["baseline"].split(":")[0]} for row in result.get("rows", ())]
    lines, previous = [], None
    for (item, limit, baseline), group in _grouped(rows, "item", "limit", "baseline").items():
        known = {key: [row[key] for row in group if row[key] is not None] for key in group[0]}
        relative = [row["value"] / row["baseline_value"] for row in group if row["baseline_value"]]
        title = f"{item}. {_words(result)['items'].get(str(item), '')}"
        lines.append(
            {
                "item": title if item != previous else "",
                "target": limit,
                "met": _met(known["holds"]),
                "seconds": span([s for s in known["seconds"] if s > 0], TIMING),
                "value": span(known["value"]),
                "largest gap": significant(max(known["gap"]), TIMING) if known["gap"] else "",
                "compared with": baseline,
                "value ÷ its": span(relative),
                "its seconds ÷ ours": span(known["ratio"], TIMING),
            }
        )
        previous = item
    return lines


def _figures(result: Row) -> list[Row]:
    """Return a line per pattern of figures and target.

    Of a pattern with targets, the figures without one are only in the JSON; a figure with a target
    that no pattern fits has a line of its own.
    """
    patterns, targets = _words(result)["figures"], _targets(result)
    names = [name for name, value in result.items() if type(value) in (int, float)]
    rows: list[Row] = []
    for pattern in (*patterns, "*"):
        fitting = [name for name in names if fnmatchcase(name, pattern)]
        names = [name for name in names if name not in fitting]
        for name in [n for n in fitting if n in targets] or fitting * (pattern in patterns):
            what = patterns.get(pattern, f"`{name}`")
            rows.append({"name": name, "what": what, "target": targets.get(name, "")})
    lines = []
    for (what, target), group in _grouped(rows, "what", "target").items():
        shown = [row["name"] for row in group]
        digits, unit = _format(shown[0])
        figures = span([result[name] for name in shown], digits, unit)
        met = _met(name not in result.get("short", ()) for name in shown if name in targets)
        bound = target and target + unit
        lines.append({"what": what, "figures": figures, "target": bound, "met": met})
    return lines


def _format(name: str) -> tuple[int, str]:
    """Return the significant digits of a figure, and its unit."""
    end = next((end for end in _UNITS if name.endswith(end)), "")
    return OTHER if end in ("", "_kb", "_mb") else TIMING, _UNITS.get(end, "")


def _curves(result: Row) -> list[Row]:
    """Return a line per curve."""
    panels, lines = {panel.key: panel for panel in PANELS}, []
    for (key, curve), group in _grouped(result.get("points", ()), "panel", "curve").items():
        title, unit = f"{panels[key].title}; {curve}", f" {panels[key].y}"
        sizes = f"{panels[key].x}: {span([group[0]['x'], group[-1]['x']])}"
        figures = span([point["y"] for point in group], TIMING, unit)
        lines.append({"curve": title, "sizes": sizes, "figures": figures})
    return lines


def _missed(result: Row) -> Iterator[str]:
    """Yield each figure that misses its target: rows, plain figures, and cells by design."""
    for row in result.get("rows", ()):
        if row["holds"] is False:
            keys = ("value", "bound", "gap", "seconds", "baseline_value", "ratio")
            known = [key for key in keys if row[key] is not None]
            figures = [f"{key} {beside(row[key], row['limit'], OTHER)}" for key in known]
            yield f"- {row['item']}, {row['case']}: {', '.join(figures)}; target {row['limit']}."
    targets, reasons = _targets(result), _words(result)["reasons"]
    for name in result.get("short", ()):
        (digits, unit), target = _format(name), targets[name]
        figure = beside(result[name], target, digits) + unit if name in result else "not stored"
        bound = target + unit if target else "not stored"
        yield f"- `{name}`: {figure}; target {bound}. {reasons.get(name, 'No reason is stated.')}"
    yield from _cells(result.get("missed", ()), targets)


def _cells(rows: Iterable[Row], targets: dict[str, str]) -> Iterator[str]:
    """Yield a line about cells beyond a target per demand and design."""
    for (demand, design), group in _grouped(rows, "demand", "design").items():
        target = next((text for name, text in targets.items() if name.endswith(demand)), "")
        cells = [
            f"{cell['kind']}, {cell['truth']}, n = {cell['n']}, no. {cell['target']}: "
            + beside(cell["figure"], target, OTHER)
            for cell in group
        ]
        yield f"- `{demand}` {target}, {design}: {'; '.join(cells)}."


def span(values: Sequence[float], digits: int = OTHER, unit: str = "") -> str:
    """Return the least and the largest value, and the median of three or more, as text."""
    if not values:
        return ""
    low, middle, high = (significant(f(values), digits) for f in (min, median, max))
    if low == high:
        return f"{high}{unit}"
    return f"{low} to {high}{unit}" + f", median {middle}" * (len(values) > 2)


def significant(value: float, digits: int) -> str:
    """Return a figure with significant digits as text; a whole number that is no time has all."""
    rounded = value if digits > TIMING and value % 1 == 0 else float(f"{value:.{digits - 1}e}")
    return f"{rounded:,.{max(digits, 15)}g}"


def beside(value: float, target: str, digits: int) -> str:
    """Return a figure as text, with enough digits to be on its side of the target's bounds."""
    bounds = [float(bound) for bound in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", target)]
    rounded = float(significant(value, digits).replace(",", ""))
    if all((value < b, value > b) == (rounded < b, rounded > b) for b in bounds):
        return significant(value, digits)
    return beside(value, target, digits + 1)


if __name__ == "__main__":
    main(sys.argv[1:])
