// SPDX-License-Identifier: Apache-2.0
/** Explain the documents under a policy with this cap on δ, optionally with the budget. */
async ({payloads, arms = [], keys, deltaCap = "0", preview = false, language = "en"}) => {
  const names = ["canonical", "documents", "explain", "ledger", "levels", "budget", "arms"];
  const [canonical, documents, explaining, {Policy}, {reportLevel}, {budgetOf}, {viewOf}] = await Promise.all(names.map((name) => import(`/sdk/${name}.js`)));
  const policy = new Policy({deltaCap});
  await explaining.learn(language);
  return Promise.all(payloads.map(async (text, i) => {
    const bytes = canonical.bytesOf(text), whole = await documents.readSurvey(bytes, await canonical.digestOf(bytes));
    const survey = arms[i] ? viewOf(whole, arms[i]) : whole, level = reportLevel(survey, policy.allowed);
    return String(explaining.explain(survey, level, keys, undefined, preview ? budgetOf(policy, survey, level, [], false) : undefined));
  }));
}
