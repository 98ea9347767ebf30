# SPDX-License-Identifier: Apache-2.0
"""Templates of survey files that are part of the server, each with a picture of its result.

A template begins with comments: its title (the question of somebody who needs it), a sentence about
who uses it and what comes out, and a line for experts. `python -m tools.template_pictures` draws the
pictures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from importlib import resources
from typing import Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

ORDER: Final = (
    *("questionnaire", "members", "workplace", "health", "customer", "opinion", "rare", "student"),
    *("validation", "attributes", "census"),
)
"""Names of all templates: the simplest and most common first, those that need an expert last."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template's title, sentence and picture. picture : SVG of estimates from invented shares."""

    title: str
    sentence: str
    picture: str

    @property
    def caption(self) -> str:
        """The title of the picture: its question, and that the shares are invented."""
        return unescape(self.picture.partition("<title>")[2].partition("</title>")[0])


def templates() -> Mapping[str, Template]:
    """Return each template by name, in their `ORDER`."""
    folder = resources.files(__package__).joinpath("templates")
    found = {}
    for name in ORDER:
        title, sentence = folder.joinpath(f"{name}.yaml").read_text("utf-8").splitlines()[:2]
        picture = folder.joinpath(f"{name}.svg").read_text("utf-8")
        found[name] = Template(title.removeprefix("# "), sentence.removeprefix("# "), picture)
    return found


def template(name: str) -> bytes:
    """Return a template's bytes. Raises InvalidInput(not_found) with the names of all templates."""
    if name not in ORDER:
        raise InvalidInput(Problem.NOT_FOUND, f"the templates are {', '.join(ORDER)}", "template")
    return resources.files(__package__).joinpath("templates", f"{name}.yaml").read_bytes()
