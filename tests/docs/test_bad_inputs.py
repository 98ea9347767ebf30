# SPDX-License-Identifier: Apache-2.0
"""Tests of each kind of bad input; a kind for which no test exists fails here."""

import ast
import os
import re
import signal
from pathlib import Path

import pytest
from frankly_design.requests.estimate import estimate_json
from frankly_protocol.problems import Problem
from frankly_server.keys.durable import written_whole

DEFINITION = "frankly_server/surveys/test_definition.py"
SURVEYS = "frankly_server/surveys/test_surveys.py"
PRIOR = "frankly_design/notions/test_prior.py"
ASKED = "frankly_design/requests/test_claims.py"
ENGINE = "frankly_design/engine/test_engine.py"
REPORTS = "frankly_server/web/test_reports.py"
ROUTES = "frankly_server/web/test_routes.py"
INTAKE = "frankly_server/intake/test_intake.py"
TOKENS = "frankly_server/intake/test_tokens.py"
ANALYSIS = "frankly_server/analysis/test_analysis.py"
DATABASE = "frankly_server/store/test_database.py"
ACCEPTANCE = "frankly_sdk/test_acceptance.py"
ANSWER = "frankly_sdk/test_answer.py"
HOSTILE = "faults/test_hostile_servers.py"
SLOW = "faults/server/test_slow.py"
DOORS = "frankly_server/web/test_closed_doors.py"
HERE = "docs/test_bad_inputs.py"

# Row -> (bad input, the tests of what the user sees, as paths below tests/).
ROWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "1": ("a level of NaN, anywhere in JSON", (
        "frankly_protocol/test_bounds.py::test_bad_levels_are_refused_by_name",
        "frankly_protocol/test_canonical.py::test_infinite_numbers_and_nan_are_refused_by_field")),
    "2": ("a level of 0, below 0, tiny, huge", (
        "frankly_protocol/test_bounds.py::test_bad_levels_are_refused_by_name",
        f"{DEFINITION}::test_faults_name_their_field")),
    "3": ("a level that is not a plain decimal string", (
        "frankly_protocol/test_bounds.py::test_bad_levels_are_refused_by_name",
        f"{DEFINITION}::test_faults_name_their_field")),
    "4": ("a prior that does not sum to one", (f"{PRIOR}::test_the_error_names_the_sum", f"{PRIOR}::test_bad_priors")),
    "5": ("a prior of a wrong shape or value", (f"{PRIOR}::test_bad_priors",)),
    "6": ("a secret without mass", (f"{PRIOR}::test_empty_secrets_and_answers_are_refused",)),
    "7": ("a choice without mass", (
        f"{PRIOR}::test_empty_secrets_and_answers_are_refused",
        f"{ENGINE}::test_answers_without_mass_are_protected_by_ldp")),
    "8": ("a prior of a few people", (
        f"{DEFINITION}::test_priors_that_cannot_be_used",
        f"{DEFINITION}::test_small_cells_of_public_data_are_accepted")),
    "9": ("an optimum that is the identity", (
        f"{SURVEYS}::test_unchanged_answers_must_be_accepted_explicitly",
        f"{ENGINE}::test_the_identity_must_be_accepted_explicitly")),
    "10": ("0, 1 or 65 choices", (f"{DEFINITION}::test_faults_name_their_field",)),
    "11": ("choices that look alike", (
        f"{DEFINITION}::test_colliding_choices_are_both_named",
        "frankly_server/surveys/test_lookalikes.py::test_verdicts",
        "frankly_server/surveys/test_lookalikes.py::test_doubtful_labels_are_a_warning")),
    "12": ("invisible characters", (
        "frankly_protocol/test_schema.py::test_invisible_and_control_characters_are_named",
        f"{DEFINITION}::test_every_script_and_emoji_are_accepted")),
    "13": ("a programme that cannot be solved", (
        "frankly_design/tables/test_linear.py::test_failed_programmes_name_alternatives",
        f"{ASKED}::test_bad_requests_are_refused_by_field")),
    "14": ("rounding that cannot keep the promise", (
        "frankly_design/tables/test_quantise.py::test_rows_outside_the_notion_are_refused",
        f"{SURVEYS}::test_a_mechanism_that_breaks_its_promise_is_never_signed")),
    "15": ("a mechanism that cannot tell choices apart", (
        f"{SURVEYS}::test_claims_that_cannot_be_promised_are_not_published",
        f"{ENGINE}::test_groups_of_answers_that_can_be_estimated_are_listed")),
    "16": ("delta, alpha or a radius out of range", (
        f"{ASKED}::test_bad_requests_are_refused_by_field",
        f"{ASKED}::test_a_vacuous_radius_falls_back_to_ldp_between_secrets")),
    "17": ("a document without the required signatures", (
        f"{ACCEPTANCE}::test_unacceptable_documents_are_refused_by_name",
        "frankly_protocol/test_envelope.py::test_thresholds_count_distinct_trusted_keys")),
    "18": ("invalid rows and weights", (
        "frankly_protocol/test_dense.py::test_tables_that_are_no_mechanism_are_refused",
        "frankly_protocol/test_documents.py::test_faults_are_named_by_reason_and_field")),
    "19": ("a level below what the weights need", (
        "frankly_protocol/test_every_kind.py::test_levels_just_below_the_needed_one_are_refused",)),
    "19b": ("a document that takes too long to verify", (
        "frankly_protocol/audit/test_work.py"
        "::test_a_document_one_unit_over_the_limit_is_refused_unverified",)),
    "20": ("a level above the app's cap", (
        "frankly_sdk/test_policy.py::test_a_form_over_the_cap_is_refused_by_reason",)),
    "21": ("a promise under a prior, without a pin", (
        f"{ACCEPTANCE}::test_without_a_pin_prior_based_promises_are_refused",)),
    "21b": ("two promises about one secret", (
        "frankly_protocol/audit/test_report_level.py::test_a_second_block_about_the_same_secret_counts_its_ceiling",
        "frankly_sdk/test_policy.py::test_a_form_over_the_cap_is_refused_by_reason")),
    "22": ("an older version, or two documents of one version", (
        f"{ACCEPTANCE}::test_an_older_version_is_a_rollback",
        f"{ACCEPTANCE}::test_two_documents_of_one_version_are_kept_as_evidence")),
    "23": ("outside opening times", (f"{ACCEPTANCE}::test_outside_the_window_both_times_are_shown",)),
    "24": ("a chain of keys with a gap, or too long", (
        "frankly_protocol/trust/test_chain.py::test_one_version_missing_or_unsigned_by_the_old_roots_breaks_the_chain",
        "frankly_protocol/trust/test_chain.py::test_a_chain_has_at_most_1024_versions")),
    "25": ("an unknown notion or type", (
        "frankly_protocol/test_notions.py::test_the_error_for_an_unknown_notion_suggests_an_update",
        f"{ACCEPTANCE}::test_unacceptable_documents_are_refused_by_name")),
    "26": ("an unknown choice", (f"{ANSWER}::test_wrong_answers_list_what_is_valid_and_are_not_repeated",)),
    "27": ("a second answer", (f"{ANSWER}::test_a_second_answer_is_refused_and_never_drawn",)),
    "28": ("a survey that closed after the seal", (
        "frankly_sdk/test_delivery.py::test_a_survey_that_closed_after_the_seal_is_erased_and_still_counts",)),
    "29": ("a store that cannot be used", (
        f"{ANSWER}::test_a_store_that_cannot_be_used_stops_everything",
        "frankly_sdk/test_store.py::test_a_full_disk_is_detected_before_any_draw",
        f"{ANSWER}::test_a_locked_store_stops_before_sampling")),
    "30": ("no randomness", ("faults/test_randomness.py::test_a_failing_urandom_sends_nothing",)),
    "31": ("no TLS, redirects, pages of proxies", (
        "faults/test_wire.py::test_redirects_are_not_followed",
        "frankly_sdk/test_transport.py::test_a_refused_connection_is_a_network_error_and_plain_http_is_not_used",
        f"{HOSTILE}::test_hostile_receipts_leave_the_report_sealed")),
    "32": ("endless, slow, exploding, deep responses", (
        f"{HOSTILE}::test_opening_ends_with_a_typed_error_in_bounded_memory",
        f"{HOSTILE}::test_one_byte_a_second_ends_within_the_deadline")),
    "33": ("absurd Retry-After", (
        "frankly_sdk/test_delivery.py::test_retry_after_is_honoured_if_it_is_a_number_of_seconds",
        "frankly_sdk/test_delivery.py::test_retry_after_is_honoured_for_at_most_a_day")),
    "34": ("threads, processes and forks that race", (
        "faults/test_one_value.py::test_32_threads_send_one_value",
        "faults/test_one_value.py::test_32_processes_send_one_value",
        "faults/test_one_value.py::test_a_fork_between_seal_and_send_sends_one_value")),
    "35": ("a report's bytes: too long, cut, endless, of another kind", (
        f"{REPORTS}::test_invalid_bytes_are_refused",
        f"{REPORTS}::test_a_body_that_ends_early_is_400",
        f"{REPORTS}::test_a_body_without_a_length_is_still_bounded",
        f"{REPORTS}::test_other_content_types_are_refused",
        f"{SLOW}::test_slow_and_malformed_senders_get_an_error_in_time_and_delay_no_one",
        f"{SLOW}::test_a_report_that_timed_out_is_accepted_later")),
    "36": ("a report's JSON: repeated keys, long numbers, unknown fields, wrong types", (
        f"{REPORTS}::test_invalid_bytes_are_refused",
        f"{REPORTS}::test_a_bad_field_is_refused_by_name")),
    "37": ("symbols that cannot be", (
        f"{REPORTS}::test_a_bad_field_is_refused_by_name",
        f"{INTAKE}::test_bad_reports_are_refused_counted_and_not_stored")),
    "38": ("another survey or document", (
        f"{REPORTS}::test_an_unknown_survey_of_any_name_is_404",
        f"{INTAKE}::test_a_document_of_another_survey_is_a_mismatch",
        f"{INTAKE}::test_a_superseded_document_counts_until_its_own_closing")),
    "39": ("too early, too late", (f"{REPORTS}::test_before_opening_and_after_closing",)),
    "40": ("the same id again", (
        f"{REPORTS}::test_accepted_once_then_duplicate_then_conflict",
        "faults/server/test_copies.py::test_the_first_of_two_bodies_is_stored_and_the_other_refused")),
    "41": ("tokens: missing, changed, of another survey, spent", (
        f"{TOKENS}::test_an_invite_opens_its_survey_once",
        f"{TOKENS}::test_one_token_and_many_racing_reports_make_one")),
    "42": ("a database that is down, busy, locked", (
        f"{ROUTES}::test_a_database_that_is_down_is_503_with_retry_after",
        f"{DATABASE}::test_a_pool_without_free_connections_is_unavailable",
        f"{DATABASE}::test_a_file_locked_by_another_program_is_unavailable",
        f"{INTAKE}::test_nothing_is_acknowledged_when_storing_fails",
        "faults/server/test_kill.py::test_server_and_database_killed_on_postgresql")),
    "43": ("changing what is published", (
        f"{SURVEYS}::test_a_change_becomes_a_new_version_and_the_old_version_stays",
        f"{DOORS}::test_no_method_changes_a_document",
        f"{DOORS}::test_another_mechanism_is_a_new_version_and_the_old_one_continues",
        f"{DOORS}::test_concurrent_publishing_creates_one_version",
        f"{DOORS}::test_pages_answer_409_to_changes_of_a_closed_survey")),
    "44": ("another organisation's survey; an analyst instead of an admin; a revoked key", (
        f"{DOORS}::test_the_three_refusals_of_the_api",
        f"{DOORS}::test_an_analyst_opens_no_form_of_an_admin",
        "frankly_server/web/admin/test_matrix.py::test_every_route_for_every_caller",
        "frankly_server/web/admin/test_matrix.py::test_a_page_of_another_organisation_looks_nonexistent",
        f"{ROUTES}::test_estimates_need_a_key",
        f"{ROUTES}::test_a_revoked_key_is_401_and_another_role_403")),
    "45": ("injections and misused headers", (
        f"{ROUTES}::test_bad_paths_and_queries",
        f"{ROUTES}::test_every_response_has_the_same_headers_and_no_identifier",
        "frankly_server/web/test_schemathesis.py::test_every_operation_responds_as_declared",
        "frankly_server/web/test_etags.py::test_other_conditions_are_ignored",
        "frankly_server/web/test_garbage.py::test_no_request_to_a_page_causes_a_server_error")),
    "46": ("no reports, or too few", (f"{ANALYSIS}::test_too_few_reports_give_no_number",)),
    "47": ("estimates outside the unit interval", (
        f"{ANALYSIS}::test_estimates_outside_the_unit_interval_are_flagged_not_clipped",)),
    "48": ("reports that the mechanism cannot send", (
        "frankly_design/estimate/test_poisoning.py::test_every_attack_stays_within_and_the_worst_reaches_the_bound",
        f"{HERE}::test_reports_that_do_not_fit_are_flagged",
        "frankly_design/kinds/test_kinds.py::test_an_impossible_sum_of_bits_is_flagged")),
    "49": ("a confidence level of 0, 1 or 95; a nearly singular mechanism", (
        f"{ANALYSIS}::test_confidence_levels_out_of_range",
        f"{ROUTES}::test_levels_outside_zero_and_one_are_explained",
        "frankly_design/estimate/test_estimator.py::test_an_ill_conditioned_mechanism_is_flagged")),
    "50": ("several versions", (
        f"{ANALYSIS}::test_versions_with_the_same_question_are_pooled",
        f"{ANALYSIS}::test_versions_with_different_questions_are_not_pooled")),
    "51": ("key files that must not be used; files that exist", (
        "frankly_server/keys/test_keyring.py::test_unusable_key_files_are_refused_with_a_remedy",
        "frankly_server/cli/test_keys.py::test_init_never_overwrites")),
    "52": ("interrupted while writing", (
        f"{HERE}::test_a_file_has_its_old_or_its_new_content_never_a_mixture",
        "frankly_server/keys/test_keyring.py::test_an_interrupted_init_leaves_no_partial_files")),
    "53": ("files of other editors", (
        "frankly_server/cli/test_survey_counts.py::test_tables_of_any_editor_become_the_prior",
        "frankly_server/cli/test_survey_counts.py::test_a_bad_table_ends_with_code_3_and_its_line",
        "frankly_server/surveys/test_csv_prior.py::test_a_bad_table_is_refused_with_its_line",
        f"{DEFINITION}::test_byte_order_marks_and_line_ends_of_other_editors_are_accepted",
        "frankly_server/surveys/test_yaml.py::test_a_refusal_does_not_repeat_the_file")),
    "54": ("a start that could break a promise", (
        f"{DATABASE}::test_start_is_refused_when_postgresql_commits_before_the_disk",
        f"{DATABASE}::test_unsafe_settings_are_named",
        f"{DATABASE}::test_start_is_refused_on_an_unknown_schema_version",
        "frankly_server/cli/test_serve.py::test_it_refuses_debug",
        f"{SURVEYS}::test_nothing_is_published_without_a_trusted_key")),
    "55": ("a form that does not fit together", (
        "frankly_server/surveys/test_form_definition.py::test_errors_name_their_field_and_the_fix",
        "frankly_design/requests/test_design_form.py::test_faults_name_their_field",
        "frankly_design/requests/test_plan_form.py::test_faults_name_their_field")),
}  # fmt: skip


def test_every_bad_input_is_listed() -> None:
    assert set(ROWS) == {str(row) for row in range(1, 56)} | {"19b", "21b"}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_shown_by_tests_that_run_by_default(root: Path, row: str) -> None:
    _, names = ROWS[row]
    assert names
    for name in names:
        file, _, function = name.partition("::")
        assert function in default_tests(root / "tests" / file), name


def test_the_page_has_every_row_and_names_codes_that_exist(root: Path) -> None:
    text = (root / "docs" / "bad_inputs.md").read_text(encoding="utf-8")
    rows = {
        row: cells
        for row, cells in re.findall(r"^\| (\w+) \| (.*) \|$", text, re.MULTILINE)
        if row[0].isdigit()
    }
    assert set(rows) == set(ROWS)
    errors = (root / "docs" / "errors.md").read_text(encoding="utf-8")
    flags = {"insufficient", "reports_do_not_fit", "true", "Retry-After", "1_0", " 1 ", "--counts"}
    for row, cells in rows.items():
        for status, code in re.findall(r"(?:([0-9]{3}) )?`([^`]+)`", cells):
            problem = Problem.from_code(code)
            if status:
                assert problem is not None, row
                assert problem.status == int(status), (row, code)
            assert problem is not None or f"| `{code}` |" in errors or code in flags, (row, code)


def default_tests(file: Path) -> set[str]:
    """Return the names of a file's tests that run without --full."""
    return {
        node.name
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and not any("full_only" in ast.unparse(mark) for mark in node.decorator_list)
    }


OLD, NEW = b"old" * 1000, b"new" * 1000


@pytest.mark.parametrize("how", ["interrupted", "killed", "finished"])
def test_a_file_has_its_old_or_its_new_content_never_a_mixture(tmp_path: Path, how: str) -> None:
    """A separate process is interrupted, is killed half-way, or finishes."""
    path = tmp_path / "file"
    path.write_bytes(OLD)
    child = os.fork()
    if child == 0:
        try:
            with written_whole(path, replace=True) as file:
                file.write(NEW[:1500])
                file.flush()
                if how == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                if how == "interrupted":
                    raise KeyboardInterrupt
                file.write(NEW[1500:])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert path.read_bytes() == (NEW if how == "finished" else OLD)
    leftovers = {entry.name for entry in tmp_path.iterdir()} - {"file"}
    assert how == "killed" or not leftovers


@pytest.mark.parametrize(("counts", "fits"), [([0, 1000], False), ([600, 400], True)])
def test_reports_that_do_not_fit_are_flagged(counts: list[int], fits: bool) -> None:
    """Warner's mechanism at 3 : 1 sends each report with a probability of at least 1/4 for any truth."""
    estimate = estimate_json(
        {"weights": [[12, 4], [4, 12]], "bits": 4, "counts": counts, "beta": 0.01}
    )
    assert ("reports_do_not_fit" in estimate["flags"]) == (not fits)
    assert max(estimate["poisoning"]["up"]) > 0
