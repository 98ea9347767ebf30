// SPDX-License-Identifier: Apache-2.0
// A draft, shown by the element that respondents use. It runs on this page alone: nothing is stored, and no report leaves.

// Without it, the element keeps everything in memory until the page is left.
Object.defineProperty(globalThis, "indexedDB", { value: undefined });

const main = document.querySelector("main"), status = main.querySelector("[role=status]"), { draft, returnTo, completionCode } = main.dataset;
const reply = (body) => new Response(body, { headers: { "Content-Type": "application/json" } });

const show = async () => {
  const asked = async () => (await fetch(draft, { credentials: "same-origin" })).json();
  let told = await asked();
  // The preview of an earlier state may still be computed, or those of others.
  for (let tries = 0; told.busy && tries < 40; tries++) {
    await new Promise((done) => setTimeout(done, 1500));
    told = await asked();
  }
  told.refused ??= told.busy;
  if (told.refused) {
    status.textContent = `No preview: ${told.refused}`;
    return;
  }
  const [{ FranklySurvey }, { SEAMS }] = await Promise.all([import("/sdk/v1/element.js"), import("/sdk/v1/seams.js")]);
  const survey = new FranklySurvey();
  const fetcher = async (address, { body }) => {
    if (address.endsWith("/keys/chain")) return reply(told.chain);
    if (address.includes("/document")) return reply(told.envelope);
    return reply(JSON.stringify({ id: JSON.parse(new TextDecoder().decode(body)).id, status: "accepted" }));
  };
  survey.options = { allowMemory: true, spreadMs: 0, [SEAMS]: { fetch: fetcher } };
  survey.setAttribute("served", "");
  if (returnTo) survey.setAttribute("return-to", returnTo.replace("{id}", ""));
  if (completionCode) survey.setAttribute("completion-code", completionCode);
  // The frame's address names a language, and perhaps a question to begin with.
  const [, , question] = location.hash.split(/[#/]/);
  const speak = () => { [, survey.lang] = location.hash.split(/[#/]/); };
  speak();
  addEventListener("hashchange", speak);
  survey.addEventListener("frankly-language", ({ detail }) => {
    document.documentElement.lang = detail.language;
    status.remove();
    if (question) queueMicrotask(() => survey.shadowRoot.querySelector(`[id="question-${question}"], [id^="question-${question}-"]`)?.scrollIntoView());
  });
  survey.setAttribute("link", told.link);
  main.append(survey);
};

show().catch(() => { status.textContent = "No preview: the server does not respond, or is busy. Reload the page."; });
