# SPDX-License-Identifier: Apache-2.0
"""Entry for the registry of deployments: the published fields and values, by a validator of our own."""

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
import yaml
from frankly_protocol.audit import ln_up
from frankly_server.evidence.content import FILL
from frankly_server.evidence.facts import Facts
from frankly_server.evidence.registry import registry

# Path -> type or allowed values; + marks a required field. Read from the registry's schema.
STATUS = ("Converted", "Draft", "Pending", "Changes Required", "Approved", "Approved (Update Requested)",
          "Approved (Pending)")  # fmt: skip
PRODUCTS = ("Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API",
            "SQL queries")  # fmt: skip
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
VARIANTS = ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")
MODELS = ("Local", "Central", "Shuffle", "Federated", "Varies")
FIELDS: dict[str, Any] = {
    "url_slug+": str,
    "status+": STATUS,
    "tier+": (1, 2, 3),
    "deployment+": {
        "basic+": {
            "name+": str, "data_curators+": list, "intended_use+": str, "data_product_type+": PRODUCTS,
            "data_product_region+": str, "description+": str, "publication_date+": date, "data_product_sector": SECTORS,
        },
        "dp_variant": {"variant_name": VARIANTS, "data_domain": str, "unprotected_quantities": str},
        "privacy_loss": {
            "privacy_unit": str, "privacy_unit_details": str, "privacy_parameters_details": str,
            "privacy_parameters": {"epsilon": float, "delta": float, "rho": float},
        },
        "deployment_model": {
            "model_name": MODELS, "model_name_details": str, "actors": str,
            "release_type": ("One release", "Many releases"), "release_type_details": str,
            "data_source_type": ("Static", "Dynamic"), "data_source_type_details": str,
            "access_type": ("Interactive", "Non-interactive"), "access_type_details": str,
        },
        "accounting": {"post_processing": str, "composition": str},
        "implementation": {"preprocessing_and_hyperparameter_tuning": str, "mechanisms": str, "justification": str},
        "administrative": {"sources": str, "notes": str, "registry_authors+": list},
    },
}  # fmt: skip


def faults(value: Any, fields: Any = FIELDS, path: str = "") -> Iterator[str]:
    """Yield the path of everything in an entry that the registry would refuse."""
    if isinstance(fields, dict):
        if not isinstance(value, dict):
            yield path
            return
        names = {name.rstrip("+"): rule for name, rule in fields.items()}
        yield from (f"{path}/{name}" for name in value if name not in names)
        yield from (f"{path}/{n[:-1]}" for n in fields if n.endswith("+") and n[:-1] not in value)
        for name, rule in names.items():
            if name in value:
                yield from faults(value[name], rule, f"{path}/{name}")
    elif isinstance(fields, tuple):
        if value not in fields or isinstance(value, bool):
            yield path
    elif not _RULES[fields](value):
        yield path


_RULES: dict[type, Callable[[Any], bool]] = {
    str: lambda value: isinstance(value, str) and bool(value),
    float: lambda value: isinstance(value, float | int) and not isinstance(value, bool),
    list: lambda value: (
        isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)
    ),
    date: lambda value: isinstance(value, str) and bool(re.fullmatch(r"\d{4}-\d\d-\d\d", value)),
}


def entry(facts: Facts) -> Any:
    return yaml.safe_load(registry(facts))


def test_entries_are_valid(facts: Facts, public_facts: Facts) -> None:
    for case in (facts, public_facts):
        assert list(faults(entry(case))) == []


# Path -> a value that the registry refuses; None removes the field.
BROKEN: dict[str, tuple[tuple[str, ...], Any]] = {
    "no status": (("status",), None),
    "an unknown status": (("status",), "Done"),
    "tier 4": (("tier",), 4),
    "an unknown field": (("surprise",), "x"),
    "a variant without a name": (("deployment", "dp_variant", "variant_name"), "LIP"),
    "an infinite ε as text": (
        ("deployment", "privacy_loss", "privacy_parameters", "epsilon"),
        "inf",
    ),
    "a date that YAML reads as one": (
        ("deployment", "basic", "publication_date"),
        date(2026, 1, 1),
    ),
    "no authors": (("deployment", "administrative", "registry_authors"), []),
    "no curators": (("deployment", "basic", "data_curators"), None),
    "an unknown sector": (("deployment", "basic", "data_product_sector"), FILL),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_validator_refuses(facts: Facts, name: str) -> None:
    path, new = BROKEN[name]
    value = copy.deepcopy(entry(facts))
    target = value
    for part in path[:-1]:
        target = target[part]
    if new is None:
        del target[path[-1]]
    else:
        target[path[-1]] = new
    assert list(faults(value)) == ["/" + "/".join(path)]


def test_scalars_are_quoted_and_the_slug_is_not(facts: Facts, public_facts: Facts) -> None:
    for case in (facts, public_facts):
        data = registry(case).decode()
        styles = {token.style for token in yaml.scan(data) if isinstance(token, yaml.ScalarToken)}
        assert styles <= {None, "", '"'}
        first, _, rest = data.partition("\n")
        value = yaml.safe_load(data)
        assert first == f"url_slug: {value['url_slug']}"
        # The registry's rule: name, curators and year, in lower case, joined by hyphens.
        basic = value["deployment"]["basic"]
        parts = [basic["name"], "-".join(basic["data_curators"]), basic["publication_date"][:4]]
        slug = "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts)
        assert value["url_slug"] == slug.replace("_", "-")
        assert not re.search(r"\\\\[^()]", str(yaml.safe_load(rest)).replace("\\\\", "\\"))


def test_epsilon_is_the_level_of_the_whole_report(facts: Facts) -> None:
    loss = entry(facts)["deployment"]["privacy_loss"]
    written = re.search(r"epsilon: (\S+)", registry(facts).decode())
    assert written is not None
    odds = facts.level.answers.odds
    assert odds is not None
    assert written[1] == ln_up(odds)
    assert Decimal(written[1]).exp() >= Decimal(odds.numerator) / Decimal(odds.denominator)
    assert (
        "Not LDP: it holds if the published table is true (a public pilot)"
        in loss["privacy_parameters_details"]
    )
    assert entry(facts)["deployment"]["dp_variant"]["variant_name"] == "Pure DP"


def test_without_a_ceiling_there_is_no_epsilon(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = facts.level
    endless = replace(
        level,
        answers=replace(level.answers, level=None, odds=None),
        cost=replace(level.cost, odds=None),
        lines=tuple(replace(line, odds=None) for line in level.lines),
    )
    monkeypatch.setattr(Facts, "level", endless)
    deployment = entry(facts)["deployment"]
    assert "privacy_parameters" not in deployment["privacy_loss"]
    assert deployment["dp_variant"]["variant_name"] == "Custom"
    assert "no finite level" in deployment["privacy_loss"]["privacy_parameters_details"]
    assert list(faults(entry(facts))) == []


def test_with_a_delta_the_variant_is_approximate(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = facts.level
    odds, delta = Fraction(3), Fraction(1, 10**6)
    counted = replace(
        level,
        answers=replace(level.answers, level=odds, odds=odds, delta=delta),
        cost=replace(level.cost, odds=odds, delta=delta),
    )
    monkeypatch.setattr(Facts, "level", replace(level, answers=replace(level.answers, odds=None)))
    monkeypatch.setattr(Facts, "level_with_delta", counted)
    deployment = entry(facts)["deployment"]
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    details = deployment["privacy_loss"]["privacy_parameters_details"]
    assert "no set of reports is more than ×3.00 (e to 1.0987) as likely" in details
    assert "plus δ = 0.000001. With a probability up to δ a report may reveal an answer" in details
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0987, "delta": 1e-06}
