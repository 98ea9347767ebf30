# SPDX-License-Identifier: Apache-2.0
"""Templates of survey files that are part of the server."""

from collections.abc import Mapping
from importlib import resources

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem


def templates() -> Mapping[str, str]:
    """Return the purpose of each template (its first comment line) by name."""
    titles = {}
    for entry in sorted(
        resources.files(__package__).joinpath("templates").iterdir(), key=lambda e: e.name
    ):
        if entry.name.endswith(".yaml"):
            first_line = entry.read_text("utf-8").splitlines()[0]
            titles[entry.name.removesuffix(".yaml")] = first_line.removeprefix("# ")
    return titles


def template(name: str) -> bytes:
    """Return a template's bytes. Raises InvalidInput(not_found) with the names of all templates."""
    if name not in templates():
        raise InvalidInput(
            Problem.NOT_FOUND, f"the templates are {', '.join(templates())}", "template"
        )
    return resources.files(__package__).joinpath("templates", f"{name}.yaml").read_bytes()
