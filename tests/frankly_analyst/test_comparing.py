# SPDX-License-Identifier: Apache-2.0
"""Comparisons in the analyst's client: requested from a server, printed and converted."""

import csv
import io
import json
from dataclasses import fields
from typing import Any

import pytest
from click.testing import CliRunner
from frankly_analyst import Analyst, Comparison, Comparisons, Estimates, InvalidRequest, Refused
from frankly_server.cli import estimates as command

from tests.frankly_analyst.conftest import Served
from tests.frankly_server.analysis.samples import (
    block_about,
    document_of,
    grr,
    question,
    received,
    result,
)
from tests.refusals import refusal

COUNTS = {"c0": (80, 40, 30), "c1": (50, 60, 40), "c2": (30, 50, 90), "c3": (1, 1, 1)}


def _body(**asked: Any) -> dict[str, Any]:
    region = question("region", 4, score=(1, 2, 3, 4))
    document = document_of((block_about(grr(3, 1), question("q", 3)),), (region,))
    return result(received(document, COUNTS), by="region", **asked)


def test_comparisons_have_the_servers_numbers_and_print_them() -> None:
    body = _body(compare="first")
    found = Comparisons.from_json(body)
    (entry,) = body["comparisons"]
    assert len(found) == len(entry["rows"]) + len(entry["trend"]["rows"]) == 9
    assert [row.p for row in found][:6] == [row["p"] for row in entry["rows"]]
    assert [row.by for row in found.trends] == ["trend per unit of region"] * 3
    text = str(found)
    assert "region=c2 − region=c0" in text
    assert f"homogeneity χ² = {entry['homogeneity']['statistic']:.2f}, df 4" in text
    assert "q: p adjusted (Holm) over all tests of q (comparisons: 2, choices: 3)" in text
    assert "q: region=c3 has too few reports" in text
    assert "p < 0.001" in text
    for row in found:
        assert row.label in found._repr_html_()
        assert row.name in found._repr_html_()
    assert str(Estimates.from_json(body)).endswith(text)


def test_comparisons_convert() -> None:
    found = Comparisons.from_json(_body(compare="all", targets={"q": {"=risk": {"c1": 1}}}))
    lines = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert list(lines[0]) == [item.name for item in fields(Comparison)]
    assert lines[0]["choice"] == "'=risk", "a spreadsheet would evaluate the label"
    assert [float(line["difference"]) for line in lines] == [row.difference for row in found]
    frame = found.to_pandas()
    assert list(frame["p_holm"]) == [row.p_holm for row in found]


def test_groups_are_columns_with_their_own_number_of_reports() -> None:
    found = Estimates.from_json(_body())
    text = str(found).splitlines()
    assert "region=c0 (n 150)" in text[2]
    assert "region=c2 (n 170)" in text[2]
    line = next(line for line in text if line.startswith("  C1 "))
    cells = [f"{row.value}, {row.interval}" for row in found if row.choice == "c1"]
    assert all(cell in line for cell in cells)
    assert text[-1] == "q (region=c3): not enough reports, 17 more needed"
    html = found._repr_html_()
    assert html.count("<th>region=") == 3
    assert all(f"n {n}" in html for n in (150, 170))
    wide = found.to_pandas(wide=True)
    assert list(wide.columns.get_level_values(0).unique()) == [
        "region=c0",
        "region=c1",
        "region=c2",
    ]
    assert list(wide["region=c2"]["n"]) == [170] * 3
    assert wide["region=c1"]["estimate"][("q", "c1")] == found.of("q", "region=c1")[1].estimate


def test_many_groups_are_printed_in_blocks() -> None:
    region = question("region", 6)
    document = document_of((block_about(grr(3, 1), question("q", 3)),), (region,))
    body = result(received(document, {f"c{i}": (30, 20, 10) for i in range(6)}), by="region")
    heads = [line for line in str(Estimates.from_json(body)).splitlines() if "(n 60)" in line]
    assert [line.count("(n 60)") for line in heads] == [4, 2]


def test_comparisons_are_requested_from_a_server(served: Served) -> None:
    found = Analyst(served.url, served.site.analyst_key).estimates(served.site.survey)
    assert list(found.compare("previous", by="version")) == []
    assert found.homogeneity(by="version") == ()
    assert list(found.trend(by="version")) == []
    assert "three groups or more" in found.trend(by="version").notes[-1]
    test = found.independence("smokes", "drinks")
    assert (test.kind, test.df) == ("independence", 2)
    assert test.p is not None
    assert f"independence χ² = {test.statistic:.2f}" in str(test)
    assert "Cramér" in test._repr_html_()
    assert refusal(Refused, found.compare, "first").field == "compare"
    error = refusal(Refused, found.compare, {"north": 1, "south": -1}, by="version")
    assert error.field == "compare"
    with pytest.raises(InvalidRequest, match="no groups"):
        found.independence("smokes", "drinks", by="version=9")
    grouped = Analyst(served.url, served.site.analyst_key).estimates(
        served.site.survey, by="version"
    )
    with pytest.raises(InvalidRequest, match="one of the groups version=1"):
        grouped.independence("smokes", "drinks")


def test_csv_of_comparisons_is_the_clients(served: Served) -> None:
    client = served.site.client
    key = {"Authorization": f"Bearer {served.site.analyst_key}"}
    query = {"by": "version", "compare": "all", "format": "csv"}
    response = client.get(
        f"/v1/surveys/{served.site.survey}/estimates", query_string=query, headers=key
    )
    assert (response.status_code, json.loads(response.data)["field"]) == (422, "compare")


@pytest.mark.parametrize("more", [[], ["--csv"], ["--json"]])
def test_the_command_shows_comparisons(served: Served, more: list[str]) -> None:
    options = ["--url", served.url, "--key", served.site.analyst_key, "--by", "version"]
    command_line = [served.site.survey, *options, "--compare", "first", *more]
    shown = CliRunner().invoke(command.estimates, command_line)
    assert shown.exit_code == 0, shown.output
    expected = {
        "": "p adjusted (Holm) over all tests of smokes",
        "--csv": ",".join(item.name for item in fields(Comparison)),
        "--json": '"family"',
    }
    assert expected["".join(more)] in shown.output


def test_a_population_of_groups_is_none_of_the_compared_groups(served: Served) -> None:
    """Its sizes are left out of the request, which other groups than those of the estimates would refuse."""
    sizes = '{"north": 1, "south": 2}'
    found = Analyst(served.url, served.site.analyst_key).estimates(
        served.site.survey, by="region", group_sizes=sizes
    )
    assert "smokes (weighted=region)" in found.insufficient
    assert list(found.compare("previous", by="version")) == []
    assert found.homogeneity(by="version") == ()
    assert found.compare("first").notes == found.compare("north").notes
    assert all("weighted" not in note for note in found.compare("first").notes)
    # Other figures of the same groups are those of the population, too.
    assert "smokes (weighted=region)" in found.answered().insufficient


def test_equivalence_is_asked_for_with_a_comparison(served: Served) -> None:
    found = Analyst(served.url, served.site.analyst_key).estimates(served.site.survey, by="version")
    notes = found.compare("first", equivalence=0.05).notes
    assert "smokes: the test of equivalence regards differences up to 0.05 as none" in notes
    refused = refusal(Refused, found.compare, "first", equivalence=0)
    assert (refused.code, refused.field) == ("field_type", "equivalence")
    compared = Analyst(served.url, served.site.analyst_key).estimates(
        served.site.survey, by="version", compare="all", equivalence=0.1
    )
    # Combinations, and comparisons without a margin, are asked for without it.
    assert compared.sum("smokes", ["no"], by="version=1").n == 60
    assert not [note for note in compared.compare("all").notes if "equivalence" in note]
    assert compared.completion() == ()


@pytest.mark.parametrize("text", ["0", "0.0", "-1", "1e-2", "nan", "0.0000000000001", ""])
def test_a_bad_margin_of_equivalence_is_refused_by_name(served: Served, text: str) -> None:
    response = served.site.client.get(
        f"/v1/surveys/{served.site.survey}/estimates",
        query_string={"by": "version", "compare": "all", "equivalence": text},
        headers={"Authorization": f"Bearer {served.site.analyst_key}"},
    )
    assert (response.status_code, json.loads(response.data)["field"]) == (422, "equivalence")


def test_sizes_of_groups_are_texts_or_mappings(served: Served) -> None:
    analyst = Analyst(served.url, served.site.analyst_key)
    sizes = {"north": 1, "south": 0.5}
    by_mapping, by_text = (
        analyst.estimates("habits", by="region", group_sizes=value)
        for value in (sizes, json.dumps(sizes))
    )
    assert by_mapping.body == by_text.body
    refused = refusal(
        Refused, analyst.estimates, "habits", by="region", group_sizes={"east": 1, "north": 2}
    )
    assert (refused.code, refused.field) == ("strata_invalid", "group_sizes")
