// SPDX-License-Identifier: Apache-2.0
/** Sources of reports, each with tokens of its own (spec 3.11); loaded for documents that have them. */

import { identifier, reject, requireKeys, under } from "./schema.js";

/** @typedef {import("./survey.js").Token} Token */

/** Read a token rule by source; `one` reads the rule of a source. @returns {Token} */
export function read(/** @type {any} */ value, /** @type {string} */ path, /** @type {(value: any, path: string) => Token} */ one) {
  requireKeys(value, path, ["kind", "question", "rules"]);
  const question = identifier(value.question, under(path, "question"), {}), { rules } = value, at = under(path, "rules");
  if (!rules || typeof rules !== "object" || Array.isArray(rules)) throw reject(at, "source_rules");
  return { kind: "sources", question, rules: Object.fromEntries(Object.keys(rules).sort().map((name) => [name, one(rules[name], under(at, name))])) };
}

/** Throw unless the sources are the choices of a public question, of every arm. */
export function requireSources(/** @type {import("./survey.js").Survey} */ { token, strata }) {
  const { question, rules = {} } = /** @type {Token} */ (token), asked = strata.find(({ id }) => id === question);
  if (!asked) throw reject("token.question", "source_question");
  if (JSON.stringify(asked.choices.map(({ id }) => id).sort()) !== JSON.stringify(Object.keys(rules).sort())) throw reject("token.rules", "source_choices");
}
