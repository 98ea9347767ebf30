// SPDX-License-Identifier: Apache-2.0
/**
 * Reads a form of survey-core on stdin. Without a link, writes the questions of a survey's file that asks the same, and the map
 * from the form's names and values to their ids. With a link and that map, protects, fills in and completes the form, and
 * writes what happened.
 */
import { readFileSync } from "node:fs";
import { Model, settings } from "survey-core";
import { protect } from "@frankly/sdk/surveyjs";
import { kindOf, offered } from "../../../../client_sdk/browser/surveyjs/form.js";

const page = new EventTarget(), requests = [], noted = [];
Object.assign(globalThis, { isSecureContext: true, addEventListener: page.addEventListener.bind(page) });
globalThis.XMLHttpRequest = class { open(_, url) { requests.push(url); } setRequestHeader() {} send() {} };
for (const name of ["warn", "error"]) console[name] = (text) => noted.push(String(text));
settings.animationEnabled = false;
settings.environment ??= {}; // what survey-core needs of a page to show an error
const { form, link, map = {} } = JSON.parse(readFileSync(0, "utf8")), model = new Model(form);
const questions = model.getAllQuestions().filter((one) => !["html", "image"].includes(one.getType()));
const typesOf = (list) => list.map((one) => one.getType());

function survey() {
  const used = new Set(), signed = [];
  let size = 0; // of the form, which has at most 100 questions and boxes
  const idOf = (text, taken) => {
    const plain = String(text).toLowerCase().normalize("NFKD").replace(/[^a-z0-9]+/g, "-").slice(0, 30).replace(/^-|-$/g, "") || "v";
    for (let i = 1; ; i += 1) {
      const id = i === 1 ? plain : `${plain}-${i}`;
      if (!taken.has(id)) return taken.add(id) && id;
    }
  };
  for (const question of questions) {
    const kind = kindOf(question), values = kind === "number" ? [] : [...new Set(offered(question))], ids = new Set(["not-applicable"]);
    const rows = kind === "rows" ? question.rows : [undefined];
    size += kind === "many" ? values.length + 1 : rows.length;
    if (!kind || (kind !== "number" && (values.length < 2 || values.length > 60)) || size > 100 || !rows.length) continue;
    const isBoolean = question.getType() === "boolean", chosen = values.map((value) => {
      const key = isBoolean ? [question.valueFalse ?? "no", question.valueTrue ?? "yes"][Number(value)] : value, text = isBoolean && typeof key === "boolean" ? ["no", "yes"][Number(value)] : key;
      return (map[`${question.name}=${text}`] = idOf(text, ids));
    });
    const choices = chosen.map((id) => ({ id, label: { en: `Choice ${id}` } }));
    for (const row of rows) {
      const name = row ? `${question.name}.${row.value}` : question.name, id = (map[name] = idOf(name, used)), asked = { id, text: { en: `Question ${id}` }, not_applicable: true };
      signed.push(kind === "many" ? { ...asked, type: "multi", boxes: choices } : kind === "number" ? { ...asked, ranges: [0, 10, 100] } : { ...asked, choices });
    }
  }
  return { types: typesOf(questions), questions: signed, map };
}

async function answered() {
  let seen;
  model.onComplete.add(({ data }) => (seen = { ...data }));
  const { receipt, warnings, close } = await protect(model, link, { map, client: { allowMemory: true, store: "published", policy: { cap: "60" } }, onWarning: () => undefined });
  const left = model.getAllQuestions(false, false, true).filter((one) => !["html", "image"].includes(one.getType()) && !one.name.startsWith("frankly"));
  for (let round = 0; round < 4; round += 1) for (const question of left) {
    const kind = kindOf(question), values = kind === "number" ? [question.min ?? 5] : offered(question), [first] = values;
    if (!question.isVisibleInSurvey || !kind || !question.isEmpty() || question.isReadOnly) continue;
    if (kind === "rows") question.value = Object.fromEntries(question.visibleRows.map(({ name }) => [name, first]));
    else question.value = kind === "many" ? values.slice(0, question.minSelectedChoices || 1) : question.getType() === "boolean" ? question.getValueTrue() : first;
  }
  const isValid = model.tryComplete() || model.validate(false), wrong = left.filter((one) => one.errors.length).map((one) => `${one.getType()}: ${one.errors[0].getText()}`);
  const result = isValid ? await Promise.race([receipt, new Promise((resolve) => setTimeout(() => resolve({ status: `open: ${noted.at(-1)}` }), 8000))]) : { status: "invalid" };
  close();
  return { status: result.status, wrong, seen, left: typesOf(left), variables: model.getVariableNames(), warnings: warnings.map(({ type, reason }) => [type, reason]) };
}
const result = await (link ? answered().catch((error) => ({ failed: `${error.name}: ${error.message}`, faults: error.faults })) : survey());
process.stdout.write(`${JSON.stringify({ ...result, requests })}\n`, () => process.exit(0));
