// SPDX-License-Identifier: Apache-2.0
/** Return, for every case, the charge or the refusal, and the preview with its sentence. */
async ({payloads, cases}) => {
  const names = ["canonical", "documents", "ledger", "levels", "rational", "budget", "texts", "errors"];
  const [canonical, documents, ledger, {reportLevel}, {rational}, {budgetOf}, {inWords}, {speak}] = await Promise.all(names.map((name) => import(`/sdk/${name}.js`)));
  speak(inWords);
  const read = (pair) => pair && rational(...pair.map(BigInt)), said = (ratio) => ratio && rational(...ratio).map(String);
  const surveys = await Promise.all(payloads.map(async (text) => {
    const bytes = canonical.bytesOf(text);
    return documents.readSurvey(bytes, await canonical.digestOf(bytes));
  }));
  return cases.map(({survey: i, policy: limits, pinned, logged, spent, answered}) => {
    const policy = new ledger.Policy(limits), survey = surveys[i], level = reportLevel(survey, policy.allowed);
    const charged = spent.map(([cost, delta]) => ({cost: read(cost), delta: read(delta)}));
    let verdict;
    try {
      const {cost, delta} = policy.check(survey, level, {pinned, logged, spent: charged});
      verdict = [said(cost), said(delta)];
    } catch (error) {
      if (!error.code) throw error;
      verdict = [error.constructor.name, error.code, error.field, error.detail];
    }
    const {toString: _, ...budget} = budgetOf(policy, survey, level, charged, answered);
    return {verdict, budget, words: String(budgetOf(policy, survey, level, charged, answered))};
  });
}
