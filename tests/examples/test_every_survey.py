# SPDX-License-Identifier: Apache-2.0
"""Every example and template: applied and published as it is, within its budget."""

from fractions import Fraction
from pathlib import Path

import pytest
from frankly_protocol.audit import exp_lower
from frankly_protocol.clock import FixedClock
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys import survey_templates
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr

from examples.demo.surveys import SURVEYS
from tests.frankly_protocol.samples import NOW
from tests.migrated import migrated

FILES = {f"example {name}": survey.file.read_bytes() for name, survey in SURVEYS.items()} | {
    f"template {name}": survey_templates.template(name) for name in survey_templates.templates()
}


def test_the_table_lists_every_survey_file(root: Path) -> None:
    examples = set(root.glob("examples/**/survey*.yaml"))
    assert examples == {survey.file for survey in SURVEYS.values()}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_it_is_applied_and_published(name: str, sqlite_url: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, database_url=SecretStr(sqlite_url))
    services = Services(settings, migrated(sqlite_url), FixedClock(NOW))
    services.keys.init()
    definition = parse_definition(FILES[name])
    applied = services.surveys.apply(definition)
    published = services.surveys.publish(definition.name)
    assert (applied.status, published.status) == ("created", "published")
    levels = [applied.level.odds, published.level.odds]
    budget = exp_lower(Fraction(definition.budget))
    assert all(odds is not None and odds <= budget for odds in levels)
    services.close()
