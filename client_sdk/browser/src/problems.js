// SPDX-License-Identifier: Apache-2.0
/**
 * Codes after which a device erases its report, by status, as in frankly_protocol/problems.py. After any other reply
 * it sends the report again until the survey closes: a server may have lost its survey or its invitations for a while, and a
 * malformed report may have been damaged on the way.
 */

/** @type {Record<number, string>} */
export const FINAL = {
  403: "token_foreign", 409: "id_conflict token_spent", 410: "closed", 422: "symbol_unknown strata_invalid",
};

const CODES = Object.values(FINAL).join(" ").split(" ");

/** Return the code of a problem of the protocol, else one for the reply's status. @returns {string} */
export const codeOf = (/** @type {number} */ status, /** @type {any} */ { code, status: said }) =>
  said === status && typeof code === "string" && /^[a-z_]{1,40}$/.test(code) && (isFinal(status, code) || !CODES.includes(code)) ? code : status < 300 ? "no_receipt" : `http_${status}`;

/** Return true if a report is erased after this refusal. */
export const isFinal = (/** @type {number} */ status, /** @type {string} */ code) => (FINAL[status] ?? "").split(" ").includes(code);
