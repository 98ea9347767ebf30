// SPDX-License-Identifier: Apache-2.0
/**
 * Frankly for Vue: `FranklySurvey` wraps the custom element as a component, and `useFrankly` the client as a
 * composable. Both only delegate: questions, checks and draws are those of `@frankly/sdk`. Both can be rendered on a
 * server, without a DOM.
 */

import { defineComponent, h, onBeforeUnmount, onMounted, shallowReadonly, shallowRef, toValue, watch } from "vue";
import { Client } from "../src/index.js";
import "../src/element.js";

const EVENTS = ["opened", "planned", "sealed", "sent", "queued", "refused", "log_renamed", "language", "error"];

/** The component that renders the element while `enabled` is true. */
const Shown = defineComponent({
  props: { link: String, options: Object, strings: Object, cap: String, finalSurveys: Array, store: String, token: String },
  emits: EVENTS,
  setup(props, { emit }) {
    const element = shallowRef(null);
    // The element reads its options when its link is set, so the link is set last, not rendered.
    const open = () => {
      Object.assign(element.value, { ...(props.options && { options: props.options }), ...(props.strings && { strings: props.strings }) });
      if (props.link) element.value.setAttribute("link", props.link);
      else element.value.removeAttribute("link");
    };
    onMounted(() => {
      for (const name of EVENTS) element.value.addEventListener(`frankly-${name}`, (told) => emit(name, told.detail, told));
      open();
    });
    watch(() => props.link, () => element.value && open());
    return () => h("frankly-survey", {
      ref: element, cap: props.cap, store: props.store, token: props.token, "final-surveys": props.finalSurveys?.join(" "),
    });
  },
});

/** The element `<frankly-survey>`; with `enabled` false nothing is rendered, fetched or stored. */
export const FranklySurvey = defineComponent({
  name: "FranklySurvey",
  inheritAttrs: false,
  props: { enabled: { type: Boolean, default: true } },
  setup: (props, { attrs }) => () => (props.enabled ? h(Shown, attrs) : null),
});

const OPENING = { status: "opening", client: null, error: null };
const DISABLED = { status: "disabled", client: null, error: null };

/**
 * Return a ref to the opened client of a link (a value, ref or getter), for apps that show the questions themselves:
 * `status` is opening, ready, failed or disabled. `options` are those of `Client.open`, read when the link is opened.
 */
export function useFrankly(link, { enabled = true, ...options } = {}) {
  const state = shallowRef(toValue(enabled) && toValue(link) ? OPENING : DISABLED);
  let attempt = 0;
  const leave = () => {
    attempt++;
    state.value.client?.close();
  };
  const open = async ([address, isEnabled]) => {
    leave();
    const mine = attempt;
    state.value = isEnabled && address ? OPENING : DISABLED;
    if (state.value === DISABLED) return;
    try {
      const client = await Client.open(address, options);
      if (mine === attempt) state.value = { status: "ready", client, error: null };
      else client.close();
    } catch (error) {
      if (mine === attempt) state.value = { status: "failed", client: null, error };
    }
  };
  onMounted(() => watch([() => toValue(link), () => toValue(enabled)], open, { immediate: true }));
  onBeforeUnmount(leave);
  return shallowReadonly(state);
}
