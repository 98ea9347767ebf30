# SPDX-License-Identifier: Apache-2.0
"""Vectors of question types (docs/spec/3-documents.md, 3.5): a document with every type, invalid
edits of the document, and the choices that result from answers."""

import json
from typing import Any

from frankly_protocol import canonical
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import FranklyError
from frankly_sdk import UnknownChoice
from frankly_sdk.answer import Answer

from tests.frankly_protocol.asked import INVALID_EDITS, SETTLED, UNSETTLED, asked
from tests.vectors.from_documents import put

Case = dict[str, Any]


def answers() -> Case:
    """Return the document, edits refused at step 4, and answers with their choices or refusals."""
    document = asked()
    given = [*(given for given, _ in SETTLED), *(given for given, _ in UNSETTLED)]
    return {
        "digest": document.digest,
        "payload": document.payload().decode(),
        "faults": [fault(document, path, value) for path, value, _ in INVALID_EDITS],
        "answers": [_settled(document, one) for one in given],
    }


def fault(document: SurveyDocument, path: str, value: Any) -> Case:
    """Return an edit, which is refused at step 4 or 5, with code and field."""
    body = json.loads(document.payload())
    put(body, path, value)
    # JSON has no value for a removed field.
    edit = {"path": path} if value is ... else {"path": path, "value": value}
    try:
        SurveyDocument.parse(canonical.dumps(body))
    except FranklyError as error:
        step = 5 if error.code == "document_type" else 4
        return {**edit, "step": step, "code": error.code, "field": error.field}
    raise AssertionError(f"accepted: {path}")


def _settled(document: SurveyDocument, given: Case) -> Case:
    settled = Answer(given).settled(document.questions)
    if isinstance(settled, UnknownChoice):
        return {"given": given, "chosen": None, "code": settled.code, "field": settled.field}
    return {"given": given, "chosen": dict(settled.revealed()), "code": None, "field": None}
