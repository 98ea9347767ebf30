# SPDX-License-Identifier: Apache-2.0
"""Claims of the four papers that the product uses: statement, place in the code, and verdict.

Tests register their claims with `registry.paper`. `python -m tests.papers --write` writes the page.
"""

from typing import NamedTuple

HOLDS, CORRECTED, WRONG = "holds", "holds corrected", "printed value wrong"
VERDICTS = (HOLDS, CORRECTED, WRONG)


class Stated(NamedTuple):
    """A claim. name : paper and place. says : the claim's true form in one line. code : file that
    uses the claim, below design/frankly_design or shared; empty if only tests use it. verdict : one
    of VERDICTS."""

    name: str
    says: str
    code: str
    verdict: str


_VERDICT = {"": HOLDS, "+": CORRECTED, "!": WRONG}


def _read(paper: str, text: str) -> tuple[Stated, ...]:
    """Read lines `name | says | code | mark`; the mark is empty, + (holds corrected) or ! (value wrong)."""
    rows = [[field.strip() for field in line.split("|")] for line in text.strip().splitlines()]
    return tuple(
        Stated(f"{paper} {name}", says, code, _VERDICT[mark]) for name, says, code, mark in rows
    )


THESIS = _read(
    "Thesis",
    """
Figure 2.3 | No band around a density is necessary: δ bounds sets | | !
Thm 3.4 | What is made of a private report is private | estimate/estimator.py |
Cor 3.1 | Private for every query iff for the identity query | estimate/estimator.py |
Lemma 3.3 | A private product has a private parent | papers/sanitisation.py |
Thm 3.5 | A product needs the δ of its parent, for databases that differ in one person | papers/sanitisation.py |
Cor 4.3 | A product is (ε, δ)-private iff its parent is | papers/sanitisation.py |
Def 3.6 | Max-mean error | papers/sanitisation.py |
Lemma 3.5 | A private answer errs | papers/sanitisation.py |
Thm 3.6 | Error ≥ diam·(1−δ)/(2(1+E)) | papers/sanitisation.py |
Thm 3.7 | Error ≥ κ(m−1)(1−δ)/(m−1+E) | papers/sanitisation.py |
Example 3.7 | p = (1−δ)/(m−1+E) needs exactly δ | papers/sanitisation.py |
Example 3.8 | Its error is the bound of Thm 3.7 | papers/sanitisation.py |
Appendix A | δ binds sets of outputs; its code tests single ones | frankly_protocol/audit/notions.py | +
Thm 4.1 | Sets inside {P(Y_d) > P(Y_d')} decide | papers/sanitisation.py |
Example 4.2 | 924 checks, not 1,092 | papers/sanitisation.py | !
Example 4.3 | One constant C | |
Example 4.4 | Its sets S, S̃₁ and S̃₂ | papers/sanitisation.py |
Example 4.5 | p = 1/10 keeps one of five with 6/10 | papers/sanitisation.py |
(4.6) | Classes of equal ratio | papers/sanitisation.py |
Thm 4.2 | A class that satisfies the bound does so for its subsets | papers/sanitisation.py |
Cor 4.1 | With δ = 0 the classes decide; with δ > 0 they do not | papers/sanitisation.py |
Prop 4.1 | C = (1 + (m−1)/e^k)^n | papers/sanitisation.py |
Cor 4.2 | For the Hamming distance one set decides | papers/sanitisation.py |
Thm 4.3 | (1−(m−1)δ)/(E+δ) ≤ e^k ≤ (E+(m−1)δ)/(1−δ) | papers/sanitisation.py |
(4.10) | The lower end clamps at 0 | papers/sanitisation.py | +
Thm 4.4 | Bounds of the error, both attained | papers/sanitisation.py |
(4.14) | The same, per person | papers/sanitisation.py |
Thm 4.5 | The exponential mechanism is the product sanitisation | families/sanitisation.py |
(4.16) | e^k = 1 + 1/p − m | papers/sanitisation.py |
Thm 4.6 | (1−δ)/(E+m−1) ≤ p ≤ min(1/(m−1), (E+δ)/(1+(m−1)E)) | papers/sanitisation.py |
Thm 4.7 | Bounds of the product's error | papers/sanitisation.py |
Figure 4.1 | Least δ against k; limits 1 and 1/(m−1) | papers/thesis.py |
Thm 4.8 | p = (1−δ)/(E+m−1) has the least error | families/sanitisation.py |
Lemma 5.1 | Columns are not negative | notions/ldp_polytope.py |
Lemma 5.2 | A tight pair is the column's least and largest entry | notions/ldp_polytope.py |
Thm 5.1 | Extreme iff the tight constraints have full rank | notions/ldp_polytope.py |
Thm 5.2 | rank = number of columns in use | notions/ldp_polytope.py |
Cor 5.1 | No constant column beside others | notions/ldp_polytope.py |
Thm 5.3 | Permutations of extreme points are extreme | notions/ldp_polytope.py |
Thm 5.4 | Tight rows of a column have rank m iff it is zero | notions/ldp_polytope.py |
Thm 5.5 | At most m − (columns in use) loose entries | notions/ldp_polytope.py |
Lemma 5.3 | At most one loose entry in a row | notions/ldp_polytope.py |
Lemma 5.4 | No row is constant over the columns in use | notions/ldp_polytope.py |
Thm 5.6 | Faces with empty columns have their own extreme points | notions/ldp_polytope.py |
Thm 5.7 | One column: the m constant ones | notions/ldp_polytope.py |
Cor 5.2 | ε = 0: these only | notions/ldp_polytope.py |
Thm 5.8 | Two columns: no loose entry | notions/ldp_polytope.py |
Cor 5.3 | They swap w and E·w | notions/ldp_polytope.py |
Example 5.2 | Loose entries of two matrices | notions/ldp_polytope.py |
Example 5.3 | An extreme point of two columns | notions/ldp_polytope.py |
Thm 5.9 | Full rank and no loose entry: extreme | notions/ldp_polytope.py |
Cor 5.4 | Without loose entries, extreme iff of full rank | notions/ldp_polytope.py |
Cor 5.5 | With all columns in use, extreme iff full rank and no loose entry | notions/ldp_polytope.py |
Thm 5.10 | For m ≤ 3 there are no others | notions/ldp_polytope.py |
§5.5 counts | 4, 33 and 904 extreme points for m = 2, 3, 4 | notions/ldp_polytope.py |
§5.5 m = 5 | An extreme point with a loose entry | notions/ldp_polytope.py |
Thm 6.1, (6.4) | The estimator of one share | kinds/decoder.py |
Cor 6.1, (6.6) | It is unbiased; its variance | tables/objectives.py |
(6.7) | The margin's factor at 95% is √20; 4.5 is a rounding | estimate/margins.py | !
(6.8), its proof | The second derivative is −2/n, not −2 | | !
Cor 6.2, (6.8) | Largest variance at π clamped to [0, 1]; 1/(4k²n) is a bound | estimate/worst_case.py | +
(6.9), (6.10) | Warner's error and its largest | families/randomised_response.py |
(6.11), (6.12) | Mangat's error; largest (1−p_m)/(p_m n) if p_m ≤ ½ | families/randomised_response.py | +
Thm 6.2 | E/(E+1) is best for two answers | families/randomised_response.py |
Lemma 6.1 | The optimum lies on the boundary | families/binary.py |
(6.21) | r_δ(0) = 1 + e^−ε(δ − ½) | families/binary.py | +
Lemma 6.2 | The variance is least at an end of the boundary; derivative with exponent 6 | families/binary.py | +
Lemma 6.3 | Which side of the boundary is better | families/binary.py |
Thm 6.3 | The optimum on the closure of p00, p11 ≥ ½ | families/binary.py |
(6.22) | g: the uneven mechanism is best below it | papers/thesis_formulas.py |
Cor 6.3 | The same for π ≥ ½ | families/binary.py |
Thm 6.3 on all of R | There (1, δ) is best where min(π, 1−π) < h | families/binary.py | +
Example 6.1 | All its numbers | tables/objectives.py |
Figure 6.1 | Where (s, s) and (r, ½) have equal errors | papers/thesis.py |
(6.24) | Degree of privacy violation | measures/levels.py |
Thm 6.4 | It is P(1 given report 1) where p00 + p11 > 1 | measures/levels.py |
Cor 6.4 | P(1 given report 0) where p00 + p11 < 1 | measures/levels.py |
(6.28), (6.30) | Warner's parameter for a violation | families/randomised_response.py |
§6.4.2 | Mangat's: (α−π)/(α(1−π)) | families/randomised_response.py |
Thm 6.5 | Mangat is as efficient at least; a bracket and 1/n are missing | papers/thesis_formulas.py | +
Figure 6.2 | Warner against Mangat; the printed curve, from (6.12), is too low for p_m < ½ | papers/thesis.py | +
Thm 6.6 | Without sampling Mangat errs by (1−π)(1−p_m)/(p_m n) | estimate/figures.py |
(6.31) | Its largest; Figure 6.3's gap at small p_m is an artefact | estimate/figures.py | +
Figure 6.3 | No gap for p_m ≤ ½; printed (2p_m−1)²/(4p_m²), 16 at p_m = 1/10 | papers/thesis.py | !
§6.5.1 | Without sampling Warner errs by (1/(4(2p_w−1)²) − ¼)/n | estimate/figures.py |
Def 6.3 | The super-binary Mangat model | families/randomised_response.py |
Thm 6.7 | Its likelihood equations | kinds/likelihood.py |
Cor 6.5 | Their solution; a maximum on the simplex only if N₁ ≤ N_j for all j | kinds/likelihood.py | +
Thm 6.8 | Error of the first share | kinds/decoder.py |
Cor 6.6 | Its largest is (m−1)/n for m > 2, not m²/(4n) | estimate/worst_case.py | !
Lemma 6.4 | Two moments | |
Thm 6.9 | Error of the other shares | kinds/decoder.py |
Cor 6.7 | Its largest is (½ + 1/m)²/n | estimate/worst_case.py |
Mangat is no DP | One report comes from one answer only: ε = ∞ | frankly_protocol/audit/notions.py | +
""",
)
FUNNEL = _read(
    "Funnel",
    """
Def 1 | ε-LDP of a secret | frankly_protocol/audit/ratios.py |
Def 2 | ε-LIP | frankly_protocol/audit/ratios.py |
Def 3 | ε-SRLIP | frankly_protocol/audit/ratios.py |
Lemma 1 | ε-LDP ⇒ ε-LIP ⇒ 2ε-LDP and I(S;Y) ≤ ε | measures/levels.py |
Lemma 1 reversed | ε/2-LIP ⇒ ε-LDP, not the reverse, which the text states once | | +
Remark 1 | The answer's own level holds under every prior | measures/levels.py |
Thm 1 | Theorem 3's polytope has a + 2c inequalities, not 2ac | notions/cones.py | !
Thm 2 | The optimum under LDP of a secret; its a(a−1) dimensions are not needed | optimum/programme.py | +
Thm 3 | The optimum under LIP | optimum/programme.py |
Lemma 2 | SRLIP ⇒ LIP | measures/levels.py |
Thm 4 | False: factors with ε^j do not give Σε^j-SRLIP | papers/sequential.py | +
Figure 3 | LIP ≥ LDP, little is lost, less at larger ε | papers/funnel_optima.py |
Figure 4 | LDP ≥ ε/2-LIP, likewise | papers/funnel_optima.py |
Figure 5 | The information of Theorem 4's product | |
(24) | LIP level of any mechanism | measures/levels.py |
(25), (26) | Of randomised response | families/randomised_response.py |
(26), zero cells | LIP(identity) is infinite, α finite for every level | families/randomised_response.py | +
(27), (28), (29) | Of unary encoding | families/sets.py |
§VI.A OUE at a = 16 | Infeasible only as a table of 2^a reports | frankly_protocol/audit/sets.py | +
Algorithm 1 corrected | e^α where e^α0 is printed | families/conditional_reporting.py | +
Prop 1 | LIP level of Conditional Reporting, L(α) | families/conditional_reporting.py |
Prop 2 | It is α-LDP of the secret, L(α) ≤ α | families/conditional_reporting.py |
(30), (31) | The formulas of both | families/conditional_reporting.py |
Figure 6 | Its points; "GRR and CR lie between Opt-LIP and OUE" fails | papers/funnel_families.py | +
Figure 7 | The more answers per secret, the more CR gains | papers/funnel_families.py |
Figure 8 | Correlations .982, .989, .973 | papers/funnel_families.py |
Figure 9 | α of GRR and CR on Adult | papers/funnel_families.py |
(43) corrected | δ_xy beside e^α | families/conditional_reporting.py | +
§VI.B information | I(X;Y) averages over S; may exceed Opt-LIP | families/conditional_reporting.py | +
(51) corrected | Unbiased only if the published p_S is the true one | families/conditional_reporting.py | +
""",
)
ROBUST = _read(
    "Robust",
    """
Def 1 | (ε, F)-RLDP | frankly_protocol/audit/ratios.py |
Def 2 | ε-LDP of the answer | frankly_protocol/audit/ratios.py |
Def 3 | The polyhedron; its rows s₁ = s₂ are not needed | notions/cones.py | +
Def 4 | Secret randomised response | families/robust/secret_rr.py |
Def 5 | Independent Reporting | families/robust/independent_reporting.py |
(9) coverage | 1 − β in the limit only; .92-.93 at 240 cells | notions/balls.py | +
Example 1 | B = .0752, with F⁻¹(.95) where F⁻¹(.05) is printed | notions/balls.py | +
(21) | The Rényi divergence of two distributions | papers/ball_product.py |
Thm 1 | F_s is the ball of radius B_s | notions/balls.py |
Lemma 1 | ξ₋ and ξ₊ of order 2 | notions/balls.py |
§4.1 F′ | F ⊊ F′, extreme in one projection at most: for α ≥ 1, not for every α < 1 | papers/ball_product.py | +
(37) | F′ as printed leaves out members of F | papers/ball_product.py | !
Prop 1 | L and rad by ξ | notions/balls.py |
Prop 1, domain of ξ | ρξ ≤ 1; 1 − e^−B_s as ρ → 0; ξ₋ = 0 for some α < 1 | notions/balls.py | +
Prop 2 | L of order 2 | notions/ball_bounds.py |
Prop 2 (34) corrected | rad of order 2 | notions/balls.py | +
Example 2 | B_s, L, rad: the printed ones are of another, too small formula | notions/ball_bounds.py | !
Thm 2 | The polytopes contain the ball | frankly_protocol/audit/ratios.py |
Thm 3 | PolyOpt is a linear programme over vertices | optimum/programme.py |
Example 3 | .4228 nats and its vertices; "I_P* = .2804" is ε*, I_P* = .3702 | papers/ball_leakage.py | !
Prop 3 | Private under every distribution iff ratios between secrets are ≤ E | families/robust/secret_rr.py |
Lemma 2 | Secret randomised response satisfies Proposition 3 | families/robust/secret_rr.py |
Example 4 | Its figures | families/robust/secret_rr.py |
Thm 4 | It is optimal for large levels | families/robust/secret_rr.py |
(A122)-(A124) | The printed dual does not satisfy (A126) | | !
Lemma 3 | Two averages of an ε-LDP mechanism | families/robust/independent_reporting.py |
Thm 5 | δ₂ = ln(1 + 2(e^ε₂ − 1)/d) | families/robust/independent_reporting.py |
(69), d = 0 | d ≤ 2, and d = 0 reveals the value | families/robust/independent_reporting.py | +
Thm 6 | I = I(S;Y¹) + I(U;Y² beside Y¹) | families/robust/independent_reporting.py |
(82) | Several local maxima in ε₂, often best at an end | families/robust/independent_reporting.py | +
Example 5 | Its figures, with the rad of Theorem 1 | families/robust/independent_reporting.py |
Table 2 | SRR (42×6: .0045); IR .219 .134 .032 for .512 .169 .055 | families/robust/independent_reporting.py | !
Table 2, PolyOpt | .727, .723, .719 for 2 × 5; .374, .372, .370 for 5 × 2 | optimum/programme.py |
Figure 2 | Independent Reporting on Adult | families/robust/independent_reporting.py |
Figure 3 | NR ≥ PolyOpt ≥ IR and SRR ≥ GRR; IR ≥ SRR on large alphabets | papers/robust_utility.py |
Figure 4 | ε* above ε for NR, at most ε for PolyOpt | papers/robust_trust.py |
Figure 5 | Information under estimate and truth less than 3% apart | papers/robust_trust.py |
""",
)
LIFT = _read(
    "Lift",
    """
Def 1 | ε-LIP | frankly_protocol/audit/ratios.py |
Def 2 | ε-LDP of a secret | frankly_protocol/audit/ratios.py |
Def 3 | ALIP | frankly_protocol/audit/ratios.py |
Def 4 | Refinements of a partition | families/lift/groups.py |
Def 5 | ℓ1-, χ²- and α-lift, T, χ², Sibson | measures/lift.py |
Def 6 | Their inverses | measures/lift.py |
eq. 11 | Information of merged groups | families/lift/groups.py |
Thm 1 | Merging leaks least | families/lift/complete_merging.py |
Prop A2 | The same for Λ and Ψ | families/lift/complete_merging.py |
Prop 1 | What ALIP bounds, with both levels | papers/lift_bounds.py | +
Prop 1.1 | I(S;Y) ≤ ε_u | papers/lift_bounds.py |
Prop 1.2 | T ≤ (M−1)(1−m)/(M−m), χ² ≤ (M−1)(1−m) | papers/lift_bounds.py | +
Prop 1.3 | Sibson, Arimoto ≤ ε_u; printed α/(α−1)·ε_u, negative for α < 1 | papers/lift_bounds.py | +
Prop 1.4 | Γ ≤ M/m | papers/lift_bounds.py |
Prop 2 | LDP finds fewer answers of high risk | families/lift/groups.py |
Prop 3 | ℓ1-, χ²-, α-lift under ALIP | papers/lift_bounds.py | +
Prop 3.1 | ℓ1 ≤ 2(M−1)(1−m)/(M−m) | papers/lift_bounds.py | +
Prop 3.2 | χ² ≤ (M−1)(1−m) | papers/lift_bounds.py | +
Prop 3.3 | α-lift ≤ M | papers/lift_bounds.py |
Prop 4 | The largest lift from an average | papers/lift_bounds.py | +
Prop 4.1 | Λ ≤ 1 + ℓ1/P | papers/lift_bounds.py |
Prop 4.2 | Λ ≤ 1 + √(χ²/P); the root is missing | papers/lift_bounds.py | +
Prop 4.3 | Λ ≤ α-lift/P^(1/α) | papers/lift_bounds.py |
Prop 5 | Inverses under ALIP | papers/lift_bounds.py | +
Prop 5.1 | ℓ1-inverse ≤ max(1/m − 1, 1 − 1/M) | papers/lift_bounds.py | +
Prop 5.2 | χ²-inverse ≤ its square | papers/lift_bounds.py | +
Prop 5.3 | α-inverse ≤ 1/m | papers/lift_bounds.py |
Prop 6 | The least lift from an inverse | papers/lift_bounds.py | +
Prop 6.1 | Ψ ≥ P/(P + ℓ1) | papers/lift_bounds.py |
Prop 6.2 | Ψ ≥ √P/(√P + √χ²); roots are missing | papers/lift_bounds.py | +
Prop 6.3 | Ψ ≥ P^(1/α)/α-inverse | papers/lift_bounds.py |
Prop A1 | Levels that rule out breaches both ways | measures/breach.py |
Prop A1, printed proof | Upward only; downward needs both levels | papers/lift_bounds.py | +
Algorithm 1 | Subset merging, repaired: every group keeps the levels | families/lift/merging.py |
Algorithm 2 | Subset random response, likewise; the optimum up to 100,000 columns | families/lift/subset_rr.py |
§4.1 | Risk Λ + 1/Ψ; the printed Λ + Ψ gives .35 for .73 | notions/lift_criteria.py | +
§4.2 | "Constraints satisfied in all cases" fails as printed | families/lift/groups.py | +
§5.1 | A group is feasible iff its merged report keeps the levels | families/lift/subset_rr.py | +
Figure 1 | Ranges of least and largest lifts | measures/lift.py |
Figure 2 | Watchdog on random priors: .52; AORR .94 | families/lift/complete_merging.py |
Figure 3 | Adult: .735, .287 | families/lift/complete_merging.py |
Figure 4 | AORR: .94 | optimum/programme.py |
Figure 5 | Adult: .960 | optimum/programme.py |
Figure 6 | Subset merging: .73 | families/lift/merging.py |
Figure 7 | Adult: .734 | families/lift/merging.py |
Figure 8 | AORR ≥ SRR ≥ subset merging | families/lift/subset_rr.py |
Figure 9 | Adult: the same order | families/lift/subset_rr.py |
Figure 10 | 200 answers and 15 secrets: the same order, levels kept | families/lift/subset_rr.py |
Figure 11 | ℓ1-lift relaxes ALIP | notions/lift_criteria.py |
Figure 12 | χ²-lift relaxes ALIP | notions/lift_criteria.py |
Figure 13 | α-lift, the less the larger α | notions/lift_criteria.py |
""",
)
CLAIMS = {"Thesis": THESIS, "Funnel": FUNNEL, "Robust": ROBUST, "Lift": LIFT}
