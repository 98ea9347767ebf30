// SPDX-License-Identifier: Apache-2.0
/**
 * Reads cases on stdin: a form of survey-core, a link, options, the values that a person enters, and locales to change to;
 * protects and completes the form in Node. Writes what the form shows in each locale, the addresses that it would load, and the
 * data that the app's listener sees.
 */
import { readFileSync } from "node:fs";
import { Model } from "survey-core";
import { protect } from "@frankly/sdk/surveyjs";

const page = new EventTarget(); // what the client needs of a page
Object.assign(globalThis, { isSecureContext: true, addEventListener: page.addEventListener.bind(page) });
const results = [], requests = [];
globalThis.XMLHttpRequest = class { open(_, url) { requests.push(url); } setRequestHeader() {} send() {} };
/** Return what a page that renders the form would load. */
const loaded = (model) => [model.locLogo.renderedHtml, ...model.getAllQuestions().filter(({ isVisible }) => isVisible).flatMap((one) =>
  [one.processedHtml, one.locImageLink?.renderedHtml, ...(one.choices ?? []).map((choice) => choice.locImageLink?.renderedHtml)])].filter(Boolean);
for (const [i, { form, link, options = {}, before = {}, values, locales = [] }] of JSON.parse(readFileSync(0, "utf8")).entries()) {
  const model = new Model(form), shown = {};
  let seen;
  requests.length = 0;
  model.data = before;
  model.onComplete.add(({ data }) => (seen = { ...data }));
  const client = { allowMemory: true, store: `case ${i}`, policy: { cap: "9" } };
  const accepted = await protect(model, link, { ...options, client, onWarning: () => undefined }).catch((error) => {
    for (const [name, value] of Object.entries(values)) model.setValue(name, value);
    results.push({ faults: error.faults ?? error.name, requests: [...requests], loaded: loaded(model) });
  });
  if (!accepted) continue;
  const { receipt, warnings, close } = accepted;
  const panel = model.getPanelByName("frankly"), words = model.getQuestionByName("frankly-explanation");
  const show = () => {
    const notes = Object.fromEntries(model.getAllQuestions().map(({ name, description }) => [name, description]));
    shown[model.locale] = { title: panel.title, named: words.title, description: panel.description, notes, said: words.value };
  };
  show();
  for (const locale of locales) {
    const before = words.value;
    model.locale = locale;
    while (words.value === before) await new Promise((resolve) => setTimeout(resolve, 5));
    show();
  }
  const visible = model.getAllQuestions().filter(({ isVisible }) => isVisible).map(({ name }) => name);
  const rows = model.getAllQuestions().flatMap(({ name, rows: own }) => (Array.isArray(own) ? own : []).map(({ value }) => `${name}-${value}`));
  for (const [name, value] of Object.entries(values)) {
    const [question, isComment] = name.split(model.commentSuffix);
    if (isComment === undefined) model.setValue(name, value);
    else model.setComment(question, value);
  }
  const held = { ...model.data }, addresses = loaded(model), fields = model.getAllQuestions(false, false, true).map(({ name }) => name);
  model.completeLastPage();
  const { status } = await receipt, after = [model.getNavigateToUrl(), model.processedCompletedHtml];
  const autocomplete = model.getAllQuestions().filter((one) => one.getType() === "text").map((one) => one.autocomplete);
  const sending = [model.surveyPostId, Boolean(model.partialSendEnabled)];
  const own = Object.fromEntries(model.getAllQuestions().map((one) => [one.name, [Boolean(one.showOtherItem), Boolean(one.showCommentArea), Boolean(one.isRequired)]]));
  results.push({ shown, autocomplete, sending, own, visible, rows, held, seen, status, fields, after, loaded: addresses, requests: [...requests], warnings: warnings.map(({ question, reason }) => [question, reason]) });
  close();
}
console.log(JSON.stringify(results));
