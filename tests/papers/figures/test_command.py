# SPDX-License-Identifier: Apache-2.0
"""Command `python -m papers`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from frankly_server.cli import front

from papers.__main__ import reproduce
from tests.frankly_server.cli.conftest import Done

Papers = Callable[..., Done]


@pytest.fixture
def papers(capsys: pytest.CaptureFixture[str]) -> Papers:
    """Run `python -m papers` with some arguments."""

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        code = front.run([str(argument) for argument in arguments], reproduce, "python -m papers")
        output = capsys.readouterr()
        return Done(code, output.out, output.err)

    return run


def test_a_figure_is_written_and_printed(papers: Papers, tmp_path: Path) -> None:
    run = papers("thesis-6.1", "--out", tmp_path / "new" / "folder")
    assert run.code == 0
    assert "g: paper -9.508" in run.out
    names = sorted(file.name for file in (tmp_path / "new" / "folder").iterdir())
    assert names == ["thesis-6.1.csv", "thesis-6.1.svg"]
    assert "thesis-6.1: " in run.out


def test_a_timed_figure_has_its_seconds_beside_it(papers: Papers, tmp_path: Path) -> None:
    run = papers("funnel-3", "--quick", "--draws", "1", "--out", tmp_path, "--json")
    assert run.code == 0
    (figure,) = run.json["figures"]
    assert [Path(name).name for name in figure["files"]] == [
        "funnel-3.csv",
        "funnel-3.svg",
        "funnel-3.seconds.csv",
    ]
    assert "1 random distributions" in (tmp_path / "funnel-3.csv").read_text()
    assert {"words", "paper", "tolerance", "ours", "holds", "expected"} == set(figure["checks"][0])
    assert "funnel-3: ε = 0.5" in run.err


def test_a_figure_on_a_file_of_people(papers: Papers, tmp_path: Path, people: Path) -> None:
    run = papers("lift-7", "--quick", "--adult", people, "--out", tmp_path)
    assert run.code == 0
    assert (tmp_path / "lift-7.svg").read_text().startswith("<svg")


def test_the_list(papers: Papers) -> None:
    listed = papers("--list", "--json").json["figures"]
    assert len(listed) == 33
    assert {figure["id"] for figure in listed if figure["adult"]} == {
        "funnel-6", "funnel-9", "robust-2", "lift-3", "lift-5", "lift-7", "lift-9", "lift-12",
    }  # fmt: skip
    assert "thesis-6.3" in papers("--list").out


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        ([], 2, "usage"),
        (["lift-99"], 2, "usage"),
        (["lift-3", "--adult", "none.csv"], 3, "field_missing"),
        (["lift-2", "--draws", "0"], 3, "field_type"),
        (["lift-2", "--draws", "many"], 2, "usage"),
        (["thesis-4.1", "--out", "/proc/nowhere"], 2, "usage"),
    ],
)
def test_impossible_requests_are_refused(
    papers: Papers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    run = papers(*arguments, "--json")
    assert (run.code, run.problem["code"]) == (code, problem)
    assert list(tmp_path.iterdir()) == []


def test_the_default_place_of_the_data_is_used(
    papers: Papers, tmp_path: Path, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, data = tmp_path / "main", tmp_path / "shared" / "data"
    checkout.mkdir()
    data.mkdir(parents=True)
    monkeypatch.chdir(checkout)
    assert papers("lift-3", "--quick").code == 3
    (data / "adult.csv").write_bytes(people.read_bytes())
    assert papers("lift-3", "--quick").code == 0
    assert (checkout / "lift-3.csv").is_file()
