# SPDX-License-Identifier: Apache-2.0
"""Reports compared with the OpenAPI document: a report is stored only if it has the declared shape,
and each refusal has a declared code. The tests cover mechanisms of every kind and invitations."""

import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import jsonschema
import pytest
from frankly_protocol.mechanisms import KINDS
from frankly_protocol.report import MAX_TOKEN
from frankly_server.surveys.definition import parse_definition
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.frankly_protocol.every_kind import FORM
from tests.frankly_server.web.generated import BODIES, JSON_VALUES, check
from tests.frankly_server.web.site import SURVEY, Site, make_site
from tests.survey_files import SMOKES, WINDOW, habits

PATH = "/v1/surveys/{survey_id}/reports"
BATCH = "application/vnd.frankly.batch+json"


def block(name: str, *choices: int, **options: Any) -> str:
    """Return a block of a survey file, with a question for each number of choices."""
    questions = [
        {
            "id": f"{name}{i}",
            "text": {"en": name},
            "choices": [{"id": f"c{k}", "label": {"en": f"C{k}"}} for k in range(size)],
        }
        for i, size in enumerate(choices)
    ]
    return f"  - {json.dumps({'id': name, **options, 'questions': questions})}\n"


ROBUST = {"order": "2", "n": 2000, "beta": "0.05"}
PAIRS = {
    "prior": {
        "joint": [[60, 150], [90, 20]],
        "secret": "ill",
        "secrets": ["no", "yes"],
        "source": "a table",
    }
}
BLOCKS = (
    SMOKES,
    block("set", 4, notion="ldp", epsilon="0.5", mechanism="oue"),
    block("some", 6, notion="ldp", epsilon="0.5", mechanism="subset-selection"),
    block("product", 2, 2, notion="rldp", epsilon="0.5", mechanism="independent-reporting", robust=ROBUST,
          accept_unidentifiable=True, **PAIRS),
)  # fmt: skip


@pytest.fixture(scope="module")
def invited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A survey that requires an invitation and has every kind of mechanism, and another survey."""
    home = tmp_path_factory.mktemp("invited")
    file = habits(*BLOCKS, budget="4", window=WINDOW, strata="tokens: {kind: invite}\n")
    created_site = make_site(home, f"sqlite:///{home / 'frankly.db'}", file)
    created_site.services.surveys.apply(parse_definition(SURVEY.replace(b"habits", b"other")))
    yield created_site
    created_site.services.close()


@pytest.fixture(scope="module")
def spec(invited: Site) -> dict[str, Any]:
    return dict(invited.client.get("/openapi.json").get_json())


def fits(spec: dict[str, Any], report: Any) -> bool:
    """Return True if a report has the shape that the document declares."""
    schema = {"$ref": "#/components/schemas/ReportBody", "components": spec["components"]}
    return bool(jsonschema.Draft202012Validator(schema).is_valid(report))


def drawn(site: Site, seed: int) -> list[Any]:
    """Draw a symbol of every block, in the JSON form of its kind."""
    mechanisms: list[Any] = [
        block.mechanism for block in site.services.surveys.versions(site.survey)[0].blocks
    ]
    assert {mechanism.kind for mechanism in mechanisms} == set(KINDS)
    source = Random(seed)
    return [
        drawn_mechanism.symbol_json(source.choice(list(drawn_mechanism.symbols())))
        for drawn_mechanism in mechanisms
    ]


def sent(site: Site, spec: dict[str, Any], report: Any) -> Any:
    """Send a single report; check that response and stored report have the declared shape."""
    answer = site.send(report)
    check(spec, PATH, "POST", answer)
    if answer.status_code in (200, 201):
        assert fits(spec, report), report
    return answer


def test_symbols_of_every_kind_and_tokens_have_the_declared_shape(
    invited: Site, spec: dict[str, Any]
) -> None:
    tokens = invited.services.invites.make("habits", 30)
    for seed, token in enumerate(tokens):
        report = invited.report(seed, y=drawn(invited, seed), strata={}, token=token)
        assert fits(spec, report)
        assert sent(invited, spec, report).status_code == 201


def test_symbols_of_forms_have_the_declared_shape(invited: Site, spec: dict[str, Any]) -> None:
    """This survey has no form, so the server's error names the position of such a symbol."""
    for seed in range(20):
        symbols = drawn(invited, seed)
        symbols[0] = FORM.symbol_json(FORM.sample((1, 2, 0), Random(seed).getrandbits))
        report = invited.report(seed + 500, y=symbols, strata={}, token="A" * 43)
        assert fits(spec, report)
        answer = sent(invited, spec, report)
        assert (answer.status_code, answer.get_json()["field"]) == (422, "y[0]")


# Token -> status, code.
REFUSED = {
    "none": (None, 401, "token_invalid"),
    "no text": (7, 401, "token_invalid"),
    "not base64url": ("a b", 401, "token_invalid"),
    "too long": ("a" * (MAX_TOKEN + 1), 401, "token_invalid"),
    "another": ("A" * 43, 401, "token_invalid"),
    "of another survey": ("FOREIGN", 403, "token_foreign"),
    "used": ("SPENT", 409, "token_spent"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_of_tokens_are_declared(name: str, invited: Site, spec: dict[str, Any]) -> None:
    token, status, code = REFUSED[name]
    if token in ("FOREIGN", "SPENT"):
        (token,) = invited.services.invites.make("other" if token == "FOREIGN" else "habits", 1)
        sent(invited, spec, invited.report(1000, y=drawn(invited, 1000), strata={}, token=token))
    report = invited.report(1001, y=drawn(invited, 1001), strata={}, token=token)
    answer = sent(invited, spec, report)
    assert (answer.status_code, answer.get_json()["code"], answer.get_json()["field"]) == (
        status,
        code,
        "token",
    )
    batch = invited.send({"reports": [report]}, content_type=BATCH)
    check(spec, PATH, "POST", batch)
    assert batch.get_json()["results"][0]["problem"]["code"] == code


def test_no_report_with_an_invitation_causes_a_server_error(
    request: pytest.FixtureRequest, invited: Site, spec: dict[str, Any]
) -> None:
    """The reports are nearly valid; some are stored, and some are refused for every possible fault
    of a token."""
    invites = invited.services.invites
    (spent,) = invites.make("habits", 1)
    sent(invited, spec, invited.report(2000, y=drawn(invited, 2000), strata={}, token=spent))
    answer_counts: Counter[str] = Counter()
    near = st.lists(
        st.integers(-1, 6)
        | st.sampled_from(["0", "3", "3f", "F", ""])
        | st.lists(st.integers(0, 2)),
        max_size=5,
    )

    @settings(max_examples=5_000 if request.config.getoption("--full") else 250, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(
        token=st.sampled_from(["habits"] * 3 + ["other", "spent", None]) | JSON_VALUES,
        y=st.none() | near,
        body=st.just({"base": {}}) | BODIES,
        number=st.integers(4000, 2**60),
    )
    @example(token="habits", y=None, body={"base": {}}, number=3001)
    @example(token="other", y=None, body={"base": {}}, number=3002)
    @example(token="spent", y=None, body={"base": {}}, number=3003)
    @example(token=None, y=None, body={"base": {}}, number=3004)
    @example(token="habits", y=[0], body={"base": {}}, number=3005)
    @example(token="habits", y=["F"], body={"base": {}}, number=3006)
    def run(token: Any, y: Any, body: Any, number: int) -> None:
        if token in ("habits", "other"):
            (token,) = invites.make(token, 1)
        token = spent if token == "spent" else token
        if isinstance(body, dict):
            symbols = drawn(invited, number) if y is None else y
            base = invited.report(number, y=symbols, strata={}, token=token)
            body = base | body["base"] if "base" in body else body
        answer = sent(invited, spec, body)
        answer_counts[answer.json.get("code") or answer.get_json()["status"]] += 1

    run()
    assert {
        "accepted",
        "token_foreign",
        "token_spent",
        "token_invalid",
        "y_type",
        "symbol_unknown",
    } <= set(answer_counts)
