// SPDX-License-Identifier: Apache-2.0
async ({link, at, choices}) => {
  const violations = [], events = [];
  addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
  const {FranklySurvey} = await import("/sdk/element.js"), {Client} = await import("/sdk/index.js");
  const {withSeams} = await import("/sdk/testing.js");
  const survey = new FranklySurvey();
  survey.options = withSeams({spreadMs: 0}, {now: () => at});
  const ended = new Promise((done) => {
    const asked = () => {
      for (const [question, choice] of Object.entries(choices)) survey.shadowRoot.querySelector(`input[name=${question}][value=${choice}]`)?.click();
      const button = survey.shadowRoot.querySelector("button");
      if (button) button.click();
      else if (survey.shadowRoot.querySelector("[role=status][tabindex]")) done();
      else setTimeout(asked, 50);
    };
    for (const name of ["opened", "sealed", "sent", "error"]) survey.addEventListener(`frankly-${name}`, () => events.push(name));
    survey.addEventListener("frankly-opened", () => setTimeout(asked, 50));
    for (const name of ["sent", "error"]) survey.addEventListener(`frankly-${name}`, done);
  });
  survey.setAttribute("link", link);
  document.querySelector("main").append(survey);
  await ended;
  const client = await Client.open(link, withSeams({spreadMs: 0}, {now: () => at}));
  const found = await client.answered();
  const code = events.includes("sealed") ? null : await client.answer(choices).then(() => "drawn twice", (error) => error.code);
  await fetch("/done.html?" + encodeURIComponent(JSON.stringify({events, status: found?.status ?? null, code, violations})));
}
