# SPDX-License-Identifier: Apache-2.0
"""Public routes of the transparency log: heads, proofs, entries, counts, and cosignatures."""

from apiflask import APIBlueprint
from flask import Response, json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.trust.notes import MAX_NOTE_BYTES

from frankly_server.log.service import entry_json
from frankly_server.services import Services
from frankly_server.web import models, reading
from frankly_server.web.openapi import Query, declare

# At most 16 digits; `reading.whole` refuses longer numbers.
_WHOLE = {"type": "integer", "minimum": 0, "maximum": 10**16 - 1}
_NO_LOG = (Problem.LOG_UNKNOWN, Problem.FIELD_TYPE, Problem.FIELD_MISSING)


def add_to(routes: APIBlueprint, services: Services) -> None:
    """Add the log's routes, bound to `services`."""
    _add_heads(routes, services)
    _add_trees(routes, services)
    _add_audits(routes, services)


def _add_heads(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/v1/log/checkpoint")
    @declare(
        routes,
        "logCheckpoint",
        answers={200: ("The newest head, a C2SP checkpoint.", reading.TEXT, models.LogText)},
        problems=(Problem.LOG_UNKNOWN,),
    )
    def checkpoint() -> Response:
        """Return the log's newest head, signed by the log and by witnesses."""
        reading.query(())
        return Response(services.log.checkpoint(), content_type=reading.TEXT)

    @routes.get("/v1/log/proof/<digest>")
    @declare(
        routes,
        "logProof",
        answers={200: ("A C2SP tlog-proof.", reading.TEXT, models.LogText)},
        problems=(Problem.LOG_UNKNOWN, Problem.FIELD_TYPE),
    )
    def proof(digest: str) -> Response:
        """Return a document's inclusion proof for the largest head with enough recent signatures.

        If there is no such head, the proof is for the newest head.
        """
        reading.query(())
        return Response(services.log.proof(reading.digest(digest) or ""), content_type=reading.TEXT)

    @routes.post("/v1/log/cosignatures")
    @declare(
        routes,
        "logCosignatures",
        answers={200: ("Stored.", reading.JSON, models.Cosigned)},
        problems=(
            Problem.LOG_UNKNOWN,
            Problem.COSIGNATURE_INVALID,
            Problem.CONTENT_TYPE,
            Problem.BODY_TOO_LARGE,
        ),
        body={reading.TEXT: models.LogText},
    )
    def cosignatures() -> Response:
        """Store signatures of witnesses; the body is a checkpoint of this log with signature lines.

        No API key is needed, because only signatures of witnesses in the keys document are stored.
        """
        # Not JSON, because the body is a C2SP note, whose exact bytes are signed.
        reading.query(())
        reading.content_type({reading.TEXT})
        stored = services.log.add_cosignature(reading.body(MAX_NOTE_BYTES))
        return Response(json.dumps({"kept": stored}), content_type=reading.JSON)


def _add_trees(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/v1/log/consistency")
    @declare(
        routes,
        "logConsistency",
        answers={200: ("Hashes, one line of base64 each.", reading.TEXT, models.LogText)},
        problems=_NO_LOG,
        query=(
            Query("old", _WHOLE, "Size of the smaller tree.", required=True),
            Query("new", _WHOLE, "Size of the larger tree.", required=True),
        ),
    )
    def consistency() -> Response:
        """Return the RFC 6962 proof that the tree of `old` entries is a prefix of that of `new`."""
        parameters = reading.query({"old", "new"})
        old, new = (
            _needed(reading.whole(parameters.get(name), name), name) for name in ("old", "new")
        )
        return Response(services.log.consistency(old, new), content_type=reading.TEXT)

    @routes.get("/v1/log/leaves")
    @declare(
        routes,
        "logLeaves",
        answers={200: ("Leaf hashes, 32 bytes each.", reading.BYTES, models.LogText)},
        problems=_NO_LOG,
        query=(Query("size", _WHOLE, "Number of leaf hashes.", required=True),),
    )
    def leaves() -> Response:
        """Return the first leaf hashes, for checking older heads without revealing them."""
        size = _needed(reading.whole(reading.query({"size"}).get("size"), "size"), "size")
        return Response(services.log.leaves(size), content_type=reading.BYTES)

    @routes.get("/v1/log/entries")
    @declare(
        routes,
        "logEntries",
        answers={200: ("Entries in their order.", reading.JSON, models.LogEntries)},
        problems=(Problem.FIELD_TYPE,),
        query=(Query("start", _WHOLE, "Position of the first entry; 0 if left out."),),
    )
    def entries() -> Response:
        """Return at most 1,000 log entries from `start` on."""
        # One page; `size` shows the client whether there are more entries.
        size, page = services.log.entries(
            reading.whole(reading.query({"start"}).get("start"), "start") or 0
        )
        return Response(
            json.dumps({"size": size, "entries": [entry_json(entry) for entry in page]}),
            content_type=reading.JSON,
        )


def _add_audits(routes: APIBlueprint, services: Services) -> None:
    @routes.get("/v1/surveys/<survey_id>/audit")
    @declare(
        routes,
        "audit",
        answers={
            200: (
                "Every version, with its number of released reports.",
                reading.JSON,
                models.SurveyAudit,
            )
        },
        problems=(Problem.SURVEY_UNKNOWN,),
    )
    def audit(survey_id: str) -> Response:
        """Return every published version of a survey: log position and number of released reports."""
        reading.query(())
        survey = reading.survey_id(survey_id)
        versions = services.log.audit(survey)
        documents = [
            {"digest": d.digest, "version": d.version, "position": d.position, "n": d.n}
            for d in versions
        ]
        return Response(
            json.dumps({"survey": survey, "documents": documents}), content_type=reading.JSON
        )


def _needed(value: int | None, name: str) -> int:
    if value is None:
        raise InvalidInput(Problem.FIELD_MISSING, "this query parameter is needed", name)
    return value
