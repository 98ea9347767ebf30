// SPDX-License-Identifier: Apache-2.0
async ({payloads, keys}) => {
  const [canonical, documents, explaining] = await Promise.all(["canonical", "documents", "explain"].map((name) => import(`/sdk/${name}.js`)));
  return Promise.all(payloads.map(async (text) => {
    const bytes = canonical.bytesOf(text), survey = documents.readSurvey(bytes, await canonical.digestOf(bytes));
    return String(explaining.explain(survey, keys));
  }));
}
