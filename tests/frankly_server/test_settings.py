# SPDX-License-Identifier: Apache-2.0
"""Settings: typed, bounded and frozen; unknown settings are refused and secrets are never shown."""

import re
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.settings import Settings
from pydantic import ValidationError


def test_defaults_need_nothing(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert settings.store_url() == f"sqlite:///{tmp_path}/frankly.db"
    assert settings.keys_folder == tmp_path / "keys"


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRANKLY_DATABASE_URL", "postgresql://me:canary@db/frankly")
    monkeypatch.setenv("FRANKLY_PUBLIC_URL", "https://surveys.example.org/")
    monkeypatch.setenv("FRANKLY_PORT", "9000")
    monkeypatch.setenv("FRANKLY_API_KEY", "the analyst's, not ours")
    settings = Settings.load()
    assert settings.store_url() == "postgresql://me:canary@db/frankly"
    assert (settings.public_url, settings.port) == ("https://surveys.example.org", 9000)
    assert "canary" not in repr(settings) + str(settings.model_dump())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FRANKLY_DATABSE_URL", "canary"),
        ("FRANKLY_PORT", "canary"),
        ("FRANKLY_PORT", "65536"),
        ("FRANKLY_PORT", "-1"),
        ("FRANKLY_THREADS", "0"),
        ("FRANKLY_BODY_LIMIT_BYTES", "99999999999"),
        ("FRANKLY_BATCH_LIMIT", "0"),
        ("FRANKLY_PUBLIC_URL", "canary"),
        ("FRANKLY_PUBLIC_URL", "ftp://canary"),
        ("FRANKLY_PUBLIC_URL", "https://me:canary@host"),
        *(
            ("FRANKLY_PUBLIC_URL", url)
            for url in (
                *("https://host?canary=1", "https://host#canary", "https://", "https://host//"),
                *(
                    "https://host/canary",
                    "https://host/..",
                    "https://canary/../..",
                    "https://host\\canary",
                ),
                *("https://Canary.example", "HTTPS://canary.example", "https://canary.example:443"),
                *(
                    "http://canary:80",
                    "https://canary:0",
                    "https://canary:70000",
                    "https://canary:8a",
                ),
                *("https://canary:", "https://canary..example", "https://bücher-canary.example"),
                *(
                    "https://1.2.3",
                    "https://canary.1",
                    "https://01.2.3.4",
                    "https://[::1",
                    "https://[0:0::1]",
                ),
                *(
                    "https://[::A]",
                    "https://canary .example",
                    " https://canary.example",
                    "https://canary%2e",
                ),
            )
        ),
        ("FRANKLY_DEBUG", "true"),
    ],
)
def test_bad_settings_are_named_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput) as refused:
        Settings.load()
    assert refused.value.code == "unsafe_setting"
    assert refused.value.field == name
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://surveys.example.org",
            "http://localhost:8000",
            "http://127.0.0.1",
            "http://[::1]:8000",
        ),
        *("https://xn--bcher-kva.example", "https://a_b.example:8443", "http://surveys"),
    ],
)
def test_an_address_as_browsers_write_it_is_kept(url: str) -> None:
    for slash in ("", "/"):
        assert Settings(public_url=url + slash).public_url == url


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1


def rows(page: str, heading: str) -> dict[str, str]:
    """Return variable → default, read from the table below this heading."""
    table = page.partition(heading)[2].partition("\n\n|")[2].partition("\n\n")[0]
    defaults_by_name: dict[str, Any] = {}
    for line in table.splitlines()[2:]:
        names, default = line.strip("|").split("|")[:2]
        defaults_by_name |= dict.fromkeys(re.findall(r"`(\w+)`", names), default.strip())
    return defaults_by_name


def test_the_table_of_the_compose_file_is_complete(root: Path) -> None:
    documented = rows(
        (root / "docs" / "settings.md").read_text(encoding="utf-8"), "beside `docker-compose.yml`:"
    )
    text = re.sub(r"(?m)^\s*#.*$", "", (root / "docker-compose.yml").read_text(encoding="utf-8"))
    used = dict(re.findall(r"\$\{([A-Z_]+):([-?][^}]*)\}", text))
    assert set(documented) == set(used)
    defaults = {
        name: "required" if how[0] == "?" else f"`{how[1:]}`" if how[1:] else "none"
        for name, how in used.items()
    }
    assert documented == defaults
