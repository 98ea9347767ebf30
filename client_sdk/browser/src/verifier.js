// SPDX-License-Identifier: Apache-2.0
/** Worker that verifies a survey (step 9): it replies null, or reason, field and text of the refusal. */

import { readSurvey, requireAllPrivate } from "./documents.js";
import { DocumentRejected } from "./errors.js";

globalThis.onmessage = async (/** @type {MessageEvent<{payload: Uint8Array, digest: string}>} */ { data: { payload, digest } }) => {
  const verdict = await readSurvey(payload, digest).then((survey) => requireAllPrivate(survey)).then(() => null, (error) => {
    if (error instanceof DocumentRejected) return [/** @type {any} */ (error).reason, error.field, ...error.said];
    return undefined; // a part could not be loaded: the page then verifies the survey and reports the error
  });
  globalThis.postMessage(verdict);
};
