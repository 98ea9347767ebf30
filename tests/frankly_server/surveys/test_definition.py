# SPDX-License-Identifier: Apache-2.0
"""Strict parsing of survey files; errors name the field and the fix (bad inputs 1-8, 10-12)."""

from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.definition import SurveyDefinition, parse_definition, parse_value
from frankly_server.surveys.priors import block_request

from tests.frankly_server.surveys.samples import FILE, value
from tests.refusals import code_and_field, refusal

AFFAIR = ("blocks", 0, "questions", 0)
HAPPY = ("blocks", 1, "questions", 0)
JOINT = ("blocks", 1, "prior", "joint")
CHOICES, TEXT = "blocks[0].questions[0].choices", "blocks[0].questions[0].text.en"


def test_a_valid_file_is_read() -> None:
    definition = parse_definition(FILE.encode())
    assert (definition.name, definition.min_reports, definition.budget) == ("habits", 50, "4")
    assert [choice.id for choice in definition.blocks[0].questions[0].choices] == [
        "no",
        "yes",
    ]  # never booleans
    assert definition.blocks[1].prior is not None
    assert definition.blocks[1].prior.secrets == ("no", "yes")


def test_a_definition_survives_its_stored_form() -> None:
    definition = parse_definition(FILE.encode())
    again = SurveyDefinition.from_json(definition.to_json())
    assert again == definition
    assert again.digest == definition.digest


@pytest.mark.parametrize(
    "wrap", [lambda b: b"\xef\xbb\xbf" + b, lambda b: b.replace(b"\n", b"\r\n")]
)
def test_byte_order_marks_and_line_ends_of_other_editors_are_accepted(wrap: Any) -> None:
    assert parse_definition(wrap(FILE.encode())) == parse_definition(FILE.encode())


def _choices(*labels: str) -> list[dict[str, Any]]:
    return [{"id": f"c{i}", "label": {"en": label}} for i, label in enumerate(labels)]


BAD: dict[str, tuple[dict[tuple[Any, ...], Any], str, str]] = {
    "eps NaN": ({("blocks", 0, "epsilon"): "NaN"}, "eps_not_finite", "blocks[0].epsilon"),
    "eps infinite": ({("blocks", 0, "epsilon"): "-Infinity"}, "eps_not_finite", "blocks[0].epsilon"),
    "eps zero": ({("blocks", 0, "epsilon"): "0"}, "eps_out_of_range", "blocks[0].epsilon"),
    "eps negative": ({("blocks", 0, "epsilon"): "-1"}, "eps_out_of_range", "blocks[0].epsilon"),
    "eps tiny": ({("blocks", 0, "epsilon"): "1e-9"}, "eps_out_of_range", "blocks[0].epsilon"),
    "eps huge": ({("blocks", 0, "epsilon"): "1e400"}, "eps_out_of_range", "blocks[0].epsilon"),
    "eps 50": ({("blocks", 0, "epsilon"): "50"}, "eps_out_of_range", "blocks[0].epsilon"),
    "eps boolean": ({("blocks", 0, "epsilon"): True}, "eps_format", "blocks[0].epsilon"),
    "eps underscore": ({("blocks", 0, "epsilon"): "1_0"}, "eps_format", "blocks[0].epsilon"),
    "eps Arabic digit": ({("blocks", 0, "epsilon"): "١"}, "eps_format", "blocks[0].epsilon"),
    "eps spaces": ({("blocks", 0, "epsilon"): " 1 "}, "eps_format", "blocks[0].epsilon"),
    "eps float": ({("blocks", 0, "epsilon"): 0.5}, "eps_format", "blocks[0].epsilon"),
    "eps missing": ({("blocks", 0, "epsilon"): None}, "field_missing", "blocks[0].epsilon"),
    "budget word": ({("budget",): "much"}, "eps_format", "budget"),
    "prior negative": ({(*JOINT, 1, 2): "-5"}, "prior_value", "blocks[1].prior.joint[1][2]"),
    "prior NaN": ({(*JOINT, 0, 1): "NaN"}, "prior_value", "blocks[1].prior.joint[0][1]"),
    "prior word": ({(*JOINT, 0, 1): "many"}, "prior_value", "blocks[1].prior.joint[0][1]"),
    "prior ragged": ({(*JOINT, 0): ["1", "2"]}, "prior_shape", "blocks[1]"),
    "prior too wide": ({JOINT: [["10"] * 4, ["10"] * 4]}, "prior_shape", "blocks[1]"),
    "prior one row too many": ({JOINT: [["10"] * 3] * 3}, "prior_shape", "blocks[1].prior"),
    "prior missing": ({("blocks", 1, "prior"): None}, "field_missing", "blocks[1]"),
    "secret unnamed": ({("blocks", 1, "prior", "secret"): None}, "field_missing", "blocks[1].prior"),
    "secrets equal": ({("blocks", 1, "prior", "secrets"): ["no", "no"]}, "choices_collide", "blocks[1].prior"),
    "no choice": ({(*AFFAIR, "choices"): []}, "choices_count", CHOICES),
    "one choice": ({(*AFFAIR, "choices"): _choices("a")}, "choices_count", CHOICES),
    "1001 choices": ({(*AFFAIR, "choices"): _choices(*map(str, range(1001)))}, "choices_count", CHOICES),
    "257 joint answers of lip": (
        {("blocks", 1, "questions", 0, "choices"): _choices(*map(str, range(257)))}, "choices_count", "blocks[1]",
    ),
    "same id": ({(*AFFAIR, "choices", 1, "id"): "no"}, "choices_collide", CHOICES),
    "same label": ({(*AFFAIR, "choices", 1, "label"): {"en": "No"}}, "choices_collide", CHOICES),
    "case": ({(*AFFAIR, "choices"): _choices("STRASSE", "Straße")}, "choices_collide", CHOICES),
    "accents": ({(*AFFAIR, "choices"): _choices("caf\u00e9", "cafe\u0301")}, "choices_collide", CHOICES),
    "width": ({(*AFFAIR, "choices"): _choices("A1", "Ａ１")}, "choices_collide", CHOICES),
    "spacing": ({(*AFFAIR, "choices"): _choices("not  sure", " not sure ")}, "choices_collide", CHOICES),
    "joiners": ({(*AFFAIR, "choices"): _choices("éé", "é\u200dé")}, "choices_collide", CHOICES),
    "NUL": ({(*AFFAIR, "text"): {"en": "a\x00b"}}, "text_characters", TEXT),
    "bell": ({("title",): {"en": "a\x07b"}}, "text_characters", "title.en"),
    "bidi": ({(*AFFAIR, "text"): {"en": "a\u202eb"}}, "text_characters", TEXT),
    "zero width": ({(*AFFAIR, "choices", 0, "label"): {"en": "N\u200bo"}}, "text_characters", f"{CHOICES}[0].label.en"),
    "surrogate": ({(*AFFAIR, "text"): {"en": "a\ud800"}}, "text_characters", TEXT),
    "blank text": ({(*AFFAIR, "text"): {"en": "  "}}, "field_type", TEXT),
    "long text": ({("title",): {"en": "x" * 4001}}, "definition_invalid", "title.en"),
    "no language": ({(*AFFAIR, "text"): {}}, "definition_invalid", ""),
    "other language": ({("title",): {"en": "x", "fr": "y"}}, "definition_invalid", ""),
    "language odd": ({("languages",): ["english!"]}, "definition_invalid", "languages[0]"),
    "language twice": ({("languages",): ["en", "en"]}, "definition_invalid", ""),
    "id odd": ({(*AFFAIR, "id"): "../x"}, "definition_invalid", "blocks[0].questions[0].id"),
    "question twice": ({(*HAPPY, "id"): "affair"}, "definition_invalid", ""),
    "block twice": ({("blocks", 1, "id"): "affair"}, "definition_invalid", ""),
    "unknown field": ({("collour",): "x"}, "field_unknown", "collour"),
    "unknown deep": ({(*AFFAIR, "hint"): "x"}, "field_unknown", "blocks[0].questions[0].hint"),
    "name missing": ({("name",): None}, "field_missing", "name"),
    "notion odd": ({("blocks", 0, "notion"): "magic"}, "unsupported", "blocks[0].notion"),
    "notion missing": ({("blocks", 0, "notion"): None}, "field_missing", "blocks[0]"),
    "notion and notions": (
        {("blocks", 0, "notions"): [{"notion": "ldp", "epsilon": "1"}]}, "field_missing", "blocks[0]",
    ),
    "a notion without its level": (
        {("blocks", 1, "notions"): [{"notion": "ldp"}]}, "field_missing", "blocks[1].notions[0].epsilon",
    ),
    "rldp on answers that are no pairs": ({("blocks", 1, "notion"): "rldp"}, "prior_shape", "blocks[1]"),
    "delta a word": ({("blocks", 0, "delta"): "little"}, "field_type", "blocks[0].delta"),
    "ceiling of 50": ({("blocks", 0, "ceiling_cap"): "50"}, "eps_out_of_range", "blocks[0].ceiling_cap"),
    "mechanism odd": ({("blocks", 0, "mechanism"): "magic"}, "unsupported", "blocks[0].mechanism"),
    "flag odd": ({("blocks", 0, "accept_identity"): "yes"}, "field_type", "blocks[0].accept_identity"),
    "neither blocks nor a form": ({("blocks",): []}, "field_missing", "form"),
    "minimum of one": ({("min_reports",): "1"}, "field_type", "min_reports"),
    "step of one": ({("release_step",): "1"}, "field_type", "release_step"),
    "step above the minimum": ({("release_step",): "51"}, "definition_invalid", "release_step"),
    "released every minute": ({("release_every",): "minute"}, "definition_invalid", "release_every"),
    "minimum zero": ({("min_reports",): "0"}, "field_type", "min_reports"),
    "minimum fraction": ({("min_reports",): "1.5"}, "field_type", "min_reports"),
    "time without zone": ({("opens",): "2026-05-01"}, "definition_invalid", "opens"),
    "time impossible": ({("closes",): "2026-02-30T00:00:00Z"}, "definition_invalid", "closes"),
    "closes before it opens": ({("closes",): "2026-04-01T00:00:00Z"}, "definition_invalid", ""),
    "a list for a map": ({("title",): ["x"]}, "field_type", "title"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_faults_name_their_field(name: str) -> None:
    changes, code, field = BAD[name]
    error = refusal(InvalidInput, parse_value, value(changes))
    assert (error.code, error.field or "") == (code, field)
    assert len(error.detail) > 8


def test_several_faults_are_all_reported() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_value(value({("blocks", 0, "epsilon"): "x", ("collour",): "y", ("budget",): "0"}))
    message = str(refused.value)
    assert all(field in message for field in ("blocks[0].epsilon", "collour", "budget"))


COMMA = "a text with a comma within { } needs quotes"
# What is wrong -> (changes, field and whole message): one mistake, one sentence, and no type of Python
ONE_MISTAKE: dict[str, tuple[dict[Any, Any], str, str]] = {
    "a language that is a name": (
        {("languages",): ["German"], ("title",): {"German": "x"}, (*AFFAIR, "text"): {"German": "y"}},
        "languages[0]", "write a language tag such as en or pt-BR",
    ),
    "a language in texts only": (
        {("title",): {"en": "x", "German": "x"}, (*AFFAIR, "text"): {"en": "y", "German": "y"}},
        "title", f"write a language tag such as en or pt-BR; {COMMA}",
    ),
    "a comma in a text": (
        {(*AFFAIR, "text"): {"en": "Well", "do you?": ""}},
        "blocks[0].questions[0].text", f"write a language tag such as en or pt-BR; {COMMA}",
    ),
    "a word for a number": ({(*AFFAIR, "choices"): [{"id": "a", "label": {"en": "x"}, "from": "1.5"}]},
                            "blocks[0].questions[0].choices[0].from", "expected a whole number"),
    "a role that is none": (
        {(*AFFAIR, "choices", 0, "role"): "zap"},
        "blocks[0].questions[0].choices[0].role", "expected 'no_answer' or 'not_applicable'",
    ),
    "no language": ({("languages",): []}, "languages", "give at least 1 item"),
    "a text for a list": ({("languages",): "en"}, "languages", "expected a list"),
    "a list for a map": ({("title",): ["x"]}, "title", "expected an object: a map of names to values"),
    "a text for a block": ({("blocks", 0): "x"}, "blocks[0]", "expected an object: a map of field names to values"),
    "a day for a time": ({("opens",): "2026-05-01"}, "opens", "write a UTC time as 2026-12-31T23:59:59Z"),
    "a year that documents cannot have": (
        {("closes",): "9999-05-01T00:00:00Z"}, "closes", "write a year from 2000 to 2999",
    ),
    "a day that does not exist": (
        {("closes",): "2026-02-30T00:00:00Z"}, "closes", "an impossible date or time: the calendar has none such",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_MISTAKE)
def test_one_mistake_is_one_sentence(name: str) -> None:
    changes, field, detail = ONE_MISTAKE[name]
    error = refusal(InvalidInput, parse_value, value(changes))
    assert (error.field, error.detail) == (field, detail)


def test_colliding_choices_are_both_named() -> None:
    with pytest.raises(InvalidInput, match=r"“STRASSE” and “Straße”"):
        parse_value(value({(*AFFAIR, "choices"): _choices("STRASSE", "Straße")}))


@pytest.mark.parametrize(
    "label", ["👩‍👩‍👧", "نعم", "כן", "是", "naïve – ½ {x}", "50 % {0}", "می‌خواهم"]
)
def test_every_script_and_emoji_are_accepted(label: str) -> None:
    definition = parse_value(value({(*AFFAIR, "choices", 1, "label"): {"en": label}}))
    assert definition.blocks[0].questions[0].choices[1].label["en"] == label


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "definition_invalid"),
    "a text": (b"hello", "definition_invalid"),
    "a list": (b"- a\n- b\n", "definition_invalid"),
    "two documents": (FILE.encode() + b"---\nname: y\n", "definition_invalid"),
    "key twice": (FILE.encode() + b"name: other\n", "definition_invalid"),
    "too large": (b"#" * (2**20 + 1), "definition_invalid"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused(name: str) -> None:
    content, code = BAD_FILES[name]
    assert refusal(InvalidInput, parse_definition, content).code == code


BAD_PRIORS: dict[str, tuple[dict[tuple[Any, ...], Any], str, str]] = {
    "sums to 0.999": ({JOINT: [["0.3", "0.2", "0.1"], ["0.2", "0.1", "0.099"]]}, "prior_sum", "blocks[1].prior.joint"),
    "sums to 1.3": ({JOINT: [["0.6", "0.2", "0.1"], ["0.2", "0.1", "0.1"]]}, "prior_sum", "blocks[1].prior.joint"),
    "secret empty": ({(*JOINT, 1): ["0", "0", "0"]}, "secret_empty", "blocks[1].prior.joint[1]"),
    "choice unprotected": (
        {JOINT: [["10", "0", "10"], ["10", "0", "10"]]}, "choice_unprotected", "blocks[1].prior.joint[0][1]",
    ),
    "small cell": ({(*JOINT, 1, 2): "4"}, "prior_small_cells", "blocks[1].prior.joint[1][2]"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PRIORS)
def test_priors_that_cannot_be_used(name: str) -> None:
    changes, code, field = BAD_PRIORS[name]
    block = parse_value(value(changes)).blocks[1]
    assert code_and_field(InvalidInput, block_request, block, "blocks[1]") == (code, field)


def test_small_cells_of_public_data_are_accepted() -> None:
    block = parse_value(
        value({(*JOINT, 1, 2): "4", ("blocks", 1, "prior", "public"): "true"})
    ).blocks[1]
    assert block_request(block, "blocks[1]").prior.joint[1][2] == 4


def _crossed(n: int) -> list[dict[str, object]]:
    """Return two public questions with n choices each."""
    choices = [{"id": f"c{i}", "label": {"en": f"Choice {i}"}} for i in range(n)]
    return [
        {"id": name, "text": {"en": f"{name}?"}, "choices": choices} for name in ("region", "age")
    ]


def test_crossed_public_questions_with_small_cells_are_refused_unless_the_admin_accepts_them() -> (
    None
):
    assert (
        parse_value(value({("strata",): _crossed(4)})).step == 10
    )  # 16 cells with 62 reports each, in steps of 10
    assert parse_value(value({("strata",): _crossed(5)[:1], ("expected_reports",): "50"})).strata
    for changes in (
        {("strata",): _crossed(5)},
        {("strata",): _crossed(4), ("expected_reports",): "799"},
        {("strata",): _crossed(4), ("release_step",): "13"},
    ):
        with pytest.raises(InvalidInput, match="accept_small_cells") as refused:
            parse_value(value(changes))
        assert (refused.value.code, refused.value.field) == ("definition_invalid", "strata")
        assert parse_value(value({**changes, ("accept_small_cells",): "true"})).strata
    assert parse_value(value({("strata",): _crossed(4), ("expected_reports",): "800"})).strata


def test_the_step_is_ten_or_the_minimum_if_that_is_less() -> None:
    assert parse_value(value()).step == 10
    assert parse_value(value({("min_reports",): "7"})).step == 7
    assert parse_value(value({("release_step",): "50"})).step == 50
