# SPDX-License-Identifier: Apache-2.0
"""Guide docs/models.md, whose code runs as written and prints the outputs that the page shows."""

from pathlib import Path

import pytest
from frankly_server.web.counts_models import SurveyCounts

from tools.blocks import blocks


def test_the_guide_prints_what_it_shows(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    snippet, output = blocks((root / "docs" / "models.md").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    exec(compile(snippet.body, "models.md", "exec"), names)
    assert capsys.readouterr().out.rstrip("\n") == output.body.rstrip("\n")
    from frankly_analyst import models

    chosen = models.fit('smokes ~ C(region, contr.treatment("south"))', names["counts"])  # type: ignore[arg-type]
    assert len(chosen.terms) == 3
    latent = models.fit("smokes ~ region + drinks", names["counts"])  # type: ignore[arg-type]
    assert latent.wald("drinks")[1] == 2


def test_the_example_has_the_servers_format(root: Path) -> None:
    SurveyCounts.model_validate_json((root / "docs" / "examples" / "counts.json").read_text())
