# SPDX-License-Identifier: Apache-2.0
"""Random answers by source: which versions count, which sources have a test, and what the page says."""

from dataclasses import replace
from typing import Any

import pytest
from frankly_analyst import CountedPart, Counts
from frankly_protocol.tokens import TokenRule
from frankly_server.analysis.counted_document import Received
from frankly_server.analysis.counts import counts_answer, requested_blocks
from frankly_server.analysis.counts_request import CountsQuery
from frankly_server.web.results.sentences import sources_words
from frankly_server.web.results.words import Words

from tests.frankly_server.analysis.samples import REGION, result
from tests.frankly_server.analysis.test_random_answers import source

MANY = {"a": ((300, 100), (8, False), (0, 0)), "b": ((300, 100), (90, False), (0, 0))}


def with_sources(groups: dict[str, Any], version: int = 1) -> Received:
    """Return reports by region of a version whose regions are sources with invites."""
    found = source(groups, version=version)
    (asked,) = found.document.strata
    rules = {choice.id: TokenRule("invite") for choice in asked.choices}
    rule = TokenRule("sources", question=REGION, rules=rules)
    document = replace(found.document, token=rule)
    return replace(found, document=document)


def test_the_source_with_more_random_answers_is_flagged() -> None:
    found = result(with_sources(MANY), by=REGION)["sources"]
    assert [(one["source"], one["flagged"]) for one in found["sources"]] == [
        ("a", False),
        ("b", True),
    ]
    assert found["others"] == []
    assert result(source(MANY), by=REGION)["sources"] is None


def test_counts_have_no_strata_of_sources_that_no_token_held() -> None:
    """Like estimates by source, beside a version whose sources are held by tokens."""
    free, held = source(MANY), with_sources(MANY, version=2)
    query = CountsQuery.from_json({"by": REGION, "questions": "q"})

    def parts(*documents: Received) -> tuple[CountedPart, ...]:
        positions = requested_blocks(documents, query)
        return Counts.from_json(counts_answer("s", documents, positions, query)).of("q")

    old, new = parts(free, held)
    assert (old.strata, old.without_stratum) == ((), old.n)
    assert (len(new.strata), new.without_stratum) == (2, 0)
    assert [len(part.strata) for part in parts(free)] == [2]


def test_a_source_with_few_reports_has_no_part_in_it() -> None:
    found = result(with_sources(MANY | {"b": ((9, 6), (15, False), (0, 0))}), by=REGION)["sources"]
    assert ([one["p"] for one in found["sources"]], found["others"]) == ([None], ["b"])


def test_versions_with_other_items_are_not_compared() -> None:
    """Sources that answered different versions would differ by what these ask."""
    first = with_sources(
        {"a": ((300, 100), (90, False), (0, 0)), "b": ((30, 10), (9, False), (0, 0))}
    )
    second = with_sources(
        {"a": ((30, 10), (0, False), (0, 0)), "b": ((300, 100), (0, False), (0, 0))}, version=2
    )
    assert first.document.instructed is not None
    assert any(one["flagged"] for one in result(first, second, by=REGION)["sources"]["sources"])
    item = replace(first.document.instructed, answer="c0")
    assert item != first.document.instructed
    other = replace(first, document=replace(first.document, instructed=item))
    found = result(other, second, by=REGION)["sources"]
    assert {one["p"] for one in found["sources"]} == {None}
    assert sources_words(found, {}, Words("en")) == []


def test_reports_without_tokens_are_in_no_result_by_source() -> None:
    """In a version without the rule anybody could name any source."""
    free, held = source(MANY), with_sources(MANY, version=2)
    (first, second) = result(free, held, by=REGION)["questions"]
    assert (first["n"], second["n"]) == (400, 400)
    assert result(free, held)["questions"][0]["n"] == 1600


WORDS = {
    "usual": ({"random": 0.1, "random_low": 0.05, "random_high": 0.2}, "about 10.0%"),
    "below 0": ({"random": -0.06, "random_low": -0.2, "random_high": 0.1}, "outside 0 to 100%"),
    "above 1": ({"random": 1.1, "random_low": 0.9, "random_high": 1.3}, "outside 0 to 100%"),
    "far above 1": (
        {"random": 1.3, "random_low": 1.1, "random_high": 1.4},
        "more seems to be wrong",
    ),
}


@pytest.mark.parametrize("name", WORDS)
def test_shares_that_cannot_be_are_said_to_be_chance(name: str) -> None:
    figures, words = WORDS[name]
    one = {"source": "a", "n": 100, "p": 0.5, "flagged": False}
    found = {"sources": [one | figures, one | figures | {"source": "b"}], "others": ["c"]}
    said = sources_words(found, {"a": "Panel A", "c": "Panel C"}, Words("en"))
    assert said[0].startswith("Panel A: ")
    assert words in said[0]
    assert said[2:4] == [
        "The test has flagged none of these sources.",
        "Panel C: too little is known.",
    ]
