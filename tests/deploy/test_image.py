# SPDX-License-Identifier: Apache-2.0
"""Dockerfile and docker-compose.yml, tested without Docker: all paths, settings, ports and commands
exist.

The tests run the commands as the containers would, against the tests' PostgreSQL.
"""

import re
import subprocess
import urllib.request
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from frankly_server.cli.gunicorn_server import Production
from frankly_server.cli.waitress_server import DRAIN_S
from frankly_server.settings import Settings

import run
from tests.deploy.containers import PORT, environment_of, instructions, serving
from tests.ports import free_port
from tests.postgres import PostgresServer


def test_every_path_copied_or_named_exists_and_reaches_the_build(
    root: Path, image: list[tuple[str, str]]
) -> None:
    included = [
        line[1:]
        for line in (root / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    sources = [
        name
        for arguments in instructions(image, "COPY")
        if "--from" not in arguments
        for name in arguments.split()[:-1]
    ]
    named = [
        name
        for arguments in instructions(image, "RUN")
        for name in re.findall(r"requirements/\w+\.txt", arguments)
    ]
    assert sources
    assert named
    for name in sources + named:
        assert (root / name).exists(), name
        assert name.split("/")[0] in included, name
    assert set(named) <= set(sources)


def test_nothing_of_a_checkout_reaches_the_image_by_accident(root: Path) -> None:
    lines = (root / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith(("#", "!"))]
    assert rules[0] == "*"
    for secret in (".git", ".venv", ".frankly", ".env", "frankly.db"):
        assert any(fnmatch(secret, rule) for rule in rules)
        assert f"!{secret}" not in lines


def test_the_build_has_what_run_py_needs(image: list[tuple[str, str]]) -> None:
    installed = re.findall(
        r"apt-get install -y --no-install-recommends ([^&]+)", instructions(image, "RUN")[0]
    )
    assert set(run.BUILD) <= set(installed[0].split())


def test_pip_resolves_nothing_and_checks_each_environment(image: list[tuple[str, str]]) -> None:
    commands = [
        command.strip()
        for arguments in instructions(image, "RUN")
        for command in arguments.split("&&")
        if " -m pip " in command
    ]
    *_, last = commands
    assert last == "python3 -m pip --python /opt/frankly/bin/python check"
    uses = [re.findall(r"--python (\S+) (install|wheel|check)\b", command) for command in commands]
    installed: set[str] = set()
    for command, [(python, verb)] in zip(commands, uses, strict=True):
        if verb == "check":
            installed.remove(python)
            continue
        assert "--no-deps" in command
        assert ("--require-hashes" in command) == ("-r requirements/" in command)
        if verb == "install":
            installed.add(python)
    assert not installed, "installed without a check"


def test_every_setting_exists(image: list[tuple[str, str]], compose: dict[str, Any]) -> None:
    settings_known = {f"FRANKLY_{name.upper()}" for name in Settings.model_fields}
    services = [service for service in compose["services"].values() if "build" in service]
    assert len(services) == 4
    for names in (environment_of(image), *(service["environment"] for service in services)):
        frankly_names = {name for name in names if name.startswith("FRANKLY_")}
        assert frankly_names
        assert frankly_names <= settings_known


def test_all_files_use_the_same_port(
    image: list[tuple[str, str]], compose: dict[str, Any], caddyfile: str
) -> None:
    [check] = instructions(image, "HEALTHCHECK")
    assert environment_of(image)["FRANKLY_PORT"] == PORT
    assert instructions(image, "EXPOSE") == [PORT]
    assert re.findall(r"127\.0\.0\.1:(\d+)", check) == [PORT]
    # Replicas cannot share a port of the host, so only the proxy can reach them.
    assert {name for name, service in compose["services"].items() if "ports" in service} == {
        "proxy"
    }
    assert f"dynamic a server {PORT} {{" in caddyfile


def test_the_home_is_the_volume_and_belongs_to_the_account(
    image: list[tuple[str, str]], compose: dict[str, Any]
) -> None:
    home = environment_of(image)["FRANKLY_HOME"]
    assert instructions(image, "VOLUME") == [home]
    assert instructions(image, "USER") == ["frankly"]
    [user_command] = [
        arguments for arguments in instructions(image, "RUN") if "useradd" in arguments
    ]
    assert f"--home-dir {home} --create-home" in user_command
    for name in ("keys", "migrate", "server"):
        assert compose["services"][name]["volumes"] == [f"frankly:{home}"]
    assert "frankly" in compose["volumes"]


def test_the_database_passes_its_health_check(
    deployment: dict[str, str], compose: dict[str, Any], postgres: PostgresServer
) -> None:
    kind, tool, *arguments = compose["services"]["database"]["healthcheck"]["test"]
    assert kind == "CMD"
    command = [str(postgres.binaries / tool), *arguments]
    assert (
        subprocess.run(
            [*command, f"--port={postgres.port}"], env=deployment, capture_output=True
        ).returncode
        == 0
    )
    assert (
        subprocess.run(
            [*command, f"--port={free_port()}"], env=deployment, capture_output=True
        ).returncode
        != 0
    )


def test_the_proxy_forwards_and_logs_nothing_about_the_client(
    caddyfile: str, compose: dict[str, Any]
) -> None:
    """The proxy removes forwarding headers and user agents, and logs nothing of a request."""
    for header in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "User-Agent", "Referer"):
        assert re.search(rf"^\s*header_up -{header}$", caddyfile, re.MULTILINE)
    assert "exclude http.log http.handlers" in caddyfile
    assert re.search(r"@inside path /metrics\n\s*respond @inside 404", caddyfile)
    site = compose["services"]["proxy"]["environment"]["SITE"]
    assert compose["services"]["server"]["environment"]["FRANKLY_PUBLIC_URL"] == f"https://{site}"


def test_the_proxy_ends_idle_connections_before_the_server(caddyfile: str) -> None:
    keepalive_s = int(re.findall(r"keepalive (\d+)s", caddyfile)[0])
    assert (
        2 * keepalive_s < Production(None, host="::1", port=1, threads=1, ready=print).cfg.keepalive
    )


def test_stopping_takes_less_than_docker_grants(compose: dict[str, Any]) -> None:
    granted = int(compose["services"]["server"]["stop_grace_period"].removesuffix("s"))
    assert DRAIN_S < granted <= 15


def test_a_production_wsgi_server_serves_the_application(
    deployment: dict[str, str], tmp_path: Path
) -> None:
    environment = deployment | {"HOME": str(tmp_path)}  # gunicorn creates a control socket in it
    for command in (["frankly", "keys", "init", "--yes"], ["frankly", "migrate"]):
        subprocess.run(command, env=environment, cwd=tmp_path, check=True, capture_output=True)
    bind = f"127.0.0.1:{deployment['FRANKLY_PORT']}"
    command = [
        "gunicorn",
        "--workers=1",
        "--threads=2",
        f"--bind={bind}",
        "frankly_server.app:wsgi()",
    ]
    with (
        serving(command, environment, tmp_path),
        urllib.request.urlopen(f"http://{bind}/health", timeout=120) as answer,
    ):
        assert answer.status == 200
