# SPDX-License-Identifier: Apache-2.0
"""The page docs/maths/coverage.md: claim by claim, where it is used, which tests show it, and what became of it."""

from tests.papers.beyond import BEYOND
from tests.papers.claims import CLAIMS, VERDICTS, Stated
from tests.papers.registry import collect

_HEAD = """# What the papers claim, and what became of it

Written by `python -m tests.papers --write`; a test keeps it up to date. *holds*: as printed. *holds corrected*: in the
form given here, which is the one in use; what was wrong with the printed one is in [errata.md](errata.md). *printed
value wrong*: a number or count that does not come out. Code is below `server/frankly_server/` or `shared/`. E = e^ε;
in Lift m = e^−ε_l and M = e^ε_u, in the thesis m is the number of values.
"""
_BEYOND = """Claims of other papers, or of this project, on which design rests. Their proofs are on the pages of their
topics.

| What it says | Code | Test |
|---|---|---|"""


def page() -> str:
    """Return the whole page."""
    tests, all_claims = collect(), [claim for claims in CLAIMS.values() for claim in claims]
    count = {verdict: sum(claim.verdict == verdict for claim in all_claims) for verdict in VERDICTS}
    summary = ", ".join(f"{number} {verdict}" for verdict, number in count.items())
    lines = [_HEAD, f"{len(all_claims)} claims: {summary}.\n"]
    for paper, claims in CLAIMS.items():
        lines.append(
            f"## {paper}\n\n| Claim | What it says | Code | Test | Verdict |\n|---|---|---|---|---|"
        )
        lines.append(
            "\n".join(_row(claim, sorted(set(tests.get(claim.name, [])))) for claim in claims)
            + "\n"
        )
    lines.append("## Beyond the four papers\n\n" + _BEYOND)
    for claim in BEYOND:
        named = ", ".join(f"`{test}`" for test in claim.tests)
        lines.append(f"| {claim.says} | `{claim.code}` | {named} |")
    return "\n".join(lines) + "\n"


def _row(claim: Stated, tests: list[str]) -> str:
    code = f"`{claim.code}`" if claim.code else ""
    cells = (claim.name, claim.says, code, ", ".join(f"`{test}`" for test in tests), claim.verdict)
    return "| " + " | ".join(cells) + " |"
