# SPDX-License-Identifier: Apache-2.0
"""Conformance driver: ``python -m frankly_sdk.conformance init|refresh|plan|answer``.

The driver reads one JSON object from standard input and writes one to standard output. If it
refuses, it writes a problem object to standard error and sets the exit status. Conformance tests of
SDKs (docs/conformance.md) use it and can supply the time and the random bits in the input.
"""

import argparse
import base64
import binascii
import json
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from frankly_protocol.canonical import parse_json
from frankly_protocol.clock import Clock, FixedClock, SystemClock, parse_time
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.mechanisms.base import RandomBits
from frankly_protocol.problems import Problem, problem_body
from frankly_protocol.trust import SignedKeys

from frankly_sdk._core import Core, Options
from frankly_sdk._seams import Seams
from frankly_sdk.cli import exit_status
from frankly_sdk.client import Client
from frankly_sdk.errors import StoreError
from frankly_sdk.link import SurveyLink
from frankly_sdk.policy import Policy
from frankly_sdk.receipt import Receipt

_MAX_INPUT = 8 * 2**20
_POLICY = {"cap", "max_ceiling", "allow_unpinned", "require_log", "delta_cap", "final_surveys"}
_FIELDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "init": (frozenset({"store", "link"}), frozenset({"keys", "policy"})),
    "refresh": (frozenset({"store"}), frozenset({"now"})),
    "plan": (frozenset({"store"}), frozenset({"now", "bits"})),
    "answer": (
        frozenset({"store", "answers"}),
        frozenset({"now", "strata", "token", "patience_s", "bits"}),
    ),
}
"""The required and the optional fields of each command."""


def main(
    arguments: Sequence[str] | None = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> int:
    """Run one command and return its exit status.

    0 success, 2 usage, 3 bad input, 4 refused, 5 network, 6 integrity.
    """
    parser = argparse.ArgumentParser(
        "frankly_sdk.conformance", description="Run commands of a conformance suite."
    )
    parser.add_argument("command", choices=sorted(_FIELDS))
    name: str = parser.parse_args(arguments).command
    commands: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
        "init": _init,
        "refresh": _refresh,
        "plan": _plan,
        "answer": _answer,
    }
    try:
        output = commands[name](_read_request(name, (stdin or sys.stdin).read()))
    except FranklyError as error:
        (stderr or sys.stderr).write(json.dumps(_problem(error)) + "\n")
        return exit_status(error)
    (stdout or sys.stdout).write(json.dumps(output) + "\n")
    return 0


def _init(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Write link, policy and shipped keys into the store's folder.

    Nothing is fetched, and an existing store is kept.
    """
    link = SurveyLink.parse(request["link"])
    policy = request.get("policy") or {}
    if not isinstance(policy, dict) or not set(policy) <= _POLICY:
        raise _bad("policy", f"a policy has the fields {', '.join(sorted(_POLICY))}")
    # Checked here too, so that the error names the field of the request.
    if not all(type(policy.get(name, False)) is bool for name in ("allow_unpinned", "require_log")):
        raise _bad("policy", "allow_unpinned and require_log are true or false")
    # Constructed only for validation: an invalid limit is refused now, not at the first answer.
    Policy(**policy)
    if request.get("keys") is not None:
        SignedKeys.read(_keys(request["keys"]))
    folder = _folder(request)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "install.json").write_text(
            json.dumps({"link": request["link"], "policy": policy, "keys": request.get("keys")}),
            encoding="utf-8",
        )
    except OSError:
        raise StoreError("the folder of the store cannot be written") from None
    return {"survey": link.survey, "digest": link.digest}


def _refresh(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Fetch and verify the survey (steps 1 to 10), and try to send sealed reports."""
    with _Install.at(request).open() as client:
        receipts = client.flush(0)
        document = client.survey.document
        return {
            "survey": document.survey,
            "version": document.version,
            "digest": document.digest,
            "signed_by": list(client.survey.signed_by),
            "questions": {name: list(choices) for name, choices in client.survey.questions.items()},
            "explanation": str(client.survey.explain()),
            "receipts": [_receipt(receipt) for receipt in receipts],
        }


def _plan(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Draw what to ask and store it, or return what was drawn before."""
    with _Install.at(request).open() as client:
        plan = client.plan()
        arm = {} if plan.arm is None else {"arm": plan.arm}
        return {"questions": list(plan.questions), "asked": plan.asked, "of": plan.of} | arm


def _answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer once: randomise, seal, send."""
    patience = request.get("patience_s", 0)
    if type(patience) is not int or not 0 <= patience <= 600:
        raise _bad("patience_s", "expected whole seconds from 0 to 600")
    if request.get("token") is not None and not isinstance(request["token"], str):
        raise _bad("token", "expected a text or null")
    with _Install.at(request).open() as client:
        receipt = client.answer(
            request["answers"],
            strata=request.get("strata") or {},
            token=request.get("token"),
            patience_s=patience,
        )
        return _receipt(receipt)


@dataclass(frozen=True, slots=True)
class _Install:
    """The install that `init` wrote, with the time and the random bits of one command."""

    folder: Path
    link: str
    policy: Policy
    keys: bytes | None
    clock: Clock
    randbits: RandomBits | None

    @classmethod
    def at(cls, request: Mapping[str, Any]) -> "_Install":
        """Read the install in the store's folder; raises InvalidInput if there is none."""
        folder = _folder(request)
        try:
            install = json.loads((folder / "install.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise _bad("store", "there is no install here: run init first") from None
        keys = None if install["keys"] is None else _keys(install["keys"])
        randbits = None if request.get("bits") is None else _Bits(request["bits"])
        return cls(
            folder,
            install["link"],
            Policy(**install["policy"]),
            keys,
            _clock(request.get("now")),
            randbits,
        )

    def open(self) -> Client:
        """Open a client with the given time and random bits, and without a random send delay."""
        seams = Seams(clock=self.clock, randbits=self.randbits or secrets.randbits)
        # The suite compares the sent reports; a random delay would only slow it down.
        options = Options(self.link, self.folder / "answers.db", self.policy, self.keys, spread_s=0)
        return Client(Core.open(options, seams))


class _Bits:
    """A source of random bits from a list of pairs [number of bits, value in hex].

    It fails if the list is used up, or if the next draws do not have the requested number of bits
    together.
    """

    def __init__(self, draws: Any) -> None:
        pairs: list[Any] = draws if isinstance(draws, list) else [None]
        if not all(
            isinstance(p, list) and len(p) == 2 and type(p[0]) is int and _is_hex(p[1])
            for p in pairs
        ):
            raise _bad("bits", "expected a list of pairs: number of bits, and their value in hex")
        self._left = [(bits, int(value, 16)) for bits, value in pairs]

    def __call__(self, bits: int) -> int:
        value, missing = 0, bits
        # A long number may be given in pieces, the highest first.
        while missing:
            # The operating system's source also raises OSError; the client converts it to its own
            # error.
            if not self._left or not 0 < self._left[0][0] <= missing:
                raise OSError
            size, piece = self._left.pop(0)
            value, missing = value << size | piece, missing - size
        return value


def _read_request(name: str, text: str) -> Mapping[str, Any]:
    needs, takes = _FIELDS[name]
    # The parser refuses lone surrogates.
    request = parse_json(text.encode("utf-8", "surrogatepass"), max_bytes=_MAX_INPUT)
    if not isinstance(request, dict):
        raise InvalidInput(Problem.JSON_INVALID, "expected one JSON object")
    for key in sorted(needs - set(request)):
        raise InvalidInput(Problem.FIELD_MISSING, "this field is missing", key)
    if not set(request) <= needs | takes:
        raise InvalidInput(
            Problem.FIELD_UNKNOWN, f"this command takes {', '.join(sorted(needs | takes))}"
        )
    return request


def _folder(request: Mapping[str, Any]) -> Path:
    if not isinstance(request["store"], str) or not request["store"] or "\x00" in request["store"]:
        raise _bad("store", "expected the path of a folder")
    return Path(request["store"])


def _keys(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise _bad("keys", "expected the envelope of a keys document in base64") from None


def _clock(text: Any) -> Clock:
    if text is None:
        return SystemClock()
    try:
        return FixedClock(parse_time(text if isinstance(text, str) else ""))
    except ValueError as error:
        raise _bad("now", str(error)) from None


def _is_hex(value: Any) -> bool:
    return (
        isinstance(value, str)
        and bool(value)
        and not value.strip("0123456789abcdef")
        and len(value) <= 4096
    )


def _bad(field: str, detail: str) -> InvalidInput:
    return InvalidInput(Problem.FIELD_TYPE, detail, field)


def _receipt(receipt: Receipt) -> Mapping[str, Any]:
    return {"status": receipt.status, "code": receipt.code}


def _problem(error: FranklyError) -> Mapping[str, Any]:
    """Return the problem object.

    Codes that only devices use are not in the server's table and get status 422.
    """
    problem = Problem.from_code(error.code)
    if problem is not None:
        return problem_body(problem, error.detail, error.field)
    return {
        "type": f"urn:frankly:problem:{error.code}",
        "title": "The device refused.",
        "status": 422,
        "code": error.code,
        "detail": error.detail,
        "field": error.field,
    }


if __name__ == "__main__":
    sys.exit(main())
