# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the files of a deployment as Docker reads them, and the environment of its containers."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.containers import PASSWORD, environment_of
from tests.ports import free_port
from tests.postgres import PostgresServer


@pytest.fixture(scope="module")
def image(root: Path) -> list[tuple[str, str]]:
    """Instructions of the Dockerfile, in order."""
    text = re.sub(r"^#.*\n", "", (root / "Dockerfile").read_text(), flags=re.MULTILINE).replace(
        "\\\n", " "
    )
    return [
        (word, arguments.strip())
        for word, _, arguments in (line.partition(" ") for line in text.splitlines() if line)
    ]


@pytest.fixture(scope="module")
def compose(root: Path) -> dict[str, Any]:
    """The compose file as Docker reads it when POSTGRES_PASSWORD is set."""
    text = (root / "docker-compose.yml").read_text()
    text = re.sub(r"\$\{POSTGRES_PASSWORD:\?[^}]*\}", PASSWORD, text)
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
    assert "${" not in text
    return yaml.safe_load(text)


@pytest.fixture(scope="module")
def caddyfile(root: Path, compose: dict[str, Any]) -> str:
    """The Caddyfile that the compose file mounts."""
    [mount] = [
        volume for volume in compose["services"]["proxy"]["volumes"] if "Caddyfile" in volume
    ]
    return (root / mount.split(":")[0]).read_text()


@pytest.fixture
def deployment(
    postgres: PostgresServer, image: list[tuple[str, str]], compose: dict[str, Any], tmp_path: Path
) -> Iterator[dict[str, str]]:
    """Prepare the database as the PostgreSQL image does; yield the environment of the servers on
    this machine."""
    database_environment = compose["services"]["database"]["environment"]
    assert database_environment["POSTGRES_PASSWORD"] == PASSWORD
    role, database = database_environment["POSTGRES_USER"], database_environment["POSTGRES_DB"]
    postgres.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    postgres.execute(f"CREATE DATABASE {database} OWNER {role}")
    environment = environment_of(image) | compose["services"]["server"]["environment"]
    url = environment["FRANKLY_DATABASE_URL"]
    assert url.count("@database:5432/") == 1  # the name of the service, the port of PostgreSQL
    yield environment | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FRANKLY_DATABASE_URL": url.replace("database:5432", f"127.0.0.1:{postgres.port}"),
        "FRANKLY_HOME": str(tmp_path / "home"),
        "FRANKLY_HOST": "127.0.0.1",
        "FRANKLY_PORT": str(free_port()),
    }
    postgres.drop(postgres.url(database))
    postgres.execute(f"DROP ROLE {role}")
