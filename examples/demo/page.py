# SPDX-License-Identifier: Apache-2.0
"""`demo-report.html`: one self-contained page that has no scripts and loads nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from frankly_analyst.charts import Line, Scale, intervals
from frankly_analyst.plots import SHARE, figure
from frankly_analyst.shown import Shown

from examples.demo.results import Question
from examples.demo.surveys import Rivals

_STYLE = """
:root { color-scheme: light dark; --ink: #16202c; --paper: #fdfcf9; --soft: #5b6773; --line: #d9d5cb;
  --bar: #9cc0e4; --whisker: #17324d; --truth: #c2410c; --good: #166534; --bad: #9f1239; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --paper: #14181d; --soft: #a3adb8; --line: #353c45;
  --bar: #35618f; --whisker: #dbe7f3; --truth: #fb923c; --good: #86efac; --bad: #fda4af; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 52rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.75rem 0 .25rem; }
p { margin: .4rem 0 .8rem; max-width: 46rem; }
.soft, figcaption { color: var(--soft); font-size: .9rem; }
figure { margin: .75rem 0; }
svg { width: 100%; max-width: 38rem; height: auto; display: block; }
svg .bar { fill: var(--bar); } svg .whisker { stroke: var(--whisker); }
svg .truth { fill: var(--truth); stroke: var(--paper); } svg .axis { stroke: var(--line); }
svg .label { fill: var(--ink); font-family: system-ui, sans-serif; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
th { font-weight: 600; }
@media (max-width: 30rem) { body { padding-inline: .8rem; } th, td { padding: .3rem .3rem; font-size: .85rem; } }
.in { color: var(--good); } .out { color: var(--bad); font-weight: 600; }
.key { display: inline-block; width: .7rem; height: .7rem; margin: 0 .3rem 0 .9rem; vertical-align: baseline; }
.key.b { background: var(--bar); } .key.t { background: var(--truth); transform: rotate(45deg) scale(.8); }
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """Texts and numbers around the figures.

    source : of the data. pilot, respondents : numbers of people. inside, checked : numbers of true
    figures. asked, of : questions put to all people, and those that asking everything would put.
    blocks : rows of (block, notion, ε, mechanism, ceiling, promise used). report_note :
    the bound of the whole report. rivals : respondents that other methods would need for the same
    variance; None for a survey without a form.
    """

    title: str
    source: str
    pilot: int
    respondents: int
    inside: int
    checked: int
    asked: int
    of: int
    report_note: str
    blocks: Sequence[tuple[str, str, str, str, str, str]]
    ceiling_note: str
    rivals: Rivals | None = None

    @property
    def asked_in_words(self) -> str:
        """How many questions were asked, beside the number of asking everything."""
        return (
            f"{self.asked:,} questions were asked in all: each device drew first what its report is about, and "
            f"asked only that. Asking everybody everything would have been {self.of:,}, and the estimates no "
            "more precise."
        )


def render(questions: Sequence[Question], facts: Facts) -> str:
    """Return the whole page."""
    is_form = facts.rivals is not None
    drawn = (
        "random sets of choices for some of the questions"
        if is_form
        else "one random symbol per block of questions"
    )
    body = [
        f"<h1>{escape(facts.title)}: what {facts.respondents:,} people said, without anyone holding an answer</h1>",
        f"<p>Every respondent’s device checked the signed mechanisms, drew {drawn} "
        f"and sent only those. The server has only {facts.respondents:,} noisy reports; the figures below are computed "
        "from their counts. The truth is shown because this is a demonstration on public data.</p>",
        *([f"<p><strong>{_verdict(facts)}</strong> {_CENSUS}</p>"] if facts.checked else []),
        '<p class="soft"><span class="key b"></span>estimate <span class="key t"></span>truth; '
        "the whiskers are 95% intervals</p>",
        *(_question(q) for q in questions),
        *([f"<p>{facts.asked_in_words}</p>"] if facts.asked < facts.of else []),
        "<h2>What each answer cost its respondent</h2>",
        _cost(facts),
        f"<p>{escape(facts.report_note)} {escape(facts.ceiling_note)}</p>",
        *([] if facts.rivals is None else [f"<p>{facts.rivals.in_words}</p>"]),
        f'<p class="soft">Data: {escape(facts.source)}. {_pilot(facts)}</p>',
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>Frankly: {escape(facts.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


_CENSUS = "All people answered, so the intervals cover only the randomisation."


def _verdict(facts: Facts) -> str:
    return f"{facts.inside} of {facts.checked} true figures lie inside their 95% intervals."


def _pilot(facts: Facts) -> str:
    if not facts.pilot:
        return "No prior is used."
    return f"The priors come from a public pilot of {facts.pilot:,} other people."


def _question(question: Question) -> str:
    bars = [
        Line.of(c.row.label, Shown.row(c.row), c.truth)
        for c in question.rows
        if c.row.estimate is not None and c.row.unit == SHARE
    ]
    chart = intervals(question.text, [("", bars)], Scale.of_shares(bars))
    first = question.rows[0].row
    lines = "".join(
        f"<tr><td>{escape(c.row.label)}</td><td>{figure(c.row.estimate, c.row.unit)}</td><td>{c.row.interval}</td>"
        f"<td>{figure(c.truth, c.row.unit)}</td>"
        f'<td class="{"in" if c.inside else "out"}">{"inside" if c.inside else "outside"}</td></tr>'
        for c in question.rows
    )
    return (
        f"<h2>{escape(question.text)}</h2>\n<figure>{chart}\n<figcaption>n = {first.n:,}; "
        f"{escape(first.mechanism)}, {escape(first.notion)}, ε = {escape(first.epsilon)}</figcaption></figure>\n"
        '<div class="scroll"><table><thead><tr><th scope="col">Answer</th><th scope="col">Estimate</th>'
        '<th scope="col">95% interval</th><th scope="col">Truth</th><th scope="col">Truth is</th></tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _cost(facts: Facts) -> str:
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("Block", "Notion", "ε (nats)", "Mechanism", "Ceiling", "Counts by")
    )
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>"
        for line in facts.blocks
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'
