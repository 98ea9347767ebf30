# SPDX-License-Identifier: Apache-2.0
"""Claims that the design engine relies on but none of the four papers makes, with the tests that
show them."""

from typing import NamedTuple


class Beyond(NamedTuple):
    """A claim that is in none of the four papers.

    says : the claim in one line. code : a file under design/frankly_design or shared. tests :
    "module::function", anywhere in tests.
    """

    says: str
    code: str
    tests: tuple[str, ...]


BEYOND = (
    Beyond(
        "Equally likely answers, ε-LDP: a subset selection has the least variance (Ye and Barg "
        "2018), one the most information, at any number of answers",
        "optimum/variance/symmetric.py",
        (
            "test_symmetric::test_the_optimum_is_the_best_subset_selection",
            "test_symmetry::test_the_table_of_few_answers_is_no_better",
            "test_symmetry::test_designs_of_many_answers_are_a_few_bytes",
        ),
    ),
    Beyond(
        "What is not symmetric gets a table",
        "optimum/solver.py",
        ("test_symmetry::test_asymmetric_requests_give_a_table",),
    ),
    Beyond(
        "Information and Hamming error of unary encodings and subset selections: by enumeration "
        "of sets to 16 answers, by their sizes for equally likely ones",
        "kinds/set_figures.py",
        (
            "test_set_figures::test_figures_equal_those_of_the_table",
            "test_set_figures::test_many_equal_answers",
            "test_set_figures::test_figures_under_an_uneven_prior_are_computed_for_at_most_sixteen_answers",
        ),
    ),
    Beyond(
        "Which notion implies which, at which level, and which does not",
        "frankly_protocol/audit/notions.py",
        (
            "test_implications::test_arrows_hold_for_random_mechanisms",
            "test_implications::test_sharp_levels_are_attained",
            "test_implications::test_missing_arrows_have_counterexamples",
            "test_implications::test_every_pair_of_notions_is_settled",
        ),
    ),
    Beyond(
        "pml and pmc are the two sides of alip",
        "requests/levels.py",
        (
            "test_verify::test_pml_and_pmc_are_the_sides_of_alip",
            "test_notions::test_pml_and_pmc_are_published_as_alip_and_listed_by_name",
        ),
    ),
    Beyond(
        "Under PML at even shares the optima have closed forms; at small levels one mechanism is "
        "best for all objectives",
        "engine/engine.py",
        (
            "test_pml::test_optima_have_the_closed_forms_of_the_page",
            "test_pml::test_small_levels_have_one_extremal_mechanism",
            "test_pml::test_just_above_the_small_levels_there_are_more_columns",
        ),
    ),
    Beyond(
        "metric-ldp: chains of levels change nothing, equal levels are LDP, the order of a pair "
        "counts",
        "notions/cones.py",
        (
            "test_metric::test_chains_of_levels_do_not_change_the_cone",
            "test_metric::test_equal_levels_are_ldp",
            "test_metric::test_the_order_of_a_pair_counts",
        ),
    ),
    Beyond(
        "metric-ldp: optima are certified, and lie between those of LDP",
        "optimum/solver.py",
        (
            "test_metric::test_optima_are_certified_and_lie_between_those_of_ldp",
            "test_metric::test_columns_are_generated_where_rays_are_too_many",
        ),
    ),
    Beyond(
        "The hull of utility-optimised LDP is a choice of levels of metric-ldp",
        "notions/cones.py",
        (
            "test_metric::test_rays_of_the_hull_are_protected_or_reveal_a_harmless_answer",
            "test_metric::test_a_column_of_the_hull_is_a_sum_of_both_kinds",
            "test_metric::test_the_hull_of_utility_optimised_ldp_is_designed",
        ),
    ),
    Beyond(
        "Beside a ceiling all vertices can be listed in a small description of the cone, so "
        "variance and information are certified",
        "notions/cones.py",
        (
            "test_cones::test_the_projection_of_lifted_rows_is_the_cone",
            "test_walk::test_the_small_description_reaches_every_extreme_ray",
            "test_listing::test_variance_under_a_ceiling_is_certified",
            "test_listing::test_information_is_proved_by_the_list",
        ),
    ),
    Beyond(
        "Fewer targets than answers: every request is designed and certified",
        "optimum/variance/dual.py",
        (
            "test_low_rank::test_random_requests_are_designed_and_certified",
            "test_low_rank::test_shares_of_several_questions_answered_together",
        ),
    ),
    Beyond(
        "… but no gap below about 5e-7 is promised: a share of 1e-7 goes to a mechanism of full "
        "rank",
        "optimum/variance/dual.py",
        ("test_low_rank::test_a_gap_below_the_reserved_share_may_be_out_of_reach",),
    ),
)
