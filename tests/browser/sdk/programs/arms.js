// SPDX-License-Identifier: Apache-2.0
/** Read a document with arms; return its level, draws, lengths and what each arm asks. */
async (payload) => {
  const names = ["canonical", "documents", "levels", "survey", "parts", "plans", "rational"];
  const [canonical, documents, levels, survey, {parts}, plans, {rational}] = await Promise.all(names.map((name) => import(`/sdk/${name}.js`)));
  const bytes = canonical.bytesOf(payload), read = await documents.readSurvey(bytes, await canonical.digestOf(bytes)), {arms} = parts;
  const said = (ratio) => ratio && rational(...ratio).map(String);
  const level = (one) => ({
    secrets: [...one.secrets].map(([name, s]) =>
      [name, said(s.level), said(s.odds), s.unit, said(s.delta), s.counted, said(s.strataLift), said(s.strataOdds)]),
    answers: [one.answers.level, one.answers.odds, one.answers.delta].map(said),
    cost: [one.cost.odds, one.cost.delta, one.ceiling].map(said),
    lines: one.lines.map(({block, countedBy, odds, delta}) => [block, countedBy, said(odds), said(delta)]),
    posteriors: one.posteriors.map(({block, secret, sensitive, bound}) => [block, secret, sensitive, said(bound)]),
  });
  const whole = levels.reportLevel(read, [1n, 100n]), views = arms.viewsOf(read);
  return {
    level: level(whole), arms: Object.fromEntries(Object.entries(whole.arms).map(([name, one]) => [name, level(one)])),
    draws: [0, 16383, 16384, 49151, 49152, 65535].map((number) => arms.draw(read, (bits) => bits === 16 ? number : -1)),
    lengths: [read, ...views].map((one) => survey.reportLength(one)), own: views.map((one) => survey.reportLength({...one, longest: undefined})),
    asked: views.map((one) => [...survey.openQuestions(one), ...survey.questionsOf(one)].map(({text}) => text.en)),
    depends: plans.formOf(read),
  };
}
