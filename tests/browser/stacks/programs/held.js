// SPDX-License-Identifier: Apache-2.0
/**
 * Reads a form of survey-core, a link and values on stdin; protects, answers and completes it in Node in several ways. Writes what
 * the app's listener of onComplete sees in each.
 */
import { readFileSync } from "node:fs";
import { Model } from "survey-core";
import { Client } from "@frankly/sdk";
import { protect } from "@frankly/sdk/surveyjs";

const page = new EventTarget();
Object.assign(globalThis, { isSecureContext: true, addEventListener: page.addEventListener.bind(page) });
const { form, link, values } = JSON.parse(readFileSync(0, "utf8")), results = {}, unreachable = link.replace("/s/", "/none/s/");
const nameOf = (promise) => promise.then(() => "", ({ name, message }) => name + message);
const ways = {
  /** A form that is answered although this person has answered before. */
  async before({ open }) {
    const { answered } = Client.prototype;
    Client.prototype.answered = () => ({ status: "sent", code: "accepted", detail: "" });
    const protectedForm = await open(link);
    Client.prototype.answered = answered;
    return protectedForm;
  },
  async cleared({ model, open, enter }) {
    const protectedForm = await open(link);
    enter();
    await protectedForm.receipt;
    model.clear();
    return protectedForm;
  },
  async again({ open, said }) {
    said.first = await nameOf(open(unreachable));
    return open(link);
  },
  async twice({ open, said }) {
    const protectedForm = open(link);
    said.second = await nameOf(open(link));
    return protectedForm;
  },
  async reopened({ model, open, enter, said }) {
    (await open(link)).close();
    enter();
    said.closed = model.state;
    return open(link);
  },
  /** A form that is switched on again. */
  async switched({ model, open, enter, said }) {
    said.off = [];
    for (const options of [{ enabled: false }, { client: { enabled: false } }]) {
      const off = await protect(model, link, options);
      said.off.push((await off.receipt).status, off.client);
      off.close();
      enter();
    }
    said.state = model.state;
    return open(link);
  },
  async off({ model, said }) {
    const off = await protect(model, link, { client: { enabled: false } });
    said.isReadOnly = model.getAllQuestions().some((one) => one.isReadOnly);
    return off;
  },
  /** A form that is filled in while the survey is verified. */
  async early({ model, open, said }) {
    const protectedForm = open(link), isReadOnly = () => model.getAllQuestions().every((one) => one.isReadOnly);
    said.held = isReadOnly();
    await protectedForm;
    said.released = !isReadOnly();
    return protectedForm;
  },
};
for (const [name, way] of Object.entries(ways)) {
  const model = new Model(form), seen = [], said = {};
  model.onComplete.add(({ data }) => seen.push({ ...data }));
  const open = (address) => protect(model, address, { client: { allowMemory: true, store: name, policy: { cap: "9" } }, onWarning: () => undefined });
  const enter = () => {
    for (const [question, value] of Object.entries(values)) model.setValue(question, value);
    model.completeLastPage();
  };
  const protectedForm = await way({ model, open, enter, said });
  enter();
  const { status } = await protectedForm.receipt;
  await new Promise((done) => setTimeout(done));
  results[name] = { seen, status, state: model.state, said };
  protectedForm.close();
}
process.stdout.write(`${JSON.stringify(results)}\n`, () => process.exit(0));
