// SPDX-License-Identifier: Apache-2.0
/**
 * Codes of the problems with which the survey's server may refuse a report, by status, as in
 * frankly_protocol/problems.py. This module is always loaded, so that a reply can be judged without another request.
 */

/** @type {Record<number, string>} */
export const PROBLEMS = {
  400: "json_invalid bad_request usage", 401: "token_invalid unauthenticated", 403: "token_foreign forbidden",
  404: "survey_unknown not_found log_unknown", 405: "method_not_allowed", 408: "timed_out",
  409: "too_early id_conflict token_spent prior_small_cells immutable file_exists", 410: "closed", 413: "body_too_large", 415: "content_type",
  422: "field_unknown field_missing field_type y_type number_not_finite eps_not_finite symbol_unknown doc_mismatch strata_invalid eps_out_of_range eps_format " +
    "prior_sum prior_shape prior_value secret_empty choice_unprotected choices_count choices_collide text_characters definition_invalid " +
    "budget_exceeded identity_mechanism optimiser_limit mechanism_not_certified not_identifiable unsupported weights_invalid " +
    "confidence_range counts_invalid targets_invalid cosignature_invalid key_file unsafe_setting",
  429: "too_many", 500: "internal", 503: "unavailable",
};

/** Return true if a reply has the form of a refusal by the survey's server. */
export const isKnown = (/** @type {number} */ status, /** @type {unknown} */ code) =>
  (PROBLEMS[status] ?? "").split(" ").includes(/** @type {string} */ (code));
