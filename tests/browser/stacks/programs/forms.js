// SPDX-License-Identifier: Apache-2.0
/** Read cases from stdin: a survey-core form with values, and signed questions; write pairs,
answers, warnings and faults. */
import { readFileSync } from "node:fs";
import { Model } from "survey-core";
import { answerOf, assign } from "../../../../client_sdk/browser/surveyjs/form.js";

const results = JSON.parse(readFileSync(0, "utf8")).map(({ elements, values = {}, signed, map = {}, more = {} }) => {
  const model = new Model({ elements, ...more });
  for (const [name, value] of Object.entries(values)) model.setValue(name, value);
  const { pairs, warnings, faults } = assign(model, signed, map);
  return {
    answers: Object.fromEntries(pairs.map((pair) => [pair.id, answerOf(pair)])),
    warnings: warnings.map(({ question, reason }) => [question, reason]), faults,
  };
});
console.log(JSON.stringify(results));
