# SPDX-License-Identifier: Apache-2.0
"""Logging with an allow-list: fields that are not listed here are dropped.

A line contains route, status and duration, but never a survey, report, address, user agent or body.
Lines of libraries are reduced to the logger, the exception's type and the code location, because
the message may quote a request.
"""

import logging
import sys
from collections.abc import MutableMapping
from types import TracebackType
from typing import Any, TextIO

import structlog

FIELDS = frozenset(
    {
        "event",
        "level",
        "route",
        "method",
        "status",
        "code",
        "duration",
        "error",
        "where",
        "logger",
        "transaction",
        "reason",
    }
)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def duration_bucket(seconds: float) -> str:
    """Return a coarse duration such as ``<=0.03s``, which cannot be matched with other logs."""
    return next((f"<={edge:g}s" for edge in _BUCKETS_S if seconds <= edge), f">{_BUCKETS_S[-1]:g}s")


def method_name(method: str) -> str:
    """Return a known HTTP method or OTHER, because callers may send any text as the method."""
    return method if method in METHODS else "OTHER"


def code_place(trace: TracebackType | None) -> str:
    """Return ``module:line`` of the innermost frame, which locates a fault without quoting data."""
    if trace is None:
        return "unknown"
    # The last frame is where the exception was raised.
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_globals.get('__name__', 'unknown')}:{trace.tb_lineno}"


def keep_allowed(
    _logger: Any, _name: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Drop all fields that are not in the list (a structlog processor)."""
    return {key: value for key, value in event.items() if key in FIELDS}


def configure(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Send all log lines of this process, including those of libraries, through the allow-list.

    Writes one JSON object per line to `stream` (default: stderr), from `level` up. Call this at
    start-up.
    """
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            keep_allowed,
            structlog.processors.JSONRenderer(sort_keys=True),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [LibraryHandler()]
    root.setLevel(max(level, logging.WARNING))


class LibraryHandler(logging.Handler):
    """Handler that writes a library's record without its message, which may contain a request."""

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)
        self._log = structlog.get_logger("frankly.library")

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record's logger, its exception type (or else its level) and its location."""
        kind, trace = (record.exc_info[0], record.exc_info[2]) if record.exc_info else (None, None)
        self._log.warning(
            "library",
            logger=record.name,
            error=kind.__name__ if kind else record.levelname.lower(),
            where=code_place(trace) if trace else f"{record.module}:{record.lineno}",
        )
