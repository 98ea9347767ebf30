# SPDX-License-Identifier: Apache-2.0
"""Worst-case variance of an unbiased estimate over all shares (Thesis 6.8; spec 8.9, erratum 9.1)."""

import numpy as np

from frankly_design.numeric.arrays import FloatArray


def worst_case_variance(linear: FloatArray, target: FloatArray, factor: float = 1.0) -> float:
    """Return max over p in the simplex of linear·p − factor·(target·p)².

    Among all p with the same target·p, linear·p is largest at a p with at most two nonzero shares.
    So it is enough to search the edges between pairs of answers (i, j), on which the function is a
    concave parabola in one variable (docs/maths/worst_case.md).

    Parameters
    ----------
    linear, target : shape (a,).
    factor : at 0 the maximum is the largest entry of `linear`. Below 0 the function is convex, so that
        it is largest at a corner.
    """
    # Among answers with equal weights only the one with the largest entry matters, so two answers
    # remain if the target is a share.
    target, group = np.unique(target, return_inverse=True)
    largest = np.full(len(target), -np.inf)
    np.maximum.at(largest, group, linear)
    linear = largest
    best = float(np.max(linear - factor * target**2))  # the corners
    for i in range(len(linear)):
        slope, step = linear - linear[i], target - target[i]
        # At p = (1−t)e_i + t·e_j the value is L_i + t·slope − factor·(w_i + t·step)².
        curved = factor * step**2 > 0
        t = np.zeros_like(linear)
        np.divide(slope - 2 * factor * target[i] * step, 2 * factor * step**2, out=t, where=curved)
        t = np.clip(t, 0.0, 1.0)
        values = linear[i] + t * slope - factor * (target[i] + t * step) ** 2
        best = max(best, float(np.max(values)))
    return best


def linear_part(second_moment: FloatArray, target: FloatArray, sampling: float) -> FloatArray:
    """Return c with variance(p) = c·p − sampling·(w·p)² for one report at shares p, shape (a,).

    second_moment : E[d²|x] of the decoded value, Σ_y v_y² Q(y|x).
    target : the weights w.
    sampling : 1 for independent draws, (N−n)/(N−1) without replacement from N, 0 for a census.

    For a respondent with answer x, privacy adds the variance E[d²|x] − w_x². Sampling the
    respondents adds `sampling` times the variance of w over the people, Σ_x p_x w_x² − (w·p)².
    """
    return np.asarray(second_moment - (1 - sampling) * target**2, dtype=np.float64)
