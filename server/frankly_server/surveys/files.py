# SPDX-License-Identifier: Apache-2.0
"""Survey files: writing a draft as YAML, and the templates that come with the server."""

from collections.abc import Mapping
from importlib import resources
from json import loads
from typing import Any

import yaml
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.surveys.definition import SurveyDefinition


class _Dumper(yaml.SafeDumper):
    """A dumper that indents lists and never writes aliases, which survey files do not have."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - yaml's signature
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - yaml's signature
        return True


def to_yaml(definition: SurveyDefinition) -> bytes:
    """Return a survey file; reading it gives exactly this definition."""
    # Through JSON, which leaves out the defaults.
    value = loads(definition.to_json())
    # In the order of the model, because canonical JSON sorts its keys.
    ordered = {name: value[name] for name in SurveyDefinition.model_fields if name in value}
    return yaml.dump(
        ordered,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=110,
    ).encode()


def templates() -> Mapping[str, str]:
    """Return the purpose of every template (its first comment line) by its name."""
    titles = {}
    for entry in sorted(
        resources.files(__package__).joinpath("templates").iterdir(),
        key=lambda e: e.name,
    ):
        if entry.name.endswith(".yaml"):
            first_line = entry.read_text("utf-8").splitlines()[0]
            titles[entry.name.removesuffix(".yaml")] = first_line.removeprefix("# ")
    return titles


def template(name: str) -> bytes:
    """Return a template's bytes. Raises InvalidInput(not_found) with the names of all templates."""
    if name not in templates():
        raise InvalidInput(
            Problem.NOT_FOUND,
            f"the templates are {', '.join(templates())}",
            "template",
        )
    return resources.files(__package__).joinpath("templates", f"{name}.yaml").read_bytes()
