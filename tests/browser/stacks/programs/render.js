// SPDX-License-Identifier: Apache-2.0
/** Render the React and Vue components on a server, without a DOM, and write the markup. */
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { createSSRApp, h } from "vue";
import { renderToString as renderVue } from "vue/server-renderer";
import * as react from "@frankly/sdk/react";
import * as vue from "@frankly/sdk/vue";

const link = "https://host/s/ID", states = [];
function Own() {
  states.push(react.useFrankly(link).status, react.useFrankly(link, { enabled: false }).status);
  return null;
}
const OwnOfVue = { setup: () => (states.push(vue.useFrankly(link).value.status, vue.useFrankly(link, { enabled: false }).value.status), () => null) };
const shown = [];
for (const enabled of [true, false]) {
  shown.push(renderToString(createElement(react.FranklySurvey, { link, enabled, cap: "4", finalSurveys: ["a", "b"] })));
  shown.push(await renderVue(createSSRApp({ render: () => h(vue.FranklySurvey, { link, enabled, cap: "4", "final-surveys": ["a", "b"] }) })));
}
renderToString(createElement(Own));
await renderVue(createSSRApp(OwnOfVue));
console.log(JSON.stringify({ shown, states, dom: typeof globalThis.document }));
