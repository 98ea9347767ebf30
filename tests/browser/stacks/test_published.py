# SPDX-License-Identifier: Apache-2.0
"""The program that tries the adapter on published forms."""

import json
from pathlib import Path

import pytest

from tests.browser.stacks.conftest import EXAMPLES
from tests.browser.stacks.published import main


def test_forms_and_their_questions_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    form = json.loads((EXAMPLES / "surveyjs" / "form.json").read_text("utf-8"))
    texts = {"elements": [{"type": "text", "name": name} for name in "abc"]}
    small = {"elements": [{"type": "boolean", "name": "a"}]}
    for name, one in (("example", form), ("texts", texts), ("small", small)):
        (tmp_path / f"{name}.json").write_text(json.dumps(one), "utf-8")
    main(tmp_path)
    lines = [line for line in capsys.readouterr().out.splitlines() if "[info" not in line]
    assert lines[:4] == [
        "example.json sent {}",
        "texts.json nothing to protect {}",
        "2 forms: {'sent': 1, 'nothing to protect': 1}",
        "7 questions",
    ]
    assert "radiogroup: 1 of 1 protected" in lines
    assert "comment: 0 of 1 protected" in lines
