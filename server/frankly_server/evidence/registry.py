# SPDX-License-Identifier: Apache-2.0
"""Entry for the registry of deployments of differential privacy (opendp/deployments-registry-data).

Field names and allowed values are those of its `deployments-schema.yaml` of July 2026. The registry
renders texts as Markdown with LaTeX, so texts of the document are escaped.
"""

import re
from typing import Any, Final

import yaml
from frankly_protocol.audit import DEVICE_CAP, chance_up, ln_up

from frankly_server.evidence.content import Open
from frankly_server.evidence.facts import (
    Facts,
    answers_words,
    bound_words,
    delta_words,
    exposed_words,
    item_words,
    posterior_words,
    promise_words,
    relation_words,
)

_MARKUP: Final = re.compile(r"[\\`*_\[\]<>&|$#~!]")
_OPEN: Final = {
    "curators": Open("the entities that publish the results"),
    "use": Open("intended uses of the results"),
    "region": Open("region that the data describe"),
    "justification": Open("how the protection was chosen, and by whom"),
    "authors": Open("authors of this record"),
}
OPEN_POINTS: Final = tuple(_OPEN.values())


class _Number(str):
    """A number as decimal text, written into YAML digit by digit."""

    __slots__ = ()


class _QuotingDumper(yaml.SafeDumper):
    """A dumper that quotes texts, as the registry's own check of quoting demands."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"')


def _number(dumper: yaml.SafeDumper, value: _Number) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:float", str(value))


_QuotingDumper.add_representer(str, _text)
_QuotingDumper.add_representer(_Number, _number)


def registry(facts: Facts) -> bytes:
    """Return the entry as YAML."""
    basic = _basic(facts)
    value = {
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": basic,
            "dp_variant": _variant(facts),
            "privacy_loss": _loss(facts),
            "deployment_model": _model(facts),
            "accounting": _accounting(),
            "implementation": _implementation(facts),
            "administrative": {
                "sources": f"Signed document: {facts.document.digest}, "
                f"{facts.server}/v1/surveys/{facts.document.survey}/document",
                "notes": _notes(facts),
                "registry_authors": [str(_OPEN["authors"])],
            },
        },
    }
    text = yaml.dump(value, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True, width=10**9)
    # Keys and slug are plain in the registry's files, whose tools read the slug without a parser.
    text = re.sub(r'^(\s*)"(\w+)":', r"\1\2:", text, flags=re.MULTILINE)
    return f"url_slug: {_slug(basic)}\n{text}".encode()


def _basic(facts: Facts) -> dict[str, Any]:
    document, state = facts.document, facts.state
    published = state.releases[0][1] if state.releases else facts.moment("issued")
    return {
        "name": _escaped(facts.title),
        "data_curators": [str(_OPEN["curators"])],
        "intended_use": str(_OPEN["use"]),
        "data_product_type": "Summary statistics",
        "data_product_region": str(_OPEN["region"]),
        "description": f"Estimates of the answers to {len(document.questions)} question(s) of a survey, from "
        f"reports that the respondents' devices draw. {_escaped(exposed_words(facts))}".rstrip(),
        "publication_date": published[:10],
    }


def _variant(facts: Facts) -> dict[str, Any]:
    public = (
        f"Answers to {len(facts.document.strata)} public question(s), the number of reports, and that "
        "a person takes part."
        if facts.document.strata
        else "The number of reports, and that a person takes part."
    )
    public = " ".join(filter(None, (public, _escaped(item_words(facts).strip()))))
    return {
        "variant_name": _name(facts),
        "data_domain": f"All answers to the {len(facts.document.questions)} randomised question(s) of one "
        "respondent.",
        "unprotected_quantities": public,
    }


def _name(facts: Facts) -> str:
    if facts.level.answers.odds is not None:
        return "Pure DP"
    level = facts.level_with_delta
    return "Custom" if level is None or level.answers.odds is None else "Approximate DP"


def _loss(facts: Facts) -> dict[str, Any]:
    document, level = facts.document, facts.level
    name = _name(facts)
    if name == "Approximate DP" and facts.level_with_delta is not None:
        counted = facts.level_with_delta
        parameters = {
            "epsilon": _Number(ln_up(counted.answers.odds)),
            "delta": _Number(_with_point(chance_up(counted.cost.delta))),
        }
    else:
        # Without a bound there is no number to state; the details say so.
        odds = level.answers.odds
        parameters = {} if odds is None else {"epsilon": _Number(ln_up(odds))}
    given = ", given the public answers" if document.strata else ""
    secrets = [
        f"About “{_escaped(name)}”{given}: odds {bound_words(secret.odds)}, if the published tables are true."
        for name, secret in level.secrets.items()
    ]
    promises = [
        _escaped(
            f"Block {block.id}: {promise_words(promise)}. "
            + relation_words(promise, block, has_strata=bool(document.strata))
        )
        for block in document.blocks
        for promise in block.promises
    ]
    delta = delta_words(facts)
    details = [
        answers_words(facts),
        *([delta] if delta else []),
        *secrets,
        *map(_escaped, posterior_words(facts)),
        *promises,
        "All levels are rounded up.",
    ]
    return {
        "privacy_unit": "Respondent, per version of the survey",
        "privacy_unit_details": "Two data sets are adjacent if the randomised answers of one respondent differ, in "
        "any way and to all questions together; public answers, and that the respondent takes part, are equal.",
        **({"privacy_parameters": parameters} if parameters else {}),
        "privacy_parameters_details": "\n\n".join(details),
    }


def _model(facts: Facts) -> dict[str, Any]:
    document, state = facts.document, facts.state
    return {
        "model_name": "Local",
        "model_name_details": "Every device verifies the signed document and randomises the answers before it sends "
        "anything.",
        "actors": "Respondents and their devices are trusted. The server with its operator, analysts, the network "
        "and the public are not.",
        "release_type": "Many releases",
        "release_type_details": f"Batches of at least {document.release_step} reports of one group, at the end of "
        f"every {document.release_every}. Each report is released once, so further releases cost nothing "
        f"more. Until {state.made} there were {len(state.releases)} release(s) of this version.",
        "data_source_type": "Dynamic",
        "data_source_type_details": f"Reports arrive from {facts.moment('opens')} to {facts.moment('closes')}.",
        "access_type": "Non-interactive",
        "access_type_details": f"Estimates and counts of released batches, from {document.min_reports} reports on.",
    }


def _accounting() -> dict[str, Any]:
    return {
        "post_processing": "Estimates, intervals, tables and models are computed from the released counts.",
        "composition": "Exact multiplication of the ratios of all blocks of a report. A device adds the costs of all "
        f"surveys and refuses above its app's cap, {DEVICE_CAP} nats unless the app sets another.",
    }


def _implementation(facts: Facts) -> dict[str, Any]:
    names = ", ".join(f"{block.id}: {block.mechanism_name}" for block in facts.document.blocks)
    return {
        "preprocessing_and_hyperparameter_tuning": "None on the answers. Mechanisms are designed from the survey's "
        "definition and from the public tables in the signed document.",
        "mechanisms": _escaped(
            f"Frankly, {names}. Probabilities are whole-number weights in the signed document, drawn from "
            "the operating system's random source; no floating point in a privacy decision. Every device "
            "verifies every promise exactly."
        ),
        "justification": str(_OPEN["justification"]),
    }


def _notes(facts: Facts) -> str:
    date = (
        "The publication date is the day of the first release."
        if facts.state.releases
        else "Nothing had been released: the publication date is the day on which the document was issued, until "
        "the first release."
    )
    return _escaped(
        f"Version {facts.document.version} of the survey, written {facts.state.made}. {date} "
        "The sector is left out: choose one of the registry's values. The slug follows from name, curators "
        "and year: make it again when you have filled them in."
    )


def _slug(basic: dict[str, Any]) -> str:
    """Return the slug by the registry's rule: name, curators and year."""
    parts = (
        basic["name"],
        "-".join(basic["data_curators"]),
        basic["publication_date"].split("-")[0],
    )
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")


def _escaped(text: str) -> str:
    """Return a text whose characters Markdown and LaTeX would interpret are character references."""
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", text)


def _with_point(number: str) -> str:
    return number if "." in number else f"{number}.0"
