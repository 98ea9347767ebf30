# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL server of the tests: a real server with durability on."""

from pathlib import Path

import psycopg
import pytest

from tests.postgres import find_binaries


@pytest.mark.parametrize("setting", ["fsync", "synchronous_commit", "full_page_writes"])
def test_durability_is_on(postgres_url: str, setting: str) -> None:
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        assert connection.execute(f"SHOW {setting}").fetchone() == ("on",)


def test_each_test_has_an_empty_database(postgres_url: str) -> None:
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        tables = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone()
        connection.execute("CREATE TABLE left_behind (n int)")
    assert tables == (0,)


test_and_leaves_nothing_to_the_next = test_each_test_has_an_empty_database


def test_a_wrong_folder_of_binaries_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="contains no initdb"):
        find_binaries(str(tmp_path))
