// SPDX-License-Identifier: Apache-2.0
/** Frankly in a web page: verify a survey, randomise the answers exactly, seal and send one report. */

import { Client as Core } from "./client.js";
import { speak } from "./errors.js";
import { explain } from "./explain.js";
import { inWords } from "./texts.js";

speak(inWords);

export class Client extends Core {
  static open(/** @type {string} */ link, /** @type {import("../frankly.d.ts").Options} */ options = {}) {
    return /** @type {Promise<Client>} */ (super.open(link, options));
  }

  /** Return an explanation of questions, report and privacy bounds; show it before asking (step 11). */
  explain(/** @type {string | undefined} */ language = undefined, /** @type {import("../frankly.d.ts").Budget | undefined} */ budget = undefined, texts = {}) {
    const survey = /** @type {import("./survey.js").Survey} */ (this.survey), level = /** @type {import("./ledger.js").ReportLevel} */ (this.level);
    return explain(survey, level, this.signedBy ?? [], language, budget, texts);
  }
}
export * from "./core.js"; // everything except its Client
export { explain, learn } from "./explain.js";
