# SPDX-License-Identifier: Apache-2.0
"""Estimates requests in every form: each form offers every declared field and reads back what it writes."""

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from string import ascii_lowercase
from typing import Any
from urllib.parse import parse_qsl, urlencode

import frankly_analyst
import jsonschema
import numpy as np
import pytest
import requests
from click.testing import CliRunner
from flask import Flask
from frankly_analyst import Analyst, EstimatesRequest, InvalidRequest, Unreachable, request
from frankly_analyst.request import FIELDS, as_text
from frankly_design.estimate import margins
from frankly_server.analysis.request import Request
from frankly_server.cli import estimates as command
from frankly_server.web import estimates_request
from frankly_server.web.results.asked import Asked

from tests.frankly_analyst.conftest import Served

# A valid value of every field that differs from the default, and its text in a query.
VALUES: dict[str, tuple[Any, str]] = {
    "level": (0.9, "0.9"),
    "census": (True, "true"),
    "population": (1200, "1200"),
    "simultaneous": (True, "true"),
    "method": ("kl", "kl"),
    "targets": (["smokes", "drinks"], '["smokes", "drinks"]'),
    "percent": ("row", "row"),
    "quantiles": ("0.25,0.5", "0.25,0.5"),
    "weights": ("inverse-variance", "inverse-variance"),
    "by": ("region,week", "region,week"),
    "compare": ("previous", "previous"),
    "equivalence": (0.05, "0.05"),
    "group_sizes": ('{"north": 500, "south": 300.5}', '{"north": 500, "south": 300.5}'),
    "since": ("2026-05-01", "2026-05-01"),
    "until": ("2026-05-31", "2026-05-31"),
    "random": ('{"drinks": {"no": 4, "yes": 1}}', '{"drinks": {"no": 4, "yes": 1}}'),
    "completion": (True, "true"),
    "denial": (0.2, "0.2"),
}
LINK = f"https://surveys.example.org/s/{'0' * 32}"


class Recorded(requests.Session):
    """A session that uses no network and records the query of the last request."""

    query: dict[str, str]

    def request(self, *_arguments: Any, **sent: Any) -> Any:
        self.query = sent["params"]
        raise requests.ConnectionError


def test_every_field_has_a_value_here_and_differs_from_its_default() -> None:
    assert list(VALUES) == list(FIELDS)
    assert all(value != FIELDS[name].default for name, (value, _) in VALUES.items())


@pytest.mark.parametrize("name", FIELDS)
def test_a_query_reads_back(name: str) -> None:
    value, text = VALUES[name]
    assert as_text(name, value) == text
    assert EstimatesRequest(**{name: value}).query() == {name: text}
    assert estimates_request.read({name: text}) == {name: value}


def test_a_share_of_0_is_written_as_it_is_read() -> None:
    assert EstimatesRequest(denial=0.0).query() == {"denial": "0"}
    assert estimates_request.read({"denial": "0"}) == {"denial": 0.0}


@pytest.mark.parametrize("name", FIELDS)
def test_the_client_sends_it(name: str) -> None:
    value, text = VALUES[name]
    session = Recorded()
    with pytest.raises(Unreachable):
        Analyst("https://surveys.example.org", "key", session=session).estimates(
            "0" * 32, **{name: value}
        )
    assert session.query == {name: text}


@pytest.mark.parametrize("name", FIELDS)
def test_the_clients_signature_and_help_show_it(name: str) -> None:
    shown = inspect.signature(Analyst.estimates).parameters[name]
    assert (shown.default, shown.annotation) == (FIELDS[name].default, FIELDS[name].type)
    line = f"{name} : {FIELDS[name].metadata['description']}"
    assert line in (inspect.getdoc(Analyst.estimates) or "").splitlines()
    assert line in (inspect.getdoc(EstimatesRequest) or "").splitlines()


def test_values_of_numpy_are_sent_as_well() -> None:
    """Numbers in notebooks often have numpy types."""
    given = EstimatesRequest(level=np.float64(0.9), census=np.True_, population=np.int64(1200))  # type: ignore[arg-type]
    assert given.query() == {"level": "0.9", "census": "true", "population": "1200"}
    assert EstimatesRequest(since=date(2026, 5, 1)).query() == {"since": "2026-05-01"}


def test_numbers_by_name_may_have_any_type_of_number() -> None:
    sizes = {"a": np.int64(500), "b": np.float64(0.5), "c": Decimal("5.10"), "d": Fraction(1, 4)}
    text = EstimatesRequest(group_sizes=sizes).query()["group_sizes"]  # type: ignore[arg-type]
    assert json.loads(text) == {"a": 500, "b": 0.5, "c": "5.10", "d": 0.25}
    law = EstimatesRequest(random={"q": {"a": np.int64(1), "b": np.float32(0.5)}}).query()["random"]  # type: ignore[dict-item]
    assert json.loads(law) == {"q": {"a": 1, "b": 0.5}}
    found = Request.from_json({"by": "region", "group_sizes": text})
    assert found.sizes == {"a": 500, "b": Fraction(1, 2), "c": Fraction("5.1"), "d": Fraction(1, 4)}


@pytest.mark.parametrize("sizes", [{"a": 1j}, {"a": object()}, {"a": np.True_}, {np.int64(1): 1}])
def test_sizes_that_are_no_numbers_are_refused_without_sending_them(sizes: Any) -> None:
    analyst = Analyst("https://surveys.example.org", "key")
    with pytest.raises(InvalidRequest) as refused:
        analyst.estimates("0" * 32, by="region", group_sizes=sizes)
    assert (refused.value.code, refused.value.field) == ("field_type", "group_sizes")


def test_sizes_of_many_groups_fit_into_a_query(served: Served) -> None:
    """150 countries are unknown groups here; 1,000 are too long for an address, and the error says which field is."""
    codes = [a + b for a in ascii_lowercase for b in ascii_lowercase]
    sizes = json.dumps(dict.fromkeys(codes[:150], 41_000_000))
    assert len(sizes) <= FIELDS["group_sizes"].metadata["schema"]["maxLength"]
    found = served.site.estimates(f"?{urlencode({'by': 'region', 'group_sizes': sizes})}")
    assert (found.status_code, found.get_json()["field"]) == (422, "group_sizes")
    assert "the groups are" in found.get_json()["detail"]
    long = json.dumps(dict.fromkeys(codes, 41_000_000))
    found = served.site.estimates(f"?{urlencode({'by': 'region', 'group_sizes': long})}")
    assert (found.status_code, found.get_json()["field"]) == (400, "group_sizes")
    # As long as the schema allows, however short the names are.
    longest = "{" + ",".join(f'"{a}":1' for a in codes) + "}"
    longest = longest[: FIELDS["group_sizes"].metadata["schema"]["maxLength"]]
    found = served.site.estimates(f"?{urlencode({'by': 'region', 'group_sizes': longest})}")
    assert (found.status_code, found.get_json()["field"]) == (422, "group_sizes")


def test_the_client_refuses_a_field_that_is_not_declared() -> None:
    with pytest.raises(TypeError, match="colour"):
        Analyst("https://surveys.example.org", "key").estimates("0" * 32, colour="red")  # type: ignore[call-arg]


@pytest.mark.parametrize("name", FIELDS)
def test_the_command_passes_it_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, Any] = {}

    def estimates(_analyst: Analyst, survey: str, **fields: Any) -> None:
        sent.update(fields, survey=survey)
        raise Unreachable("enough")

    monkeypatch.setattr(Analyst, "estimates", estimates)
    value, text = VALUES[name]
    option = f"--{name.replace('_', '-')}"
    options = [option] if value is True else [option, text]
    if name == "targets":
        options = ["--crosstab", "smokes", "--crosstab", "drinks"]
    CliRunner().invoke(command.estimates, [LINK, "--key", "key", *options])
    defaults = {each: FIELDS[each].default for each in FIELDS}
    assert sent == {**defaults, name: value, "survey": "0" * 32, "language": None}


@pytest.mark.parametrize("name", FIELDS)
def test_the_snippet_is_python_that_asks_for_it(name: str) -> None:
    value, _ = VALUES[name]
    call = ast.parse(f"f({EstimatesRequest(**{name: value}).arguments()})", mode="eval").body
    assert isinstance(call, ast.Call)
    assert {k.arg: ast.literal_eval(k.value) for k in call.keywords} == {name: value}


# The page uses `row` and `column` for targets, `by` and `period` for groups, and the names of
# methods. It has no test of equivalence.
@pytest.mark.parametrize(
    "name", sorted(set(FIELDS) - {"targets", "simultaneous", "by", "completion", "equivalence"})
)
def test_the_pages_links_keep_it(name: str) -> None:
    _, text = VALUES[name]
    table = {"row": "smokes", "column": "drinks"} if name == "percent" else {}
    with Flask(__name__).test_request_context(query_string={name: text, **table}):
        asked, _ = Asked.read()
    assert getattr(asked.request, name) == VALUES[name][0]
    for query in (asked.download_query("csv"), asked.api_query("csv")):
        assert dict(parse_qsl(query))[name] == text


def test_the_pages_groups_and_tables_are_the_requests() -> None:
    given = {"by": "region", "period": "week", "row": "smokes", "column": "drinks"}
    with Flask(__name__).test_request_context(query_string=given):
        asked, _ = Asked.read()
    assert (asked.request.by, asked.request.targets) == ("region,week", ["smokes", "drinks"])
    assert dict(parse_qsl(asked.download_query("csv"))) == {
        **given,
        "method": "score",
        "format": "csv",
    }


def test_openapi_describes_every_field(served: Served) -> None:
    document = json.loads(served.site.client.get("/openapi.json").data)
    listed = document["paths"]["/v1/surveys/{survey_id}/estimates"]["get"]["parameters"]
    parameters = {each["name"]: each for each in listed if each["in"] == "query"}
    assert list(parameters) == [*FIELDS, "format"]
    for name, item in FIELDS.items():
        assert parameters[name]["description"] == item.metadata["description"]
        schema = parameters[name]["schema"]
        jsonschema.validate(VALUES[name][1], schema)
        if "choices" in item.metadata:
            assert tuple(schema["enum"]) == item.metadata["choices"]
    answer = document["components"]["schemas"]["SurveyEstimates"]["properties"]
    assert set(FIELDS) - set(answer) == {"targets", "simultaneous"}


def test_a_result_carries_every_field(served: Served) -> None:
    """The exceptions are `simultaneous`, an abbreviation for a method, and `targets`, which appear
    only in the inputs."""
    query = "?level=0.9&method=kl&by=region&since=2026-05-01&until=2026-06-30"
    answer = json.loads(served.site.estimates(query).data)
    carried = {**{name: item.default for name, item in FIELDS.items()}, "level": 0.9, "method": "kl",
               "by": "region", "since": "2026-05-01", "until": "2026-06-30"}  # fmt: skip
    del carried["simultaneous"]
    assert answer["inputs"]["request"] == carried
    del carried["targets"]
    assert carried.items() <= answer.items()
    assert Request.from_json(answer["inputs"]["request"]).to_json() == answer["inputs"]["request"]


def test_the_methods_equal_those_of_the_mathematics() -> None:
    assert request.METHODS == margins.METHODS


_OFFERED = """
import inspect, json
from flask import Flask
from frankly_analyst import Analyst, EstimatesRequest
from frankly_server.analysis.request import Request
from frankly_server.cli.estimates import estimates
from frankly_server.web import estimates_models, estimates_request
from frankly_server.web.results.asked import Asked
with Flask("page").test_request_context(query_string={"colour": "red"}):
    asked, _ = Asked.read()
print(json.dumps({
    "query": estimates_request.read({"colour": "red"}),
    "openapi": [vars_.schema["enum"] for vars_ in estimates_request.PARAMETERS if vars_.name == "colour"],
    "result": estimates_models.SurveyEstimates.model_json_schema()["properties"]["colour"]["description"],
    "command": [option.help for option in estimates.params if option.name == "colour"],
    "client": "colour" in inspect.signature(Analyst.estimates).parameters,
    "json": Request.from_json({"colour": "red"}).to_json()["colour"],
    "links": [asked.api_query("csv"), asked.download_query("csv"), asked.request.arguments()],
}))
"""


@pytest.mark.slow
def test_a_new_field_needs_one_declaration(tmp_path: Path) -> None:
    """After one field is added to a copy of the client, the server, command, client and page offer
    the new field."""
    copied = tmp_path / "frankly_analyst"
    shutil.copytree(Path(frankly_analyst.__file__).parent, copied)
    source = (copied / "request.py").read_text("utf-8")
    declared = """    colour: str | None = field(
        default=None, kw_only=True, metadata={"description": "Of the page.", "choices": ("red", "blue")}
    )
    by: str"""
    (copied / "request.py").write_text(re.sub(r"    by: str", declared, source, count=1), "utf-8")
    places = [str(tmp_path), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {places!r}\n{_OFFERED}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
    )
    assert json.loads(done.stdout) == {
        "query": {"colour": "red"},
        "openapi": [["red", "blue"]],
        "result": "Of the page.",
        "command": ["Of the page."],
        "client": True,
        "json": "red",
        "links": [
            "method=score&colour=red&format=csv",
            "method=score&colour=red&format=csv",
            'method="score", colour="red"',
        ],
    }
