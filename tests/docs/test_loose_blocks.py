# SPDX-License-Identifier: Apache-2.0
"""Individual blocks of pages: a setting, a request, a message, a command and its output."""

import json
import math
import re
from pathlib import Path
from statistics import NormalDist
from urllib.parse import parse_qs

import pytest
from frankly_protocol.canonical import dumps
from frankly_server.settings import Settings

from tests.docs.session import Session
from tests.frankly_server.surveys.test_webhooks import Ear, hooks
from tests.frankly_server.web.site import make_site
from tools.blocks import Block, blocks


def block(root: Path, page: str, start: str) -> Block:
    """Return the only block of a page that begins with `start`."""
    text = (root / "docs" / page).read_text(encoding="utf-8")
    (match,) = (candidate for candidate in blocks(text) if candidate.body.startswith(start))
    return match


def test_the_setting_of_the_admin_page_exists(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, _, value = block(root, "admin.md", "FRANKLY_WEBHOOK_HOSTS=").body.strip().partition("=")
    monkeypatch.setenv(name, value)
    assert Settings.load().webhook_host_list == set(value.split(","))


def test_the_message_shown_has_the_format_of_those_sent(root: Path, tmp_path: Path) -> None:
    head, _, body = block(root, "admin.md", "POST /frankly HTTP/1.1").body.partition("\n\n")
    documented = dict(line.split(": ") for line in head.splitlines()[1:])
    site, ear = make_site(tmp_path, f"sqlite:///{tmp_path / 'frankly.db'}"), Ear()
    service = hooks(site, ear)
    service.set(site.survey, "https://hooks.example.org/frankly")
    site.services.lifecycle.move(site.survey, "close")
    service.run_round()
    site.services.close()
    [(_, sent, headers)] = ear.heard
    assert documented.keys() == headers.keys()
    assert documented["Content-Type"] == headers["Content-Type"]
    for message_headers in (documented, headers):
        assert message_headers["webhook-signature"].startswith("v1,")
    example, event = json.loads(body), json.loads(sent)
    assert (example.keys(), example["data"].keys()) == (event.keys(), event["data"].keys())
    assert body.strip().encode() == dumps(example)


def test_the_request_shown_names_every_parameter(root: Path) -> None:
    """The test compares the request with the OpenAPI description of the route."""
    target = block(root, "estimates.md", "GET /v1/surveys/ID/estimates?").body.split()[1]
    path, _, query = target.partition("?")
    document = json.loads((root / "docs" / "openapi.json").read_text(encoding="utf-8"))
    [(route, methods)] = [
        (route, methods)
        for route, methods in document["paths"].items()
        if route.endswith("}/estimates")
    ]
    assert route.startswith(path.split("ID")[0])
    described = {
        parameter["name"]: parameter
        for parameter in methods["get"]["parameters"]
        if parameter.get("in") == "query"
    }
    parameters = parse_qs(query, keep_blank_values=True)
    assert parameters.keys() == described.keys()
    assert described["method"]["description"].endswith(f"default {parameters['method'][0]}.")
    assert {parameters[name][0] for name in ("simultaneous", "census")} == {"false"}


def test_the_counts_request_shown_names_every_parameter(root: Path) -> None:
    target = block(root, "counts.md", "GET /v1/surveys/ID/counts?").body.split()[1]
    document = json.loads((root / "docs" / "openapi.json").read_text(encoding="utf-8"))
    described = document["paths"]["/v1/surveys/{survey_id}/counts"]["get"]["parameters"]
    names = {parameter["name"] for parameter in described if parameter.get("in") == "query"}
    assert parse_qs(target.partition("?")[2]).keys() == names


def test_commands_print_what_the_pages_show(root: Path, tmp_path: Path) -> None:
    session = Session(tmp_path, literal=False)
    command, answer = block(root, "design.md", '$ echo \'{"weights"').body.strip().split("\n")
    output = json.loads(session.typed(command.removeprefix("$ ")))
    promised = json.loads(answer)
    assert {key: output[key] for key in promised} == promised
    (line,) = block(root, "estimates.md", 'echo \'{"prior":{"joint":[[1').commands
    planned = json.loads(session.typed(line))
    # k-ary randomised response sends the truth with probability p and each other choice with q; the
    # error is largest at a share of 1/2
    p, q = math.e / (math.e + 2), 1 / (math.e + 2)
    assert planned["n"] == math.ceil(NormalDist().inv_cdf(0.975) ** 2 / 4 / (0.05 * (p - q)) ** 2)


def test_the_plan_of_a_form_gives_every_question_its_margin(root: Path, tmp_path: Path) -> None:
    (line,) = block(root, "estimates.md", 'echo \'{"form"').commands
    planned = json.loads(Session(tmp_path, literal=False).typed(line))
    assert [
        margin <= goal for margin, goal in zip(planned["margins"], (0.05, 0.05, 0.03), strict=True)
    ] == [True] * 3
    assert max(planned["margins"][:2]) > 0.0499 or planned["margins"][2] > 0.0299
    assert len(planned["shown"]) == 3


def test_the_plan_of_blocks_is_better_than_equal_levels(root: Path, tmp_path: Path) -> None:
    (line,) = block(root, "estimates.md", 'echo \'{"blocks"').commands
    planned = json.loads(Session(tmp_path, literal=False).typed(line))
    assert planned["margin"] <= 0.05 < planned["equal_split_margin"]
    assert sum(float(one["epsilon"]) for one in planned["blocks"]) == pytest.approx(2)


def test_two_arms_are_planned(root: Path, tmp_path: Path) -> None:
    (line,) = block(root, "estimates.md", 'echo \'{"choices"').commands
    planned = json.loads(Session(tmp_path, literal=False).typed(line))
    page = " ".join((root / "docs" / "estimates.md").read_text(encoding="utf-8").split())
    n, (first, second) = planned["n"], planned["per_arm"]
    points = 100 * planned["difference"]
    assert first == second
    assert (
        f"Here {n} reports find the difference of {points:.0f} points with a power of "
        f"{100 * planned['power']:.0f} % at a level of {100 * planned['level']:.0f} %: "
        f"{first} are expected in each arm."
    ) in page


def test_waves_are_planned(root: Path, tmp_path: Path) -> None:
    (line,) = block(root, "results.md", 'echo \'{"prior":{"joint":[[7').commands
    shown = Session(tmp_path, literal=False).typed(line)
    assert "widest change" in shown
    (equal,) = re.findall(r"equal .* ([\d.]+) *$", shown, re.MULTILINE)
    assert f"needs {float(equal):.1f} times as many people as `best`" in " ".join(
        (root / "docs" / "results.md").read_text(encoding="utf-8").split()
    )


def test_the_plan_of_pairs_solves_for_a_factor(root: Path, tmp_path: Path) -> None:
    (line,) = block(root, "estimates.md", 'echo \'{"notion"').commands
    planned = json.loads(Session(tmp_path, literal=False).typed(line))
    assert planned["epsilon"] is None
    assert 0.0499 < planned["margin"] <= 0.05
    assert float(planned["epsilons"][0][2]) == float(planned["factor"])
