// SPDX-License-Identifier: Apache-2.0
async ({payloads, folder}) => {
  const [{bytesOf, digestOf}, {readSurvey, requireAllPrivate}] = await Promise.all(["canonical", "documents"].map((name) => import(`${folder}${name}.js`)));
  let last = 0, longest = 0;
  const look = () => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  };
  setInterval(look, 4);
  const found = [];
  for (const payload of payloads) {
    const bytes = bytesOf(payload), survey = await readSurvey(bytes, await digestOf(bytes));
    last = performance.now(), longest = 0;
    const began = performance.now();
    const said = await requireAllPrivate(survey, bytes).then(() => null, (e) => [e.code, e.field, e.said?.[0], String(e.said?.slice(1))]);
    const took = performance.now() - began;
    await new Promise((done) => setTimeout(done, 20));
    found.push({said, took, longest});
  }
  return found;
}
