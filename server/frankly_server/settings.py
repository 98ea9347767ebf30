# SPDX-License-Identifier: Apache-2.0
"""Settings from FRANKLY_* environment variables, read once: typed, range-checked, frozen."""

import os
import re
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self

from frankly_design.requests.faults import Fault, faults_of, invalid
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.report import MAX_REPORT_BYTES
from pydantic import AfterValidator, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

_PREFIX: Final = "FRANKLY_"
_ORIGIN: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]{1,253})(?::(?P<port>[1-9][0-9]{0,4}))?"
)
_USUAL_PORT: Final = {"http": "80", "https": "443"}


def _bare_origin(url: str) -> str:
    """Return an address without its last slash; raise ValueError unless it is a browser's origin.

    Links contain the address, devices refuse links with a path, and passkeys are bound to the
    origin as browsers write it.
    """
    url = url.removesuffix("/")
    found = _ORIGIN.fullmatch(url)
    if found is None or not _is_host(found["host"]):
        raise ValueError(
            "give the server's public address as browsers write it: https:// or http://, the name "
            "in small letters, no path, such as https://surveys.example.org"
        )
    port = found["port"]
    if port is not None and (port == _USUAL_PORT[found["scheme"]] or not 0 < int(port) < 2**16):
        raise ValueError(
            "leave out the port: browsers do not write the usual one, and others end at 65535"
        )
    return url


def _is_host(host: str) -> bool:
    """Return True for a name or an address in the only form that browsers write."""
    try:
        if host.startswith("["):
            return f"[{IPv6Address(host[1:-1])}]" == host
        # Browsers read any name whose last part is a number as an IPv4 address.
        if host.rpartition(".")[2].isdigit():
            return str(IPv4Address(host)) == host
    except ValueError:
        return False
    return all(0 < len(part) < 64 for part in host.split("."))


class Settings(BaseSettings):
    """Settings of one server.

    Unknown FRANKLY_* variables are refused, so that a misspelt variable is not silently ignored.
    """

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    # The analyst's client reads these; the server does not, although the prefix is the same.
    client_variables: ClassVar[frozenset[str]] = frozenset({"FRANKLY_URL", "FRANKLY_API_KEY"})

    home: Path = Field(
        default=Path(".frankly"),
        description="folder of keys, and of the database if it is SQLite; relative to the working directory",
    )
    database_url: SecretStr | None = Field(
        default=None,
        description="`sqlite:///path` or `postgresql+psycopg://user:password@host/name`; "
        "if there is none, `frankly.db` under `FRANKLY_HOME`",
    )
    host: str = Field(default="127.0.0.1", min_length=1, description="address to listen on")
    port: int = Field(
        default=8000, ge=0, le=65535, description="port to listen on; 0 chooses a free one"
    )
    public_url: Annotated[str, AfterValidator(_bare_origin)] = Field(
        default="http://127.0.0.1:8000",
        description="public address of the server, in survey links and documents",
    )
    body_limit_bytes: int = Field(
        default=2 * 2**20, ge=2**10, le=64 * 2**20, description="largest request body"
    )
    report_limit_bytes: int = Field(
        default=MAX_REPORT_BYTES,
        ge=2**10,
        le=MAX_REPORT_BYTES,
        description="largest single report; the format's own limit is the default",
    )
    batch_limit: int = Field(
        default=1000, ge=1, le=10_000, description="largest number of reports in one batch"
    )
    request_timeout_s: float = Field(
        default=30,
        ge=1,
        le=600,
        allow_inf_nan=False,
        description="seconds within which a whole request must have arrived; a later one gets 408",
    )
    threads: int = Field(
        default=8,
        ge=1,
        le=64,
        description="requests served at the same time, by process; signing in uses at most 4 of them for "
        "unknown people and 3 for known ones",
    )
    survey_rate_per_s: float = Field(
        default=2000,
        gt=0,
        le=1e6,
        allow_inf_nan=False,
        description="requests with accepted reports per second, by survey and process; bursts of 10 s",
    )
    source_rate_per_s: float = Field(
        default=200,
        gt=0,
        le=1e6,
        allow_inf_nan=False,
        description="reports per second from one source of a survey, such as a panel, by process; bursts of 10 s; "
        "0.01 is 36 in an hour, one at a time. With a low rate, whoever holds unused tokens of a source can find out "
        "that others of it have just answered",
    )
    key_rate_per_s: float = Field(
        default=20,
        gt=0,
        le=1e6,
        allow_inf_nan=False,
        description="requests with one API key per second, by process",
    )
    metrics_token: SecretStr | None = Field(
        default=None,
        min_length=32,
        description="Bearer token with which Prometheus reads `/metrics`; without it there is no `/metrics`",
    )
    webhook_hosts: str = Field(
        default="",
        max_length=2000,
        pattern=r"^[a-z0-9.,-]*$",
        description="hosts that signed webhooks may be sent to, separated by commas; empty: no webhooks",
    )
    estimates_view: bool = Field(
        default=False, description="write estimates at each release, for the SQL view `v_estimates`"
    )
    backup_days: int = Field(
        default=7,
        ge=0,
        le=3650,
        description="days without `frankly backup create` after which owners see a warning; 0: never",
    )
    debug: bool = Field(
        default=False, description="there is no debug mode: `true` prevents the start"
    )

    @field_validator("metrics_token", mode="before")
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        # A compose file passes an unset variable as an empty text.
        return None if value == "" else value

    @field_validator("debug")
    @classmethod
    def _no_debug(cls, value: bool) -> bool:
        if value:
            raise ValueError("debug would show request bodies; the server does not start with it")
        return value

    @classmethod
    def load(cls) -> Self:
        """Return the settings of the environment.

        Raises InvalidInput(unsafe_setting) with the name of the variable, never its value.
        """
        known = {_PREFIX + name.upper() for name in cls.model_fields} | cls.client_variables
        # Checked here, because pydantic ignores unknown environment variables.
        for variable in sorted(os.environ):
            if variable.upper().startswith(_PREFIX) and variable.upper() not in known:
                raise InvalidInput(
                    Problem.UNSAFE_SETTING,
                    "this setting is not known; check its spelling",
                    variable,
                )
        try:
            return cls()
        except ValidationError as error:
            faults = [
                Fault(Problem.UNSAFE_SETTING, _PREFIX + fault.field.upper(), fault.detail)
                for fault in faults_of(error, Problem.UNSAFE_SETTING)
            ]
            # from None, because a traceback could show the value, such as a database password.
            raise invalid(faults) from None

    def store_url(self) -> str:
        """Return the database URL, which may contain a password: do not log or show it."""
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.home.resolve() / 'frankly.db'}"

    @property
    def webhook_host_list(self) -> frozenset[str]:
        """The hosts of `webhook_hosts`."""
        return frozenset(host for host in self.webhook_hosts.split(",") if host)

    @property
    def keys_folder(self) -> Path:
        """The folder of the key files and the keys document."""
        return self.home / "keys"
