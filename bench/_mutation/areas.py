# SPDX-License-Identifier: Apache-2.0
"""Areas that are mutated: their files, the tests of each, and the size of the sample.

A mutant belongs to the first part that matches its file and function. Its tests are first those
that mirror the file, then other tests of the file. They run on SQLite first; if `on_postgresql` is
set for a part, a surviving mutant is also run on PostgreSQL.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from _mutation import javascript_mutants, python_mutants
from _mutation.mutant import Mutant, ordered

_PROTOCOL, _SDK, _SERVER = (
    "shared/frankly_protocol",
    "client_sdk/frankly_sdk",
    "server/frankly_server",
)
_DESIGN = "design/frankly_design"
_BROWSER = "client_sdk/browser/src"
_TESTS = Path(__file__).resolve().parents[2] / "tests"


@cache  # read once, so that a test written during a run does not affect it
def _files(tests: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for short in tests.split():
        name = re.sub(r"^(design|server|sdk)/", r"frankly_\1/", short)
        pattern = f"{name[:-1]}test_*.py" if name.endswith("/*") else f"{name}.py"
        found |= dict.fromkeys(sorted(map(str, _TESTS.glob(pattern))))
    return tuple(str(Path(name).relative_to(_TESTS.parent)) for name in found)


@dataclass(frozen=True, slots=True)
class Part:
    """Files and their tests.

    files : names without suffix, in `folder`. tests : files below `tests/`, nearest first.
    functions : pattern of the part's qualified names, empty for all. on_postgresql : True if tests
        on PostgreSQL run too.
    """

    folder: str
    files: str
    tests: str
    functions: str = ""
    on_postgresql: bool = False

    def paths(self) -> list[str]:
        """Return the files from the top of the repository."""
        suffix = ".js" if self.folder == _BROWSER else ".py"
        return [f"{self.folder}/{name}{suffix}" for name in self.files.split()]

    def test_files(self) -> list[str]:
        """Return the test files from the top of the repository; ``folder/*`` is a whole folder."""
        return list(_files(self.tests))

    def has(self, mutant: Mutant) -> bool:
        """Return True if a mutant belongs here."""
        return mutant.path in self.paths() and (
            not self.functions or re.search(self.functions, mutant.function) is not None
        )


BLIND = frozenset({"tests/browser/sdk/test_pages.py::test_the_docs_name_the_hashes"})
"""Tests that fail on any change of a file's bytes; they would kill every mutant."""


@dataclass(frozen=True, slots=True)
class Area:
    """A stratum of the sample.

    most : number of mutants in the whole sample. is_strict : True if every survivor has to be
    equivalent; none may be merely harmless.
    """

    name: str
    most: int
    parts: tuple[Part, ...]
    is_strict: bool = False


# Tests by subject; `design/` stands for `frankly_design/`, `server/` for `frankly_server/`, `sdk/` for `frankly_sdk/`.
_SDK_TESTS = "sdk/*"
_PROTOCOL_TESTS = (
    "frankly_protocol/* frankly_protocol/audit/* sdk/test_acceptance vectors/test_vectors"
)
_ACCOUNTS = (
    "server/accounts/* server/web/admin/test_security server/web/admin/test_second_factor_pages"
)
_ROLES = f"server/keys/test_access server/web/test_routes server/web/admin/test_matrix {_ACCOUNTS}"
_MANAGEMENT = (
    "server/web/management/* server/web/admin/test_overview server/web/admin/test_invitations "
    "server/web/admin/test_stale_people"
)
_KEYS = (
    "server/keys/* server/store/test_backup server/cli/test_keys server/cli/test_keys_rotate "
    "server/cli/test_keeping"
)
_REPORTS = (
    "server/intake/* server/surveys/test_tokens server/surveys/test_survey_state server/web/test_receiving "
    "server/web/test_reports"
)
_STORE = (
    "server/store/* server/intake/test_intake server/surveys/test_survey_state server/surveys/test_surveys "
    "server/log/test_service server/web/admin/test_interleaving"
)
_ERASE = (
    "server/surveys/test_erase server/cli/test_keeping server/cli/test_audit_trail "
    "server/store/test_pool faults/server/test_erased_bytes"
)
_PAGES = " ".join(
    f"browser/sdk/test_{name}"
    for name in (
        "vectors same_as_python trust budget delivery report_level delta memory device_rules parts invitations texts "
        "pages hosted work"
    ).split()
)
_ESTIMATE = {
    "anchors": "anchors",
    "chernoff": "chernoff target_ends",
    "completion effects": "completion effects",
    "denial": "denial",
    "estimator": "estimator figures",
    "figures": "figures target_ends flags estimator intervals margins",
    "flags": "flags target_ends figures",
    "identifiable": "identifiable figures",
    "inputs": "inputs estimator",
    "intervals": "intervals chernoff figures",
    "margins": "margins figures estimator",
    "planner": "planner planner_corrected",
    "poisoning": "poisoning estimator",
    "pooling": "pooling estimator",
    "ratios": "ratios",
    "split_plan": "split_plan",
    "source_flags": "source_flags",
    "split_test": "split_test",
    "sure_counts": "sure_counts",
    "target_ends": "target_ends figures",
    "validity": "validity",
    "wave_plan": "wave_plan",
    "worst_case": "worst_case target_ends",
}
"""Files of `estimate/`, and the tests in `estimate/` of each."""
_KINDS = {
    "decoder product kronecker listed dense": "decoder kinds kronecker joint",
    "evidence likelihood projection": "evidence share_moments likelihood kinds",
    "scores": "scores",
    "joint registry": "joint sets",
    "set_fit set_law sets set_counts set_kind unary subset": "kinds sets joint",
    "set_figures": "set_figures",
    "form parts": "parts",
    "kind": "kinds joint",
}
"""Files of `kinds/`, and the tests in `kinds/` of each."""

AREAS: tuple[Area, ...] = (
    Area(
        "acceptance",
        66,
        (
            Part(
                _SDK, "_trusted _opening _logged link _checks", f"{_SDK_TESTS} vectors/test_vectors"
            ),
            Part(_PROTOCOL, "documents blocks promises questions", _PROTOCOL_TESTS),
        ),
        is_strict=True,
    ),
    Area(
        "trust",
        70,
        (
            Part(
                f"{_PROTOCOL}/trust",
                "chain keys merkle notes proof tokens",
                "frankly_protocol/trust/* sdk/test_trust_attacks sdk/test_other_servers vectors/test_vectors "
                "server/intake/test_tokens server/log/*",
            ),
            Part(_PROTOCOL, "envelope canonical schema", _PROTOCOL_TESTS),
            Part(
                f"{_PROTOCOL}/audit",
                "notions ratios sets products claims work units bounds kinds",
                f"{_PROTOCOL_TESTS} browser/sdk/test_work",
            ),
            Part(
                f"{_PROTOCOL}/audit/declared",
                "answer belief faults notion secret",
                f"{_PROTOCOL_TESTS} browser/sdk/test_work",
            ),
        ),
    ),
    Area(
        "ledger",
        52,
        (
            Part(
                f"{_PROTOCOL}/audit", "report", f"{_PROTOCOL_TESTS} sdk/test_budget sdk/test_delta"
            ),
            Part(_SDK, "policy _sealing", _SDK_TESTS),
            Part(f"{_PROTOCOL}/explanation", "budget", _SDK_TESTS),
            Part(
                _SDK,
                "store client",
                _SDK_TESTS,
                r"\.(reserve|spent|budget|_merge)|^_charge|^_texts?$",
            ),
        ),
        is_strict=True,
    ),
    Area(
        "erasure",
        44,
        (
            Part(
                _SDK,
                "_database store",
                f"{_SDK_TESTS} faults/test_byte_scan faults/test_erasure",
                r"overwrit|_chunks|_has_bytes|close_answer|Database\.(run|transaction|close)",
            ),
            Part(
                f"{_SERVER}/store",
                "reports days counts batches database",
                f"{_ERASE} server/store/test_counts server/store/test_releases",
                r"erase|forget_deleted",
                on_postgresql=True,
            ),
            Part(f"{_SERVER}/surveys", "surveys", _ERASE, r"erase", on_postgresql=True),
            Part(f"{_SERVER}/cli", "survey", f"{_ERASE} server/cli/test_survey", r"erase"),
            Part(_SDK, "delivery", _SDK_TESTS, r"^_judge|^_body|\._once|\._deliver"),
        ),
        is_strict=True,
    ),
    Area(
        "roles",
        52,
        (
            Part(f"{_SERVER}/accounts", "roles", _ROLES),
            Part(f"{_SERVER}/web", "auth security", f"{_ROLES} server/web/test_closed_doors"),
            Part(f"{_SERVER}/keys", "access", _ROLES),
            Part(f"{_SERVER}/store", "api_keys organisations", _ROLES),
            Part(f"{_SERVER}/accounts", "service", _ROLES, r"role|owner|disable|create|_require"),
            Part(f"{_SERVER}/web/admin", "people", f"{_ROLES} server/web/admin/test_interleaving"),
        ),
        is_strict=True,
    ),
    Area(
        "management",
        32,
        (
            Part(f"{_SERVER}/web", "actions opened_survey", _MANAGEMENT),
            Part(
                f"{_SERVER}/web/management",
                "operations organisation publishing survey_file surveys",
                _MANAGEMENT,
            ),
            Part(f"{_SERVER}/keys", "idempotency", _MANAGEMENT),
            Part(f"{_SERVER}/store", "idempotency", _MANAGEMENT, on_postgresql=True),
            Part(f"{_SERVER}/accounts", "actors", _MANAGEMENT),
        ),
    ),
    Area(
        "accounts",
        56,
        (
            Part(
                f"{_SERVER}/accounts",
                "service lockout passwords sessions second_factor passkeys",
                _ACCOUNTS,
            ),
            Part(
                f"{_SERVER}/store",
                "accounts sessions browsers passkeys second_factors",
                f"{_ACCOUNTS} server/store/test_one_row",
            ),
            Part(
                f"{_SERVER}/web/admin",
                "sign_in account",
                f"{_ACCOUNTS} server/web/admin/test_matrix",
            ),
        ),
    ),
    Area(
        "intake",
        56,
        (
            Part(
                f"{_SERVER}/intake", "admission intake invites refusals releasing tokens", _REPORTS
            ),
            Part(
                f"{_SERVER}/web",
                "receiving limits slots reading",
                "server/web/test_receiving server/web/test_limits server/web/test_slots server/web/test_reports "
                "server/web/test_batches server/web/test_garbage server/web/test_integer_edges server/web/test_routes "
                "server/web/test_reading",
            ),
            Part(_PROTOCOL, "report tokens", f"frankly_protocol/* vectors/test_vectors {_REPORTS}"),
        ),
    ),
    Area(
        "store",
        60,
        (
            Part(
                f"{_SERVER}/store",
                "batches counts database days documents engines log partitions releases reports schema statistics "
                "survey_states surveys tokens upsert released_reports migrate",
                _STORE,
                on_postgresql=True,
            ),
            Part(f"{_SERVER}/store", "backup", "server/store/test_backup server/cli/test_keeping"),
            Part(
                f"{_SERVER}/store",
                "jobs webhooks audit",
                "server/store/test_one_row server/surveys/test_webhooks server/surveys/test_outbound "
                "server/accounts/test_accounts",
            ),
        ),
    ),
    Area(
        "keys",
        56,
        (
            Part(
                f"{_SERVER}/keys", "backup_signature durable files keyring rotation status", _KEYS
            ),
            Part(f"{_SERVER}/cli", "keys keys_rotate", _KEYS),
        ),
    ),
    Area(
        "estimate",
        100,
        (
            Part(f"{_DESIGN}/estimate", "scales", "server/analysis/test_scales"),
            *(
                Part(
                    f"{_DESIGN}/estimate",
                    files,
                    " ".join(f"design/estimate/test_{name}" for name in tests.split()),
                )
                for files, tests in _ESTIMATE.items()
            ),
            *(
                Part(
                    f"{_DESIGN}/kinds",
                    files,
                    " ".join(f"design/kinds/test_{name}" for name in tests.split()),
                )
                for files, tests in _KINDS.items()
            ),
        ),
        is_strict=True,
    ),
    Area(
        "sdk",
        56,
        (
            Part(_SDK, "store _database _table _tables", _SDK_TESTS),
            Part(_SDK, "transport _http relay", f"{_SDK_TESTS} faults/test_hostile_servers"),
            Part(_SDK, "client batch answer delivery", _SDK_TESTS),
            Part(f"{_PROTOCOL}/explanation", "explain promised figures", _SDK_TESTS),
            Part(
                f"{_PROTOCOL}/mechanisms",
                "base dense expansion fit lanes numbered product subset unary",
                "frankly_protocol/mechanisms/* frankly_protocol/* frankly_protocol/audit/test_kinds sdk/test_explain",
            ),
            Part(
                f"{_PROTOCOL}/mechanisms/agreement",
                "component cover figures mechanism reading",
                "frankly_protocol/mechanisms/* frankly_protocol/test_asking frankly_protocol/audit/test_kinds",
            ),
        ),
    ),
    Area(
        "browser",
        50,
        (
            Part(_BROWSER, "canonical dsse documents schema keys log opening link", _PAGES),
            Part(_BROWSER, "mechanisms sets ratios rational audit rare delta", _PAGES),
            Part(_BROWSER, "ledger budget guesses promised", _PAGES),
            Part(_BROWSER, "store memory respondents tokens delivery transport client", _PAGES),
            Part(
                _BROWSER,
                "beside verifier hosted shown explain explained_kinds fits words element",
                _PAGES,
            ),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Task:
    """A mutant of the sample, its area, and the part whose tests run on it."""

    area: Area
    part: Part
    mutant: Mutant


def sample(root: Path, seed: int, areas: Iterable[Area] = AREAS) -> list[Task]:
    """Return the sample in the order of its runs; areas alternate."""
    by_area = [list(_of_area(root, area, seed)) for area in areas]
    longest = max(map(len, by_area))
    return [tasks[i] for i in range(longest) for tasks in by_area if i < len(tasks)]


def _of_area(root: Path, area: Area, seed: int) -> Iterator[Task]:
    """Yield the sample of one area: one mutant of each file in turn, at most one per line."""
    queues = [
        [
            Task(area, part, mutant)
            for mutant in ordered(_mutants(root, path), seed)
            if owner(mutant) == (area, part)
        ]
        for part in area.parts
        for path in part.paths()
    ]
    taken: set[tuple[str, str, str]] = set()
    left = area.most
    while left and any(queues):
        for queue in queues:
            task = _next(queue, taken)
            if task is not None and left:
                left -= 1
                yield task


def _next(queue: list[Task], taken: set[tuple[str, str, str]]) -> Task | None:
    while queue:
        task = queue.pop(0)
        line = task.mutant.key[:3]
        if line not in taken:
            taken.add(line)
            return task
    return None


def owner(mutant: Mutant) -> tuple[Area, Part] | None:
    """Return the area and part that a mutant belongs to."""
    for area in AREAS:
        for part in area.parts:
            if part.has(mutant):
                return area, part
    return None


def _mutants(root: Path, path: str) -> list[Mutant]:
    source = (root / path).read_bytes()
    is_javascript = path.endswith(".js")
    return (javascript_mutants.mutants if is_javascript else python_mutants.mutants)(path, source)
