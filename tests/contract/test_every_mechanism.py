# SPDX-License-Identifier: Apache-2.0
"""Every mechanism, selected by name: drafted from a survey file, published, answered by the SDK,
and decoded."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frankly_design.engine.request import MECHANISMS
from frankly_protocol.audit import Claim, level_for
from frankly_protocol.blocks import Block
from frankly_protocol.clock import FixedClock
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import Mechanism, columns
from frankly_sdk import Policy
from frankly_sdk.testing import open_client
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store import unrecorded
from frankly_server.store.survey_states import MAIN
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.drafting import draft_blocks
from numpy.typing import NDArray

from tests.contract.cases import CASES, PEOPLE, file_of, slug
from tests.contract.conftest import NOW, ORIGIN, InProcess
from tests.frankly_protocol.audit.definitions import needed
from tests.migrated import opened


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """One server for all cases."""
    settings = Settings(home=tmp_path_factory.mktemp("every-mechanism"), public_url=ORIGIN)
    with closing(opened(settings, FixedClock(NOW))) as server:
        yield server


def test_no_mechanism_is_left_out() -> None:
    assert {name.partition(" ")[0] for name in CASES} == set(MECHANISMS)


@pytest.mark.parametrize("name", CASES)
def test_from_a_survey_file_to_an_estimate(name: str, services: Services, tmp_path: Path) -> None:
    services.surveys.apply(parse_definition(file_of(name)))
    published = services.surveys.publish(slug(name))
    transport = InProcess(create_app(services.settings, services=services).test_client())
    sizes, block = CASES[name]["choices"], None
    for i in range(PEOPLE):
        # Reports of some families rule out answers, so an app must name such a survey before it can
        # answer.
        policy = Policy(cap="4", final_surveys=(published.survey_id,))
        options: dict[str, Any] = {
            "policy": policy,
            "transport": transport,
            "clock": FixedClock(NOW),
        }
        with open_client(
            published.link, tmp_path / f"{i}.db", sleep=lambda _s: None, spread_s=0, **options
        ) as client:
            block = client.survey.document.blocks[0]
            answers = {f"q{k}": f"c{(i + k) % size}" for k, size in enumerate(sizes)}
            assert client.answer(answers).code == "accepted"
    assert block is not None
    check_requested_promises(block, CASES[name])
    services.releasing.release()
    estimates = services.analysis.estimates(published.survey_id)
    assert estimates["n"] == PEOPLE
    symbols = [json.loads(body)["y"][0] for body in transport.posted]
    expected = margins(decoded(block, symbols), sizes)
    for question, target, identifiable in zip(
        estimates["questions"], expected, margins_known(block, sizes), strict=True
    ):
        rows = {row["choice"]: row["estimate"] for row in question["rows"]}
        known = {name: value for name, value in rows.items() if value is not None}
        assert known == pytest.approx({f"c{k}": float(target[k]) for k in identifiable}, abs=1e-9)
        assert len(rows) == len(target)


def check_requested_promises(block: Block, request: Mapping[str, Any]) -> None:
    """Check from the definitions, without the verifier, that levels are at most the requested levels."""
    assert block.promises[0].claim.notion == request["notion"]
    for promise in block.promises:
        for field, ratio in needed(block.numbered_mechanism, promise.claim).items():
            level = getattr(promise.claim, field)
            assert level is None or (ratio is not None and ratio <= Fraction(*level))
    stated, requested = stated_levels(block.promises[0].claim), requested_levels(request)
    assert stated.keys() == requested.keys()
    assert all(stated[name] <= requested[name] for name in requested)


def requested_levels(request: Mapping[str, Any]) -> dict[str, Fraction]:
    """Return every finite level of a request by its name in a survey file."""

    def ratio(nats: str) -> Fraction:
        return Fraction(*level_for(Fraction(nats)))

    names = ("epsilon", "epsilon_low", "epsilon_high")
    levels = {name: ratio(request[name]) for name in names if name in request}
    levels |= {name: Fraction(request[name]) for name in ("delta", "dpv") if name in request}
    for x, row in enumerate(request.get("epsilons", ())):
        levels |= {f"epsilons {x} {z}": ratio(nats) for z, nats in enumerate(row) if nats != "inf"}
    return levels


def stated_levels(claim: Claim) -> dict[str, Fraction]:
    """Return every finite level of a claim by its name in a survey file."""
    if claim.levels is not None and claim.level is not None:
        return {
            f"epsilons {x} {z}": Fraction(*claim.level) * Fraction(*ratio)
            for x, row in enumerate(claim.levels)
            for z, ratio in enumerate(row)
            if ratio is not None
        }
    name = {"alip": "epsilon_high", "dpv": "dpv"}.get(claim.notion, "epsilon")
    levels = {name: claim.level, "epsilon_low": claim.low_level, "delta": claim.delta}
    return {name: Fraction(*level) for name, level in levels.items() if level is not None}


def matrix(mechanism: Mechanism) -> tuple[NDArray[np.float64], list[Any]]:
    """Return Q(y|x) with row = truth, and the symbols in the order of its columns."""
    by_symbol = columns(mechanism)
    return np.array([[float(v) for v in column] for column in by_symbol.values()]).T, list(
        by_symbol
    )


def decoder(block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64], list[Any]]:
    """Return the decoder V = (QᵀD₀⁻¹Q)⁺QᵀD₀⁻¹ (spec 8.1, whose Q is the transpose), then Q and the
    symbols."""
    Q, symbols = matrix(block.numbered_mechanism)
    p = np.array(block.design_prior) / sum(block.design_prior)
    if block.mechanism.kind == "unary":  # bit by bit: (1{x in y} − flip)/(keep − flip)
        ones = np.array([[y >> x & 1 for y in symbols] for x in range(len(p))], dtype=float)
        chances = Q @ ones.T
        return (ones - chances[0, 1]) / (chances[0, 0] - chances[0, 1]), Q, symbols
    weighted = Q / (p @ Q)
    return np.linalg.pinv(weighted @ Q.T, rcond=1e-10) @ weighted, Q, symbols


def decoded(block: Block, symbols: list[Any]) -> NDArray[np.float64]:
    """Estimate the shares of the joint answers from the symbols that were sent."""
    V, _, names = decoder(block)
    places = {json.dumps(name): y for y, name in enumerate(names)}
    of_sets = block.mechanism.kind in ("unary", "subset")  # hexadecimal on the wire
    sent = [int(symbol, 16) if of_sets else symbol for symbol in symbols]
    counts = np.bincount([places[json.dumps(symbol)] for symbol in sent], minlength=len(names))
    shares = np.asarray(V @ counts / len(symbols))
    # Bits of a unary report are decoded separately; adding the same correction to each share makes
    # the sum 1.
    return shares + (1 - shares.sum()) / len(shares) if block.mechanism.kind == "unary" else shares


def margins(shares: NDArray[np.float64], sizes: list[int]) -> list[NDArray[np.float64]]:
    """Return the shares of each question's choices."""
    table = shares.reshape(sizes)
    return [
        table.sum(axis=tuple(j for j in range(len(sizes)) if j != i)) for i in range(len(sizes))
    ]


def margins_known(block: Block, sizes: list[int]) -> list[list[int]]:
    """Return each question's identifiable choices: those whose indicator lies in the span of the
    report columns."""
    _, Q, _ = decoder(block)
    rank = np.linalg.matrix_rank(Q, tol=1e-9)
    identifiable = []
    for i, size in enumerate(sizes):
        index = np.indices(sizes)[i].ravel()
        rows = [(index == k).astype(float) for k in range(size)]
        identifiable.append(
            [
                k
                for k, row in enumerate(rows)
                if np.linalg.matrix_rank(np.column_stack([Q, row]), tol=1e-9) == rank
            ]
        )
    return identifiable


@pytest.mark.parametrize(
    "given",
    [
        {"mechanism": "mangat", "notion": "dpv", "dpv": "0.45", "joint": [[1013, 487]], "choices": [2]},
        {"mechanism": "super-binary-mangat", "notion": "dpv", "dpv": "0.5", "sensitive": "c2",
         "joint": [[700, 60, 140, 100]], "choices": [4]},
    ],
    ids=["mangat", "super-binary-mangat"],
)  # fmt: skip
def test_mechanisms_without_a_finite_level_are_refused(
    given: dict[str, Any], services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By erratum 9.2, a Mangat model has ε = ∞ for the answer; its degree of violation does not bound ε."""
    name = f"{given['mechanism']} alone"
    monkeypatch.setitem(
        CASES, name, {key: value for key, value in given.items() if key != "mechanism"}
    )
    definition = parse_definition(file_of(name))
    with pytest.raises(InvalidInput) as not_applied:
        services.surveys.apply(definition)
    services.surveys.create(definition, MAIN, lambda _: unrecorded)
    with pytest.raises((InvalidInput, DocumentRejected)) as refused:
        services.surveys.publish(slug(name))
    assert (not_applied.value.code, not_applied.value.field) == ("budget_exceeded", "budget")
    assert (refused.value.code, refused.value.field) == ("budget_exceeded", "budget")


OWN: list[tuple[dict[str, Any], str, str]] = [
    (
        {"p00": "0.7", "p11": "0.6", "epsilon": "0.1"},
        "mechanism_not_certified",
        "blocks[0].mechanism",
    ),
    ({"p00": "1.7", "p11": "0.6"}, "field_type", "blocks[0].p00"),
    ({"p00": "0.7"}, "field_missing", "blocks[0].p11"),
    ({"p00": "many", "p11": "0.6"}, "field_type", "blocks[0].p00"),
    ({"alpha": "nan"}, "eps_not_finite", "blocks[0].alpha"),
    ({"region": "some"}, "unsupported", "blocks[0].region"),
]


@pytest.mark.parametrize(("given", "code", "field"), OWN, ids=range(len(OWN)))
def test_invalid_parameters_are_named(
    given: dict[str, Any], code: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        CASES, "binary badly", {"notion": "ldp", "epsilon": "1", "choices": [2], **given}
    )
    with pytest.raises(InvalidInput) as refused:
        draft_blocks(parse_definition(file_of("binary badly")))
    assert (refused.value.code, refused.value.field) == (code, field)
