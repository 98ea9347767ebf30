# SPDX-License-Identifier: Apache-2.0
"""Reports of an SDK: drawn exactly as published, once, and resent as the same bytes until the
server has stored them."""

import base64
import json
import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.tokens import TokenRule

from tests.conformance.conftest import Install
from tests.conformance.driver import OURS, Run, command_line, process
from tests.conformance.site import (
    BAD_INPUT,
    INTEGRITY,
    JSON,
    REFUSED,
    Reply,
    Site,
    problem,
    replies,
    stores_then_hangs_up,
)
from tests.frankly_protocol.samples import NOW, ldp_block
from tests.vectors import make
from tests.vectors.second_numbers import report

VECTORS = json.loads((make.HERE / "sampling.json").read_text("ascii"))["reports"]
TOKEN = base64.urlsafe_b64encode(bytes(range(32))).rstrip(b"=").decode()


@pytest.mark.parametrize(("place", "with_token"), [(0, False), (0, True), (2, False), (3, False)])
def test_fixed_random_bits_give_the_report_of_the_vectors(
    install: Install, place: int, with_token: bool
) -> None:
    case = dict(VECTORS[place])
    site, sample = install.site, SurveyDocument.parse(case["document"].encode())
    rule = TokenRule("invite") if with_token else None
    # The sample's blocks together cost more than ten nats, so the cap must be higher than usual.
    url = f"{site.origin}/v1/surveys/{sample.survey}/reports"
    document = site.show(replace(sample, collect_url=url, token=rule))
    answers = {}
    for block, truth in zip(document.blocks, case["truths"], strict=True):
        places = truth if isinstance(truth, list) else [*divmod(truth, 2)][-len(block.questions) :]
        for question, chosen in zip(block.questions, places, strict=True):
            answers[question.id] = question.choices[chosen].id
    case["token"] = TOKEN if with_token else None
    install.init(cap="64")
    outcome = install.answer(
        answers, strata=case["choices"], token=case["token"], bits=case["bits"]
    )
    assert (outcome.status, outcome.body) == (0, {"status": "sent", "code": "accepted"})
    (sent,) = site.posted
    assert sent.decode() == report(json.loads(document.payload()), document.digest, case)


def test_without_random_bits_nothing_is_sealed_or_sent(install: Install) -> None:
    install.init()
    outcome = install.answer(bits=[])
    assert (outcome.status, outcome.code) == (INTEGRITY, "randomness")
    assert install.site.posted == []
    assert install.answer().body == {"status": "sent", "code": "accepted"}


WRONG: list[Any] = [
    {"affair": "maybe"},
    {"affair": 1},
    {"affair": True},
    {"other": "yes"},
    {"affair": "yes", "x": "y"},
]


@pytest.mark.parametrize("answers", [*WRONG, "yes", ["yes"]], ids=range(len(WRONG) + 2))
def test_unknown_choices_are_refused_and_not_repeated(install: Install, answers: Any) -> None:
    install.init()
    outcome = install.answer(answers)
    assert (outcome.status, outcome.code) == (BAD_INPUT, "unknown_choice")
    assert "maybe" not in outcome.text
    assert install.site.posted == []


@pytest.mark.parametrize("token", [None, "", "x", "A" * 42])
def test_a_survey_with_a_token_rule_accepts_no_answer_without_a_token(
    install: Install, token: str | None
) -> None:
    install.site.show(install.site.make(token=TokenRule("invite")))
    install.init()
    outcome = install.answer(token=token)
    assert (outcome.status, outcome.code) == (BAD_INPUT, "token_invalid")
    assert install.site.posted == []
    assert install.answer(token=TOKEN).body["status"] == "sent"


def garbled(body: bytes) -> Reply:
    return 201, JSON, b'{"status":"accepted","id":"' + b"0" * 32 + b'"}', {}


AGAIN: dict[str, tuple[Any, str]] = {
    "hangs up": (replies(None), "network"),
    "503": (replies(problem(503, "unavailable")), "unavailable"),
    "429 with a strange Retry-After": (
        replies(problem(429, "too_many", Retry_After="-1")),
        "too_many",
    ),
    "500 of an intermediary": (replies((500, "text/html", b"<html>", {})), "http_500"),
    "404 of an intermediary": (replies((404, "text/html", b"<html>", {})), "http_404"),
    "a log-in page": (replies((200, "text/html", b"<html>Welcome", {})), "no_receipt"),
    "a receipt for another report": (garbled, "no_receipt"),
    "an empty 201": (replies((201, JSON, b"", {})), "no_receipt"),
    "a redirect": (
        replies((307, JSON, b"", {"Location": "https://elsewhere.example"})),
        "redirect",
    ),
    "a receipt that never ends": (replies((201, JSON, b" " * 2**17, {})), "limit"),
    "too early by the server's clock": (
        replies(problem(409, "too_early", Retry_After="60")),
        "too_early",
    ),
}


@pytest.mark.parametrize("name", AGAIN)
def test_the_same_bytes_are_sent_again_until_acknowledged(install: Install, name: str) -> None:
    step, code = AGAIN[name]
    site = install.site
    site.script += [step, step]
    install.init()
    assert install.answer().body == {"status": "queued", "code": code}
    install.refresh()
    for _ in range(2):
        install.refresh()
    assert len(set(site.posted)) == 1
    assert len(site.stored) == 1
    sent_count = len(site.posted)
    install.refresh()
    assert len(site.posted) == sent_count, "an acknowledged report must be erased"


def test_a_lost_receipt_leaves_one_report(install: Install) -> None:
    install.site.script.append(stores_then_hangs_up(install.site))
    install.init()
    assert install.answer().body == {"status": "queued", "code": "network"}
    again = install.answer({"affair": "no"})
    assert (again.status, again.code) == (REFUSED, "already_answered")
    install.refresh()
    assert len(install.site.posted) >= 2
    assert len(set(install.site.posted)) == len(install.site.stored) == 1


# The table of the protocol, section 7; `tests/docs/test_final_codes.py` compares it with the code.
FINAL = {
    "symbol_unknown": 422, "strata_invalid": 422, "closed": 410, "id_conflict": 409, "token_foreign": 403,
    "token_spent": 409,
}  # fmt: skip
LATER = {
    "json_invalid": 400, "number_not_finite": 422, "field_unknown": 422, "field_missing": 422, "field_type": 422,
    "y_type": 422, "token_invalid": 401, "survey_unknown": 404, "not_found": 404, "doc_mismatch": 422,
    "unauthenticated": 401, "forbidden": 403, "method_not_allowed": 405, "body_too_large": 413, "content_type": 415,
    "bad_request": 400, "a_code_of_the_future": 422,
}  # fmt: skip


@pytest.mark.parametrize("code", FINAL)
def test_a_report_refused_for_good_is_erased_and_not_drawn_again(
    install: Install, code: str
) -> None:
    install.site.script.append(replies(problem(FINAL[code], code)))
    install.init()
    assert install.answer().body == {"status": "refused", "code": code}
    install.refresh()
    assert install.answer().code == "already_answered"
    assert len(install.site.posted) == 1


@pytest.mark.parametrize("code", [*LATER, *FINAL])
def test_a_report_refused_for_now_is_sent_again_until_the_survey_closes(
    install: Install, code: str
) -> None:
    """A server may have lost its database for a while; a final code needs its own status, too."""
    site, status = install.site, LATER.get(code, 418)
    refusal = replies(problem(status, code))
    site.script += [refusal, refusal]
    install.init()
    said = code if code in LATER else "http_418"
    assert install.answer().body == {"status": "queued", "code": said}
    install.now = NOW + timedelta(days=29)
    for _ in range(2):
        install.refresh()
    assert (len(set(site.posted)), len(site.stored)) == (1, 1)


def test_a_report_that_the_server_does_not_take_is_erased_after_the_survey(
    install: Install,
) -> None:
    site = install.site
    site.script += [replies(problem(404, "survey_unknown"))] * 3
    install.init()
    assert install.answer().body == {"status": "queued", "code": "survey_unknown"}
    install.now = NOW + timedelta(days=31)
    for _ in range(2):
        install.refresh()
    assert (len(site.posted), site.stored) == (2, {})


def test_a_device_sends_one_value_only(install: Install) -> None:
    """Twenty attempts with different answers, some while the server is down, lead to one report."""
    site = install.site
    site.script += [replies(None)] * 12
    install.init()
    assert install.answer().status == 0
    for i in range(10):
        outcome = install.answer({"affair": ("no", "yes")[i % 2]})
        assert (outcome.status, outcome.code) == (REFUSED, "already_answered")
        install.refresh()
    assert len(set(site.posted)) == 1
    assert len(site.stored) == 1


def test_after_the_end_nothing_is_drawn(install: Install) -> None:
    install.init()
    assert install.refresh().status == 0
    install.now = NOW + timedelta(days=31)
    assert install.answer().status in (REFUSED, INTEGRITY)
    assert install.site.posted == []


@pytest.mark.parametrize(
    ("name", "command_input", "code"),
    [
        ("init", "", "json_invalid"),
        ("init", "[]", "json_invalid"),
        ("init", '{"store":NaN}', "number_not_finite"),
        ("init", {"store": "x"}, "field_missing"),
        ("init", {"store": "x", "link": "https://a.example/s/1"}, "link"),
        ("init", {"store": "x", "link": f"http://a.example/s/{'ab' * 16}"}, "insecure_transport"),
        (
            "init",
            {"store": "x", "link": f"https://a.example/s/{'ab' * 16}", "extra": 1},
            "field_unknown",
        ),
        (
            "init",
            {"store": "x", "link": f"https://a.example/s/{'ab' * 16}", "policy": {"cap": "NaN"}},
            "eps_not_finite",
        ),
        (
            "init",
            {"store": "x", "link": f"https://a.example/s/{'ab' * 16}", "policy": {"cap": "65"}},
            "eps_out_of_range",
        ),
        (
            "init",
            {"store": "x", "link": f"https://a.example/s/{'ab' * 16}", "keys": "?"},
            "field_type",
        ),
        ("refresh", {"store": "/nowhere/at/all"}, "field_type"),
        ("answer", {"store": "/nowhere/at/all", "answers": {}, "patience_s": True}, "field_type"),
    ],
)
def test_bad_input_is_refused_by_name(run: Run, name: str, command_input: Any, code: str) -> None:
    outcome = run(name, command_input)
    assert (outcome.status, outcome.code) == (BAD_INPUT, code)


def test_the_commands_are_processes_too(site: Site, tmp_path: Path) -> None:
    """Other tests may run our implementation inside this process; this test starts processes."""
    install = Install(process(command_line() or OURS), site, tmp_path / "device")
    assert install.init().status == 0
    assert install.answer().body == {"status": "sent", "code": "accepted"}
    assert install.answer().status == REFUSED
    usage = subprocess.run(
        [*(command_line() or OURS), "nonsense"], capture_output=True, check=False
    )
    assert usage.returncode == 2


def test_commands_at_the_same_time_seal_one_value(site: Site, tmp_path: Path, full: bool) -> None:
    install = Install(process(command_line() or OURS), site, tmp_path / "device")
    install.init()
    request = json.dumps(
        {"store": str(install.folder), "now": "2026-06-01T12:00:00Z", "answers": {"affair": "yes"}}
    )
    command = [*(command_line() or OURS), "answer"]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=-1, stderr=-1, text=True)
        for _ in range(6 if full else 3)
    ]
    for child in running:
        child.communicate(request, timeout=120)
    assert sorted(child.returncode for child in running) == [0, *[REFUSED] * (len(running) - 1)]
    assert len(set(site.posted)) == len(site.stored) == 1
    assert ldp_block().mechanism.reports == 2
