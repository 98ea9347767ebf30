# SPDX-License-Identifier: Apache-2.0
"""Publication from a draft to a signed document: idempotent, verified, within the budget, all or nothing."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from frankly_design.engine.engine import DesignRequest, DesignResult, design
from frankly_design.form import FormDesign, FormRequest, design_form
from frankly_protocol import canonical
from frankly_protocol.audit import ceiling, exp_lower
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.mechanisms.expansion import columns
from frankly_server.keys import Keyring
from frankly_server.settings import Settings
from frankly_server.store import Database, unrecorded
from frankly_server.store.survey_states import MAIN
from frankly_server.surveys import Surveys, drafting, trial
from frankly_server.surveys.definition import parse_definition, parse_value
from frankly_server.surveys.devices import expected_form

from tests.frankly_protocol.samples import NOW
from tests.frankly_server.surveys.samples import FILE, value
from tests.narrowing import dense_of, present
from tests.refusals import code_and_field, refusal

Make = Callable[..., Surveys]


@pytest.fixture
def make(database: Database, tmp_path: Path) -> Make:
    """Return the survey service at a given time; keys are created once."""
    return _maker(database, tmp_path)


@pytest.fixture
def surveys(sqlite: Database, tmp_path: Path) -> Surveys:
    """The survey service at NOW, for tests that are not about databases."""
    return _maker(sqlite, tmp_path)()


def _maker(database: Database, home: Path) -> Make:
    Keyring(home / "keys", FixedClock(NOW)).init()

    def at(moment: Any = NOW, **settings: Any) -> Surveys:
        clock = FixedClock(moment)
        settings_at_moment = Settings(home=home, public_url="https://ask.example", **settings)
        return Surveys(settings_at_moment, database, Keyring(home / "keys", clock), clock)

    return at


def drafted(surveys: Surveys, changes: dict[tuple[Any, ...], Any]) -> None:
    """Store a draft like the wizard, which does not refuse one over its budget."""
    surveys.create(parse_value(value(changes)), MAIN, lambda _: unrecorded)


def _documents(surveys: Surveys) -> int:
    with surveys._database.reading("count") as tx:
        return sum(len(tx.documents.versions(row.id)) for row in tx.surveys.all())


def test_apply_is_idempotent(make: Make) -> None:
    surveys = make()
    definition = parse_definition(FILE.encode())
    tried = surveys.apply(definition, dry_run=True)
    assert (tried.status, tried.survey_id, surveys.list()) == ("created", None, [])
    created = surveys.apply(definition)
    assert created.status == "created"
    assert re.fullmatch("[0-9a-f]{32}", created.survey_id or "")
    assert "+ blocks[0].epsilon: 1" in created.diff
    again = surveys.apply(definition)
    assert (again.status, again.survey_id, again.diff) == ("unchanged", created.survey_id, [])


def test_a_changed_definition_is_shown_as_a_diff(make: Make) -> None:
    surveys = make()
    created = surveys.apply(parse_definition(FILE.encode()))
    changed = parse_value(
        value(
            {("blocks", 0, "epsilon"): "0.5", ("consent",): {"en": "Ok?"}, ("min_reports",): None}
        )
    )
    for dry_run in (True, False):
        result = surveys.apply(changed, dry_run=dry_run)
        assert (result.status, result.survey_id) == ("updated", created.survey_id)
        assert sorted(result.diff) == [
            "+ consent.en: Ok?",
            "- min_reports: 50",
            "~ blocks[0].epsilon: 1 → 0.5",
        ]
    assert surveys.apply(changed).status == "unchanged"


def test_devices_accept_a_published_document(make: Make) -> None:
    surveys = make()
    survey_id = surveys.apply(parse_definition(FILE.encode())).survey_id
    steps: list[tuple[int, int, str]] = []
    out = surveys.publish("habits", lambda *step: steps.append(step))
    assert steps == [(0, 2, "affair"), (1, 2, "happy"), (2, 2, "")]
    assert (out.status, out.survey_id, out.version) == ("published", survey_id, 1)
    assert (
        out.link == f"https://ask.example/s/{survey_id}#sha256={out.digest.removeprefix('sha256:')}"
    )
    envelope = Envelope.from_bytes(surveys.envelope(present(survey_id)), SURVEY_TYPE)
    trusted = surveys._keys.trusted().publisher
    document = SurveyDocument.parse(envelope.verify(trusted.keys, trusted.threshold))
    document.require_private()
    document.require_window(NOW)
    assert (document.digest, document.survey, document.version, document.prev) == (
        out.digest,
        survey_id,
        1,
        None,
    )
    assert document.collect_url == f"https://ask.example/v1/surveys/{survey_id}/reports"
    assert (document.issued, document.opens) == (NOW, NOW)
    assert [block.design_prior for block in document.blocks] == [(1, 1), (250, 320, 360)]
    assert document.blocks[1].promises[0].prior is not None
    assert document.blocks[1].promises[0].prior.tables == (((100, 200, 300), (150, 120, 60)),)
    assert [(block.id, block.counted_by) for block in out.blocks] == [
        ("affair", "ceiling"),
        ("happy", "level"),
    ]
    assert out.level == document.report_level
    odds = out.level.secrets["affair"].odds
    assert odds is not None
    assert odds <= exp_lower(Fraction("1.6"))  # 1 + 2 × 0.3


TIMES = [
    ({("opens",): None, ("closes",): None, ("expires",): None}, (0, 90, 120)),
    ({("opens",): None, ("closes",): None}, (0, 60, 60)),
    ({("closes",): None, ("expires",): None, ("opens",): "2026-06-11T12:00:00Z"}, (10, 100, 130)),
    ({("expires",): None, ("opens",): None, ("closes",): "2026-06-11T12:00:00Z"}, (0, 10, 40)),
]


@pytest.mark.parametrize(("changes", "days"), TIMES, ids=range(len(TIMES)))
def test_times_left_out_are_settled_when_published(
    make: Make, changes: Any, days: tuple[int, int, int]
) -> None:
    surveys = make()
    survey_id = surveys.apply(parse_value(value(changes))).survey_id
    surveys.publish("habits")
    document = SurveyDocument.parse(
        Envelope.from_bytes(surveys.envelope(present(survey_id)), SURVEY_TYPE).payload
    )
    times = (document.opens, document.closes, document.expires)
    assert tuple(round((time - NOW) / timedelta(days=1)) for time in times) == days


def test_publishing_the_same_again_has_the_same_result(make: Make) -> None:
    surveys = make()
    surveys.apply(parse_definition(FILE.encode()))
    first = surveys.publish("habits")
    again = make(NOW + timedelta(days=1)).publish(first.survey_id)
    assert again == replace(first, status="unchanged")
    assert _documents(surveys) == 1


def test_a_change_becomes_a_new_version_and_the_old_version_stays(make: Make) -> None:
    surveys = make()
    surveys.apply(parse_definition(FILE.encode()))
    first = surveys.publish("habits")
    before = surveys.envelope(first.survey_id)
    surveys.apply(parse_value(value({("blocks", 0, "epsilon"): "0.5"})))
    second = surveys.publish("habits")
    assert (second.version, second.survey_id) == (2, first.survey_id)
    assert surveys.envelope(first.survey_id, first.digest) == before
    newest = SurveyDocument.parse(
        Envelope.from_bytes(surveys.envelope(first.survey_id), SURVEY_TYPE).payload
    )
    assert (newest.version, newest.prev, newest.digest) == (2, first.digest, second.digest)
    assert [(s.name, s.state, s.version, s.link) for s in surveys.list()] == [
        ("habits", "open", 2, second.link)
    ]


def form(ask: str | None, questions: int = 3) -> bytes:
    lines = [f"    - {{id: q{i}, type: yes-no, text: {{en: Q{i}}}}}" for i in range(questions)]
    asks = "" if ask is None else f"  ask: {ask}\n"
    return (
        "name: asked\ntitle: {en: Asked}\nlanguages: [en]\nbudget: '2'\nform:\n"
        f"{asks}  questions:\n" + "\n".join(lines)
    ).encode()


BLOCK = b"""name: asked
title: {en: Asked}
languages: [en]
budget: "2"
blocks:
  - {id: b, notion: ldp, epsilon: "1", mechanism: warner, questions: [{id: b, type: yes-no, text: {en: B}}]}
"""
# The files of a survey's versions, and whether the form of each asks only what is drawn.
ASKED: dict[str, list[tuple[bytes, bool]]] = {
    "a first version": [(form(None), True)],
    "nothing is left out at first": [(form(None, 2), False), (form(None), True)],
    "nothing is left out in between": [(form(None), True), (form(None, 2), False), (form(None), True)],
    "all with little in between": [(form("all"), False), (form(None, 2), False), (form(None), False)],
    "all with a block in between": [(form("all"), False), (BLOCK, False), (form(None), False)],
    "all, then unstated": [(form("all"), False), (form(None), False), (form(None, 4), False)],
    "drawn, then unstated": [(form("drawn", 1), True), (form(None, 1), False), (form(None), True)],
    "a change of mind": [(form(None), True), (form("all"), False), (form(None, 4), False), (form("drawn"), True)],
    "a form after a block": [(BLOCK, False), (form(None), True)],
}  # fmt: skip


DESIGNED: dict[int, FormDesign] = {}


@pytest.mark.parametrize("case", ASKED)
def test_a_version_asks_as_its_file_says_or_as_the_version_before(
    surveys: Surveys, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def once(request: FormRequest) -> FormDesign:
        size = len(request.questions)
        return DESIGNED.get(size) or DESIGNED.setdefault(size, design_form(request))

    monkeypatch.setattr(drafting, "design_form", once)
    for number, (file, drawn) in enumerate(ASKED[case], 1):
        definition = parse_definition(file)
        surveys.apply(definition)
        (row,) = surveys.list()
        (block,) = trial.drafted(
            surveys.next_version(definition, row.survey_id), NOW, "https://ask.example"
        ).blocks
        published = surveys.publish("asked")
        assert published.status == "published"
        document = surveys.versions("asked")[-1]
        assert (block.asks_drawn, document.blocks[0].asks_drawn) == (drawn, drawn), number
        # The draft stays as its file has it, so that publishing again makes no other version.
        assert surveys.publish("asked").status == "unchanged"
        assert surveys.draft("asked").to_json() == definition.to_json()


def test_a_larger_minimum_of_an_earlier_version_is_said(make: Make) -> None:
    """Estimates need the largest minimum of the versions whose reports they use."""
    surveys = make()

    def applied(least: int) -> tuple[str, ...]:
        warnings = surveys.apply(parse_value(value({("min_reports",): least}))).warnings
        return tuple(words for words in warnings if "Version" in words)

    assert applied(30) == ()
    surveys.publish("habits")
    for least in (30, 40):
        assert applied(least) == ()
    assert len(applied(20)) == 1
    second = surveys.publish("habits")
    warning = second.warnings[-1]
    assert (warning,) == applied(20)
    assert re.findall(r"\d+", warning) == ["1", "30", "30", "20"]
    assert surveys.publish("habits").warnings == second.warnings


def test_states_follow_the_clock(make: Make) -> None:
    surveys = make(NOW - timedelta(days=60))
    surveys._keys._clock = FixedClock(NOW)
    surveys.apply(parse_definition(FILE.encode()))
    assert [(s.state, s.link) for s in surveys.list()] == [("draft", None)]
    surveys.publish("habits")
    assert [s.state for s in surveys.list()] == ["scheduled"]
    assert [s.state for s in make(NOW).list()] == ["open"]
    assert [s.state for s in make(NOW + timedelta(days=60)).list()] == ["closed"]


BAD: dict[str, tuple[dict[tuple[Any, ...], Any], str, str]] = {
    "over budget": ({("budget",): "1.2"}, "budget_exceeded", "budget"),
    "no finite sum": (
        {("blocks", 0): value()["blocks"][1] | {"id": "again", "questions": [
            value()["blocks"][1]["questions"][0] | {"id": "again"}]}},
        "budget_exceeded",
        "budget",
    ),
    "closed already": (
        {("opens",): "2026-01-01T00:00:00Z", ("closes",): "2026-02-01T00:00:00Z"}, "definition_invalid", "closes",
    ),
    "valid too long": ({("expires",): "2028-01-01T00:00:00Z"}, "definition_invalid", "expires"),
    "identity": ({("blocks", 1, "epsilon"): "5"}, "identity_mechanism", "blocks[1].epsilon"),
    "warner with three choices": (
        {("blocks", 1, "mechanism"): "warner", ("blocks", 1, "notion"): "ldp"}, "unsupported", "blocks[1].mechanism",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_claims_that_cannot_be_promised_are_not_published(surveys: Surveys, name: str) -> None:
    changes, code, field = BAD[name]
    drafted(surveys, changes)
    assert code_and_field(InvalidInput, surveys.publish, "habits") == (code, field)
    assert _documents(surveys) == 0


@pytest.mark.parametrize("name", [name for name in BAD if BAD[name][1] == "budget_exceeded"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_file_over_the_budget_is_not_applied(surveys: Surveys, name: str, dry_run: bool) -> None:
    changes, code, field = BAD[name]
    error = refusal(InvalidInput, surveys.apply, parse_value(value(changes)), dry_run=dry_run)
    assert (error.code, error.field) == (code, field)
    assert surveys.list() == []


def test_a_sum_over_the_budget_is_listed_by_block(surveys: Surveys) -> None:
    drafted(surveys, {("budget",): "1.2"})
    listed = (
        r"budget of 1\.2 nats of log-odds: up to 1\.6000 about affair; .*: affair 1\.0000, happy "
    )
    with pytest.raises(InvalidInput, match=listed):
        surveys.publish("habits")
    with pytest.raises(InvalidInput, match=rf"{listed}.*; give happy a ceiling_cap$"):
        surveys.apply(parse_value(value({("budget",): "1.2"})))


def test_a_sum_equal_to_the_budget_fits(surveys: Surveys) -> None:
    surveys.apply(parse_value(value({("budget",): "1.6"})))
    assert surveys.publish("habits").status == "published"


def test_a_level_that_the_file_leaves_open_is_designed(surveys: Surveys) -> None:
    """Without a ceiling_cap the file states no ceiling, but the table of GRR has a low one."""
    again = BAD["no finite sum"][0][("blocks", 0)] | {"mechanism": "grr"}
    definition = parse_value(value({("blocks", 0): again, ("blocks", 1, "mechanism"): "grr"}))
    assert expected_form(definition).report_level.odds is None
    steps: list[str] = []
    change = surveys.apply(definition, progress=lambda _done, _total, block: steps.append(block))
    assert steps == ["again", "happy", ""]
    assert surveys.publish("habits").level.odds == change.level.odds is not None


def test_unchanged_answers_must_be_accepted_explicitly(surveys: Surveys) -> None:
    changes = {
        ("blocks", 1, "epsilon"): "5",
        ("blocks", 1, "accept_identity"): "true",
        ("budget",): "11",
    }
    surveys.apply(parse_value(value(changes)))
    block_summary = surveys.publish("habits").blocks[1]
    assert (block_summary.answers_unchanged, block_summary.ceiling) == (True, "inf")


TOLD: dict[str, tuple[str, bool, list[tuple[int, ...]], str]] = {
    # Mechanism -> (notion, True if the secret is a question, changes of shares that no report
    # shows, text).
    "watchdog": ("lip", False, [(1, 0, -1)], "top against low"),
    "independent-reporting": (
        "secret-ldp", True, [(1, 0, 0, -1, 0, 0), (0, 1, 0, 0, -1, 0), (0, 0, 1, 0, 0, -1)],
        "yes × low against no × low",
    ),
    "conditional-reporting": ("lip", True, [], "yes × top"),
}  # fmt: skip


@pytest.mark.parametrize("mechanism", TOLD)
def test_unidentifiable_choices_are_reported_by_name(mechanism: str) -> None:
    notion, asks_secret, moves, named_pair = TOLD[mechanism]
    questions = value()["blocks"][1]["questions"]
    if asks_secret:
        questions = [value()["blocks"][0]["questions"][0], *questions]
    changes = {("blocks", 0): None, ("blocks", 1, "questions"): questions, ("blocks", 1, "notion"): notion,
               ("blocks", 1, "mechanism"): mechanism}  # fmt: skip
    bent = value(dict(reversed(changes.items())))
    error = refusal(InvalidInput, drafting.draft_blocks, parse_value(bent))
    assert (error.code, error.field) == ("not_identifiable", "blocks[0].mechanism")
    assert named_pair in error.detail
    assert "accept_unidentifiable: true" in error.detail
    assert "answer 0" not in error.detail
    bent["blocks"][0]["accept_unidentifiable"] = "true"
    (drafted,) = drafting.draft_blocks(parse_value(bent))
    for move in moves:  # the shares change, but no report becomes more or less likely
        for chances in columns(drafted.block.numbered_mechanism).values():
            assert sum(step * chance for step, chance in zip(move, chances, strict=True)) == 0


def test_a_long_list_of_unidentifiable_contrasts_is_cut() -> None:
    choices = [{"id": f"c{i}", "label": {"en": f"Choice {i}"}} for i in range(12)]
    prior = value()["blocks"][1]["prior"] | {
        "joint": [["20"] * 6 + ["10"] * 6, ["10"] * 6 + ["20"] * 6]
    }
    questions = [{"id": "happy", "text": {"en": "How?"}, "choices": choices}]
    changes = {
        ("blocks", 1, "questions"): questions,
        ("blocks", 1, "prior"): prior,
        ("blocks", 1, "mechanism"): "watchdog",
    }
    with pytest.raises(InvalidInput, match=r"and \d+ more\. These") as refused:
        drafting.draft_blocks(parse_value(value(changes)))
    assert refused.value.code == "not_identifiable"


def test_tables_too_large_to_be_sent_are_refused_with_alternatives(surveys: Surveys) -> None:
    choices = [{"id": f"c{i}", "label": {"en": f"Choice {i}"}} for i in range(16)]
    questions = [
        {"id": name, "text": {"en": "Which?"}, "choices": choices} for name in ("first", "second")
    ]
    definition_value = value(
        {
            ("blocks", 1): None,
            ("blocks", 0, "questions"): questions,
            ("blocks", 0, "mechanism"): "grr",
        }
    )
    definition = parse_value(definition_value | {"budget": "16"})
    (drafted,) = drafting.draft_blocks(definition)
    large = 4 * 2**20 // len(canonical.dumps(drafted.block.mechanism.params_json())) + 1
    first = drafted.block
    blocks = [
        replace(drafted, block=replace(first, id=f"b{i}", questions=tuple(
            replace(question, id=f"{question.id}-{i}") for question in first.questions
        )))
        for i in range(large)
    ]  # fmt: skip
    place = drafting.Place("ab" * 16, 1, None, NOW, "https://ask.example/v1")
    error = refusal(InvalidInput, drafting.draft_document, definition, blocks, place)
    assert (error.code, error.field) == ("optimiser_limit", "blocks")
    assert "4 MiB" in error.detail
    assert "subset-selection" in error.detail


def test_a_mechanism_that_breaks_its_promise_is_never_signed(
    surveys: Surveys, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(request: DesignRequest) -> DesignResult:
        careful_design = design(request)
        (a, b), *other_rows = (list(row) for row in dense_of(careful_design.mechanism).weights)
        bent = DenseMechanism(48, ((a + 2**20, b - 2**20), *(tuple(row) for row in other_rows)))
        return replace(careful_design, mechanism=bent, ceiling=ceiling(bent))

    surveys.apply(parse_value(value({("blocks", 1): None})))
    monkeypatch.setattr(drafting, "design", careless)
    assert refusal(InvalidInput, surveys.publish, "habits").code == "mechanism_not_certified"
    assert _documents(surveys) == 0


def test_nothing_is_published_without_a_trusted_key(surveys: Surveys, tmp_path: Path) -> None:
    surveys.apply(parse_definition(FILE.encode()))
    (tmp_path / "keys" / "publisher.pem").chmod(0o644)
    assert refusal(InvalidInput, surveys.publish, "habits").code == "key_file"
    assert _documents(surveys) == 0


def test_an_old_draft_with_confusable_choices_opens_and_is_not_published(surveys: Surveys) -> None:
    """A release without this check stored the draft."""
    surveys.apply(parse_definition(FILE.encode()))
    choices = ("blocks", 0, "questions", 0, "choices")
    labels = {(*choices, 0, "label"): {"en": "A"}, (*choices, 1, "label"): {"en": "\u0410"}}
    confusable = parse_value(value(labels))
    with surveys._database.administering("as stored before") as tx:
        tx.surveys.change(present(tx.surveys.by_name("habits")).id, definition=confusable.to_json())
    assert surveys.draft("habits") == confusable
    for act in (lambda: surveys.publish("habits"), lambda: surveys.apply(confusable)):
        assert code_and_field(InvalidInput, act) == (
            "choices_collide",
            "blocks[0].questions[0].choices",
        )
    assert _documents(surveys) == 0
    assert surveys.apply(parse_definition(FILE.encode())).status == "updated"
    assert surveys.publish("habits").status == "published"


def test_one_of_two_concurrent_publishers_wins(make: Make) -> None:
    surveys, later_surveys = make(), make(NOW + timedelta(hours=1))
    surveys.apply(parse_definition(FILE.encode()))

    def meanwhile(done: int, _total: int, _block: str) -> None:
        if done == 0:
            later_surveys.publish("habits")

    error = refusal(InvalidInput, surveys.publish, "habits", meanwhile)
    assert (error.code, error.problem.status) == ("immutable", 409)
    assert _documents(surveys) == 1


@pytest.mark.parametrize("name", ["", "nothing", "ab" * 16, "' OR 1=1 --", "../x", "\ud800"])
def test_unknown_surveys(surveys: Surveys, name: str) -> None:
    surveys.apply(parse_definition(FILE.encode()))
    for ask in (surveys.publish, surveys.envelope):
        assert refusal(InvalidInput, ask, name).code == "survey_unknown"


def test_a_draft_is_not_served(surveys: Surveys) -> None:
    survey_id = surveys.apply(parse_definition(FILE.encode())).survey_id
    for digest in (None, "sha256:" + "0" * 64, "x"):
        error = refusal(InvalidInput, surveys.envelope, present(survey_id), digest)
        assert error.code == "survey_unknown"


def test_a_prior_of_one_row_makes_the_answer_the_secret(surveys: Surveys) -> None:
    prior = {"joint": [["20", "30", "50"]], "source": "a guess"}
    surveys.apply(parse_value(value({("blocks", 1, "prior"): prior})))
    out = surveys.publish("habits")
    block = SurveyDocument.parse(
        Envelope.from_bytes(surveys.envelope(out.survey_id), SURVEY_TYPE).payload
    ).blocks[1]
    assert block.promises[0].prior is not None
    assert block.promises[0].prior.secrets == ("low", "mid", "top")
    assert block.promises[0].prior.by_stratum == (((20, 0, 0), (0, 30, 0), (0, 0, 50)),)


def test_publishing_parses_the_document_once(
    surveys: Surveys, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse, payloads = SurveyDocument.parse, []

    def counted(payload: bytes) -> SurveyDocument:
        payloads.append(payload)
        return parse(payload)

    surveys.apply(parse_definition(FILE.encode()))
    monkeypatch.setattr(SurveyDocument, "parse", counted)
    assert surveys.publish("habits").status == "published"
    assert len(payloads) == 1
    assert surveys.publish("habits").status == "unchanged"
    assert len(payloads) == 2


def test_a_document_is_parsed_once(surveys: Surveys, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, parse = [], SurveyDocument.parse

    def counted(payload: bytes) -> SurveyDocument:
        parsed.append(canonical.digest(payload))
        return parse(payload)

    monkeypatch.setattr(SurveyDocument, "parse", counted)
    surveys.apply(parse_definition(FILE.encode()))
    published = surveys.publish("habits")
    # The server parses the document as a device does, before it signs.
    assert parsed == [published.digest]
    surveys.publish("habits")
    surveys.list()
    surveys.obstacles("habits")
    assert [version.digest for version in surveys.versions("habits")] == [published.digest]
    assert parsed == [published.digest] * 2
