# SPDX-License-Identifier: Apache-2.0
"""Schema docs/survey_file.schema.json: up to date, valid, and consistent with the reader of survey files."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner
from frankly_protocol.errors import InvalidInput
from frankly_server.cli.survey import survey
from frankly_server.surveys import survey_templates
from frankly_server.surveys.definition import SurveyDefinition, parse_value
from frankly_server.surveys.yaml import read_yaml

from tests.contract.cases import CASES, file_of
from tests.frankly_server.surveys.samples import SCHEMA, VALIDATOR
from tests.survey_files import DRINKS, REGION, SMOKES, habits

jsonschema.Draft202012Validator.check_schema(SCHEMA)
FILE = habits(
    SMOKES, DRINKS, budget="2", strata=REGION + "tokens: {kind: invite}\nconsent: {en: We ask.}\n"
)


def test_the_copy_under_docs_is_current() -> None:
    result = CliRunner().invoke(survey, ["schema"])
    assert json.loads(result.stdout) == SCHEMA, (
        "write the output of `frankly survey schema` to docs/survey_file.schema.json"
    )


FILES = {"habits": FILE} | {
    name: survey_templates.template(name) for name in survey_templates.templates()
}


def test_the_file_of_the_reference_is_accepted(root: Path) -> None:
    page = (root / "docs" / "survey_file.md").read_text(encoding="utf-8")
    files = [read_yaml(part.partition("```")[0].encode()) for part in page.split("```yaml\n")[1:]]
    assert all(map(VALIDATOR.is_valid, files))
    assert [parse_value(given).name for given in files] == ["smoking", "cash"]


@pytest.mark.parametrize("data", [*FILES.values(), *map(file_of, CASES)], ids=[*FILES, *CASES])
def test_files_that_the_reader_accepts_fit_the_schema(data: bytes) -> None:
    """Each file is checked as texts, with YAML's number types, and as the stored draft."""
    texts = read_yaml(data)
    assert VALIDATOR.is_valid(texts)
    assert VALIDATOR.is_valid(json.loads(parse_value(texts).to_json()))
    assert VALIDATOR.is_valid(
        json.loads(
            json.dumps(
                yaml.safe_load(data), default=lambda time: time.strftime("%Y-%m-%dT%H:%M:%SZ")
            )
        )
    )


# Changes of a valid file: a path and its new value; None removes the field.
BAD: dict[str, tuple[tuple[Any, ...], Any]] = {
    "an unknown field": (("colour",), "red"),
    "an unknown field of a block": (("blocks", 0, "colour"), "red"),
    "no name": (("name",), None),
    "no budget": (("budget",), None),
    "no blocks": (("blocks",), []),
    "a name with spaces": (("name",), "my survey"),
    "a title without its language": (("title",), "Habits"),
    "no time": (("opens",), "tomorrow"),
    "an unknown notion": (("blocks", 0, "notion"), "secrecy"),
    "an unknown mechanism": (("blocks", 0, "mechanism"), "magic"),
    "an unknown objective": (("blocks", 0, "objective"), "beauty"),
    "a list for a level": (("blocks", 0, "epsilon"), ["1"]),
    "one choice": (("blocks", 0, "questions", 0, "choices"), [{"id": "no", "label": {"en": "No"}}]),
    "no reports": (("min_reports",), 0),
    "a flag that is a word": (("blocks", 0, "accept_identity"), "perhaps"),
    "unknown tokens": (("tokens", "kind"), "coin"),
    "an empty text": (("blocks", 0, "questions", 0, "text", "en"), ""),
}


@pytest.mark.parametrize("name", BAD)
def test_files_that_do_not_fit_the_schema_are_refused(name: str) -> None:
    path, value = BAD[name]
    given = read_yaml(FILE)
    place = given
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    assert not VALIDATOR.is_valid(given)
    with pytest.raises(InvalidInput):
        parse_value(given)


def test_every_field_is_in_the_schema_and_in_the_guide() -> None:
    """The tables of docs/survey_file.md name each field of the file, of a block and of a prior."""
    page = (Path(__file__).parents[3] / "docs" / "survey_file.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    for shape in (
        SurveyDefinition.model_json_schema(),
        *SurveyDefinition.model_json_schema()["$defs"].values(),
    ):
        for field in shape["properties"]:
            assert f"`{field}`" in table, field
