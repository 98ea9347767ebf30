# SPDX-License-Identifier: Apache-2.0
"""The form bench's JSON, of one small form and of figures of every kind."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def test_a_result_is_json(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [str(root / "bench"), *sys.path])
    bench: Any = importlib.import_module("form")
    small = bench._reached("2+2, ε = 2", [2, 2], "2", 1e6)
    of_numpy = bench._row("missed", np.float64(2), "a bound", np.float64(1), 1.05, 0.1)
    monkeypatch.setattr(bench, "measured", lambda *, quick: [small, of_numpy][: 1 + (not quick)])
    for options, holds in (([], False), (["--quick"], True)):
        with pytest.raises(SystemExit) as left:
            bench.main(["--json", *options])
        body = json.loads(capsys.readouterr().out)
        assert (body["bench"], body["holds"], left.value.code) == ("form", holds, int(not holds))
        assert [row["holds"] for row in body["rows"]] == [True, False][: len(body["rows"])]
        assert body["rows"][0]["case"] == "2+2, ε = 2"
