# SPDX-License-Identifier: Apache-2.0
"""Mutants of server/frankly_server/estimate by module: (text that occurs exactly once, its replacement).

`python -m tools.mutate` tests them one at a time. EQUIVALENT lists the mutants that no test can
detect, with the reason.
"""

MUTANTS: dict[str, tuple[tuple[str, str], ...]] = {
    "evidence": (
        (
            "if not self.n or self.rank < self.answers:",
            "if not self.n or self.rank > self.answers:",
        ),
        (
            "return np.asarray((self._V * self._rates) @ self._V.T",
            "return np.asarray((self._V * self._rates) @ self._V.T * 1.01",
        ),
        ("centred = self._V - (self._V @ self._rates)[:, None]", "centred = self._V"),
        (
            "return np.asarray(self._V**2 @ self.law().T",
            "return np.asarray(abs(self._V) @ self.law().T",
        ),
        (
            "(Fraction(min(row), scale), Fraction(max(row), scale))",
            "(Fraction(max(row), scale), Fraction(min(row), scale))",
        ),
        (
            "[decoder(mechanism, shares(self.answers), prior)] if",
            "[decoder(mechanism, shares(self.answers), None)] if",
        ),
        ("dtype=np.float64), best, self.rank)", "dtype=np.float64), best, self.answers)"),
    ),
    "figures": (
        (
            "estimated_sampling, self.true_sampling = sampling",
            "true_sampling, self.estimated_sampling = sampling",
        ),
        (
            "independent = evidence.spread() * (evidence.n / (evidence.n - 1)) / evidence.n",
            "independent = evidence.spread() / evidence.n",
        ),
        (
            "sampling = (independent - privacy) * self.estimated_sampling",
            "sampling = independent - privacy",
        ),
        (
            "else np.maximum(0.0, floors - np.diagonal",
            "else np.minimum(0.0, floors - np.diagonal",
        ),
        (
            "return 1 - n / population, (population - n)",
            "return 1 - n / population, (population - n + 9)",
        ),
        ("clt=times(normal_quantile(level), se)", "clt=times(normal_quantile(level), worst)"),
        ("chebyshev=times(chebyshev, worst)", "chebyshev=times(chebyshev, se)"),
        ("simultaneous=times(joint, worst)", "simultaneous=times(normal_quantile(level), worst)"),
        ("1 - 1 / v for v in design_effect", "1 / v for v in design_effect"),
        ('spreads["margins"].uncut,\n', 'spreads["margins"].score,\n'),
        (
            "rows = dict(zip(self.evidence.known, covariance, strict=True))",
            "rows = dict(zip(self.evidence.known, covariance[::-1], strict=True))",
        ),
    ),
    "intervals": (
        ("tail = (1 - level) / 2", "tail = 1 - level"),
        ("special.betaincinv(k, n - k + 1, tail)", "special.betaincinv(k, n - k + 2, tail)"),
        ("special.betainccinv(k + 1, n - k, tail)", "special.betainccinv(k, n - k, tail)"),
        ("limit = math.log(1 / (1 - level))", "limit = math.log(2 / (1 - level)) / 2"),
        ("return estimate + (lean - root)", "return estimate - (lean + root)"),
        ("at_estimate = max(0.0, variance.constant", "at_estimate = max(-1.0, variance.constant"),
        ("mixed = special.betaln(k + 1, n - k + 1)", "mixed = special.betaln(k + 1, n - k + 2)"),
        (
            "low = 0.0 if k == 0 else _crossing(excess, 0.0, middle)",
            "low = _crossing(excess, 1.0, middle)",
        ),
        (
            "return low, 1.0 if k == n else _crossing(excess, 1.0, middle)",
            "return low, _crossing(excess, 0.0, middle)",
        ),
        ("np.abs(normals).max(axis=1)", "normals.max(axis=1)"),
    ),
    "chernoff": (
        ("limit = math.log(2 / (1 - level)) / n\n", "limit = math.log(1 / (1 - level)) / n\n"),
        (
            "limit = math.log(2 / (1 - level)) / total\n",
            "limit = math.log(1 / (1 - level)) / total\n",
        ),
        ("for end in (knots[0], knots[-1])", "for end in (knots[-1], knots[-1])"),
        ("for end in (knots[0], knots[-1])", "for end in (knots[0], knots[0])"),
        ("excess = math.log(1 / (1 - level))", "excess = math.log(1 / (1 - level)) / 2"),
        (
            "return 1 - _upper_chance(1 - mean, limit),",
            "return 1 - _upper_chance(1 - mean, limit / 2),",
        ),
        (
            "return -_upper(law.mirrored(), -w, -score.mean",
            "return -_upper(law.mirrored(), w, -score.mean",
        ),
        ("exponents = np.maximum(np.outer", "exponents = np.minimum(np.outer"),
        ("max(aware[0], hoeffding[0]), min(aware[1], hoeffding[1])", "hoeffding[0], hoeffding[1]"),
        ("_LOG_WEIGHTS[:, None] - n * logs", "_LOG_WEIGHTS[:, None] - (n + 5) * logs"),
        ("return np.array([_hull(knots, row) for row in values])", "return values"),
        (
            "_TILTS = np.geomspace(2.0**-13, 2.0**6, 39)",
            "_TILTS = np.geomspace(2.0**-3, 2.0**6, 39)",
        ),
        ("zip(upward, below, strict=True)", "zip(upward, above, strict=True)"),
        ("if not any(score.of_bit for score, _ in parts):", "if True:"),
    ),
    "scores": (
        (
            "gaps = np.diff(values[order]) > SAME * np.ptp(values)",
            "gaps = np.diff(values[order]) > 0",
        ),
        ("np.maximum.at(high, groups, values)", "high = low.copy()"),
        ("-self.high[::-1], -self.low[::-1]", "-self.low[::-1], -self.high[::-1]"),
        ("return int(sizes.sum() - sizes.max())", "return int(sizes.min())"),
    ),
    "target_ends": (
        ("if not self._independent or level < _EXACT_FROM:", "if level < _EXACT_FROM:"),
        ("if not self._like_draws:", "if False:"),
        ("if high - low <= VANISHED * z * largest:", "if False:"),
        ("low, high = value - max(below, z * error)", "low, high = value - below"),
        ("Variance(total - growth * value, growth", "Variance(total, growth"),
        ("if local is not None:", "if False:"),
        (
            "p = (evidence.n * nearest + z * z / evidence.answers) / (evidence.n + z * z)",
            "p = nearest",
        ),
        ("along = local.moments @ (w - w @ local.p)", "along = local.moments @ w"),
        ("return float(centred @ c) / squares if squares > 0 else 0.0", "return 0.0"),
        ("chernoff.widened(chernoff.within(ends, w), value)", "chernoff.within(ends, w)"),
        ("moved = min(max(estimate, possible[0]), possible[1]) - estimate", "moved = 0.0"),
        (
            "return max(below, at_local_shares), max(above, at_local_shares)",
            "return max(below, at_local_shares), above",
        ),
        (
            "return max(below, at_local_shares), max(above, at_local_shares)",
            "return below, max(above, at_local_shares)",
        ),
        ("if local is None or _is_line(w, c):", "if local is None:"),
        ("float(c @ local.p) - sampling * float(w @ local.p) ** 2", "float(c @ local.p)"),
    ),
    "flags": (
        ("beyond > max(FAR * worst", "beyond > max(worst"),
        ("margin > IMPRECISE * abs(value)", "margin > abs(value)"),
        ("informative < FEW and", "informative <= FEW and"),
        ('"one_report": evidence.n == 1', '"one_report": evidence.n <= 1'),
        ("evidence.condition > ILL_CONDITIONED", "evidence.condition > ILL_CONDITIONED**2"),
    ),
    "ratios": (
        ("w, c, self.local, self.sampling, z)", "w, c, None, self.sampling, z)"),
        ("below, above = max(below, normal), max", "below, above = below, max"),
        ("if below + above <= VANISHED * z", "if below + above < -VANISHED * z"),
        (
            "cross = (linear_parts[2] - linear_parts[0] - linear_parts[1]) / 2",
            "cross = linear_parts[2] - linear_parts[0] - linear_parts[1]",
        ),
        (
            "Pair(evidence.n, values, covariance * square, w",
            "Pair(evidence.n, values, covariance, w",
        ),
        (
            "estimate - hypot(*(below for below, _ in reaches))",
            "estimate - sum(below for below, _ in reaches)",
        ),
        ("bool(of_answers.min() <= 0 <= of_answers.max())", "True"),
        ("_last(holds_at, side, corners)", "_last(holds_at, side, ())"),
        (
            "if holds(np.array([0.0, 1.0]), margin):",
            'if holds(np.array([0.0, 1.0]), Margin("normal", margin.factor)):',
        ),
    ),
    "sets": (
        ("Fraction(self.answers * h - total, self.answers * self.n)", "Fraction(h, self.n)"),
        ("(n * c - ones[x] * ones[z]) / (n * n)", "(n * c - ones[x] * ones[x]) / (n * n)"),
        (
            "self._level @ (self._level + mean).T + mean @ self._level.T",
            "self._level @ (self._level + mean).T - mean @ self._level.T",
        ),
        ("level * (level + 2 * u)", "level * (level + u)"),
        ("_sum_of_first(rising, size)", "_sum_of_first(rising, size + 1)"),
        ("count = held if", "count = self.n - held if"),
    ),
    "set_fit": (
        ("len(p_values) * min(p_values)", "min(p_values)"),
        ("sqrt(2 * n * variance)", "sqrt(n * variance)"),
        (
            "slope = (with_truth - without) / (q1 - q0)",
            "slope = (with_truth + without) / (q1 - q0)",
        ),
        ("int(used.sum())))", "len(used)))"),
        ("return 1.0 if total_size == round(n * mean) else 0.0", "return 1.0"),
        (
            "if n * min(without, 1 - without) < _LEAST_EXPECTED:",
            "if n * without < _LEAST_EXPECTED:",
        ),
    ),
    "set_law": (
        (
            "(mechanism.size - inside) / (mechanism.answers - 1)",
            "(mechanism.size - inside) / mechanism.answers",
        ),
        ("inside * placed(size - 1, m) +", "inside * placed(size, m) +"),
        ("k - 2 * (with_truth - without)", "k - (with_truth - without)"),
        ("columns[:, ~columns.any(axis=0)] = 1.0", "columns[:, ~columns.any(axis=0)] = 1e-6"),
    ),
    "joint": (
        ("(w * low, w * high) if w > 0 else (w * high, w * low)", "(w * low, w * high)"),
        ("return total / max(self.n, 1)", "return total / max(self.n - 1, 1)"),
        ("features[-1] = features[-1] * self._counts[chunk]", "features[-1] = features[-1] * 1"),
        ("np.asarray(table.sum(axis=axes))", "np.asarray(table.max(axis=axes))"),
        ("zip(index_of, symbol, strict=True))] = n", "zip(index_of, symbol, strict=True))] = 1"),
    ),
    "products": (
        (
            "products = [a * b for a in left for b in right]",
            "products = [a * b for a, b in zip(left, right)]",
        ),
        ("return _dense([V**2 @ Q.T for V", "return _dense([abs(V) @ Q.T for V"),
        ("self.fallback = any(", "self.fallback = all("),
    ),
    "kronecker": (
        ("np.ascontiguousarray(factor.T) for factor", "np.ascontiguousarray(factor) for factor"),
        (
            "np.asarray(reduce(np.kron, self._factors))",
            "np.asarray(reduce(np.kron, self._factors[::-1]))",
        ),
        (
            "result = result.reshape(len(factor), -1).T @ factor",
            "result = result.reshape(-1, len(factor)) @ factor",
        ),
    ),
    "likelihood": (
        ("gap = max(0.0, float(g.max()) - 1)", "gap = max(0.0, float(g.mean()) - 1)"),
        ("rare = expected < 1", "rare = expected < 0"),
        (
            "covariance = np.linalg.inv(information) - np.outer(p, p)",
            "covariance = np.linalg.inv(information)",
        ),
        (
            "if gap <= tolerance:\n            return Likeliest",
            "if gap <= 1:\n            return Likeliest",
        ),
        ("+ min(int(np.sum(best < 1e-9)), rank - 1)", ""),
        ("max(min(GAP / n, _TARGET_GAP), _ROUNDING)", "max(min(GAP, _TARGET_GAP), _ROUNDING)"),
    ),
    "worst_case": (
        ("slope - 2 * factor * target[i] * step", "slope + 2 * factor * target[i] * step"),
        ("second_moment - (1 - sampling) * target**2", "second_moment - sampling * target**2"),
        ("np.maximum.at(largest, group, linear)", "np.minimum.at(largest, group, linear)"),
    ),
    "projection": (
        (
            "positive = int(np.flatnonzero(descending > thresholds)[-1])",
            "positive = len(values) - 1",
        ),
        ("(np.cumsum(descending) - 1)", "(np.cumsum(descending) - 0.99)"),
    ),
    "poisoning": (
        ("odds = beta / (1 - beta)", "odds = beta"),
        (
            "up.append(float(odds * (reach[1] - observed)))",
            "up.append(float(odds * (reach[1] - reach[0])))",
        ),
    ),
    "planner": (
        ("math.ceil(n / self.response_rate - 1e-9)", "math.floor(n / self.response_rate)"),
        ("inside, factor = n * self.setting.subgroup, self", "inside, factor = n, self"),
        ("return max(self.margins(n))", "return min(self.margins(n))"),
        ("low = middle + 1", "low = middle + 2"),
        (
            "max(0.0, (people - drawn) / max(1.0, people - 1))",
            "max(0.0, (people - drawn) / max(1.0, people + 9))",
        ),
    ),
    "factors": (
        ("even = Fraction(1, size)", "even = Fraction(1, size + 1)"),
        ("for s in (1, -1)]", "for s in (1, 0)]"),
        ("squares = s * (u @ u) + t * u[:, :, None]", "squares = s * (u @ u) - t * u[:, :, None]"),
    ),
    "decoder": (
        ("margin[part] += n", "margin[part] += 1"),
        ("denominator *= scale", "denominator = scale"),
        ("fallback = not _reaches_all(weights, prior)", "fallback = False"),
        (
            "fallback = any(part.fallback for part in parts)",
            "fallback = all(part.fallback for part in parts)",
        ),
        ("rational.whole(target)]) == size", "rational.whole(target)]) >= size"),
    ),
    "pooling": (
        ("freedom = sum(ranks) - rank", "freedom = sum(ranks)"),
        ("[_distances(w, v, e, side) for", "[_distances(w, v, e, 1 - side) for"),
        ("_squares(w) for w in weights", "w for w in weights"),
        ("positive = values > _RANK", "positive = values > -_RANK"),
        ("scale = np.where(scale > 0, scale, 1.0)", "scale = np.ones_like(scale)"),
    ),
    "identifiable": (
        ("vector[pivot] = -row[free]", "vector[pivot] = row[free]"),
        ("if q1 != q0\n", "if q1 == q0\n"),
    ),
    "margins": (
        ("inv_cdf((1 - level) / (2 * targets))", "inv_cdf((1 - level) / (1 + targets))"),
        ("return 1 / math.sqrt(1 - level)", "return 1 / math.sqrt(2 - 2 * level)"),
        ("else (v - half, v + half)", "else (v, v + half)"),
    ),
    "inputs": (
        ("index = index * factor.reports + y", "index = index * factor.answers + y"),
        ("ordered[index] += n", "ordered[index] = n"),
    ),
    "effects": (
        ("(len(ranked) - rank) * p", "(len(ranked) - rank - 1) * p"),
        (
            "low = below / (product + math.sqrt(discriminant))",
            "low = below / (product + 2 * math.sqrt(discriminant))",
        ),
        ("h - math.hypot(u - u_low, v_high - v)", "h - math.hypot(u - u_low, v - v_low)"),
        ("[centre]))[0]), len(values) - 1", "[centre]))[0]), len(values)"),
        ("remaining = max(0.0, square - float(u @ u)) if side > 0 else 0.0", "remaining = 0.0"),
    ),
    "wave_plan": (
        ("self.persistence ** np.abs(", "self.persistence ** np.square("),
        ("self.noise[length - 1][:, None, None]", "self.noise[0][:, None, None]"),
        ("float(self.slopes(every_run).max())", "float(self.slopes(self.shares > 0).max())"),
        ("slopes > design.total * (1 + _LEAST_GAP)) &", "slopes > 4 * design.total) &"),
    ),
}

EQUIVALENT: dict[tuple[str, int], str] = {
    ("inputs", 1): "symbols are keys of a mapping, so each occurs once and is added to 0",
    (
        "set_law",
        3,
    ): "scaling a column changes neither the likeliest shares nor their gap",
    (
        "target_ends",
        7,
    ): "a report's decoded shares sum to 1, so E[s sᵀ] 1 = p: w·p adds a multiple of p, and both "
    "w − w·p and c − c·p are orthogonal to p",
}
"""Mutants that change no result, by module and index, with the reason."""

NEAREST: dict[str, str] = {
    "chernoff": "test_chernoff test_scores",
    "decoder": "test_decoder test_kinds test_kronecker",
    "effects": "test_effects",
    "evidence": "test_evidence test_share_moments test_estimator test_likelihood",
    "factors": "test_joint test_sets",
    "figures": "test_figures test_target_ends test_estimator",
    "flags": "test_flags",
    "identifiable": "test_identifiable test_figures",
    "inputs": "test_inputs test_estimator test_joint",
    "intervals": "test_intervals",
    "joint": "test_joint",
    "kronecker": "test_kronecker",
    "likelihood": "test_likelihood test_figures",
    "margins": "test_margins test_figures",
    "planner": "test_planner",
    "poisoning": "test_poisoning",
    "pooling": "test_pooling ../analysis/test_pooling",
    "products": "test_kronecker test_kinds test_joint test_decoder",
    "projection": "test_margins",
    "ratios": "test_ratios",
    "scores": "test_scores",
    "set_fit": "test_sets test_kinds",
    "set_law": "test_kinds test_sets",
    "sets": "test_kinds test_sets",
    "target_ends": "test_target_ends test_figures",
    "wave_plan": "test_wave_plan",
    "worst_case": "test_worst_case",
}
"""Test files in tests/frankly_server/estimate that run, by module."""
