# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics: counts, statuses and durations of requests by route, and use of resources.

Labels are route templates, methods, statuses and fixed names. So their number is bounded, and no
label contains a survey, key or address. Counts cover one process: scrape every replica separately.
"""

import hmac
import resource
import threading
from collections import Counter
from pathlib import Path

from apiflask import APIBlueprint
from flask import Flask, Response, current_app, has_app_context, request
from frankly_protocol import __version__
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.settings import Settings
from frankly_server.web import models, reading
from frankly_server.web.openapi import declare

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_NAME = "frankly_metrics"


class Metrics:
    """Counters of one process. Safe to share between threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._within: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._limited: Counter[str] = Counter()
        self._in_flight = 0

    def begin(self) -> None:
        """Count a request in flight."""
        with self._guard:
            self._in_flight += 1

    def end(self) -> None:
        """Count a request as no longer in flight."""
        with self._guard:
            self._in_flight -= 1

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a response; `route` is a template, `method` a known name, `seconds` the duration."""
        with self._guard:
            self._answers[route, method, status] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]  # a Counter adds floats as well
            # Histogram buckets of Prometheus are cumulative, so buckets with larger bounds count
            # too.
            for edge in SECONDS:
                self._within[route, edge] += seconds <= edge

    def limited(self, kind: str) -> None:
        """Count a request that a rate limit refused."""
        with self._guard:
            self._limited[kind] += 1

    def text(self) -> str:
        """Return all metrics in Prometheus' text format 0.0.4."""
        # Copied under the lock and formatted after releasing it: a scrape must not delay requests.
        with self._guard:
            answers, within, seconds = dict(self._answers), dict(self._within), dict(self._seconds)
            limited, in_flight = dict(self._limited), self._in_flight
        lines = _head("frankly_requests_total", "counter", "Responses by route, method and status.")
        for (route, method, status), n in sorted(answers.items()):
            lines.append(
                f'frankly_requests_total{{route="{route}",method="{method}",status="{status}"}} {n}'
            )
        lines += _head("frankly_request_seconds", "histogram", "Time from request to response.")
        for route in sorted(seconds):
            total = sum(n for (name, _, _), n in answers.items() if name == route)
            for edge in SECONDS:
                lines.append(
                    f'frankly_request_seconds_bucket{{route="{route}",le="{edge:g}"}} {within[route, edge]}'
                )
            lines.append(f'frankly_request_seconds_bucket{{route="{route}",le="+Inf"}} {total}')
            lines.append(f'frankly_request_seconds_sum{{route="{route}"}} {seconds[route]:.6f}')
            lines.append(f'frankly_request_seconds_count{{route="{route}"}} {total}')
        lines += _head(
            "frankly_limited_total", "counter", "Requests that a rate limit refused, by its kind."
        )
        lines += [
            f'frankly_limited_total{{limit="{kind}"}} {n}' for kind, n in sorted(limited.items())
        ]
        lines += _one("frankly_requests_in_flight", "gauge", "Requests in progress.", in_flight)
        lines += _process()
        return "\n".join(lines) + "\n"


def count_limited(kind: str) -> None:
    """Count a request of the current application that a rate limit refused."""
    if has_app_context() and _NAME in current_app.extensions:
        current_app.extensions[_NAME].limited(kind)


def of(app: Flask) -> Metrics:
    """Return the counters of an application; the first call creates them."""
    counters: Metrics = app.extensions.setdefault(_NAME, Metrics())
    return counters


def add_to(routes: APIBlueprint, settings: Settings) -> None:
    """Add GET /metrics: 404 unless FRANKLY_METRICS_TOKEN is set; it does not use the database."""

    @routes.get("/metrics")
    @declare(
        routes,
        "metrics",
        answers={200: ("Prometheus' text format 0.0.4.", CONTENT_TYPE, models.MetricsText)},
        problems=(Problem.UNAUTHENTICATED, Problem.NOT_FOUND),
    )
    def metrics() -> Response:
        """Return monitoring counters to callers that send FRANKLY_METRICS_TOKEN as Bearer token.

        A server without such a token has no metrics.
        """
        reading.query(())
        if settings.metrics_token is None:
            raise InvalidInput(
                Problem.NOT_FOUND, "metrics are off; set FRANKLY_METRICS_TOKEN to enable them"
            )
        # compare_digest, because its time does not depend on the first wrong character; bytes,
        # because it accepts only ASCII texts and the header may contain any text.
        sent_header = request.headers.get("Authorization", "").encode("utf-8", "surrogatepass")
        expected_header = f"Bearer {settings.metrics_token.get_secret_value()}".encode()
        if not hmac.compare_digest(sent_header, expected_header):
            raise InvalidInput(
                Problem.UNAUTHENTICATED,
                "send the header Authorization: Bearer and the metrics token",
            )
        return Response(current_app.extensions[_NAME].text(), content_type=CONTENT_TYPE)


def _process() -> list[str]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    # The second field of statm is the number of resident pages. getrusage has only the peak.
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return [
        *_one(
            "process_cpu_seconds_total",
            "counter",
            "CPU time.",
            round(used.ru_utime + used.ru_stime, 3),
        ),
        *_one("process_resident_memory_bytes", "gauge", "Memory.", pages * resource.getpagesize()),
        *_head("frankly_build_info", "gauge", "The running version."),
        f'frankly_build_info{{version="{__version__}"}} 1',
    ]


def _head(name: str, kind: str, help_text: str) -> list[str]:
    return [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]


def _one(name: str, kind: str, help_text: str, value: float) -> list[str]:
    return [*_head(name, kind, help_text), f"{name} {value}"]
