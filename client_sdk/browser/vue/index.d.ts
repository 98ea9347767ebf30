// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/vue`; importing it also types `<frankly-survey>` in templates and TSX. */
import type { DefineComponent, HTMLAttributes, MaybeRefOrGetter, ShallowRef } from "vue";
import type { Client, FranklyEvent, Options } from "../frankly.d.ts";
import type { ErrorDetail, FranklyAttributes, Strings } from "../element.d.ts";

export interface FranklySurveyProps {
  /** The survey's link, including the pin; without a link, the element waits for one. */
  link?: string | null;
  /** If false, nothing is rendered, fetched or stored. */
  enabled?: boolean;
  /** Options of `Client.open` and strings for more languages; both are read when the link is set. */
  options?: Options;
  strings?: Strings;
  lang?: string;
  cap?: string;
  finalSurveys?: string[];
  store?: string;
  token?: string | null;
  onOpened?: (detail: FranklyEvent, event: CustomEvent<FranklyEvent>) => void;
  onPlanned?: (detail: FranklyEvent, event: CustomEvent<FranklyEvent>) => void;
  onSealed?: (detail: FranklyEvent, event: CustomEvent<FranklyEvent>) => void;
  onSent?: (detail: FranklyEvent, event: CustomEvent<FranklyEvent>) => void;
  onQueued?: (detail: FranklyEvent, event: CustomEvent<FranklyEvent>) => void;
  onRefused?: (detail: FranklyEvent, event: CustomEvent<FranklyEvent>) => void;
  onLog_renamed?: (detail: FranklyEvent, event: CustomEvent<FranklyEvent>) => void;
  onLanguage?: (detail: { language: string }, event: CustomEvent<{ language: string }>) => void;
  onError?: (detail: ErrorDetail, event: CustomEvent<ErrorDetail>) => void;
}

export const FranklySurvey: DefineComponent<FranklySurveyProps>;

export type FranklyState =
  | { status: "opening" | "disabled"; client: null; error: null }
  | { status: "ready"; client: Client; error: null }
  | { status: "failed"; client: null; error: Error };

/** Return a ref to the client opened for a link; it is closed with the component. `options` are read when the link is opened. */
export function useFrankly(
  link: MaybeRefOrGetter<string | null | undefined>,
  options?: Options & { enabled?: MaybeRefOrGetter<boolean> },
): Readonly<ShallowRef<FranklyState>>;

declare module "vue" {
  interface GlobalComponents { "frankly-survey": DefineComponent<FranklyAttributes & HTMLAttributes>; }
}
