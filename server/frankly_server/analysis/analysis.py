# SPDX-License-Identifier: Apache-2.0
"""What analysts get: every share beside its uncertainty, from counts alone wherever counts can tell."""

from typing import Any

from frankly_protocol import __version__
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.counted_document import Received
from frankly_server.analysis.reading import again, received, with_periods, with_tables
from frankly_server.analysis.request import RESPONDENTS, Request
from frankly_server.analysis.result import answer, encode, needed
from frankly_server.estimate.margins import DEFAULT
from frankly_server.store import Database


class Analysis:
    """Estimates of published surveys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def estimates(
        self,
        survey_id: str,
        *,
        level: float = 0.95,
        census: bool = False,
        simultaneous: bool = False,
        method: str | None = None,
        targets: Any = None,
        by: str | None = None,
        since: str | None = None,
        until: str | None = None,
        population: int | None = None,
        percent: str | None = None,
        weights: str | None = None,
    ) -> dict[str, Any]:
        """Return unbiased estimates with standard errors and margins, as JSON values; `encode` writes them.

        level : confidence of the margins. census : the respondents are the whole population, so that margins hold the
        privacy noise alone. method : one of `METHODS`, default score; simultaneous : short for that method. targets,
        by : see `Request`. since, until : only batches released on these days or between, ``YYYY-MM-DD`` in UTC.
        population : N, if the respondents were drawn without replacement from N people.

        percent, weights : see `Request`.

        Versions of the survey that asked a question alike (same ids of question and choices) are pooled, and flagged
        `versions_differ` where their truths differ; one that asked differently stands apart. Below the documents'
        minimum of reports a question has status ``insufficient``, n and how many are needed, and no number.

        Raises InvalidInput: survey_unknown, confidence_range unless 0 < level < 1, targets_invalid, strata_invalid,
        field_type, counts_invalid or unsupported.
        """
        if simultaneous and method not in (None, "simultaneous", "simultaneous_plugin"):
            words = f"simultaneous is a method of its own and {method} is another: ask for one of them"
            raise InvalidInput(Problem.UNSUPPORTED, words, "simultaneous")
        chosen = method or ("simultaneous" if simultaneous else DEFAULT)
        asked = {"level": level, "method": chosen, "census": census, "targets": targets, "by": by}
        asked |= {"since": since, "until": until, "population": population}
        asked |= {"percent": percent, "weights": weights or RESPONDENTS}
        request = Request.from_json(asked)
        with self._database.reading("estimates") as tx:
            rows = tx.documents.versions(survey_id)
            documents = [received(tx, row) for row in rows]
            if not documents:
                raise InvalidInput(Problem.SURVEY_UNKNOWN, "no survey is published under this id; check the link")
            together = needed(documents, request)
            documents = [
                with_tables(tx, row, each, together[row.digest]) if row.digest in together else each
                for row, each in zip(rows, documents, strict=True)
            ]
            if request.is_dated:
                documents = [with_periods(tx, row, each, request) for row, each in zip(rows, documents, strict=True)]
        return answer(survey_id, documents, request)

    def replay(self, result: Any) -> bytes:
        """Return a result computed again, byte for byte, from the reports of the batches that it names.

        Raises InvalidInput(json_invalid) if it is no result of this database's surveys, or was made by another version
        of the code.
        """
        try:
            inputs = result["inputs"]
            if inputs["code"] != __version__:
                words = f"this result was made by version {inputs['code']}, this is {__version__}: replay it with that"
                raise InvalidInput(Problem.JSON_INVALID, words, "inputs.code")
            request = Request.from_json(inputs["request"])
            releases = {str(each["digest"]): int(each["release"]) for each in inputs["documents"]}
            with self._database.reading("replay") as tx:
                rows = [row for digest in releases if (row := tx.documents.get(digest)) is not None]
                documents = [Received.of(row.envelope, {}, releases[row.digest]) for row in rows]
                together = needed(documents, request)
                documents = [
                    again(tx, row, each, together.get(row.digest, ()), request)
                    for row, each in zip(rows, documents, strict=True)
                ]
            return encode(answer(str(result["survey"]), documents, request))
        except InvalidInput:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, FranklyError):
            words = "this is no result of `estimates`: give its JSON, whole and unchanged"
            raise InvalidInput(Problem.JSON_INVALID, words, "inputs") from None
