# SPDX-License-Identifier: Apache-2.0
"""docs/performance.md, written from the results of benches in docs/bench/.

``python bench/_performance.py [JSON …]`` stores results of benches (``run.py bench NAME --json``),
then rewrites the page and its picture. A partial result (some items, some panels, --loaded)
replaces only that part.
"""

import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from _growth.plots import svg
from _runner import markdown, number

DOCS = Path(__file__).resolve().parents[1] / "docs"
_DEMANDS = {
    1: "c = 2, a = 5, random priors: against vertex enumeration in the printed form",
    2: "Adult, the panels of Funnel's Figure 6, and native-country × occupation: LIP, against enumeration",
    3: "17 answers, 5 secrets (the set-up of On the Lift): two-sided lift, 20 priors per cell",
    4: "200 answers, 15 secrets: two-sided lift, against subset random response",
    5: "side-channel resistance on the joint cone, attributes 3·3·4, ten joints per level",
    6: "robust LDP on Adult (β = .05, ε = 1.5), against Independent Reporting",
    7: "the variance objective, against explicit families; frontier; what a promise costs",
    8: "random designs over all notions: verified, and bounds against an independent search",
    9: "random requests of up to 10 answers, with targets: none refused, nearly all certified in 5 s",
    10: "LIP with a ceiling, which the wizard recommends: certified up to 16 answers",
    11: "levels of pairs (metric-ldp): certified up to 10 answers, and no worse than what is known",
    12: "long lists of equally likely answers under ldp: certified in seconds, small, quick to verify",
    13: "LIP, 60 secrets and 20 answers, and 20 and 60: certified in 60 s of CPU time, and bounded",
}
_PLAIN = {
    "sdk": "The SDK, compared with other libraries",
    "browser": "The browser SDK",
    "verify": "Exact verification",
    "estimate": "Estimates, compared with other libraries",
    "analyst": "Weights and models of the analyst's client",
    "intake": "Intake",
    "scale": "A survey that grows",
    "mutation": "Mutants: single errors in the code, against its tests",
}
_AT_THE_LIMIT = {
    "accepted": "CPU seconds for the largest documents within the work budget and 4 MiB (n is the "
    "size that varies; a promise that does not hold takes as long):",
    "too_large": "Documents that took up to a minute in Python, and ten in JavaScript, before "
    "there was a work budget:",
}
_BY_AREA = {
    "areas": "By area; `bench/_mutation/survivors.toml` gives a reason for each equivalent or "
    "harmless mutant:"
}
_COVERED = {
    "covered": "Coverage of 95% intervals: the least and the median over the estimates of each case:",
    "shipped": "The same for all shipped designs, computed from the scores of single reports: the "
    "least coverage over figures, truths and sizes, and the largest mean width of `score` relative "
    "to `clt`:",
    "missed": "Figures that miss their limits:",
}
_HEAD = "| case | value | bound | gap | s | against | its value | its s | ratio | demand | met |"


def main(results: Sequence[str]) -> None:
    """Store each result and write the page."""
    for path in results:
        _file(json.loads(Path(path).read_text()))
    for home, text in files().items():
        home.write_text(text)


def files() -> dict[Path, str]:
    """Return the contents of the page, and of its picture if growth was measured."""
    pages = {DOCS / "performance.md": page()}
    if (growth := _filed("growth")) is not None:
        pages[DOCS / "bench" / "growth.svg"] = svg(growth["points"], _where(growth))
    return pages


def _filed(name: str) -> dict[str, Any] | None:
    home = DOCS / "bench" / f"{name}.json"
    return json.loads(home.read_text()) if home.exists() else None


def _where(result: dict[str, Any]) -> str:
    note = (
        f"Measured on 2 cores of a shared machine ({result['machine']}, Python {result['python']})."
    )
    return note if "load" not in result else f"{note} {_busy(result)}"


def _busy(result: dict[str, Any]) -> str:
    """Return a sentence about the load of the machine; at 2 both cores are busy."""
    return f"Load average during the run: {min(result['load']):.1f} to {max(result['load']):.1f}."


def _file(result: dict[str, Any]) -> None:
    home = DOCS / "bench" / f"{result['bench']}.json"
    if "rows" not in result:
        before = json.loads(home.read_text()) if home.exists() else {}
        home.write_text(json.dumps(_with_the_rest(before, result), indent=1) + "\n")
        return
    filed = (
        json.loads(home.read_text()) if home.exists() else {"bench": result["bench"], "rows": []}
    )
    fresh = {row["item"] for row in result["rows"]}
    rows = [row for row in filed["rows"] if row["item"] not in fresh] + result["rows"]
    rows.sort(key=lambda row: row["item"])
    body = {
        "bench": result["bench"],
        "python": result["python"],
        "machine": result["machine"],
        "rows": rows,
    }
    home.write_text(json.dumps(body, indent=1) + "\n")


def _with_the_rest(before: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Return a result completed from the previous one: other panels, other figures of a part."""
    both = {"load": [*before.get("load", []), *result["load"]]} if "load" in result else {}
    if "points" in result:
        fresh = {point["panel"] for point in result["points"]}
        unchanged = [point for point in before.get("points", []) if point["panel"] not in fresh]
        both = both if unchanged else {}
        return (
            result
            | both
            | {
                "points": sorted(
                    [*unchanged, *result["points"]], key=lambda point: str(point["panel"])
                )
            }
        )
    if not result.get("part"):
        return result
    short = [name for name in before.get("short", []) if name not in result] + result["short"]
    both |= {name: before.get(name, {}) | result.get(name, {}) for name in ("spread", "asked")}
    return before | result | both | {"part": False, "short": short, "holds": not short}


def page() -> str:
    """Return the whole page."""
    design = json.loads((DOCS / "bench" / "design.json").read_text())
    lines = [
        "# Performance",
        "",
        "Written by `bench/_performance.py` from the results in docs/bench/, one run each on 2 cores",
        "of a shared machine: times show the order of magnitude; ratios are of times measured side",
        "by side. Values are in the unit of the objective: nats for information, variance at n = 1.",
        "≥: the baseline was stopped at its time limit, which counts as its time.",
        "",
        f"## Design (`python3 run.py bench design`, Python {design['python']})",
    ]
    for item in sorted({row["item"] for row in design["rows"]}):
        rows = [row for row in design["rows"] if row["item"] == item]
        lines += [
            "",
            f"### {item}. {_DEMANDS[item]}",
            "",
            _summary(rows),
            "",
            _HEAD,
            "|---" * 11 + "|",
        ]
        lines += [_line(row) for row in rows]
    return "\n".join([*lines, *_growth(), *_figures()]) + "\n"


def _growth() -> list[str]:
    """Return the section about growth, if it was measured: picture, and points as a table."""
    filed = _filed("growth")
    if filed is None:
        return []
    head = ["", "## Growth (`python3 run.py bench growth`)", "", _where(filed), ""]
    head += ["![how the work grows](bench/growth.svg)", ""]
    rows = [f"| {p['panel']} | {p['curve']} | {p['x']:g} | {p['y']:.4g} |" for p in filed["points"]]
    return [
        *head,
        "| panel | curve | x | y (CPU seconds; intake: reports a second) |",
        "|---" * 4 + "|",
        *rows,
    ]


def _figures() -> list[str]:
    """Return a table of each bench of plain figures: medians, with least and most if known."""
    lines: list[str] = []
    for name, title in _PLAIN.items():
        filed = _filed(name)
        if filed is None:
            continue
        lines += [
            "",
            f"## {title} (`python3 run.py bench {name}`)",
            "",
            *([_where(filed), ""] if "load" in filed else []),
            "| figure | median | least | most | demand |",
            "|---" * 5 + "|",
        ]
        spread, demands = filed.get("spread", {}), filed.get("asked", {})
        for figure, value in filed.items():
            if isinstance(value, float):
                low, high = spread.get(figure, (None, None))
                cells = (number(value), number(low), number(high), demands.get(figure, ""))
                lines.append(f"| {figure} | {' | '.join(cells)} |")
        lines += ["", f"Demands missed: {', '.join(filed['short']) or 'none'}."]
        if "coverage" in filed:
            lines += [
                "",
                "Coverage of margins at 95%, the least over several truths:",
                "",
            ]
            lines += markdown(filed["coverage"])
        for rows, heading in _COVERED.items():
            if filed.get(rows):
                lines += ["", heading, "", *markdown(filed[rows])]
        for rows, heading in (_AT_THE_LIMIT | _BY_AREA).items():
            if rows in filed:
                lines += ["", heading, "", *markdown(filed[rows])]
    return lines


def _summary(rows: Sequence[dict[str, Any]]) -> str:
    judged = [row["holds"] for row in rows if row["holds"] is not None]
    seconds = [row["seconds"] for row in rows if row["seconds"] > 0]
    ratios = [row["ratio"] for row in rows if row["ratio"] is not None]
    sentences = [f"{sum(judged)} of {len(judged)} demands met"] if judged else []
    if seconds:
        sentences.append(
            f"median {number(statistics.median(seconds))} s, longest {number(max(seconds))} s"
        )
    if ratios:
        sentences.append(f"ratios {number(min(ratios))} to {number(max(ratios))}")
    return "; ".join(sentences) + "."


def _line(row: dict[str, Any]) -> str:
    least = "≥ " if row["capped"] else ""
    cells: Iterable[str] = (
        row["case"].replace("|", "\\|"),
        number(row["value"]),
        number(row["bound"]),
        "" if row["gap"] is None else f"{row['gap']:.1e}",
        number(row["seconds"]),
        row["baseline"],
        number(row["baseline_value"]),
        _at_least(least, row["baseline_seconds"]),
        _at_least(least, row["ratio"]),
        row["limit"],
        {None: "", True: "yes", False: "**no**"}[row["holds"]],
    )
    return "| " + " | ".join(cells) + " |"


def _at_least(least: str, value: float | None) -> str:
    return "" if value is None else least + number(value)


if __name__ == "__main__":
    main(sys.argv[1:])
