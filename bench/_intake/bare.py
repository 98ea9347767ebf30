# SPDX-License-Identifier: Apache-2.0
"""The honest limit of the stack: a Flask route that does one parameterised INSERT and COMMIT, and nothing else.

Same gunicorn with the same options, same table with the same key, same database settings. ``bare.py URL PORT THREADS``.
"""

import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Any

import psycopg
from flask import Flask, request
from frankly_server.cli.production import Production

Row = tuple[bytes, bytes, bytes, str, str]
Insert = Callable[[Row], None]
_INTO = "INSERT INTO reports (survey, id, document, symbols, strata) VALUES "


def application(insert: Insert) -> Flask:
    """Return the application of one route."""
    app = Flask("bare")

    @app.post("/v1/surveys/<survey>/reports")
    def report(survey: str) -> tuple[dict[str, Any], int]:
        body = request.get_json()
        document, symbols = body["doc"].removeprefix("sha256:"), ",".join(map(str, body["y"]))
        insert((bytes.fromhex(survey), bytes.fromhex(body["id"]), bytes.fromhex(document), symbols, ""))
        return {"status": "accepted", "id": body["id"]}, 201

    @app.get("/health/live")
    def live() -> str:
        return "ok"

    return app


def inserting(url: str) -> Insert:
    """Return the insert, with a connection for each thread."""
    return _on_sqlite(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else _on_postgresql(url)


def _on_postgresql(url: str) -> Insert:
    here = threading.local()

    def insert(row: Row) -> None:
        if not hasattr(here, "connection"):
            here.connection = psycopg.connect(url.replace("+psycopg", ""))
        here.connection.execute(_INTO + "(%s, %s, %s, %s, %s)", row)
        here.connection.commit()

    return insert


def _on_sqlite(path: str) -> Insert:
    here, one_writer = threading.local(), threading.Lock()  # SQLite's own waiting sleeps, which would flatter us

    def insert(row: Row) -> None:
        if not hasattr(here, "connection"):
            here.connection = sqlite3.connect(path, timeout=10)
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
                here.connection.execute(f"PRAGMA {pragma}")
        with one_writer:
            here.connection.execute(_INTO + "(?, ?, ?, ?, ?)", row)
            here.connection.commit()

    return insert


if __name__ == "__main__":
    where, port, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    Production(application(inserting(where)), host="127.0.0.1", port=port, threads=threads, ready=lambda _: None).run()
