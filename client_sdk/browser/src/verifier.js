// SPDX-License-Identifier: Apache-2.0
/** The worker that verifies a survey beside the page (step 9): it answers null, or what the document is refused with. */

import { readSurvey, requireAllPrivate } from "./documents.js";
import { DocumentRejected } from "./errors.js";

globalThis.onmessage = async (/** @type {MessageEvent<{payload: Uint8Array, digest: string}>} */ { data: { payload, digest } }) => {
  const verdict = await readSurvey(payload, digest).then((survey) => requireAllPrivate(survey)).then(() => null, (error) => {
    if (error instanceof DocumentRejected) return [/** @type {any} */ (error).reason, error.field, ...error.said];
    return undefined; // a part could not be loaded: the page will say so itself
  });
  globalThis.postMessage(verdict);
};
