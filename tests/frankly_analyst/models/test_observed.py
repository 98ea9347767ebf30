# SPDX-License-Identifier: Apache-2.0
"""Arrays of the counts that the server returns: laws, pairs of bits, order of questions, joint mechanisms."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frankly_analyst import Choice, CountedPart, Counts, Factor, Question, Stratum, models
from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.observed import sample_of

YES, NO = Choice("yes", {}, 1.0), Choice("no", {}, 0.0)
DRINKS = Question("drinks", {}, (YES, NO))
SMOKES = Question(
    "smokes", {}, (Choice("never", {}, 0.0), Choice("some", {}, 1.0), Choice("often", {}, 3.0))
)
TWO = Factor("dense", ((1.5, -0.5), (-0.5, 1.5)), (1, 1), ((3, 1), (1, 3)), 4)


def dense(weights: Any) -> Factor:
    """Return a table with the decoder for a uniform prior."""
    law = np.array(weights) / sum(weights[0])
    scaled = law / law.mean(axis=0)
    decoder = np.linalg.pinv(scaled @ law.T) @ scaled
    return Factor(
        "dense",
        tuple(map(tuple, decoder)),
        (1,) * len(law),
        tuple(map(tuple, weights)),
        sum(weights[0]),
    )


THREE = dense([[6, 1, 1], [1, 6, 1], [1, 1, 6]])


def part(
    questions: Any, factors: Any, counts: Any, document: str = "d1", **more: Any
) -> CountedPart:
    rows = [{"region": r} for r in ("north", "south")]
    strata = tuple(
        Stratum(by, int(sum(c)), tuple(map(int, c))) for by, c in zip(rows, counts, strict=False)
    )
    fields: dict[str, Any] = {"kind": "table", "version": 1} | more
    return CountedPart(
        document, fields.pop("version"), 1, "b", questions, fields.pop("kind"), factors,
        sum(s.n for s in strata), 1, strata, **fields,
    )  # fmt: skip


def counts_of(*parts: CountedPart) -> Counts:
    return Counts("s", "A survey", sum(p.n for p in parts), ("region",), (), parts)


ONE = part((DRINKS,), (TWO,), [[300, 212], [250, 300]])


def test_a_model_and_weighted_shares_of_released_counts() -> None:
    counts = counts_of(ONE)
    model = models.fit("drinks ~ region", counts)
    shares = [ONE.shares(s)[0] for s in ONE.strata]
    rows = model.predict([{"region": "north"}, {"region": "south"}]).rows[1::2]
    assert [row.estimate for row in rows] == pytest.approx(shares, abs=1e-9)
    weights = models.poststratify(counts, "drinks", "region", {"north": 3.0, "south": 1.0})
    made = models.weighted_shares(counts, "drinks", weights)
    assert made.rows[0].estimate == pytest.approx(0.75 * (shares[0] or 0) + 0.25 * (shares[1] or 0))
    by = models.weighted_shares(counts, "drinks", by="region")
    assert str(by).startswith("drinks: 1062 reports")
    assert [row.name for row in by.rows][:2] == ["region=north: yes", "region=north: no"]
    change = by.contrast({"region=south: yes": 1, "region=north: yes": -1})
    assert change.estimate == pytest.approx((shares[1] or 0) - (shares[0] or 0))
    errors = [np.sqrt(ONE.covariance(s)[0][0] or 0) for s in ONE.strata]
    assert change.se == pytest.approx(np.hypot(*errors), rel=2e-3)  # n/(n−1) of the total
    assert models.weighted_mean(counts, "drinks").rows[0].estimate == pytest.approx(
        models.weighted_shares(counts, "drinks").rows[0].estimate
    )


def test_versions_are_pooled_and_can_be_chosen() -> None:
    other = part((DRINKS,), (dense([[9, 1], [2, 8]]),), [[90, 80], [70, 100]], "d2", version=2)
    counts = counts_of(ONE, other)
    assert "2 documents" in str(models.fit("drinks ~ region", counts))
    assert models.fit("drinks ~ region", counts, documents=("d1",)).n == ONE.n
    with pytest.raises(InvalidRequest, match="different choices"):
        changed = replace(other, questions=(Question("drinks", {}, (NO, YES)),))
        models.fit("drinks ~ region", counts_of(ONE, changed))


def test_arms_of_one_document_are_pooled_and_can_be_chosen() -> None:
    """Both arms' reports are used, in samples, weights and models; a clear answer is a table that changes nothing."""
    clear = dense([[1, 0], [0, 1]])
    arms = replace(ONE, arm="strong"), part((DRINKS,), (clear,), [[90, 80], [70, 100]], arm="clear")
    counts = counts_of(*arms)
    sample = sample_of(counts, ("drinks",))
    assert [version.name for version in sample.versions] == ["d1 strong", "d1 clear"]
    assert sample.n == arms[0].n + arms[1].n
    model = models.fit("drinks ~ region", counts)
    assert model.n == sample.n
    assert "2 documents or arms" in str(model)
    assert models.fit("drinks ~ region", counts, documents=("d1",)).n == sample.n
    assert models.fit("drinks ~ region", counts, documents=("d1 clear",)).n == arms[1].n
    # As if they were two documents: only the names differ.
    others = counts_of(ONE, replace(arms[1], document="d2", arm=None))
    assert model.beta == pytest.approx(models.fit("drinks ~ region", others).beta)
    for made, other in zip(
        models.weighted_shares(counts, "drinks").rows,
        models.weighted_shares(others, "drinks").rows,
        strict=True,
    ):
        assert (made.estimate, made.se) == pytest.approx((other.estimate, other.se))
    weights = [
        models.poststratify(one, "drinks", "region", {"north": 3.0, "south": 1.0})
        for one in (counts, others)
    ]
    assert weights[0].weights == pytest.approx(weights[1].weights)
    with pytest.raises(InvalidRequest, match="d1 strong and d1 clear have different choices"):
        models.fit("drinks ~ region", counts_of(arms[0], replace(arms[1], questions=(turned(),))))


def turned() -> Question:
    return Question("drinks", {}, (NO, YES))


def test_counts_name_their_arms() -> None:
    arms = replace(ONE, arm="strong"), replace(ONE, arm="clear")
    counts = counts_of(*arms)
    assert counts.part("drinks", arm="clear") == arms[1]
    for wrong in (None, "weak"):
        with pytest.raises(InvalidRequest, match="strong, clear") as caught:
            counts.part("drinks", arm=wrong)
        assert caught.value.field == "arm"
    assert counts_of(arms[0]).part("drinks") == arms[0]
    lines = counts.to_csv().splitlines()
    assert lines[0] == "document,version,arm,questions,region,n,symbol,count"
    assert lines[1] == "d1,1,strong,drinks,north,512,0,300"
    assert list(counts.to_pandas()["arm"]) == ["strong"] * 4 + ["clear"] * 4
    assert "drinks (version 1, arm clear)" in str(counts)
    assert "drinks (version 1, arm strong)" in counts._repr_html_()
    plain = counts_of(ONE)
    assert plain.to_csv().startswith(
        "document,version,questions,region,n,symbol,count\nd1,1,drinks,north,512,"
    )
    assert "drinks (version 1)  region=north" in str(plain)
    assert "arm" not in plain.lines()[0]
    older = replace(ONE, document="d0", version=0)
    assert counts_of(older, *arms).lines()[0]["arm"] is None


def joint_counts() -> np.ndarray:
    return np.array([[60, 41, 37, 52, 33, 65], [45, 62, 51, 40, 44, 39]])


def test_questions_of_a_pair_may_come_in_either_order() -> None:
    pair = part((DRINKS, SMOKES), (TWO, THREE), joint_counts())
    turned = part(
        (SMOKES, DRINKS), (THREE, TWO),
        joint_counts().reshape(2, 2, 3).transpose(0, 2, 1).reshape(2, 6),
    )  # fmt: skip
    fits = [models.fit("drinks ~ region + smokes", counts_of(p)) for p in (pair, turned)]
    assert fits[0].beta == pytest.approx(fits[1].beta, abs=1e-8)
    sample = sample_of(counts_of(turned), ("drinks", "smokes"))
    assert sample.answers == (("yes", "no"), ("never", "some", "often"))
    assert sample.versions[0].law.sum(axis=1) == pytest.approx(np.ones(6))


def test_counts_of_a_pair_are_summed_for_a_model_of_one_question() -> None:
    """The question's mechanism is a separate factor, so the sums follow its law and the model is a
    likelihood."""
    counts = joint_counts()
    pair = counts_of(part((DRINKS, SMOKES), (TWO, THREE), counts))
    alone = counts_of(part((SMOKES,), (THREE,), counts.reshape(2, 2, 3).sum(axis=1)))
    fits = [models.fit("smokes ~ region", c, "ordinal") for c in (pair, alone)]
    assert fits[0].beta == pytest.approx(fits[1].beta)
    assert fits[0].fit == fits[1].fit
    assert fits[0].fit is not None
    shares = models.weighted_shares(pair, "drinks").rows
    first = counts.reshape(2, 2, 3).sum(axis=(0, 2))
    assert shares[0].estimate == pytest.approx(2 * first[0] / first.sum() - 0.5)


def test_one_question_of_a_joint_mechanism_is_modelled_by_its_decoded_scores() -> None:
    """A dense table over both questions jointly defines no law for one question alone."""
    rng = np.random.default_rng(2)
    weights = rng.integers(1, 4, (6, 6)) + 30 * np.eye(6, dtype=int)
    weights += np.diag(100 - weights.sum(axis=1))
    joint = part((DRINKS, SMOKES), (dense(weights.tolist()),), joint_counts())
    saturated = models.fit("drinks ~ region", counts_of(joint))
    for stratum, row in zip(
        joint.strata, saturated.predict([dict(s.by) for s in joint.strata]).rows[1::2], strict=True
    ):
        assert row.estimate == pytest.approx(
            sum((joint.shares(stratum)[i] or 0) for i in range(3)), abs=1e-9
        )
        cell = np.array([1, 1, 1, 0, 0, 0])
        variance = cell @ np.array(joint.covariance(stratum), dtype=float) @ cell
        assert row.se == pytest.approx(np.sqrt(variance), rel=5e-3)
    assert models.fit("smokes ~ region", counts_of(joint), "multinomial").fit is None


BLIND = part((DRINKS,), (replace(TWO, decoder=(None, (0.5, 1.5))),), [[5, 6]])


def sets_part(
    name: str, inside: Fraction, outside: Fraction, law: np.ndarray, shares: Any
) -> CountedPart:
    """Return the exact expected pair counts of a mechanism with this law of masks, for 2²⁰ reports
    per stratum."""
    masks = np.array(list(product((0, 1), repeat=3)))
    n = 1 << 20
    pairs = np.einsum("hs,sm,mi,mj->hij", np.array(shares), law, masks, masks) * n
    gap = float(inside - outside)
    decoder = tuple((-float(outside) / gap, *row) for row in (np.eye(3) / gap).tolist())
    strata = tuple(
        Stratum({"region": r}, n, tuple(np.diag(p)), tuple(map(tuple, p)))
        for r, p in zip(("n", "s"), pairs, strict=True)
    )
    factor = Factor(name, decoder, (1, 1, 1), inside=inside, outside=outside)
    return CountedPart("d", 1, 1, "b", (SMOKES,), "sets", (factor,), 2 * n, 1, strata)


def laws() -> dict[str, tuple[Fraction, Fraction, np.ndarray]]:
    """Return (inside, outside, law of the 8 masks) for both kinds of sets, by enumeration."""
    masks = list(product((0, 1), repeat=3))
    inside, outside = Fraction(1, 2), Fraction(1, 4)
    chances = np.full((3, 3), 1 / 4) + np.eye(3) / 4
    unary = [[math.prod(np.where(m, p, 1 - p).tolist()) for m in masks] for p in chances]
    # Each report is a set of two answers; a set with the truth is 4 times as likely as a set
    # without it.
    pairs = list(combinations(range(3), 2))
    chance = [[(4 if s in pair else 1) / 9 for pair in pairs] for s in range(3)]
    subset = np.zeros((3, 8))
    for s, row in enumerate(chance):
        for pair, p in zip(pairs, row, strict=True):
            subset[s, masks.index(tuple(int(i in pair) for i in range(3)))] = p
    return {
        "unary": (inside, outside, np.array(unary)),
        "subset": (Fraction(8, 9), Fraction(5, 9), subset),
    }


@pytest.mark.parametrize("name", ["unary", "subset"])
def test_sets_have_the_moments_of_their_law_by_enumeration(name: str) -> None:
    inside, outside, law = laws()[name]
    shares = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
    counts = counts_of(sets_part(name, inside, outside, law, shares))
    version = sample_of(counts, ("smokes",)).versions[0]
    masks = np.array(list(product((0, 1), repeat=3)))
    assert version.law == pytest.approx(law @ masks)
    assert version.moments == pytest.approx(np.einsum("sm,mi,mj->sij", law, masks, masks))
    assert version.decoded(np.eye(3)) == pytest.approx(np.array(shares))
    model = models.fit("smokes ~ region", counts, "multinomial")
    predicted = model.predict([{"region": "n"}, {"region": "s"}])
    found = {(row.at, row.answer): row.estimate for row in predicted.rows}
    for stratum, truth in zip(("n", "s"), shares, strict=True):
        for answer, share in zip(("never", "some", "often"), truth, strict=True):
            assert found[f"region={stratum}", answer] == pytest.approx(share, abs=1e-8)
    assert model.errors() == pytest.approx(model.errors("model"), rel=1e-5)


def whole_sets(part: CountedPart, law: np.ndarray, shares: Any) -> CountedPart:
    """Return the part with the expected number of reports of each set; `law` has a column for each mask."""
    n = part.strata[0].n
    strata = tuple(
        replace(s, masks=tuple((m, round(n * float(c))) for m, c in enumerate(np.array(p) @ law)))
        for s, p in zip(part.strata, shares, strict=True)
    )
    return replace(part, strata=strata)


@pytest.mark.parametrize("name", ["unary", "subset"])
def test_sets_counted_one_by_one_are_fitted_by_their_likelihood(name: str) -> None:
    """The errors are the inverse of Fisher's information of a set, and smaller than those of bits."""
    inside, outside, law = laws()[name]
    shares = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
    part = sets_part(name, inside, outside, law, shares)
    # Bit x of a mask is answer x; the columns of `law` have the first answer as the highest bit.
    order = [int(f"{m:03b}"[::-1], 2) for m in range(8)]
    whole = counts_of(whole_sets(part, law[:, order], shares))
    (version,) = sample_of(whole, ("smokes",)).versions
    assert version.law.sum(axis=1) == pytest.approx(np.ones(3))
    assert version.decoded(np.eye(3)) == pytest.approx(np.array(shares), abs=1e-5)
    model = models.fit("smokes ~ region", whole, "multinomial")
    n = part.strata[0].n
    B = np.array([[1, 0], [0, 1], [-1, -1]])
    for at, row in (("n", 0), ("s", 1)):
        used = law[:, law.sum(axis=0) > 0]
        information = n * (used / (np.array(shares[row]) @ used)) @ used.T
        bound = np.sqrt(np.diagonal(B @ np.linalg.inv(B.T @ information @ B) @ B.T))
        named = {r.answer: r for r in model.predict([{"region": at}]).rows}
        rows = [named[choice.id] for choice in SMOKES.choices]
        assert [r.estimate for r in rows] == pytest.approx(shares[row], abs=1e-5)
        assert [r.se for r in rows] == pytest.approx(bound, rel=1e-3)
    bits = models.fit("smokes ~ region", counts_of(part), "multinomial")
    ratio = model.errors() / bits.errors()
    assert (ratio < 0.999).all() if name == "unary" else ratio == pytest.approx(1, abs=1e-4)


def _many_bits(kind: str, epsilon: float) -> tuple[str, float, float, np.ndarray]:
    """Return name, inside, outside and the law of all masks of 12 answers."""
    a, e = 12, math.exp(epsilon)
    bits = (np.arange(2**a)[None, :] >> np.arange(a)[:, None] & 1).astype(float)
    if kind == "subset selection":
        size = max(1, round(a / (e + 1)))
        weights = np.where(bits > 0, e, 1.0) * (bits.sum(axis=0) == size)
        law = weights / weights.sum(axis=1, keepdims=True)
        chance = law @ bits.T
        return "subset", chance[0, 0], chance[0, 1], law
    inside, outside = {
        "optimised unary": (0.5, 1 / (e + 1)),
        "symmetric unary": (math.sqrt(e) / (math.sqrt(e) + 1), 1 / (math.sqrt(e) + 1)),
    }[kind]
    chances = np.full((a, a), outside) + np.eye(a) * (inside - outside)
    law = np.ones((a, 2**a))
    for i in range(a):
        law *= np.where(bits[i] > 0, chances[:, i : i + 1], 1 - chances[:, i : i + 1])
    return "unary", inside, outside, law


def test_quasi_scores_of_sets_have_the_efficiency_stated(root: Path) -> None:
    page = (root / "docs" / "maths" / "models.md").read_text(encoding="utf-8")
    kinds = ("optimised unary", "symmetric unary", "subset selection")
    lines = page.partition(
        "| " + " | ".join((r"$\varepsilon$", *kinds)) + " |\n|---|---|---|---|\n"
    )[2]
    stated = [
        [[float(v) for v in cell.split("/")] for cell in line.strip("| ").split("|")]
        for line in lines.partition("\n\n")[0].splitlines()
    ]
    assert len(stated) == 3
    a, n = 12, 1 << 40
    choices = tuple(Choice(f"c{x}", {}) for x in range(a))
    for (epsilon,), *cells in stated:
        for kind, values in zip(kinds, cells, strict=True):
            name, inside, outside, law = _many_bits(kind, epsilon)
            bits = (np.arange(2**a)[:, None] >> np.arange(a) & 1).astype(float)
            for truth, value in zip(
                (np.full(a, 1 / a), np.array([0.9, *[0.1 / 11] * 11])), values, strict=True
            ):
                rates = truth @ law
                B = np.vstack([np.eye(a - 1), -np.ones(a - 1)])
                used = rates > 0
                fisher = B.T @ ((law[:, used] / rates[used]) @ law[:, used].T) @ B
                likelihood = np.trace(B @ np.linalg.inv(fisher) @ B.T)
                pairs = np.rint(n * np.einsum("m,mi,mj->ij", rates, bits, bits, optimize=True))
                factor = Factor(
                    name, ((0.0,) * (a + 1),) * a, (1,) * a,
                    inside=Fraction(inside), outside=Fraction(outside),
                )  # fmt: skip
                gap = inside - outside
                rows = ((-outside / gap, *row) for row in (np.eye(a) / gap).tolist())
                stratum = Stratum(
                    {"region": "n"}, n, tuple(np.diag(pairs)), tuple(map(tuple, pairs.tolist()))
                )
                part = CountedPart(
                    "d", 1, 1, "b", (Question("q", {}, choices),), "sets",
                    (replace(factor, decoder=tuple(rows)),), n, 1, (stratum,),
                )  # fmt: skip
                model = models.fit("q ~ 1", counts_of(part), "multinomial")
                quasi = n * sum(r.se**2 for r in model.predict([{}]).rows)
                assert likelihood / quasi == pytest.approx(value, abs=6e-4), (kind, epsilon)


BAD: dict[str, tuple[Any, str, str]] = {
    "unknown outcome": (lambda: models.fit("eats ~ region", counts_of(ONE)), "formula", "eats"),
    "unknown covariate": (lambda: models.fit("drinks ~ sex", counts_of(ONE)), "formula", "sex is unknown"),
    "not counted together": (
        lambda: models.fit("drinks ~ smokes", counts_of(ONE, part((SMOKES,), (THREE,), [[9, 9, 9]]))),
        "questions", "together"),
    "scores of a logistic model": (
        lambda: models.fit("drinks ~ 1", counts_of(ONE), scores={"yes": 1}), "scores", "linear"),
    "unknown document": (lambda: models.fit("drinks ~ 1", counts_of(ONE), documents=("x",)), "documents", "digests"),
    "nothing released": (lambda: models.fit("drinks ~ 1", counts_of(replace(ONE, strata=()))), "counts", "coarser"),
    "group": (lambda: models.weighted_shares(counts_of(ONE), "drinks", by="sex"), "by", "no public|not a public"),
    "contrast": (lambda: models.weighted_shares(counts_of(ONE), "drinks").contrast({"maybe": 1}), "of", "yes, no"),
    "not determined": (
        lambda: models.weighted_shares(counts_of(BLIND), "drinks"),
        "question", "does not determine"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_requests_name_their_field(name: str) -> None:
    call, field, said = BAD[name]
    with pytest.raises(InvalidRequest, match=said) as caught:
        call()
    assert caught.value.field == field


def test_the_base_needs_none_of_the_models_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import sys

    name = "frankly_analyst.models"
    for loaded in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda m, *a: None if m == "formulaic" else real(m, *a)
    )
    with pytest.raises(ImportError, match="pip install formulaic numpy pandas scipy"):
        importlib.import_module(name)
