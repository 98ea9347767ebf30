// SPDX-License-Identifier: Apache-2.0
/**
 * Frankly for Vue: `FranklySurvey` wraps the custom element as a component, and `useFrankly` the client as a
 * composable. Both only delegate: questions, checks and draws are those of `@frankly/sdk`. Both can be rendered on a
 * server, without a DOM.
 */

import { defineComponent, h, onBeforeUnmount, onMounted, shallowReadonly, shallowRef, toValue, watch } from "vue";
import { DISABLED, EVENTS, OPENING, attributesOf, openClient, openIn } from "../component.js";

/** The component that renders the element while `enabled` is true. */
const Shown = defineComponent({
  props: { link: String, options: Object, strings: Object, cap: String, finalSurveys: Array, store: String, token: String },
  emits: EVENTS,
  setup(props, { emit }) {
    const element = shallowRef(null);
    onMounted(() => {
      for (const name of EVENTS) element.value.addEventListener(`frankly-${name}`, (told) => emit(name, told.detail, told));
      openIn(element.value, props);
    });
    watch(() => props.link, () => element.value && openIn(element.value, props));
    return () => h("frankly-survey", { ref: element, ...attributesOf(props) });
  },
});

/** The element `<frankly-survey>`; with `enabled` false nothing is rendered, fetched or stored. */
export const FranklySurvey = defineComponent({
  name: "FranklySurvey",
  inheritAttrs: false,
  props: { enabled: { type: Boolean, default: true } },
  setup: (props, { attrs }) => () => (props.enabled ? h(Shown, attrs) : null),
});

/**
 * Return a ref to the opened client of a link (a value, ref or getter), for apps that show the questions themselves:
 * `status` is opening, ready, failed or disabled. `options` are those of `Client.open`, read when the link is opened.
 */
export function useFrankly(link, { enabled = true, ...options } = {}) {
  const state = shallowRef(toValue(enabled) && toValue(link) ? OPENING : DISABLED);
  let leave = () => undefined;
  const open = ([address, isEnabled]) => {
    leave();
    const set = (one) => (state.value = one);
    leave = isEnabled && address ? openClient(address, options, set) : () => undefined;
    if (!isEnabled || !address) set(DISABLED);
  };
  onMounted(() => watch([() => toValue(link), () => toValue(enabled)], open, { immediate: true }));
  onBeforeUnmount(() => leave());
  return shallowReadonly(state);
}
