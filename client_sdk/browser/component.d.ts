// SPDX-License-Identifier: Apache-2.0
/** Types that the components for React and Vue share. */
import type { Client, Options } from "./frankly.d.ts";
import type { FranklyElementEvents, Strings } from "./element.d.ts";

/** What is set on the element, the link last. */
export interface Opened {
  /** The survey's link, including the pin; without a link, the element waits for one. */
  link?: string | null;
  /** Options of `Client.open` and strings for more languages; both are read when the link is set. */
  options?: Options;
  strings?: Strings;
}

export interface Attributes {
  cap?: string;
  finalSurveys?: string[];
  store?: string;
  token?: string | null;
}

export interface Properties extends Opened, Attributes {
  /** If false, nothing is rendered, fetched or stored. */
  enabled?: boolean;
  lang?: string;
}

/** A listener for each event of the element, called with the event's detail, and the event. */
export type Listeners = {
  [Name in keyof FranklyElementEvents as Name extends `frankly-${infer Event}` ? `on${Capitalize<Event>}` : never]?:
    (detail: FranklyElementEvents[Name]["detail"], event: FranklyElementEvents[Name]) => void;
};

export type FranklyState =
  | { status: "opening" | "disabled"; client: null; error: null }
  | { status: "ready"; client: Client; error: null }
  | { status: "failed"; client: null; error: Error };
