# SPDX-License-Identifier: Apache-2.0
"""Pictures of docs/concepts.md: without formulas, 400 pixels wide so that they can be read on a phone.

Numbers are those of Warner's mechanism at ε = 1, computed when the pictures are drawn.
"""

import functools
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any, Final

from frankly_analyst.svg import line, text

from tools.site.pictures.chart import BLUE, GREEN, INK, ORANGE, PALE, picture
from tools.site.pictures.diagrams import arrow
from tools.site.pictures.plots import design

_WIDTH: Final = 400
_ON_DEVICE, _WARM = "#eef6ea", "#fbe9d9"
_NORMAL_95: Final = statistics.NormalDist().inv_cdf(0.975)
_HEAD: Final = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    f'<path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>'
)
"""The arrowhead of `arrow`."""


@functools.cache
def _designed(yes: int, no: int) -> dict[str, Any]:
    prior = {"joint": [[no, yes]]}
    return design({"prior": prior, "notion": "ldp", "mechanism": "warner", "epsilon": "1"})


def kept() -> float:
    """Return the chance that a yes/no answer is sent unchanged at ε = 1."""
    designed = _designed(1, 1)
    return float(designed["weights"][0][0] / 2 ** designed["bits"])


def margin_of(people: int, yes: int = 1, no: int = 1) -> float:
    """Return the 95% margin, in percentage points, of a share of yes : no at ε = 1."""
    variance = _designed(yes, no)["variance"] / 2  # the total of two equal variances
    return float(100 * _NORMAL_95 * math.sqrt(variance / people))


def _box(x: int, y: int, width: int, fill: str, *lines: str) -> list[str]:
    """Return a box of one or two centred lines."""
    height = 12 + 18 * len(lines)
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{BLUE}"/>'
    middles = [
        text(x + width / 2, y + 20 + 18 * i, "middle", words, 14) for i, words in enumerate(lines)
    ]
    return [shape, *middles]


def _lines(x: int, y: int, *lines: str, size: int = 14, fill: str = "") -> list[str]:
    return [text(x, y + 19 * i, "start", words, size, fill) for i, words in enumerate(lines)]


def coin() -> str:
    """Draw the coin of 1965 as a tree: the truth in half of the cases, chance in the other half."""
    elements = [_HEAD, *_lines(12, 26, "Toss a coin before you answer", size=16)]
    elements += _box(130, 44, 140, PALE, "first coin")
    elements += arrow([(175, 74), (98, 112)], "heads", (112, 92))
    elements += arrow([(225, 74), (298, 112)], "tails", (286, 92))
    elements += _box(12, 114, 168, _ON_DEVICE, "say the truth")
    elements += _box(220, 114, 168, PALE, "second coin")
    elements += arrow([(280, 144), (252, 182)], "heads", (242, 164))
    elements += arrow([(332, 144), (356, 182)], "tails", (370, 164))
    elements += _box(206, 184, 88, _WARM, "say “yes”") + _box(304, 184, 88, _WARM, "say “no”")
    for x, words in ((96, "2 of 4"), (250, "1 of 4"), (348, "1 of 4")):
        elements.append(text(x, 166 if x == 96 else 236, "middle", words, 14, ORANGE))
    elements += _lines(
        12,
        272,
        "Three of four people whose answer is “no” say “no”,",
        "and one of four says “yes”.",
    )
    description = (
        "Heads, in two of four cases: say the truth. Tails: toss again; heads, in one of four cases, say yes; "
        "tails, in one of four cases, say no."
    )
    return picture(_WIDTH, 304, "The coin", description, elements)


def hundred() -> str:
    """Draw the reports of 100 people with each true answer."""
    stay = round(100 * kept())
    elements = _lines(12, 26, "What 100 people send", size=16)
    for x, truth, yes in ((20, "yes", stay), (214, "no", 100 - stay)):
        elements += _lines(x, 54, f"their answer is “{truth}”")
        elements += _dots(x, 66, yes)
        elements += _lines(x, 254, f"{yes} send “yes”", f"{100 - yes} send “no”", fill=INK)
    elements += [
        f'<circle cx="28" cy="303" r="6" fill="{BLUE}"/>',
        text(40, 308, "start", "sends “yes”", 14),
        f'<circle cx="150" cy="303" r="5.2" fill="#fff" stroke="{ORANGE}" stroke-width="1.8"/>',
        text(162, 308, "start", "sends “no”", 14),
    ]
    description = (
        f"Of 100 people whose answer is yes, about {stay} send yes and {100 - stay} send no. "
        f"Of 100 people whose answer is no, about {100 - stay} send yes and {stay} send no."
    )
    return picture(_WIDTH, 324, "What one answer tells", description, elements)


def _dots(x: int, y: int, yes: int) -> Iterator[str]:
    for i in range(100):
        place = f'cx="{x + 8 + 17 * (i % 10)}" cy="{y + 8 + 17 * (i // 10)}"'
        if i < yes:
            yield f'<circle {place} r="6" fill="{BLUE}"/>'
        else:
            yield f'<circle {place} r="5.2" fill="#fff" stroke="{ORANGE}" stroke-width="1.8"/>'


def crowd() -> str:
    """Draw 10,000 true answers, the reports expected from them, and the estimate."""
    people, yes = 10_000, 3_000
    sent = round(yes * kept() + (people - yes) * (1 - kept()))
    margin = margin_of(people, 3, 7)
    elements = _lines(12, 26, "From 10,000 noisy replies to a share", size=16)
    bars = (
        ("The truth, which nobody sees", yes, f"{yes:,} would say “yes”", f"{people - yes:,} “no”"),
        ("What arrives, on average", sent, f"{sent:,} times “yes”", f"{people - sent:,} “no”"),
    )
    for i, (heading, filled, left, right) in enumerate(bars):
        y = 58 + 84 * i
        width = round(376 * filled / people, 1)
        elements += _lines(12, y, heading)
        elements += [
            f'<rect x="12" y="{y + 8}" width="376" height="22" fill="#fff" stroke="{ORANGE}"/>',
            f'<rect x="12" y="{y + 8}" width="{width}" height="22" fill="{BLUE}"/>',
            text(12, y + 48, "start", left, 13, BLUE),
            text(388, y + 48, "end", right, 13, ORANGE),
        ]
    low, middle, high = (12 + 3.76 * value for value in (30 - margin, 30, 30 + margin))
    elements += _lines(12, 226, "What the server works out")
    elements += [
        line(12, 256, 388, 256, f'stroke="{INK}"'),
        *(line(12 + 3.76 * v, 252, 12 + 3.76 * v, 260, f'stroke="{INK}"') for v in (0, 50, 100)),
        f'<rect x="{low:.1f}" y="248" width="{high - low:.1f}" height="16" fill="{GREEN}"/>',
        line(middle, 242, middle, 270, f'stroke="{INK}" stroke-width="2"'),
        text(12, 286, "start", "0%", 13),
        text(200, 286, "middle", "50%", 13),
        text(388, 286, "end", "100%", 13),
        text(middle, 286, "middle", f"30% ± {margin:.1f}", 14, GREEN, weight="bold"),
    ]
    description = (
        f"Of {people:,} people {yes:,} would say yes. On average {sent:,} reports say yes. The server knows how often "
        f"the coin says yes and estimates 30%, give or take {margin:.1f} percentage points."
    )
    return picture(_WIDTH, 302, "What many answers tell", description, elements)


def people() -> str:
    """Draw the margin of a yes/no question by the number of people, with and without the coin."""
    elements = _lines(12, 26, "How far the result may be off", size=16)
    elements += _lines(12, 48, "percentage points up or down, in 95 of 100 surveys", size=13)
    described = []
    for i, number in enumerate((500, 1_000, 5_000, 50_000)):
        y = 62 + 58 * i
        noisy, plain = margin_of(number), 100 * _NORMAL_95 * math.sqrt(0.25 / number)
        elements.append(text(86, y + 28, "end", f"{number:,}", 14))
        for at, value, fill in ((y + 4, noisy, BLUE), (y + 24, plain, "#8fa9c4")):
            width = round(23 * value, 1)
            elements += [
                f'<rect x="98" y="{at}" width="{width}" height="17" fill="{fill}"/>',
                text(round(104 + width, 1), at + 14, "start", f"±{value:.1f}", 14),
            ]
        described.append(f"{number:,} people: ±{noisy:.1f} with the coin, ±{plain:.1f} without")
    elements += [
        f'<rect x="12" y="302" width="14" height="14" fill="{BLUE}"/>',
        text(32, 314, "start", "with the coin, at the usual level", 14),
        '<rect x="12" y="324" width="14" height="14" fill="#8fa9c4"/>',
        text(32, 336, "start", "the same people, asked without a coin", 14),
    ]
    return picture(_WIDTH, 350, "What protection costs", "; ".join(described), elements)


_SEEN: Final[Sequence[tuple[Sequence[str], Sequence[str]]]] = (
    (("your answer",), ("yes", "no", "no", "no")),
    (("your noisy", "result"), ("yes", "no", "yes", "no")),
    (("your address", "on the network"), ("yes", "yes", "yes", "no")),
    (("that you sent", "something"), ("yes", "partly", "yes", "no")),
    (("answers to a", "public question"), ("yes", "no", "yes", "groups")),
    (("results about", "all together"), ("no", "no", "yes", "yes")),
)
"""Something that can be seen → who sees it: device, network, server, analyst."""


def who_sees() -> str:
    """Draw a table of who sees what."""
    elements = _lines(12, 26, "Who sees what", size=16)
    names = ("device", "network", "server", "analyst")
    for i, name in enumerate(names):
        elements.append(text(152 + 66 * i, 54, "middle", name, 14, weight="bold"))
    fills = {"yes": "#8fb8e0", "no": "#fff"}
    for row, (what, seen) in enumerate(_SEEN):
        y = 64 + 46 * row
        first = y + (25 if len(what) == 1 else 17)
        elements += [text(12, first + 17 * i, "start", words, 13) for i, words in enumerate(what)]
        for i, word in enumerate(seen):
            elements += [
                f'<rect x="{122 + 66 * i}" y="{y}" width="60" height="40" rx="4" fill="{fills.get(word, PALE)}" '
                f'stroke="{BLUE}"/>',
                text(152 + 66 * i, y + 25, "middle", word, 14),
            ]
    description = "; ".join(
        f"{' '.join(what)}: " + ", ".join(f"{n} {s}" for n, s in zip(names, seen, strict=True))
        for what, seen in _SEEN
    )
    return picture(_WIDTH, 346, "Who sees what", description, elements)


def checks() -> str:
    """Draw the checks that a device makes before anything can be entered."""
    elements = [_HEAD, *_lines(12, 26, "What the device checks before it asks", size=16)]
    steps = (
        ("Is it signed with the keys", "of its publisher?"),
        ("Is it the very survey", "that the link names?"),
        ("Is the protection as strong", "as stated? (computed again)"),
        ("Does this app still allow", "that much to be revealed?"),
    )
    for i, words in enumerate(steps):
        y = 44 + 72 * i
        elements += _box(12, y, 248, _ON_DEVICE, *words)
        elements += arrow([(136, y + 48), (136, y + 70)], "yes", (154, y + 64))
        elements += arrow([(260, y + 24), (292, y + 24)], "no", (275, y + 18))
    elements += _box(12, 332, 248, PALE, "Ask, toss the coin,", "send only the noisy result")
    elements.append(
        f'<rect x="294" y="44" width="96" height="264" rx="6" fill="{_WARM}" stroke="{ORANGE}"/>'
    )
    for i, stop in enumerate(("Stop:", "nothing is", "sent")):
        elements.append(text(342, 160 + 19 * i, "middle", stop, 14))
    description = "; ".join(" ".join(words) for words in steps)
    return picture(
        _WIDTH, 394, "Who checks", f"{description} If one fails, nothing is sent.", elements
    )
