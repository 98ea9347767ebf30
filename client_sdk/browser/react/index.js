// SPDX-License-Identifier: Apache-2.0
"use client";
/**
 * Frankly for React: `<FranklySurvey>` wraps the custom element as a component, and `useFrankly` the client as a hook.
 * Both only delegate: questions, checks and draws are those of `@frankly/sdk`. Both can be rendered on a server,
 * without a DOM.
 */

import { createElement, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Client } from "../src/index.js";
import "../src/element.js";

// React warns about layout effects on servers, because they never run there.
const useBeforePaint = globalThis.document ? useLayoutEffect : useEffect;

/** Property of the component -> event of the element. */
const EVENTS = {
  onOpened: "frankly-opened", onPlanned: "frankly-planned", onSealed: "frankly-sealed", onSent: "frankly-sent",
  onQueued: "frankly-queued", onRefused: "frankly-refused", onLogRenamed: "frankly-log_renamed", onLanguage: "frankly-language", onError: "frankly-error",
};

/** The element `<frankly-survey>`; with `enabled={false}` nothing is rendered, fetched or stored. */
export function FranklySurvey({ enabled = true, ...props }) {
  return enabled ? createElement(Shown, props) : null;
}

function Shown({ link, options, strings, cap, finalSurveys, store, token, ...props }) {
  const element = useRef(null), listeners = useRef(props);
  const attributes = Object.fromEntries(Object.entries(props).filter(([name]) => !Object.hasOwn(EVENTS, name)));
  listeners.current = props; // a new listener function must not open the survey again
  useBeforePaint(() => {
    const leaving = new AbortController();
    for (const [property, event] of Object.entries(EVENTS))
      element.current.addEventListener(event, (told) => listeners.current[property]?.(told.detail, told), { signal: leaving.signal });
    return () => leaving.abort();
  }, []);
  // The element reads its options when its link is set, so the link is set last, not rendered.
  useBeforePaint(() => {
    Object.assign(element.current, { ...(options && { options }), ...(strings && { strings }) });
    if (link) element.current.setAttribute("link", link);
    else element.current.removeAttribute("link");
  }, [link]);
  return createElement("frankly-survey", {
    ...attributes, ref: element, cap, store, token: token ?? undefined, "final-surveys": finalSurveys?.join(" "),
    suppressHydrationWarning: true,
  });
}

const OPENING = { status: "opening", client: null, error: null };
const DISABLED = { status: "disabled", client: null, error: null };

/**
 * Return the opened client of a link, for apps that show the questions themselves: `status` is opening, ready, failed or
 * disabled. `options` are those of `Client.open`, read when the link is opened. The client is closed with the component.
 */
export function useFrankly(link, { enabled = true, ...options } = {}) {
  const [state, setState] = useState(enabled && link ? OPENING : DISABLED), given = useRef(options);
  given.current = options;
  useEffect(() => {
    if (!enabled || !link) return void setState(DISABLED);
    let left = false, opened = null;
    setState(OPENING);
    Client.open(link, given.current).then((client) => {
      if (left) return client.close();
      opened = client;
      setState({ status: "ready", client, error: null });
    }, (error) => left || setState({ status: "failed", client: null, error }));
    return () => {
      left = true;
      opened?.close();
    };
  }, [link, enabled]);
  return state;
}
