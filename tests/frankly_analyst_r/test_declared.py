# SPDX-License-Identifier: Apache-2.0
"""R package: it has every field of the declared requests, and its recorded responses match this server."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from frankly_analyst.counts_request import COUNTS_FIELDS
from frankly_analyst.request import FIELDS

from tests.frankly_analyst.desk import filled
from tests.frankly_analyst_r.site import PACKAGE, RECORDED, REPORTS, responses


def arguments(function: str) -> list[str]:
    """Return the names of an R function's arguments, read from its source."""
    source = "".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "R").glob("*.R"))
    found = re.search(rf"^{function} <- function\((.*?)\) \{{", source, re.MULTILINE | re.DOTALL)
    assert found is not None
    return [argument.partition("=")[0].strip() for argument in found[1].split(",")]


def test_estimates_have_every_declared_field() -> None:
    assert set(arguments("estimates")) == {*FIELDS, "server", "survey", "language"}


def test_counts_have_every_declared_field() -> None:
    assert set(arguments("counts")) == {*COUNTS_FIELDS, "server", "survey", "language"}


def test_the_package_has_the_version_and_the_licence_of_the_others(root: Path) -> None:
    description = (PACKAGE / "DESCRIPTION").read_text(encoding="utf-8")
    python = tomllib.loads((root / "analyst" / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"\nVersion: {python['project']['version']}\n" in description
    assert "\nLicense: Apache License (== 2.0)\n" in description
    licence = (root / "analyst" / "LICENSE").read_text(encoding="utf-8")
    assert (PACKAGE / "LICENSE.md").read_text(encoding="utf-8") == licence


def test_every_export_is_documented() -> None:
    exported = re.findall(
        r"^export\((\w+)\)$", (PACKAGE / "NAMESPACE").read_text(encoding="utf-8"), re.MULTILINE
    )
    pages = "".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "man").glob("*.Rd"))
    assert len(exported) == 15
    assert all(f"\\alias{{{name}}}" in pages for name in exported)


@pytest.mark.full_only
def test_recorded_responses_equal_those_of_this_server(tmp_path: Path) -> None:
    site = filled(tmp_path, REPORTS)
    try:
        sent = responses(site)
    finally:
        site.services.close()
    for name, response in sent.items():
        same(json.loads((RECORDED / f"{name}.json").read_text()), response, name)


def same(recorded: Any, sent: Any, place: str) -> None:
    """Assert equality, up to rounding for floats; the version of the code in `inputs` is ignored."""
    if isinstance(sent, dict):
        assert recorded.keys() == sent.keys(), place
        for name in sent.keys() - {"inputs"}:
            same(recorded[name], sent[name], f"{place}.{name}")
    elif isinstance(sent, list):
        assert len(recorded) == len(sent), place
        for i, item in enumerate(sent):
            same(recorded[i], item, f"{place}[{i}]")
    elif isinstance(sent, float):
        assert recorded == pytest.approx(sent, rel=1e-6, abs=1e-9), place
    else:
        assert recorded == sent, place
