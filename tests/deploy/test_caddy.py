# SPDX-License-Identifier: Apache-2.0
"""Proxy of the deployment: Caddy validates its file and serves two replicas through local TLS.

The default suite does not install the package `caddy`. These tests cover neither certificates of a
public authority nor Docker's name resolution, which a small name server replaces.
"""

import http.client
import json
import secrets
import socket
import ssl
import subprocess
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.caddy import (
    Proxy,
    local_caddyfile,
    naming,
    port_on_all,
    proxying,
    validated,
    version,
)
from tests.deploy.containers import Site, publish, serving
from tests.faults.server.running import Devices, check_kept, report_bytes
from tests.faults.servers import site as recording
from tests.ports import free_port

pytestmark = pytest.mark.full_only
REPLICAS = ["127.0.0.1", "127.0.0.2"]
CANARY = "canary7f3a9"


@contextmanager
def proxied(caddyfile: str, port: int, folder: Path, addresses: list[str]) -> Iterator[Proxy]:
    """Run Caddy in front of the servers that listen on this port of these addresses."""
    ports = free_port(), free_port()
    with (
        naming(addresses) as names,
        proxying(local_caddyfile(caddyfile, names, port, ports), ports, folder) as proxy,
    ):
        yield proxy


def send_request(
    proxy: Proxy, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, Any, bytes]:
    """Send one request over TLS; return the status, the headers and the body."""
    connection = http.client.HTTPSConnection(
        "localhost", proxy.port, timeout=60, context=proxy.trust
    )
    try:
        connection.request(
            method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def test_caddy_accepts_the_file_and_rejects_an_unknown_directive(
    caddyfile: str, tmp_path: Path
) -> None:
    validation = validated(local_caddyfile(caddyfile, 53, 8000, (443, 80)), tmp_path)
    assert validation.returncode == 0, validation.stderr
    assert "deprecated" not in validation.stderr.lower()
    bent = local_caddyfile(caddyfile, 53, 8000, (443, 80)).replace("lb_policy", "lb_polity")
    assert validated(bent, tmp_path).returncode != 0


def test_nothing_about_the_client_passes_the_proxy(caddyfile: str, tmp_path: Path) -> None:
    """The test checks every byte that a replica receives."""
    marks: dict[str, Any] = {
        "User-Agent": f"{CANARY}-agent", "Referer": f"https://{CANARY}.example/", "X-Forwarded-For": "203.0.113.77",
        "Forwarded": "for=203.0.113.78", "X-Real-IP": "203.0.113.79", "X-Forwarded-Host": f"{CANARY}.example",
    }  # fmt: skip
    with recording() as upstream:
        port = int(upstream.origin.rpartition(":")[2])
        with proxied(caddyfile, port, tmp_path, ["127.0.0.1"]) as proxy:
            status, _, body = send_request(proxy, "GET", "/v1/keys", **marks)
    assert (status, bool(body)) == (200, True)
    [forwarded] = upstream.requests
    assert forwarded.startswith(b"GET /v1/keys")
    head = forwarded.decode("latin-1").lower()
    for mark in (CANARY, "203.0.113.", "127.0.0.1", "x-forwarded-for", "referer", "x-real-ip"):
        assert mark not in head, mark


def test_a_proxy_without_replicas_answers_an_error_and_logs_nothing_of_the_request(
    caddyfile: str, tmp_path: Path
) -> None:
    with proxied(caddyfile, free_port(), tmp_path, ["127.0.0.1"]) as proxy:
        status, _, body = send_request(proxy, "GET", f"/s/{CANARY}?{CANARY}", User_Agent=CANARY)
        assert status in (502, 503)
        assert CANARY.encode() not in body
        log_text = proxy.log.read_text()
    assert "serving initial configuration" in log_text  # Caddy logs its own start
    assert CANARY not in log_text
    assert '"remote_ip"' not in log_text


Replicas = tuple[Site, dict[str, str], list[str]]


@pytest.fixture
def replicas(deployment: dict[str, str], compose: dict[str, Any], tmp_path: Path) -> Replicas:
    """A published survey, the environment of its replicas, and their command; none runs yet."""
    for name in ("keys", "migrate"):
        command = compose["services"][name]["command"]
        subprocess.run(command, env=deployment, cwd=tmp_path, check=True, capture_output=True)
    port = port_on_all(REPLICAS)
    return (
        publish(deployment, tmp_path / "home"),
        deployment | {"FRANKLY_PORT": str(port)},
        compose["services"]["server"]["command"],
    )


def test_two_servers_behind_it_while_each_is_replaced(
    replicas: Replicas, caddyfile: str, tmp_path: Path
) -> None:
    site, environment, command = replicas

    def replica(address: str) -> Any:
        folder = tmp_path / address
        folder.mkdir(exist_ok=True)
        return serving(command, environment | {"FRANKLY_HOST": address}, folder)

    with (
        proxied(caddyfile, int(environment["FRANKLY_PORT"]), tmp_path, REPLICAS) as proxy,
        ExitStack() as up,
    ):
        started = {address: up.enter_context(ExitStack()) for address in REPLICAS}
        for address, stack in started.items():
            stack.enter_context(replica(address))
        site.port = proxy.port
        with Devices(site, threads=6, trust=proxy.trust) as devices:  # type: ignore[arg-type]  # same fields
            for i, address in enumerate(REPLICAS):
                devices.wait_for((i + 1) * 500, within_s=300)
                started[address].close()
                devices.wait_for((i + 1) * 500 + 100, within_s=300)  # only the other replica runs
                started[address].enter_context(replica(address))
            devices.wait_for(2000, within_s=300)
        answered = Counter(sent.status for sent in devices.attempts)
        check_kept(site, devices)  # type: ignore[arg-type]
        check_edges(proxy, site)
    print(dict(answered))  # noqa: T201 - with -s, shows how often no server answered
    if version() >= (2, 8):  # older versions retry only requests without a body
        # A stopped replica loses at most the responses in flight; devices send those reports again.
        assert answered[0] + answered[502] + answered[503] <= 2 * 6


def check_edges(proxy: Proxy, site: Site) -> None:
    """Check headers, redirects, size limits, old TLS versions, and paths that are not public."""
    status, headers, _ = send_request(proxy, "GET", "/health/ready", X_Request_Id=CANARY)
    assert status == 200
    assert headers["Strict-Transport-Security"] == "max-age=31536000"
    # Docker publishes no port for HTTP/3, so no response may advertise it.
    assert {"Server", "Via", "X-Powered-By", "Set-Cookie", "X-Request-Id", "Alt-Svc"} & set(
        headers
    ) == set()
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert send_request(proxy, "GET", "/metrics")[0] == 404
    assert send_request(proxy, "GET", "/metrics/")[0] == 404
    path = f"/v1/surveys/{site.survey}/reports"
    status, _, body = send_request(
        proxy, "POST", path, b" " * 3_000_000, Content_Type="application/json"
    )
    assert (status, json.loads(body)["code"]) == (413, "body_too_large")
    report = report_bytes(site, secrets.token_hex(16), (0, 0))  # type: ignore[arg-type]
    statuses = [
        send_request(proxy, "POST", path, report, Content_Type="application/json")[0]
        for _ in range(3)
    ]
    assert statuses == [201, 200, 200]  # the second may come from any replica
    unencrypted = http.client.HTTPConnection("localhost", proxy.plain_port, timeout=60)
    unencrypted.request("POST", path, report, {"Content-Type": "application/json"})
    answer = unencrypted.getresponse()
    assert (answer.status, answer.headers["Location"].startswith("https://")) == (308, True)
    check_old_tls_is_refused(proxy)


def check_old_tls_is_refused(proxy: Proxy) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("DEFAULT@SECLEVEL=0")  # otherwise the test's own TLS library refuses first
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("localhost", proxy.port)) as raw,
        pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"),
    ):
        old.wrap_socket(raw, server_hostname="localhost")
