# SPDX-License-Identifier: Apache-2.0
"""Migrations on both databases: no data is lost, and the previous release keeps running.

The tests discover migrations, so a new migration needs no change here. Before 0.1.0 there is only
the initial one, so the loop over pairs of revisions begins with the first migration after it.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from frankly_server.store import Database, UnsafeStore, downgrade, migrate, upgrade
from frankly_server.store.schema import SCHEMA_VERSION
from sqlalchemy import inspect

from tests.frankly_server.web.site import Site, make_site

Shape = dict[str, dict[str, Any]]


def revisions() -> list[str]:
    """Return all revisions, oldest first."""
    scripts = ScriptDirectory.from_config(migrate.migration_config())
    return [script.revision for script in scripts.walk_revisions()][::-1]


REVISIONS = revisions()


def shape(database: Database) -> Shape:
    """Read the columns, keys and constraints of every table."""
    inspector = inspect(database.engine)
    return {
        name: {
            "columns": {
                column["name"]: (
                    str(column["type"]),
                    column["nullable"],
                    column["default"] is not None,
                )
                for column in inspector.get_columns(name)
            },
            "key": tuple(inspector.get_pk_constraint(name)["constrained_columns"]),
            "unique": sorted(
                tuple(sorted(c["column_names"])) for c in inspector.get_unique_constraints(name)
            ),
            "checks": sorted(
                " ".join(check["sqltext"].split())
                for check in inspector.get_check_constraints(name)
            ),
            "references": sorted(
                (tuple(c["constrained_columns"]), c["referred_table"])
                for c in inspector.get_foreign_keys(name)
            ),
        }
        for name in inspector.get_table_names()
        if name != "alembic_version"
    }


def rows(database: Database, seen: Shape) -> dict[str, list[str]]:
    """Return the rows of the tables and columns in `seen`, sorted."""
    with database.engine.connect() as connection:
        return {
            name: sorted(
                repr(tuple(row))
                for row in connection.exec_driver_sql(f"SELECT {_listed(table)} FROM {name}")
            )
            for name, table in seen.items()
        }


def _listed(table: dict[str, Any]) -> str:
    return ", ".join(f'"{column}"' for column in table["columns"])


def holds(new: str, old: str) -> bool:
    """Return True if the new type accepts all values of the old type: it is the same type or a
    longer text."""
    lengths = [re.fullmatch(r"VARCHAR\((\d+)\)", kind) for kind in (old, new)]
    return new == old or (all(lengths) and int(lengths[0][1]) <= int(lengths[1][1]))  # type: ignore[index]


def harm(before: Shape, after: Shape) -> list[str]:
    """List the changes that break a program that knows only `before`."""
    losses = [f"{name} is gone" for name in before if name not in after]
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        for column, (kind, nullable, default) in old["columns"].items():
            if column not in new["columns"]:
                losses.append(f"{name}.{column} is gone")
                continue
            new_kind, new_nullable, new_default = new["columns"][column]
            if (
                not holds(new_kind, kind)
                or (nullable and not new_nullable)
                or (default and not new_default)
            ):
                losses.append(f"{name}.{column} is another")
        for column in new["columns"].keys() - old["columns"].keys():
            _, nullable, default = new["columns"][column]
            if not (nullable or default):
                losses.append(f"{name}.{column} would be missing")
        if new["key"] != old["key"]:
            losses.append(f"{name} has another key")
        for rule in ("unique", "checks", "references"):
            losses += [
                f"{name} has more {rule}: {value}" for value in new[rule] if value not in old[rule]
            ]
    return losses


@pytest.fixture
def site(tmp_path: Path, database_url: str) -> Iterator[Site]:
    """A server with a survey, reports, refusals, keys and people."""
    opened = make_site(tmp_path, database_url)
    for number in range(5):
        assert opened.send(opened.report(number)).status_code == 201
    assert opened.send(opened.report(9, y=[9, 9])).status_code == 422
    opened.services.accounts.create("main", "ada@example.org", "owner", "correct horse battery")
    opened.services.lifecycle.stop_at(opened.survey, 10)
    yield opened
    opened.services.close()


def test_downgrade_and_upgrade_lose_no_data_that_both_versions_have(site: Site) -> None:
    database = site.services.database
    site.services.intake.close()
    for older, newer in reversed(list(pairwise(REVISIONS))):
        assert downgrade(database, older) == older
        older_shape = shape(database)
        older_rows = rows(database, older_shape)
        assert sum(map(len, older_rows.values())) >= 10
        assert upgrade(database, newer) == newer
        assert harm(older_shape, shape(database)) == [], newer
        assert rows(database, older_shape) == older_rows, newer
        assert downgrade(database, older) == older
        assert shape(database) == older_shape, newer
        assert rows(database, older_shape) == older_rows, newer
    assert downgrade(database) is None
    assert shape(database) == {}


def test_a_running_server_stays_ready_under_a_newer_schema_and_a_new_one_does_not_start(
    site: Site,
) -> None:
    """During an update, the previous release still serves after the migration has run."""
    database = site.services.database

    def pretend(version: str) -> None:
        with database.engine.begin() as connection:
            connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{version}'")

    newer = f"{int(SCHEMA_VERSION) + 1:04d}"
    for version, ready in (
        (newer, 200),
        ("0000", 503),
        ("abc", 503),
        ("", 503),
        (SCHEMA_VERSION, 200),
    ):
        pretend(version)
        assert site.client.get("/health/ready").status_code == ready, version
        if version != SCHEMA_VERSION:
            with pytest.raises(UnsafeStore, match="schema version"):
                site.services.check_start()
    pretend(newer)
    assert site.send(site.report(30)).status_code == 201
    pretend(SCHEMA_VERSION)
    assert site.release() > 0


def test_steps_that_would_break_the_previous_release_are_found() -> None:
    """`harm` finds each kind of harmful change."""
    table: dict[str, Any] = {"columns": {"a": ("INTEGER", True, False)}, "key": ("a",), "unique": [], "checks": [],
                             "references": []}  # fmt: skip
    before: Shape = {"t": table}
    assert harm(before, {"t": table, "u": table}) == []
    assert (
        harm(before, {"t": table | {"columns": table["columns"] | {"b": ("TEXT", True, False)}}})
        == []
    )
    changes: list[dict[str, Any]] = [
        {"columns": {}},
        {"columns": {"a": ("TEXT", True, False)}},
        {"columns": {"a": ("INTEGER", False, False)}},
        {"columns": table["columns"] | {"b": ("TEXT", False, False)}},
        {"key": ("a", "b")},
        {"unique": [("a",)]},
        {"checks": ["a > 0"]},
        {"references": [(("a",), "u")]},
    ]
    for change in changes:
        assert len(harm(before, {"t": table | change})) == 1, change
    assert len(harm(before, {})) == 1
