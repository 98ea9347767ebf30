# SPDX-License-Identifier: Apache-2.0
"""Upper limit of the stack: a Flask route that only stores reports.

A single report takes one INSERT and COMMIT, a batch one transaction: a COPY on PostgreSQL, on
SQLite an INSERT of each row. It uses the same gunicorn options, table columns, key and database
settings as the server. If a document is given, the route validates each report first; otherwise it
accepts every report.
``bare.py URL PORT THREADS [DOCUMENT]``.
"""

import json
import re
import sqlite3
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
from flask import Flask, request
from frankly_protocol.documents import SurveyDocument
from frankly_server.cli.gunicorn_server import Production

Row = tuple[bytes, bytes, bytes, str, str]
Insert = Callable[[Sequence[Row]], None]
Read = Callable[[Any], Row]
TABLE = """CREATE TABLE IF NOT EXISTS bare (
survey {bytes} NOT NULL, id {bytes} NOT NULL, document {bytes} NOT NULL, symbols TEXT NOT NULL, strata TEXT NOT NULL,
PRIMARY KEY (survey, id))"""
_INTO = "INSERT INTO bare (survey, id, document, symbols, strata) VALUES "
_COPY = "COPY bare (survey, id, document, symbols, strata) FROM STDIN"
_KEYS = {"v", "doc", "id", "y", "strata", "token"}
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)


def application(insert: Insert, read: Callable[[str], Read]) -> Flask:
    """Return the application of one route."""
    app = Flask("bare")

    @app.post("/v1/surveys/<survey>/reports")
    def report(survey: str) -> tuple[dict[str, Any], int]:
        body = request.get_json()
        try:
            if "reports" in body:
                insert([*map(read(survey), body["reports"])])
                accepted = [{"status": "accepted", "id": one["id"]} for one in body["reports"]]
                return {"results": accepted}, 200
            insert([read(survey)(body)])
        except (KeyError, TypeError, ValueError):
            return {"status": "refused"}, 422
        return {"status": "accepted", "id": body["id"]}, 201

    @app.get("/health/live")
    def live() -> str:
        return "ok"

    return app


def taking(survey: str) -> Read:
    """Return the reader that converts a report to a row without validating it."""

    def read(body: Any) -> Row:
        symbols = ",".join(map(str, body["y"]))
        return (
            bytes.fromhex(survey),
            bytes.fromhex(body["id"]),
            _digest(body["doc"]),
            symbols,
            json.dumps(body["strata"]),
        )

    return read


def validating(document: SurveyDocument) -> Callable[[str], Read]:
    """Return the reader of a document's reports; others raise KeyError, TypeError, ValueError."""
    allowed = [_symbols(block.mechanism) for block in document.blocks]
    strata = {
        question.id: {choice.id for choice in question.choices} for question in document.strata
    }

    def read(body: Any) -> Row:
        if (
            set(body) != _KEYS
            or body["v"] != 1
            or body["token"] is not None
            or body["doc"] != document.digest
        ):
            raise ValueError
        if (
            not _ID.fullmatch(body["id"])
            or len(body["y"]) != len(allowed)
            or set(body["strata"]) != set(strata)
        ):
            raise ValueError
        if not all(holds(y) for holds, y in zip(allowed, body["y"], strict=True)):
            raise ValueError
        if not all(body["strata"][name] in choices for name, choices in strata.items()):
            raise ValueError
        return taking(document.survey)(body)

    def of_survey(survey: str) -> Read:
        if survey != document.survey:
            raise ValueError("a report of another survey")
        return read

    return of_survey


def _symbols(mechanism: Any) -> Callable[[Any], bool]:
    """Return a check for symbols: numbers of a table, or hexadecimal sets of a unary mechanism."""
    if hasattr(mechanism, "weights"):
        reports = mechanism.reports
        return lambda y: type(y) is int and 0 <= y < reports
    digits, limit = -(-mechanism.answers // 4), 1 << mechanism.answers
    return lambda y: isinstance(y, str) and len(y) == digits and int(y, 16) < limit


def _digest(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("sha256:"))


def inserting(url: str) -> Insert:
    """Create the table; return the function that inserts rows, with a connection per thread."""
    return (
        _on_sqlite(url.removeprefix("sqlite:///"))
        if url.startswith("sqlite")
        else _on_postgresql(url)
    )


def _on_postgresql(url: str) -> Insert:
    local, where = threading.local(), url.replace("+psycopg", "")
    with psycopg.connect(where) as connection:
        connection.execute(TABLE.format(bytes="BYTEA"))

    def insert(rows: Sequence[Row]) -> None:
        if not hasattr(local, "connection"):
            local.connection = psycopg.connect(where)
        if len(rows) == 1:
            local.connection.execute(_INTO + "(%s, %s, %s, %s, %s)", rows[0])
        else:
            copied(local.connection, rows)
        local.connection.commit()

    return insert


def copied(connection: psycopg.Connection[Any], rows: Sequence[Row]) -> None:
    """Copy rows into the table, without a commit."""
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        for row in rows:
            copy.write_row(row)


def _on_sqlite(path: str) -> Insert:
    local, one_writer = (
        threading.local(),
        threading.Lock(),
    )  # SQLite's busy handler sleeps, which would slow this baseline down in our favour

    def connected() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=10)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    connected().execute(TABLE.format(bytes="BLOB") + " WITHOUT ROWID")

    def insert(rows: Sequence[Row]) -> None:
        if not hasattr(local, "connection"):
            local.connection = connected()
        with one_writer:
            local.connection.executemany(_INTO + "(?, ?, ?, ?, ?)", rows)
            local.connection.commit()

    return insert


if __name__ == "__main__":
    where, port, threads, *options = sys.argv[1:]
    reader = validating(SurveyDocument.parse(Path(options[0]).read_bytes())) if options else taking
    app = application(inserting(where), reader)
    Production(
        app, host="127.0.0.1", port=int(port), threads=int(threads), ready=lambda _: None
    ).run()
