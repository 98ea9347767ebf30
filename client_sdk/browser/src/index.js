// SPDX-License-Identifier: Apache-2.0
/** Frankly in a web page: verify a survey, randomise the answers exactly, seal and send one report. */

import { Client as Core } from "./client.js";
import { speak } from "./errors.js";
import { explain } from "./explain.js";
import { compare } from "./rational.js";
import { inWords } from "./texts.js";

speak(inWords);

export class Client extends Core {
  static open(/** @type {string} */ link, /** @type {import("../frankly.d.ts").Options} */ options = {}) {
    return /** @type {Promise<Client>} */ (super.open(link, options));
  }

  /** Return an explanation of questions, report and privacy bounds; show it before asking (step 11). Of a survey with arms it is about the plan's, without a plan about the one that costs most. */
  explain(
    /** @type {string | undefined} */ language = undefined, /** @type {import("../frankly.d.ts").Budget | undefined} */ budget = undefined, texts = {},
    /** @type {{arm: string | null} | undefined} */ plan = undefined,
  ) {
    const { survey, level } = this.view(plan ?? { arm: mostOf(this.level?.arms) });
    return explain(survey, level, this.signedBy ?? [], language, budget, texts);
  }
}

/** Return the arm with the largest cost, the first of equals; null without arms. @returns {string | null} */
const mostOf = (/** @type {Record<string, import("./ledger.js").ReportLevel>} */ arms = {}) =>
  Object.keys(arms).reduce((/** @type {string | null} */ most, arm) => (most !== null && compare(arms[arm].cost.odds, arms[most].cost.odds) <= 0 ? most : arm), null);

export * from "./core.js"; // everything except its Client
export { explain, learn } from "./explain.js";
