# SPDX-License-Identifier: Apache-2.0
"""Option `--counts BLOCK=FILE`: a CSV table of counts replaces the prior of a block."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from frankly_design.numeric.lazy import LazyModule
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

if TYPE_CHECKING:
    from frankly_server.surveys import csv_prior, yaml
    from frankly_server.surveys import definition as definitions
else:
    # Lazy: commands that read no survey file need neither the design engine nor a YAML parser.
    csv_prior = LazyModule("frankly_server.surveys.csv_prior")
    definitions = LazyModule("frankly_server.surveys.definition")
    yaml = LazyModule("frankly_server.surveys.yaml")

option = click.option(
    "--counts",
    multiple=True,
    metavar="BLOCK=FILE",
    help="Read this block's prior from a CSV file: answers in the first line, then one secret and "
    "its counts per line; for counts by stratum, first a column for each public question.",
)


def definition(data: bytes, counts: Sequence[str]) -> "definitions.SurveyDefinition":
    """Parse a survey file, and replace the counts in its priors with the tables of `--counts`.

    The block needs a `prior:` with its source and, if it has a secret, the secret's name. The
    table's columns are the ids of the block's answers, in order. Raises InvalidInput if the file or
    a table is invalid, or if a table does not fit its block.
    """
    value = yaml.read_yaml(data)
    public = csv_prior.public_questions(value.get("strata") if isinstance(value, Mapping) else None)
    tables = dict(_table(option_value, public) for option_value in counts)
    for block in _blocks(value):
        if block.get("id") in tables and isinstance(block.get("prior"), dict):
            block["prior"] = _counted(block["prior"], tables[block["id"]])
    try:
        parsed = definitions.parse_value(value)
    except InvalidInput as refused:
        # The parser does not see the table, so this error refers to the table instead.
        if tables and refused.problem is Problem.PRIOR_SHAPE and "columns" in refused.detail:
            raise InvalidInput(
                Problem.PRIOR_SHAPE,
                f"line 1: the columns are not the answers of the block ({refused.detail})",
                "counts",
            ) from None
        raise
    blocks = {block.id: block for block in parsed.blocks}
    # Checked after parsing, because the joint answers of a block are not known earlier.
    for name, table in tables.items():
        _check(blocks.get(name), table)
    return parsed


def _table(
    option_value: str, public: "Sequence[csv_prior.PublicQuestion]"
) -> "tuple[str, csv_prior.CountTable]":
    block, equals, path = option_value.partition("=")
    if not (block and equals and path):
        raise InvalidInput(
            Problem.USAGE, "write a block's id, an equals sign and a CSV file's path", "counts"
        )
    try:
        with Path(path).open("rb") as file:
            # One byte more than allowed, so that `read_counts` detects a file that is too large.
            return block, csv_prior.read_counts(file.read(csv_prior.MAX_BYTES + 1), public)
    except OSError as error:
        raise InvalidInput(
            Problem.USAGE, f"the table cannot be read: {error.strerror}", "counts"
        ) from None


def _blocks(value: Any) -> list[dict[str, Any]]:
    blocks = value.get("blocks") if isinstance(value, Mapping) else None
    return (
        [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    )


def _counted(prior: Mapping[str, Any], table: "csv_prior.CountTable") -> dict[str, Any]:
    """Return the prior with its counts replaced by the table's."""
    # A table has no source and no name of the secret, so the survey file's values stay.
    fields = {name: value for name, value in prior.items() if name not in ("joint", "strata")}
    if table.strata:
        fields["strata"] = [
            {"when": dict(when), "joint": [list(row) for row in rows]}
            for when, rows in table.strata
        ]
    else:
        fields["joint"] = [list(row) for row in table.joint]
    return fields | ({"secrets": list(table.secrets)} if "secret" in prior else {})


def _check(block: "definitions.BlockDefinition | None", table: "csv_prior.CountTable") -> None:
    if block is None or block.prior is None:
        raise InvalidInput(
            Problem.DEFINITION_INVALID, "name a block of this survey that has a prior", "counts"
        )
    if table.answers != block.joint_answers:
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"line 1: the columns of block {block.id} are, in this order: {', '.join(block.joint_answers)}",
            "counts",
        )
