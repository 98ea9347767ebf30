// SPDX-License-Identifier: Apache-2.0
/** The hosted page: it opens the survey of its own address, including the pin. */

import { FranklySurvey } from "./element.js";

const survey = new FranklySurvey();
survey.setAttribute("served", "");
const open = () => survey.setAttribute("link", location.href);
open();
globalThis.addEventListener("hashchange", open); // the visitor followed a link with another pin
survey.addEventListener("frankly-language", (event) => {
  document.documentElement.lang = /** @type {CustomEvent} */ (event).detail.language;
});
for (const name of ["frankly-opened", "frankly-language"]) survey.addEventListener(name, () => queueMicrotask(() => {
  document.title = /** @type {HTMLElement | null} */ (survey.shadowRoot?.querySelector("h1"))?.textContent || document.title;
}));
document.querySelector("main")?.replaceChildren(survey);
