# SPDX-License-Identifier: Apache-2.0
"""Faults to put into server/frankly_server/estimate, one at a time, by module: (text that occurs once, replacement).

A fault that no test finds is listed in EQUAL with the reason why it changes no figure.
"""

MUTANTS: dict[str, tuple[tuple[str, str], ...]] = {
    "evidence": (
        ("if not self.n or self.rank < self.answers:", "if not self.n or self.rank > self.answers:"),
        (
            "return np.asarray((self._V * self._rates) @ self._V.T",
            "return np.asarray((self._V * self._rates) @ self._V.T * 1.01",
        ),
        ("centred = self._V - (self._V @ self._rates)[:, None]", "centred = self._V"),
        ("return np.asarray(self._V**2 @ self.law().T", "return np.asarray(abs(self._V) @ self.law().T"),
        (
            "(Fraction(min(row), scale), Fraction(max(row), scale))",
            "(Fraction(max(row), scale), Fraction(min(row), scale))",
        ),
    ),
    "figures": (
        ("estimated_sampling, self.true_sampling = _sampling", "true_sampling, self.estimated_sampling = _sampling"),
        (
            "independent = found.spread() * (found.n / (found.n - 1)) / found.n",
            "independent = found.spread() / found.n",
        ),
        ("sampling = (independent - privacy) * self.estimated_sampling", "sampling = independent - privacy"),
        (
            "raised = np.zeros(len(floors)) if privacy is None else np.maximum(0.0, floors",
            "raised = np.zeros(len(floors)) if privacy is None else np.minimum(0.0, floors",
        ),
        ("return 1 - n / population, (population - n)", "return 1 - n / population, (population - n + 9)"),
        ("clt=times(normal_quantile(level), se)", "clt=times(normal_quantile(level), worst)"),
        ("chebyshev=times(chebyshev, worst)", "chebyshev=times(chebyshev, se)"),
        ("simultaneous=times(joint, worst)", "simultaneous=times(normal_quantile(level), worst)"),
        ("1 - 1 / v for v in design_effect", "1 / v for v in design_effect"),
    ),
    "intervals": (
        ("tail = (1 - level) / 2", "tail = 1 - level"),
        ("special.betaincinv(k, n - k + 1, tail)", "special.betaincinv(k, n - k + 2, tail)"),
        ("special.betainccinv(k + 1, n - k, tail)", "special.betainccinv(k, n - k, tail)"),
        ("limit = math.log(1 / (1 - level))", "limit = math.log(2 / (1 - level)) / 2"),
        ("return estimate + (lean - root)", "return estimate - (lean + root)"),
        ("here = max(0.0, variance.constant", "here = max(-1.0, variance.constant"),
        ("mixed = special.betaln(k + 1, n - k + 1)", "mixed = special.betaln(k + 1, n - k + 2)"),
    ),
    "chernoff": (
        ("limit = math.log(2 / (1 - level)) / n", "limit = math.log(1 / (1 - level)) / n"),
        ("limit = math.log(2 / (1 - level)) / total", "limit = math.log(1 / (1 - level)) / total"),
        (
            "low, high = (_last_below(moments, inside, float(end), n, excess) for end in (knots[0], knots[-1]))",
            "low, high = (_last_below(moments, inside, float(end), n, excess) for end in (knots[-1], knots[-1]))",
        ),
        ("return low, high\n\n\ndef _last_below", "return 2 * inside - high, high\n\n\ndef _last_below"),
        ("excess = math.log(1 / (1 - level))", "excess = math.log(1 / (1 - level)) / 2"),
        (
            "return 1 - _upper_chance(1 - mean, limit), _upper_chance",
            "return 1 - _upper_chance(1 - mean, limit / 2), _upper_chance",
        ),
        ("return -_upper(law.mirrored(), -w, -score.mean", "return -_upper(law.mirrored(), w, -score.mean"),
        ("exponents = np.maximum(np.outer", "exponents = np.minimum(np.outer"),
        ("max(aware[0], plain[0]), min(aware[1], plain[1])", "plain[0], plain[1]"),
        ("_LOG_WEIGHTS[:, None] - n * logs", "_LOG_WEIGHTS[:, None] - (n + 5) * logs"),
        ("return np.array([_hull(knots, row) for row in values])", "return values"),
        ("_TILTS = np.geomspace(2.0**-13, 2.0**6, 39)", "_TILTS = np.geomspace(2.0**-3, 2.0**6, 39)"),
    ),
    "scores": (
        ("gaps = np.diff(values[order]) > SAME * np.ptp(values)", "gaps = np.diff(values[order]) > 0"),
        ("np.maximum.at(high, groups, values)", "high = low.copy()"),
        ("-self.high[::-1], -self.low[::-1]", "-self.low[::-1], -self.high[::-1]"),
        ("return int(sizes.sum() - sizes.max())", "return int(sizes.min())"),
    ),
    "target_ends": (
        ("if score.two is None and error is not None:", "if False:"),
        ("constant += float((c - constant - slope * w) @ shares)", "constant += 0.0"),
        ("if not self._independent or level < _EXACT_FROM:", "if level < _EXACT_FROM:"),
        ("if not self._like_draws:", "if False:"),
        ("if high - low <= _VANISHED * z * largest:", "if False:"),
        ("slope = float(centred @ c) / squares if squares > 0 else 0.0", "slope = 0.0"),
    ),
    "sets": (
        (
            "return tuple((Fraction(self._counts.pairs[x][x], self.n) - q0) / k",
            "return tuple((Fraction(self._counts.pairs[x][x], self.n) + q0) / k",
        ),
        ("+ 2 * with_own * W * rest", "+ with_own * W * rest"),
        ("count = held if", "count = self.n - held if"),
        (
            "return q1 * (1 - q1), q0 * (1 - q0), with_truth - q1 * q0",
            "return q1 * (1 - q1), q0 * (1 - q0), with_truth - q1 * q1",
        ),
    ),
    "joint": (
        ("(w * low, w * high) if w > 0 else (w * high, w * low)", "(w * low, w * high)"),
        ("return total / max(self.n, 1)", "return total / max(self.n - 1, 1)"),
        ("features[-1] = features[-1] * self._counts[chunk]", "features[-1] = features[-1] * 1"),
    ),
    "products": (
        ("found = [a * b for a in left for b in right]", "found = [a * b for a, b in zip(left, right)]"),
        ("return _whole([V**2 @ Q.T for V", "return _whole([abs(V) @ Q.T for V"),
    ),
    "likelihood": (
        ("gap = max(0.0, float(g.max()) - 1)", "gap = max(0.0, float(g.mean()) - 1)"),
        ("rare = expected < 1", "rare = expected < 0"),
        ("covariance = np.linalg.inv(information) - np.outer(p, p)", "covariance = np.linalg.inv(information)"),
        (
            "if gap <= GAP:\n            return Likeliest(p, gap, closed_form=True)",
            "if gap <= 1:\n            return Likeliest(p, gap, closed_form=True)",
        ),
    ),
    "contrasts": (
        ("sqrt(max(0.0, float(w @ C @ w)))", "sqrt(max(0.0, float(w @ np.diag(np.diag(C)) @ w)))"),
        (
            "low = -_upper(-top, of[0], bottom, over, -correlation)",
            "low = -_upper(-top, of[0], bottom, over, correlation)",
        ),
        ("if over[0] >= bottom:", "if over[1] >= bottom:"),
        ("square, half, constant = bottom**2 - v**2", "square, half, constant = bottom**2"),
    ),
    "worst_case": (
        ("slope - 2 * factor * target[i] * step", "slope + 2 * factor * target[i] * step"),
        ("second_moment - (1 - sampling) * target**2", "second_moment - sampling * target**2"),
        ("np.maximum.at(most, where, linear)", "np.minimum.at(most, where, linear)"),
    ),
    "projection": (
        ("positive = int(np.flatnonzero(descending > thresholds)[-1])", "positive = len(values) - 1"),
        ("(np.cumsum(descending) - 1)", "(np.cumsum(descending) - 0.99)"),
    ),
    "poisoning": (
        ("odds = beta / (1 - beta)", "odds = beta"),
        ("up.append(float(odds * (reach[1] - shown)))", "up.append(float(odds * (reach[1] - reach[0])))"),
    ),
    "planner": (
        ("math.ceil(n / self.response_rate - 1e-9)", "math.floor(n / self.response_rate)"),
        ("inside = n * self.setting.subgroup", "inside = n"),
        ("return max(self.margins(n))", "return min(self.margins(n))"),
        ("low = middle + 1", "low = middle + 2"),
        ("max(0.0, (people - drawn) / max(1.0, people - 1))", "max(0.0, (people - drawn) / max(1.0, people + 9))"),
    ),
    "factors": (
        ("even = Fraction(1, size)", "even = Fraction(1, size + 1)"),
        ("+ q0**2\n", "\n"),
        (
            "np.maximum(is_truth[:, :, None], is_truth[:, None, :])",
            "np.minimum(is_truth[:, :, None], is_truth[:, None, :])",
        ),
        ("for s in (1, -1)]", "for s in (1, 0)]"),
    ),
    "decoder": (
        ("margin[part] += n", "margin[part] += 1"),
        ("denominator *= scale", "denominator = scale"),
        ("fallback = not _reaches_all(weights, prior)", "fallback = False"),
        ("fallback = any(part.fallback for part in parts)", "fallback = all(part.fallback for part in parts)"),
    ),
    "pooling": (
        ("freedom = sum(ranks) - rank", "freedom = sum(ranks)"),
        ("below = weighted_root(weights, [_distances(v, e, 0)", "below = weighted_root(weights, [_distances(v, e, 1)"),
        ("_squares(w) for w in weights", "w for w in weights"),
        ("kept = values > _RANK", "kept = values > -_RANK"),
    ),
}

EQUAL: dict[tuple[str, int], str] = {}
"""Faults that change nothing that a figure shows, by module and place: why."""

NEAREST: dict[str, str] = {
    "chernoff": "test_chernoff test_scores", "contrasts": "test_contrasts", "decoder": "test_decoder test_estimator",
    "evidence": "test_kinds test_estimator", "factors": "test_joint", "figures": "test_figures test_estimator",
    "intervals": "test_intervals", "joint": "test_joint", "likelihood": "test_estimator test_kinds",
    "planner": "test_planner", "poisoning": "test_poisoning test_estimator", "pooling": "test_contrasts test_chernoff",
    "products": "test_kinds test_joint", "projection": "test_estimator test_kinds", "scores": "test_scores",
    "sets": "test_sets", "target_ends": "test_target_ends test_figures", "worst_case": "test_worst_case",
}  # fmt: skip
"""Test files of tests/frankly_server/estimate that are run, by module."""
