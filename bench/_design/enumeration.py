# SPDX-License-Identifier: Apache-2.0
"""Optima by the papers' method: enumerate vertices of a polytope in floats, compare or mix them.

`capped` runs it in a subprocess with a time limit. Priors are P(s, x) as floats, shape (c, a).
"""

import itertools
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import cdd
import numpy as np
from frankly_server.design import Prior
from numpy.typing import NDArray
from scipy.optimize import linprog

FloatArray = NDArray[np.float64]

CAP_S = 120.0
_START_S = 5.0
_BLOCK = 10_000


class EnumerationError(Exception):
    """Rounding errors: cdd failed, or the prior is not a mixture of its vertices (erratum 9.17)."""


@dataclass(frozen=True)
class Optimum:
    """I(X; Y) of the best mechanism, in nats, and the number of enumerated vertices."""

    information: float
    vertices: int


@dataclass(frozen=True)
class Timed:
    """Outcome of the enumeration's subprocess; no optimum if it was stopped at the cap or failed (`trouble`)."""

    optimum: Optimum | None
    seconds: float
    capped: bool
    trouble: str

    @property
    def words(self) -> str:
        """The number of vertices, `stopped`, or the error."""
        if self.optimum:
            return f"{self.optimum.vertices} vertices"
        return "stopped" if self.capped else self.trouble


@dataclass(frozen=True)
class Reports:
    """Reports by their posteriors: `conditional` is P(x | y), shape (a, k), `chance` is P(y), shape (k,)."""

    conditional: FloatArray
    chance: FloatArray


def probabilities(prior: Prior) -> FloatArray:
    """Return P(s, x), shape (secrets, answers)."""
    return np.array(prior.joint, dtype=float) / prior.total


def secret_ldp(joint: FloatArray, epsilon: float) -> Optimum:
    """Maximise I(X; Y) under ε-LDP of the secret, by the vertices of Γ, in a(a − 1) dimensions  [Funnel Thm 2].

    A point of Γ is Q(y|x) of the first a − 1 reports; the last report gets the remainder (eq. 3).
    """
    a = joint.shape[1]
    conditional = joint / joint.sum(axis=1, keepdims=True)
    ratio = np.exp(epsilon)
    alike = [
        ratio * conditional[t] - conditional[s]
        for s, t in itertools.permutations(range(len(conditional)), 2)
    ]
    column = np.vstack([np.eye(a), *alike])  # constraints of a report's column q: column @ q ≥ 0
    first = np.hstack([np.zeros(((a - 1) * len(column), 1)), np.kron(np.eye(a - 1), column)])
    last = np.hstack([column.sum(axis=1, keepdims=True), np.tile(-column, a - 1)])
    points = _vertices(np.vstack([first, last]), equations=0).reshape(-1, a - 1, a)
    shares = joint.sum(axis=0)
    blocks = [points[i : i + _BLOCK] for i in range(0, len(points), _BLOCK)]
    return Optimum(max(float(np.max(_information(part, shares))) for part in blocks), len(points))


def _information(points: FloatArray, shares: FloatArray) -> FloatArray:
    """Return I(X; Y) of points of Γ, shape (n, a − 1, a)."""
    Q = np.concatenate([points, 1 - points.sum(axis=1, keepdims=True)], axis=1).clip(0)
    expected = Q @ shares
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(Q > 0, Q * np.log(Q / expected[..., None]), 0.0)
    return np.asarray((terms @ shares).sum(axis=1))


def lip(joint: FloatArray, low: float, high: float) -> Optimum:
    """Maximise I(X; Y) under −low ≤ ln P(y|s)/P(y) ≤ high: `reports`, then H(X) − H(X|Y)  [Funnel Thm 3, eq. 13-18]."""
    listed, vertices = reports(joint, low, high)
    shares = joint.sum(axis=0)
    return Optimum(
        float(entropies(shares[:, None])[0] - listed.chance @ entropies(listed.conditional)),
        vertices,
    )


def reports(joint: FloatArray, low: float, high: float) -> tuple[Reports, int]:
    """Return the reports that minimise H(X|Y), and the number of vertices of Δ.

    [Funnel eq. 11, 13-15; Lift eq. 25-26]
    """
    return mixed(delta(joint, joint.sum(axis=1), low, high), joint.sum(axis=0))


def delta(joint: FloatArray, masses: FloatArray, low: float, high: float) -> FloatArray:
    """Return the vertices of Δ, shape (M, a): distributions v of X with e^−low ≤ Σ_x P(s|x) v_x / P(s) ≤ e^high.

    Rows are divided by P(s), because unscaled rows make cdd lose vertices or abort (erratum 9.17).
    `masses` is P(s) over all answers; `joint` may contain only some of the answers.
    """
    lift = joint / joint.sum(axis=0) / masses[:, None]
    a = joint.shape[1]
    rows = [
        np.hstack([[[-1.0]], np.ones((1, a))]),
        np.hstack([np.zeros((a, 1)), np.eye(a)]),
        np.hstack([np.full((len(lift), 1), -np.exp(-low)), lift]),
        np.hstack([np.full((len(lift), 1), np.exp(high)), -lift]),
    ]
    return _vertices(np.vstack(rows), equations=1).clip(0)


def mixed(points: FloatArray, shares: FloatArray) -> tuple[Reports, int]:
    """Minimise Σ α_i H(v_i) over α ≥ 0 with Σ α_i v_i = P(X); the points v have shape (M, a)."""
    solution = linprog(
        entropies(points.T), A_eq=points.T, b_eq=shares, bounds=(0, None), method="highs"
    )
    if solution.status != 0:
        raise EnumerationError(f"the programme over {len(points)} vertices: {solution.message}")
    used = solution.x > 0
    return Reports(points[used].T, solution.x[used]), len(points)


def entropies(columns: FloatArray) -> FloatArray:
    """Return the entropy H of each column in nats, shape (k,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(-np.where(columns > 0, columns * np.log(columns), 0.0).sum(axis=0))


def _vertices(rows: FloatArray, equations: int) -> FloatArray:
    """Return the vertices of {x : b + A x ≥ 0}, rows [b, A]; the first `equations` rows are = 0."""
    try:
        matrix = cdd.matrix_from_array(
            rows.tolist(), rep_type=cdd.RepType.INEQUALITY, lin_set=set(range(equations))
        )
        generators = cdd.copy_generators(cdd.polyhedron_from_matrix(matrix)).array
    except RuntimeError as error:
        raise EnumerationError(str(error)) from error
    points = np.array([row[1:] for row in generators if row[0] == 1])
    if not len(points):
        raise EnumerationError("no vertices")
    return points


def capped(notion: str, prior: Prior, epsilon: float, cap_s: float = CAP_S) -> Timed:
    """Enumerate for `secret-ldp` or `lip` in a subprocess that is stopped after `cap_s` seconds."""
    body = json.dumps({"notion": notion, "joint": prior.joint, "epsilon": epsilon})
    command = [sys.executable, "-m", "_design.enumeration"]
    folder = Path(__file__).resolve().parents[1]
    patience = cap_s + _START_S  # its imports are not counted
    start = time.perf_counter()
    try:
        process = subprocess.run(
            command,
            input=body,
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
            timeout=patience,
        )
    except subprocess.TimeoutExpired:
        return Timed(None, cap_s, capped=True, trouble="")
    if process.returncode:
        error_line = process.stderr.strip().splitlines()[-1:] or [f"exit {process.returncode}"]
        return Timed(None, time.perf_counter() - start, capped=False, trouble=error_line[0])
    answer = json.loads(process.stdout)
    if answer["trouble"]:
        return Timed(None, answer["seconds"], capped=False, trouble=answer["trouble"])
    optimum = Optimum(answer["information"], answer["vertices"])
    return Timed(
        optimum, min(answer["seconds"], cap_s), capped=answer["seconds"] > cap_s, trouble=""
    )


def _answer() -> None:
    question = json.load(sys.stdin)
    joint = np.array(question["joint"], dtype=float)
    joint /= joint.sum()
    epsilon = question["epsilon"]
    start = time.perf_counter()
    body: dict[str, float | str] = {"trouble": ""}
    try:
        outcome = (
            secret_ldp(joint, epsilon)
            if question["notion"] == "secret-ldp"
            else lip(joint, epsilon, epsilon)
        )
        body |= {"information": outcome.information, "vertices": outcome.vertices}
    except EnumerationError as error:
        body["trouble"] = str(error)
    print(json.dumps(body | {"seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    _answer()
