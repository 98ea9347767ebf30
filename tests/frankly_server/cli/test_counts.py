# SPDX-License-Identifier: Apache-2.0
"""Commands `frankly counts verify` and `rebuild`, as an operator uses them."""

from pathlib import Path

from frankly_server.store.counts import counts_by_day, pair_counts

from tests.frankly_server.cli.conftest import Frankly, filled


def test_wrong_counts_are_found_and_rebuilt(ready: Frankly, survey_file: Path, home: Path) -> None:
    survey, document, database = filled(
        ready, survey_file, home, [(i % 2, i % 2) for i in range(6)]
    )
    with database.transaction("release") as tx:
        tx.releases.release(survey, document, 1, "2026-06-02T00:00:00Z", is_over=lambda: False)
    verified = ready("counts", "verify", "--json")
    assert (verified.code, verified.json) == (0, {"surveys": [{"name": "habits", "wrong": 0}]})
    with database.engine.begin() as connection:
        assert connection.execute(pair_counts.update().values(n=99)).rowcount == 2
    verified = ready("counts", "verify", "habits", "--json")
    assert (verified.code, verified.json) == (6, {"surveys": [{"name": "habits", "wrong": 2}]})
    assert ready("counts", "verify").code == 6
    rebuilt = ready("counts", "rebuild", "habits", "--json")
    assert (rebuilt.code, rebuilt.json) == (0, {"surveys": [{"name": "habits", "reports": 6}]})
    assert ready("counts", "verify").code == 0
    assert ready("counts", "rebuild").code == 0
    with database.engine.begin() as connection:
        assert connection.execute(counts_by_day.update().values(n=99)).rowcount == 4
    verified = ready("counts", "verify", "--json")
    assert (verified.code, verified.json) == (6, {"surveys": [{"name": "habits", "wrong": 4}]})
    assert ready("counts", "rebuild").code == 0
    assert ready("counts", "verify").code == 0
    database.close()


def test_an_unknown_survey_is_refused(ready: Frankly) -> None:
    for verb in ("verify", "rebuild"):
        refused = ready("counts", verb, "nobody", "--json")
        assert (refused.code, refused.problem["code"], refused.problem["field"]) == (
            3,
            "survey_unknown",
            "NAME",
        )
