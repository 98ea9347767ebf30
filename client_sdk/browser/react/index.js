// SPDX-License-Identifier: Apache-2.0
"use client";
/**
 * Frankly for React: `<FranklySurvey>` wraps the custom element as a component, and `useFrankly` the client as a hook.
 * Both only delegate: questions, checks and draws are those of `@frankly/sdk`. Both can be rendered on a server,
 * without a DOM.
 */

import { createElement, useEffect, useLayoutEffect, useRef, useState } from "react";
import { DISABLED, EVENTS, OPENING, attributesOf, openClient, openIn } from "../component.js";

// React warns about layout effects on servers, because they never run there.
const useBeforePaint = globalThis.document ? useLayoutEffect : useEffect;

/** Property of the component for an event: onLogRenamed for log_renamed. */
const propertyOf = (event) => `on_${event}`.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const LISTENERS = Object.fromEntries(EVENTS.map((event) => [propertyOf(event), `frankly-${event}`]));

/** The element `<frankly-survey>`; with `enabled={false}` nothing is rendered, fetched or stored. */
export function FranklySurvey({ enabled = true, ...props }) {
  return enabled ? createElement(Shown, props) : null;
}

function Shown({ link, options, strings, cap, finalSurveys, store, token, ...props }) {
  const element = useRef(null), listeners = useRef(props);
  const others = Object.fromEntries(Object.entries(props).filter(([name]) => !Object.hasOwn(LISTENERS, name)));
  listeners.current = props; // a new listener function must not open the survey again
  useBeforePaint(() => {
    const leaving = new AbortController();
    for (const [property, event] of Object.entries(LISTENERS))
      element.current.addEventListener(event, (told) => listeners.current[property]?.(told.detail, told), { signal: leaving.signal });
    return () => leaving.abort();
  }, []);
  useBeforePaint(() => openIn(element.current, { link, options, strings }), [link]);
  return createElement("frankly-survey", {
    ...others, ...attributesOf({ cap, finalSurveys, store, token }), ref: element, suppressHydrationWarning: true,
  });
}

/**
 * Return the opened client of a link, for apps that show the questions themselves: `status` is opening, ready, failed or
 * disabled. `options` are those of `Client.open`, read when the link is opened. The client is closed with the component.
 */
export function useFrankly(link, { enabled = true, ...options } = {}) {
  const [state, setState] = useState(enabled && link ? OPENING : DISABLED), given = useRef(options);
  given.current = options;
  useEffect(() => (enabled && link ? openClient(link, given.current, setState) : setState(DISABLED)), [link, enabled]);
  return state;
}
