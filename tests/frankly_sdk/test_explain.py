# SPDX-License-Identifier: Apache-2.0
"""The explanation says what is true of the signed numbers, and what it cannot promise."""

from fractions import Fraction
from pathlib import Path

from frankly_sdk.explain import LIMITS

from tests.frankly_protocol.samples import PUBLISHER
from tests.frankly_sdk.fakes import ANSWERS, FakeServer


def test_the_figures_are_those_of_the_weights(tmp_path: Path) -> None:
    server = FakeServer()
    with server.open(tmp_path / "s.db") as client:
        told = client.survey.explain()
    warner, lip = told.blocks
    on = server.document.blocks[0].mechanism.weights[0][0]
    assert (warner.guess, warner.blind) == (Fraction(on, 2**48), Fraction(1, 2))
    assert lip.guess == Fraction(3, 4)  # columns (1, 1/2) and (0, 1/2): (1 + 1/2) / 2
    assert lip.ceiling is None
    for words in ("73.1%", "50.0%", "×2.72", "×1.65", "a made-up table", "no limit", "1.5000 nats", LIMITS):
        assert words in str(told)
    assert told.signed_by == (PUBLISHER.public.key_id,)


def test_what_leaves_is_shown_in_the_very_form_it_takes(tmp_path: Path) -> None:
    server = FakeServer()
    with server.open(tmp_path / "s.db") as client:
        shown = client.survey.explain().leaves
        client.answer(ANSWERS)
    (sent,) = server.posted
    head, _, rest = shown.partition("<32 random hex digits>")
    assert sent.decode().startswith(head)
    assert rest == ',"y":[0–1,0–1],"strata":{},"token":null}'
    assert f"{server.document.report_length} bytes" in str(FakeServer().open(tmp_path / "t.db").survey.explain())
