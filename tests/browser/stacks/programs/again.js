// SPDX-License-Identifier: Apache-2.0
/** Pages whose components are rendered again: with new but equal options, in another language, and after they were hidden. */
import * as react from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { KeepAlive, createApp, h, nextTick, reactive } from "vue";
import * as reactPackage from "@frankly/sdk/react";
import * as vuePackage from "@frankly/sdk/vue";

const place = document.querySelector("main");
/** Return properties that are equal, but new objects, at every rendering. */
const properties = (link, lang) => ({ link, lang, options: { policy: { cap: "5" } }, strings: { tlh: {} }, finalSurveys: [], cap: "5" });

export function mountReact(link) {
  const root = createRoot(place);
  return async ({ lang = "en", isShown = true }) => flushSync(() => root.render(react.createElement(react.Activity, { mode: isShown ? "visible" : "hidden" },
    react.createElement(reactPackage.FranklySurvey, { ...properties(link, lang), onSent: () => undefined }))));
}

export function mountVue(link) {
  const state = reactive({ lang: "en", isShown: true });
  createApp({ render: () => h(KeepAlive, null, { default: () => (state.isShown ? h(vuePackage.FranklySurvey, properties(link, state.lang)) : null) }) }).mount(place);
  return async (changed) => {
    Object.assign(state, { lang: "en", isShown: true }, changed);
    await nextTick();
  };
}
