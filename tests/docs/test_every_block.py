# SPDX-License-Identifier: Apache-2.0
"""Fenced blocks of the documentation: each is run, compared with new output, or shown for a reason;
all commands exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from frankly_server.cli import front

from tests.docs.registry import BLOCKS, FOLLOWED
from tools.blocks import Block, blocks, pages

WORDS = re.compile(r"(?<![\w/.-])(?:\.venv/bin/)?frankly(?: (?P<words>[^`\n]+))?")


def all_blocks(root: Path) -> Iterator[tuple[str, Block]]:
    for page in pages(root):
        name = page.relative_to(root).as_posix()
        yield from ((name, block) for block in blocks(page.read_text(encoding="utf-8")))


def fates(name: str, block: Block) -> list[tuple[str, str]]:
    return [
        (page, start) for page, start in BLOCKS if page == name and block.body.startswith(start)
    ]


SECRETS = re.compile(r"> ?\S*(\.pem|\.env)\b|frankly (keys api|tokens) .*>|\btar .*\bkeys")
"""Commands that write a key, a password or invitations with the umask of the shell."""


def unprotected(commands: str) -> list[str]:
    """Return the lines that write a secret before `umask 077` is set."""
    before, found, _ = commands.partition("umask 077")
    return [line for line in (before if found else commands).splitlines() if SECRETS.search(line)]


def test_every_command_that_writes_a_secret_keeps_it_from_other_users(root: Path) -> None:
    texts = {
        f"{name}: {block.body[:40]}": block.body
        for name, block in all_blocks(root)
        if block.language in ("", "sh", "bash")
    }
    compose = (root / "docker-compose.yml").read_text(encoding="utf-8")
    texts["docker-compose.yml"] = compose.partition("\n\n")[0]
    writing = {name: text for name, text in texts.items() if SECRETS.search(text)}
    assert len(writing) == 10
    assert {name: lines for name, text in writing.items() if (lines := unprotected(text))} == {}
    assert unprotected("cat key > root.pem\numask 077") == ["cat key > root.pem"]


def test_every_block_has_one_fate(root: Path) -> None:
    loose = [
        (name, block)
        for name, block in all_blocks(root)
        if block.why is None and name not in FOLLOWED and not block.language.startswith("{")
    ]
    fate_counts = [
        (name, block.body.splitlines()[0], len(fates(name, block))) for name, block in loose
    ]
    assert [(name, first) for name, first, number in fate_counts if number != 1] == [], (
        "add the test that runs it to tests/docs/registry.py"
    )
    named = {fate for name, block in loose for fate in fates(name, block)}
    assert named == BLOCKS.keys(), "these blocks are gone"


def test_no_block_hides_in_another_form(root: Path) -> None:
    """The tests above would miss indented fences, longer fences, tilde fences and indented code."""
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        assert text.count("```") == 2 * len(list(blocks(text))), page.name
        assert not re.search(r"^[ \t]+```|^[ \t]*~~~|^````", text, re.MULTILINE), page.name
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"\n\n {4,}(?![-*] |\d+\. )\S", outside), page.name


@pytest.mark.parametrize(
    "test", sorted({*FOLLOWED.values(), *(fate.test for fate in BLOCKS.values())})
)
def test_the_tests_named_are_there_and_read_the_page(root: Path, test: str) -> None:
    source = (root / test).read_text(encoding="utf-8")
    by_it = [page for page, runner in FOLLOWED.items() if runner == test]
    by_it += [
        page
        for (page, _), fate in BLOCKS.items()
        if fate.test == test and fate.treatment != "shown"
    ]
    for page in by_it:
        assert re.search(rf"\b{Path(page).stem}\b", source), page


def test_blocks_that_are_only_shown_have_a_reason(root: Path) -> None:
    assert all((fate.treatment == "shown") == bool(fate.why) for fate in BLOCKS.values())
    marked = [(name, block) for name, block in all_blocks(root) if block.why is not None]
    assert marked
    for name, block in marked:
        tests = re.findall(r"tests/[\w/]+\.py", str(block.why))
        assert tests, f"{name}: name the test that shows the same result: {block.why}"
        assert all((root / test).is_file() for test in tests), name


def commands(root: Path) -> set[str]:
    """Return the arguments of every `frankly` command on the pages, in blocks and in text."""
    command_texts = set()
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        inside = [
            line
            for block in blocks(text)
            if block.language in ("", "sh", "bash")
            for line in block.commands
        ]
        typed = [
            *inside,
            *re.findall(
                r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
            ),
        ]
        for line in typed:
            if not line.startswith((".venv/bin/frankly ", "frankly ")) and "| frankly " not in line:
                continue
            command_texts |= {
                re.split(r" [|<>#&] ?| \d?>", match["words"] or "")[0]
                for match in WORDS.finditer(line)
            }
    return {command.strip() for command in command_texts}


def unknown(words: str) -> str | None:
    """Return the first unknown argument, or None; `a|b` matches either, `…` matches anything."""
    command: click.Command = front.cli
    for word in shlex.split(words):
        name = word.partition("=")[0].rstrip(".,;:)")
        if name.startswith("--"):
            options = {option for parameter in command.params for option in parameter.opts} | {
                "--help"
            }
            if name not in options and not getattr(command, "ignore_unknown_options", False):
                return name
        elif isinstance(command, click.Group):
            first, *alternatives = name.split("|")
            for verb in (*alternatives, first):
                subcommand = command.get_command(click.Context(command), verb)
                if subcommand is None:
                    return None if verb in ("…", "VERB") else verb
            assert subcommand is not None
            command = subcommand
    return None


def test_every_command_that_a_page_types_exists(root: Path) -> None:
    typed = commands(root)
    assert len(typed) > 60
    assert {arguments: wrong for arguments in sorted(typed) if (wrong := unknown(arguments))} == {}
    assert [
        unknown(arguments) for arguments in ("dance", "keys init --nothing", "keys sign|dance")
    ] == ["dance", "--nothing", "dance"]


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "RELEASING.md"]
)
def test_links_of_pages_that_are_not_in_the_site(root: Path, name: str) -> None:
    text = (root / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", text)
    targets = [
        link.partition("#")[0] for pair in links for link in pair if link and "://" not in link
    ]
    assert [link for link in targets if not (root / link).exists()] == []
    quoted = re.findall(r"`((?:docs|tests|examples|server|shared|requirements)/[\w./-]+)`", text)
    assert [place for place in quoted if not (root / place).exists()] == []
