# SPDX-License-Identifier: Apache-2.0
"""Documentation of the mathematics, which must name existing claims, files and tests."""

import re
from pathlib import Path

from tests.papers.beyond import BEYOND
from tests.papers.claims import CLAIMS, VERDICTS
from tests.papers.coverage import page
from tests.papers.registry import collect

_TEST = re.compile(r"`(test_\w+)::(test_\w+)`")
_CODE = re.compile(
    r"`((?:engine|estimate|families|form|measures|notions|numeric|optimum|tables)/[\w/]+\.py)`"
)


def test_every_test_named_in_the_documentation_exists(root: Path) -> None:
    defined = {
        (path.stem, name)
        for path in (root / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = {
        pair
        for path in _documents(root)
        for pair in _TEST.findall(path.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert named - defined == set()


def test_every_file_named_in_the_documentation_exists(root: Path) -> None:
    named = {
        name
        for path in _documents(root)
        for name in _CODE.findall(path.read_text(encoding="utf-8"))
    }
    assert len(named) > 10
    assert [
        name for name in sorted(named) if not (root / "design" / "frankly_design" / name).is_file()
    ] == []


def test_every_registered_claim_is_documented(root: Path) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in _documents(root))
    claims = collect()
    assert len(claims) >= 8
    assert [claim for claim in sorted(claims) if claim not in text] == []


def test_every_claim_has_a_test_and_every_test_a_claim() -> None:
    stated = [claim.name for claims in CLAIMS.values() for claim in claims]
    assert len(stated) == len(set(stated)) > 150
    assert set(collect()) - set(stated) == set()
    assert set(stated) - set(collect()) == set()


def test_every_claim_names_code_that_exists_and_a_verdict(root: Path) -> None:
    for claims in CLAIMS.values():
        for claim in claims:
            places = [root / top / claim.code for top in ("design/frankly_design", "shared", "")]
            assert any(place.is_file() for place in places) or not claim.code, claim.name
            assert claim.verdict in VERDICTS


def test_every_claim_beyond_the_papers_names_code_and_tests(root: Path) -> None:
    """Another test checks, for all documents together, that the tests exist."""
    for claim in BEYOND:
        places = [root / top / claim.code for top in ("design/frankly_design", "shared")]
        assert any(place.is_file() for place in places), claim.says
        assert claim.tests


def test_the_page_of_claims_is_up_to_date(root: Path) -> None:
    """Run `python -m tests.papers --write` after a claim or a test has changed."""
    assert (root / "docs" / "maths" / "coverage.md").read_text(encoding="utf-8") == page()


def test_printed_errors_are_in_the_errata(root: Path) -> None:
    text = (root / "docs" / "maths" / "errata.md").read_text(encoding="utf-8")
    tests = collect()
    corrected = [
        claim for claims in CLAIMS.values() for claim in claims if claim.verdict != VERDICTS[0]
    ]
    assert len(corrected) > 40
    assert [
        c.name for c in corrected if not any(f"`{test}`" in text for test in tests[c.name])
    ] == []


def _documents(root: Path) -> list[Path]:
    return sorted((root / "docs" / "maths").glob("*.md"))
