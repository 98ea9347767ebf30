// SPDX-License-Identifier: Apache-2.0
/**
 * The verifier of a survey. As the script of a worker named `frankly-verifier` it answers its page; a page in which no worker
 * can run calls `check` itself (beside.js).
 */

import { readSurvey, requireAllPrivate } from "./documents.js";
import { DocumentRejected, UnsupportedDocument } from "./errors.js";
import { reportLevel } from "./levels.js";

/** @typedef {import("./rational.js").Rational} Rational */

/**
 * Yield the survey that exact payload bytes contain (steps 4 and 5) and then, if it keeps every promise (step 9), the level of
 * its whole report, with δ up to the app's cap. Throws DocumentRejected.
 * @returns {AsyncGenerator<any, void>}
 */
export async function* check(/** @type {Uint8Array} */ payload, /** @type {string} */ digest, /** @type {Rational} */ deltaCap) {
  const survey = await readSurvey(payload, digest);
  yield survey;
  requireAllPrivate(survey);
  yield reportLevel(survey, deltaCap);
}

/** Return a survey in a form that can be sent to a page, which makes the mechanisms again from their parameters. */
const sendable = (/** @type {any} */ value) =>
  value.blocks ? { ...value, blocks: value.blocks.map((/** @type {any} */ { mechanism: _, ...block }) => block) } : value;

if (/** @type {any} */ (globalThis).name === "frankly-verifier" && !globalThis.document)
  globalThis.onmessage = async ({ data: { port, given } }) => {
    try {
      for await (const value of check(.../** @type {Parameters<typeof check>} */ (given))) port.postMessage({ value: sendable(value) });
    } catch (error) {
      const { reason, field, said } = /** @type {any} */ (error);
      // null for any other error, such as a part that did not load: the page verifies the survey and reports the error
      port.postMessage(error instanceof DocumentRejected ? { refused: [error instanceof UnsupportedDocument ? "" : reason, field, ...said] } : null);
    }
  };
