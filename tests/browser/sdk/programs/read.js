// SPDX-License-Identifier: Apache-2.0
/** Return what the page shows of each document, in the parts that the admin's summary has too. */
async (payloads) => {
  const names = ["canonical", "documents", "explain", "ledger", "levels"];
  const [canonical, documents, {explain, learn}, {Policy}, {reportLevel}] = await Promise.all(names.map((name) => import(`/sdk/${name}.js`)));
  const policy = new Policy({});
  return Promise.all(payloads.map(async (text) => {
    const bytes = canonical.bytesOf(text), survey = await documents.readSurvey(bytes, await canonical.digestOf(bytes));
    await learn(survey.languages[0]);
    const told = explain(survey, reportLevel(survey, policy.allowed), ["ab"], survey.languages[0]);
    const [sent, , limits, unprotected] = told.details.map(({heading, paragraphs}) => [heading, paragraphs.flatMap((one) => one.split("\n").map((line) => line.trim()))]);
    return {title: told.title, summary: told.summary, groups: told.consequences.map((one) => [one.names, [...one.sentences, ...one.notes]]),
      overall: told.overall, limits, unprotected, sent};
  }));
}
