# SPDX-License-Identifier: Apache-2.0
"""A survey with three sources through the whole path: file, tokens of each, devices, server and API.

A class and a mailing list have invitations of the server, a panel has blind tokens of an issuer of its
own. Two in five of the panel's people answer at random.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from frankly_analyst import Sources
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_sdk import Policy
from frankly_sdk.errors import UnknownChoice
from frankly_sdk.testing import open_client
from frankly_sdk.tokens import blind, finalize
from frankly_server.accounts import Passwords
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr
from scipy.stats import hypergeom

from tests.contract.conftest import NOW, ORIGIN, InProcess
from tests.frankly_protocol.trust.samples import spki
from tests.frankly_server.accounts.people import CHEAP
from tests.migrated import opened
from tests.refusals import refusal

PEOPLE = 80
SOURCES = ("class", "list", "panel")
ISSUER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
YES_NO = '[{id: "no", label: {en: "No"}}, {id: "yes", label: {en: "Yes"}}]'
FILE = (
    "name: sourced\ntitle: {en: Sourced}\nlanguages: [en]\nopens: 2026-05-01T00:00:00Z\n"
    "closes: 2026-07-01T00:00:00Z\nexpires: 2026-08-01T00:00:00Z\nmin_reports: 20\nrelease_step: 2\n"
    'budget: "2"\nstrata:\n- {id: came, text: {en: "Who invited you?"}, choices: ['
    + ", ".join(f"{{id: {name}, label: {{en: The {name}}}}}" for name in SOURCES)
    + f"]}}\ntokens: {{kind: sources, question: came, keys: {{panel: {spki(ISSUER)}}}}}\n"
    "instructed: {id: item, text: {en: Choose c}, answer: c, choices: ["
    + ", ".join(f"{{id: {name}, label: {{en: {name}}}}}" for name in "abcd")
    + ']}\nblocks:\n- id: cash\n  notion: ldp\n  epsilon: "2"\n  mechanism: grr\n  questions:\n'
    f'  - {{id: cash, text: {{en: "Paid cash?"}}, choices: {YES_NO}}}\n'
).encode()


@dataclass
class Sourced:
    """A published survey with answers. passed : results of the item, by source."""

    http: Any
    services: Services
    survey: str
    document: SurveyDocument
    link: str
    folder: Path
    passed: dict[str, list[bool]]

    def api(self, method: str, what: str, role: str = "analyst", **sent: Any) -> Any:
        key = self.services.access.create(role, "test")
        headers = {"Authorization": f"Bearer {key}"}
        return self.http.open(
            f"/v1/surveys/{self.survey}/{what}", method=method, headers=headers, **sent
        )

    def estimates(self, **query: Any) -> Any:
        answer = self.api("GET", "estimates", query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.get_json()

    def invited(self, source: str, count: int) -> list[str]:
        """Return the personal links of new invitations."""
        sent = {"count": count, "source": source}
        answer = self.api("POST", "invitations", "admin", json=sent)
        assert answer.status_code == 201, answer.text
        return [one["link"] for one in answer.get_json()["invitations"]]

    def answer(self, link: str, name: str, item: str = "c", **options: Any) -> tuple[str, str]:
        opening: Any = {
            "policy": Policy(cap="6"),
            "transport": InProcess(self.http),
            "clock": FixedClock(NOW),
        }
        with open_client(link, self.folder / "device.db", spread_s=0, **opening) as client:
            strata = {"item": item} | options.pop("strata", {})
            receipt = client.answer({"cash": "no"}, strata=strata, respondent=name, **options)
            return receipt.status, receipt.code

    def token(self, source: str = "panel") -> str:
        """Return a token of the panel's issuer, signed without seeing it."""
        assert self.document.token is not None
        request = blind(self.document.token.rule_for(source), self.survey)
        key = ISSUER.private_numbers()
        signed = pow(int.from_bytes(request.blinded), key.d, key.public_numbers.n)
        return finalize(request, signed.to_bytes(256))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sourced]:
    folder = tmp_path_factory.mktemp("sources")
    url = SecretStr(f"sqlite:///{folder / 'frankly.db'}")
    settings = Settings(home=folder / "home", database_url=url, public_url=ORIGIN)
    with closing(opened(settings, FixedClock(NOW), Passwords(CHEAP))) as services:
        services.surveys.apply(parse_definition(FILE))
        published = services.surveys.publish("sourced")
        http = create_app(settings, services=services).test_client()
        survey, link = published.survey_id, published.link
        document = SurveyDocument.from_envelope(services.surveys.envelope(survey))
        path = Sourced(http, services, survey, document, link, folder, {})
        for source in SOURCES:
            path.passed[source] = _answered(path, source)
        assert services.releasing.release() == len(SOURCES) * PEOPLE
        yield path


def _answered(path: Sourced, source: str) -> list[bool]:
    rng, passed = Random(source), list[bool]()
    links: Sequence[str] = (
        path.invited(source, PEOPLE)
        if source != "panel"
        else [f"{path.link}&source=panel"] * PEOPLE
    )
    for i, link in enumerate(links):
        random = rng.random() < (0.4 if source == "panel" else 0.02)
        item = rng.choice("abcd") if random else "c"
        token = {"token": path.token()} if source == "panel" else {}
        assert path.answer(link, f"{source}{i}", item, **token) == ("sent", "accepted")
        passed.append(item == "c")
    return passed


def test_estimates_random_answers_and_bounds_are_known_of_each_source(path: Sourced) -> None:
    found = path.estimates(by="came")
    by_source = {one["by"]["came"]: one for one in found["questions"]}
    assert {name: one["n"] for name, one in by_source.items()} == dict.fromkeys(SOURCES, PEOPLE)
    for name, one in by_source.items():
        assert one["random_answers"]["failed"] is not None, name
        assert all(row["poisoning_up"] > 0 for row in one["rows"])


def test_the_source_whose_people_do_not_read_is_flagged(path: Sourced) -> None:
    found = Sources.from_json(path.estimates(by="came")["sources"])
    assert found is not None
    failed = {name: results.count(False) for name, results in path.passed.items()}
    total = sum(failed.values())
    assert found.question == "came"
    assert found.flagged == ("panel",)
    for one in found:
        # In batches of at least two reports of one source, all of which are released here.
        expected = hypergeom.sf(failed[one.source] - 1, len(SOURCES) * PEOPLE, total, PEOPLE)
        assert one.p == pytest.approx(float(expected), rel=1e-9)
        assert one.random == pytest.approx(failed[one.source] / PEOPLE * 4 / 3)


def test_the_example_of_the_guide(
    path: Sourced, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (root / "docs" / "results.md").read_text("utf-8").partition("## Judge sources")[2]
    example = page.partition("```python\n")[2].partition("```")[0]

    def estimates(survey: str, by: str) -> Any:
        assert (survey, by) == (path.survey, "source")
        return SimpleNamespace(sources=Sources.from_json(path.estimates(by="came")["sources"]))

    names = {"Analyst": lambda *_: SimpleNamespace(estimates=estimates)}
    exec(
        compile(example, "results.md", "exec"),
        names | {"url": "", "key": "", "survey": path.survey},
    )
    out = capsys.readouterr().out.splitlines()
    lines = [line for line in out if line.startswith(SOURCES)]
    assert [line.split()[0] + line.split()[-1] for line in lines] == [
        "classFalse",
        "listFalse",
        "panelTrue",
    ]


def test_other_results_say_nothing_of_sources(path: Sourced) -> None:
    assert path.estimates()["sources"] is None
    assert path.estimates(by="came,week")["sources"] is None


def test_a_token_is_used_by_its_own_source_only(path: Sourced) -> None:
    (link,) = path.invited("class", 1)
    code = link.rpartition("&invite=")[2]
    assert f"&source=class&invite={code}" in link
    other = f"{path.link}&source=list&invite={code}"
    assert path.answer(other, "thief") == ("refused", "token_foreign")
    assert path.answer(link, "owner") == ("sent", "accepted")
    blinded = path.token()
    for strata in ({"came": "class"}, {"came": "list"}):
        error = refusal(InvalidInput, path.answer, path.link, "x", strata=strata, token=blinded)
        assert (error.code, error.field) == ("token_invalid", "token")
    # Without a link that names it, an app asks for the source, as for any public question.
    assert refusal(UnknownChoice, path.answer, path.link, "x", token=blinded).field == "came"
    assert path.answer(path.link, "y", strata={"came": "panel"}, token=blinded)[0] == "sent"


def test_the_source_of_a_link_is_sent_like_any_public_answer(path: Sourced) -> None:
    unknown = f"{path.link}&source=nobody"
    assert refusal(UnknownChoice, path.answer, unknown, "z", token=path.token()).field == "came"


@pytest.mark.parametrize(
    ("sent", "code", "field"),
    [
        ({"count": 1}, "field_missing", "source"),
        ({"count": 1, "source": "panel"}, "field_type", "source"),
        ({"count": 1, "source": "other"}, "field_type", "source"),
    ],
)
def test_invitations_need_a_source_that_has_them(
    path: Sourced, sent: dict[str, Any], code: str, field: str
) -> None:
    refused = path.api("POST", "invitations", "admin", json=sent).get_json()
    assert (refused["code"], refused["field"]) == (code, field)


BAD_FILES = {
    "no question": (
        "question: came, ",
        "",
        "tokens",
        "sources are the choices of a public question",
    ),
    "another question": (
        "question: came",
        "question: gone",
        "tokens.question",
        "no public question",
    ),
    "a key of nobody": ("{panel: ", "{nobody: ", "tokens.keys.nobody", "no choice of came"),
    "one key for two": (
        "keys: {",
        f"keys: {{list: {spki(ISSUER)}, ",
        "tokens.keys.list",
        "each needs its own",
    ),
    "a bad key": (spki(ISSUER), "A" * 80, "tokens.keys.panel", "2048 to 4096 bits"),
    "another kind": ("kind: sources", "kind: invite", "tokens", "leave it out with another kind"),
    "a key outside": (
        "kind: sources,",
        f"kind: sources, key: {spki(ISSUER)},",
        "tokens",
        "have no key here",
    ),
    "an arm without it": (
        "blocks:",
        "arms: [{id: a, share: 1, strata: [came], blocks: [cash]}, {id: b, share: 1, blocks: [cash]}]\nblocks:",
        "arms[1].strata",
        "ask it in every arm",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_with_impossible_sources_is_refused(name: str) -> None:
    old, new, field, detail = BAD_FILES[name]
    changed = FILE.decode().replace(old, new, 1)
    assert changed != FILE.decode()
    error = refusal(InvalidInput, parse_definition, changed.encode())
    assert error.field == field
    assert detail in error.detail
