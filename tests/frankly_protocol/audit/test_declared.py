# SPDX-License-Identifier: Apache-2.0
"""A notion is what its declaration says, and one without an implementation is never listed."""

from dataclasses import replace
from typing import Any

import pytest
from frankly_protocol.audit import NOTIONS, Claim, require_private, work, worst
from frankly_protocol.audit.declared import DECLARED, Notion
from frankly_protocol.audit.declared.answer import Ldp, MetricLdp
from frankly_protocol.audit.declared.notion import ByReport
from frankly_protocol.errors import DocumentRejected, UnsupportedDocument
from frankly_protocol.explanation.explain import explain
from frankly_protocol.promises import Promise

from tests.frankly_protocol.every_kind import DATA, FORM, KINDS, block
from tests.frankly_protocol.samples import survey
from tests.refusals import refusal


def test_notions_are_those_declared() -> None:
    assert tuple(DECLARED) == NOTIONS
    assert all(name == notion.name for name, notion in DECLARED.items())


@pytest.mark.parametrize("base", [Notion, ByReport])
def test_a_notion_without_an_implementation_cannot_be_declared(base: type[Notion]) -> None:
    with pytest.raises(TypeError, match="abstract"):
        base("new")


@pytest.mark.parametrize("kind", KINDS)
def test_a_declaration_is_all_that_a_new_notion_needs(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data: dict[str, Any] = {"level": (1, 1), **DATA["metric-ldp"]}
    claim = Claim("new", **data)
    refusal(UnsupportedDocument, worst, KINDS[kind], claim)
    monkeypatch.setitem(DECLARED, "new", MetricLdp("new"))
    like = Claim("metric-ldp", **data)
    assert worst(KINDS[kind], claim) == worst(KINDS[kind], like)
    assert work(KINDS[kind], claim) == work(KINDS[kind], like)
    error = refusal(DocumentRejected, require_private, KINDS[kind], claim)
    assert error.detail.startswith("new: report ")
    (known,) = block(kind, "metric-ldp").promises
    written = known.to_json() | {"notion": "new"}
    promise = Promise.from_json(written, "claim")
    assert promise.to_json() == written
    require_private(KINDS[kind], promise.claim)
    document = survey(block(kind, "metric-ldp"))
    new = survey(replaced(block(kind, "metric-ldp"), promise))
    words = [explain(d, d.report_level, [], "en").blocks for d in (document, new)]
    assert words[0] == words[1]


def test_a_form_promises_what_is_declared_for_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DECLARED, "new", Ldp("new"))
    level = FORM.level.as_integer_ratio()
    require_private(FORM, Claim("new", level))
    error = refusal(DocumentRejected, require_private, FORM, Claim("dp", level, delta=(0, 1)))
    assert error.detail == "dp: of the agreement kind only ldp and new can be promised"


def replaced(known: Any, promise: Promise) -> Any:
    """Return a block with this promise instead of its own."""
    return replace(known, promises=(promise,))
