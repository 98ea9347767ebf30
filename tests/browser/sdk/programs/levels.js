// SPDX-License-Identifier: Apache-2.0
async ({payloads, cap}) => {
  const [canonical, documents, levels, {rational}] = await Promise.all(["canonical", "documents", "levels", "rational"].map((name) => import(`/sdk/${name}.js`)));
  const said = (ratio) => ratio && rational(...ratio).map(String), deltaCap = rational(...cap);
  return Promise.all(payloads.map(async (text) => {
    const bytes = canonical.bytesOf(text), level = levels.reportLevel(await documents.readSurvey(bytes, await canonical.digestOf(bytes)), deltaCap);
    return {
      secrets: [...level.secrets].map(([name, s]) =>
        [name, said(s.level), said(s.odds), s.unit, said(s.delta), s.counted, said(s.strataLift), said(s.strataOdds)]),
      answers: [level.answers.level, level.answers.odds, level.answers.delta].map(said),
      cost: [level.cost.odds, level.cost.delta, level.ceiling].map(said),
      lines: level.lines.map(({block, countedBy, odds, delta}) => [block, countedBy, said(odds), said(delta)]),
      posteriors: level.posteriors.map(({block, secret, sensitive, bound}) => [block, secret, sensitive, said(bound)]),
    };
  }));
}
