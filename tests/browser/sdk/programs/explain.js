// SPDX-License-Identifier: Apache-2.0
/** Explanations of the documents under a policy with this cap on δ, optionally with the budget. */
async ({payloads, keys, deltaCap = "0", preview = false}) => {
  const names = ["canonical", "documents", "explain", "ledger", "budget"];
  const [canonical, documents, explaining, {Policy}, {budgetOf}] = await Promise.all(names.map((name) => import(`/sdk/${name}.js`)));
  const policy = new Policy({deltaCap});
  return Promise.all(payloads.map(async (text) => {
    const bytes = canonical.bytesOf(text), survey = await documents.readSurvey(bytes, await canonical.digestOf(bytes)), level = policy.level(survey);
    return String(explaining.explain(survey, level, keys, undefined, preview ? budgetOf(policy, survey, level, [], false) : undefined));
  }));
}
