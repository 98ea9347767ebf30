# SPDX-License-Identifier: Apache-2.0
"""File docker-compose.yml, tested without Docker: fields of the compose specification, and a manual
deployment.

The manual deployment runs the commands of the services on the tests' PostgreSQL, with a TCP proxy
instead of Caddy (see test_caddy.py). These tests cover neither the build of the image nor Docker's
networks.
"""

import configparser
import json
import os
import re
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from frankly_server.cli.waitress_server import DRAIN_S

from tests.deploy.containers import PASSWORD, PORT, environment_of, instructions, publish, serving
from tests.faults.scale.proxy import Proxy
from tests.faults.server.running import Devices, check_kept
from tests.ports import free_port

DURATION = r"([0-9]+(h|m|s|ms))+"
# The fields of compose-spec.json that the file uses, with their types or values.
FIELDS: dict[str, Any] = {
    "image": str, "pull_policy": str, "build": dict,
    "environment": dict, "volumes": list, "read_only": bool, "tmpfs": list, "ports": list,
    "cap_drop": list, "security_opt": list, "restart": "no|always|on-failure|unless-stopped", "profiles": list,
    "command": list, "stop_grace_period": DURATION, "init": bool, "healthcheck": dict, "depends_on": dict,
    "deploy": dict, "networks": list, "network_mode": "none|host", "logging": dict, "mem_limit": r"[0-9]+[kmg]",
    "pids_limit": int, "cap_add": list,
}  # fmt: skip
HEALTH = {"test": list, "interval": DURATION, "timeout": DURATION, "retries": int, "disable": bool}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


def invalid_fields(fields: dict[str, Any], allowed: dict[str, Any]) -> list[str]:
    """Return the names of unknown fields and of fields with invalid values."""
    faults = []
    for name, value in fields.items():
        kind = allowed.get(name)
        fits = (
            re.fullmatch(kind, str(value))
            if isinstance(kind, str)
            else kind is not None and type(value) is kind
        )
        if not fits:
            faults.append(name)
    return faults


def test_every_field_is_one_of_the_specification(compose: dict[str, Any]) -> None:
    assert {name for name in compose if not name.startswith("x-")} == {
        "services",
        "volumes",
        "networks",
    }
    for name, service in compose["services"].items():
        assert re.fullmatch(r"[a-zA-Z0-9._-]+", name)
        assert invalid_fields(service, FIELDS) == [], name
        assert invalid_fields(service.get("healthcheck", {}), HEALTH) == [], name
        assert set(service.get("deploy", {})) <= {"replicas"}
        assert all(isinstance(value, str) for value in service.get("environment", {}).values()), (
            name
        )
        assert all(isinstance(word, str) for word in service.get("command", [])), name
        for port in service.get("ports", []):
            assert re.fullmatch(r"[0-9]+:[0-9]+", port)
    assert invalid_fields({"colour": 1, "restart": "sometimes", "command": "x"}, FIELDS) == [
        "colour",
        "restart",
        "command",
    ]


def test_every_service_volume_and_profile_that_is_named_exists(
    root: Path, compose: dict[str, Any]
) -> None:
    services = compose["services"]
    for name, service in services.items():
        for mount in service.get("volumes", []):
            source, target, *mode = mount.split(":")
            assert target.startswith("/")
            assert mode in ([], ["ro"])
            assert (
                (root / source).is_file()
                if source.startswith(".")
                else source in compose["volumes"]
            ), mount
        for dependency, how in service.get("depends_on", {}).items():
            assert set(how) == {"condition"}
            assert how["condition"] in CONDITIONS
            assert "profiles" not in services[dependency], (
                "no service may wait for a service that is not started by default"
            )
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[dependency] or "build" in services[dependency], (
                    name
                )
    waits = {name: set(service.get("depends_on", {})) for name, service in services.items()}
    while ready := [
        name for name, dependencies in waits.items() if not dependencies
    ]:  # the loop removes every service if there are no cycles
        for name in ready:
            del waits[name]
        waits = {name: dependencies - set(ready) for name, dependencies in waits.items()}
    assert waits == {}


def test_variables_are_required_or_have_a_default(root: Path) -> None:
    text = re.sub(r"(?m)^\s*#.*$", "", (root / "docker-compose.yml").read_text())
    used = re.findall(r"\$\{([^}]*)\}", text)
    assert used
    assert all(re.fullmatch(r"[A-Z_]+(:-[^}]*|:\?[^}]+)", variable) for variable in used)
    assert text.count("$") == len(used)
    assert yaml.safe_load(text)["services"]["server"]["deploy"]["replicas"] == "${REPLICAS:-2}"


CAPABILITIES = {
    "database": {"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"},
    "proxy": {"NET_BIND_SERVICE"},
}


def test_containers_are_restricted(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"]
        assert set(service.get("cap_add", [])) == CAPABILITIES.get(name, set())
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "privileged" not in service
        assert ("ports" in service) is (name == "proxy")
        # The default driver never deletes a line.
        assert service["logging"] == {
            "driver": "local",
            "options": {"max-size": "10m", "max-file": "3"},
        }
        assert service["mem_limit"]
        assert service["pids_limit"] <= 256
    assert compose["services"]["witness"]["healthcheck"] == {"disable": True}  # it has no port


def test_only_servers_reach_the_database_and_it_reaches_nothing(compose: dict[str, Any]) -> None:
    services, networks = compose["services"], compose["networks"]
    assert networks["data"] == {"internal": True}
    members = {
        network: {
            name for name, service in services.items() if network in service.get("networks", [])
        }
        for network in networks
    }
    assert members == {
        "data": {"database", "migrate", "server"},
        "front": {"proxy", "server"},
        "witness": {"witness"},
    }
    assert services["keys"]["network_mode"] == "none"
    # A service that names no network would join the default network, together with all such
    # services.
    assert all("networks" in service or "network_mode" in service for service in services.values())


UNIT = {
    "Description", "After", "Wants", "User", "Group", "StateDirectory", "StateDirectoryMode", "UMask", "Environment",
    "EnvironmentFile", "ExecStartPre", "ExecStart", "KillMode", "TimeoutStopSec", "Restart", "RestartSec", "MemoryMax",
    "TasksMax", "CapabilityBoundingSet", "LockPersonality", "NoNewPrivileges", "PrivateDevices", "PrivateTmp",
    "ProcSubset", "ProtectClock", "ProtectControlGroups", "ProtectHome", "ProtectHostname", "ProtectKernelLogs",
    "ProtectKernelModules", "ProtectKernelTunables", "ProtectProc", "ProtectSystem", "RestrictAddressFamilies",
    "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID", "SystemCallArchitectures", "SystemCallFilter",
    "SystemCallErrorNumber", "WantedBy", "OOMPolicy",
}  # fmt: skip
"""Directives of systemd.unit(5), .service(5) and .exec(5) that the unit uses."""


def test_the_systemd_unit_is_as_restricted(root: Path) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(root / "deploy" / "frankly.service")
    assert unit.sections() == ["Unit", "Service", "Install"]
    assert {name for section in unit.sections() for name in unit[section]} == UNIT
    service = unit["Service"]
    assert service["ExecStart"].endswith("/frankly serve --production")
    assert service["ExecStartPre"].endswith("/frankly migrate")
    assert (service["UMask"], service["StateDirectoryMode"]) == ("0077", "0700")
    assert int(service["TimeoutStopSec"]) > DRAIN_S
    assert (service["User"], service["CapabilityBoundingSet"], service["NoNewPrivileges"]) == (
        "frankly",
        "",
        "true",
    )


@pytest.mark.full_only
def test_systemd_reads_the_unit_and_finds_it_restricted(root: Path, tmp_path: Path) -> None:
    """The threshold of 20 is an exposure of 2.0; a unit without any restriction has 9.6."""
    program = shutil.which("systemd-analyze")
    assert program, "install the package systemd"
    unit = tmp_path / "frankly.service"
    # systemd checks that the program is executable, but the program is not installed here.
    text = (root / "deploy" / "frankly.service").read_text()
    unit.write_text(text.replace("/opt/frankly/bin/frankly", shutil.which("true") or ""))
    for check in (["verify"], ["security", "--offline=true", "--threshold=20"]):
        done = subprocess.run(
            [program, *check, str(unit)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""


def test_every_version_has_upgrade_notes(root: Path) -> None:
    versions = re.split(r"(?m)^## ", (root / "CHANGELOG.md").read_text("utf-8"))[1:]
    assert versions
    for version in versions:
        (notes,) = re.findall(r"(?ms)^### Upgrading\n(.*?)(?=^###|\Z)", version)
        assert re.findall(r"(?m)^- ([A-Z][\w ]*):", notes) == ["Stop", "Go on", "Change"]


def health(image: list[tuple[str, str]], port: int) -> list[str]:
    """Return the image's health check command for a local port."""
    [check] = instructions(image, "HEALTHCHECK")
    command: list[str] = json.loads(check.partition("CMD ")[2])
    return [*command[:-1], command[-1].replace(PORT, str(port))]


def taken_offline(image: list[tuple[str, str]]) -> list[str]:
    """Return the names of the root keys that docs/operations.md copies off the volume and then removes."""
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    inside = re.escape(f"{environment_of(image)['FRANKLY_HOME']}/keys/")
    copied = re.findall(
        rf"^docker compose run --rm -T keys cat {inside}(\S+) > (\S+)$", page, re.MULTILINE
    )
    [removed] = re.findall(r"^docker compose run --rm keys rm (.+)$", page, re.MULTILINE)
    names = [name for name, _ in copied]
    assert names == [file for _, file in copied]
    assert [re.fullmatch(rf"{inside}(\S+)", file)[1] for file in removed.split()] == names  # type: ignore[index]
    return names


def test_the_whole_deployment_by_hand(
    deployment: dict[str, str],
    image: list[tuple[str, str]],
    compose: dict[str, Any],
    tmp_path: Path,
    full: bool,
) -> None:
    """The test covers keys, migration, load through the proxy while replicas are replaced in turn,
    and a witness of the log."""
    services, wanted_reports = compose["services"], 5_000 if full else 200
    replicas = int(services["server"]["deploy"]["replicas"])
    assert json.loads(instructions(image, "CMD")[-1]) == services["server"]["command"]

    def run(*command: str) -> int:
        return subprocess.run(command, env=deployment, cwd=tmp_path, capture_output=True).returncode

    assert run(*services["keys"]["command"]) == run(*services["migrate"]["command"]) == 0
    key_names = taken_offline(image)
    assert set(key_names) == {file.name for file in (tmp_path / "home" / "keys").glob("root*.pem")}
    for name in key_names:
        (tmp_path / "home" / "keys" / name).rename(tmp_path / name)
    site = publish(deployment, tmp_path / "home")
    ports = [free_port() for _ in range(replicas)]

    def replica(port: int) -> Any:
        return serving(
            services["server"]["command"], deployment | {"FRANKLY_PORT": str(port)}, tmp_path
        )

    with Proxy(ports, skips_down=True) as proxy, ExitStack() as up:
        started = {port: up.enter_context(ExitStack()) for port in ports}
        for port, stack in started.items():
            stack.enter_context(replica(port))
        site.port = proxy.port
        with Devices(site, threads=6) as devices:  # type: ignore[arg-type]  # same fields
            # A new release stops and replaces one replica after the other.
            for i, port in enumerate(ports if full else ports[:1]):
                devices.wait_for((i + 1) * wanted_reports // (replicas + 1), within_s=300)
                started[port].close()
                started[port].enter_context(replica(port))
            assert run(*services["migrate"]["command"]) == 0  # every `up` runs the migration
            devices.wait_for(wanted_reports, within_s=300)
        check = health(image, ports[0]), health(image, free_port())
        assert [run(*command) == 0 for command in check] == [True, False]
        assert all(proxy.taken[port] > 0 for port in ports)
        home = {"FRANKLY_HOME": str(tmp_path / "witness")}
        *watch, _ = services["witness"]["command"]
        check_runs_until_sigterm(
            [*watch, f"http://127.0.0.1:{proxy.port}"], deployment | home, tmp_path
        )
    check_kept(site, devices)  # type: ignore[arg-type]
    unanswered = [attempt for attempt in devices.attempts if attempt.status not in (200, 201)]
    assert all(attempt.status in (0, 503) for attempt in unanswered)


def check_runs_until_sigterm(command: list[str], environment: dict[str, str], folder: Path) -> None:
    """Run the witness as the compose file does, and check that it runs until SIGTERM."""
    with subprocess.Popen(
        command, env=environment, cwd=folder, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            assert "1 entries" in process.stderr.readline()
            time.sleep(0.2)
            assert process.poll() is None
            process.terminate()
            process.wait(timeout=60)
        finally:
            process.kill()  # otherwise a failure would wait for a program that does not end


def config(root: Path, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `docker-compose config`, which needs no Docker engine."""
    program = shutil.which("docker-compose")
    assert program, "install the package docker-compose"
    command = [program, "--file", str(root / "docker-compose.yml"), "config"]
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), **environment}
    return subprocess.run(
        command, env=variables, cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.full_only
def test_docker_compose_reads_what_these_tests_read(
    root: Path, compose: dict[str, Any], tmp_path: Path
) -> None:
    """The test uses docker-compose's parser and schema; the default suite does not install this package."""
    completed = config(root, tmp_path, POSTGRES_PASSWORD=PASSWORD)
    assert completed.returncode == 0, completed.stderr
    read = yaml.safe_load(completed.stdout)
    assert set(read["services"]) == set(compose["services"])
    assert set(read["volumes"]) == set(compose["volumes"])
    for name, service in compose["services"].items():
        for field in (
            "command",
            "environment",
            "image",
            "profiles",
            "read_only",
            "cap_drop",
            "security_opt",
            "tmpfs",
        ):
            assert read["services"][name].get(field) == service.get(field), (name, field)
        assert read["services"][name].get("depends_on") == service.get("depends_on"), name
    assert read["services"]["server"]["deploy"] == {"replicas": 2}
    assert read["services"]["server"]["stop_grace_period"] == "15s"


@pytest.mark.full_only
def test_docker_compose_requires_the_password_and_accepts_options(
    root: Path, tmp_path: Path
) -> None:
    without = config(root, tmp_path)
    assert without.returncode != 0
    assert "put it into .env" in without.stderr
    chosen = config(
        root,
        tmp_path,
        POSTGRES_PASSWORD=PASSWORD,
        SITE="a.example.org",
        REPLICAS="5",
        METRICS_TOKEN="t" * 32,
    )
    read = yaml.safe_load(chosen.stdout)["services"]
    assert read["server"]["deploy"] == {"replicas": 5}
    assert read["server"]["environment"]["FRANKLY_PUBLIC_URL"] == "https://a.example.org"
    assert read["server"]["environment"]["FRANKLY_METRICS_TOKEN"] == "t" * 32
    assert read["proxy"]["environment"] == {"SITE": "a.example.org"}
