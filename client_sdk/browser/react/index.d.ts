// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/react`; importing it also types `<frankly-survey>` in TSX. */
import type { DetailedHTMLProps, HTMLAttributes, ReactElement, Ref } from "react";
import type { Client, FranklyEvent, Options } from "../frankly.d.ts";
import type { ErrorDetail, FranklyAttributes, FranklySurvey as Element, Strings } from "../element.d.ts";

/** A listener is called with the event's detail, and the event. */
export type Listener<Detail> = (detail: Detail, event: CustomEvent<Detail>) => void;

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
  className?: string;
  id?: string;
  onOpened?: Listener<FranklyEvent>;
  onPlanned?: Listener<FranklyEvent>;
  onSealed?: Listener<FranklyEvent>;
  onSent?: Listener<FranklyEvent>;
  onQueued?: Listener<FranklyEvent>;
  onRefused?: Listener<FranklyEvent>;
  onLogRenamed?: Listener<FranklyEvent>;
  onLanguage?: Listener<{ language: string }>;
  onError?: Listener<ErrorDetail>;
}

export function FranklySurvey(props: FranklySurveyProps): ReactElement | null;

export type FranklyState =
  | { status: "opening" | "disabled"; client: null; error: null }
  | { status: "ready"; client: Client; error: null }
  | { status: "failed"; client: null; error: Error };

/** Open a client for a link; it is closed with the component. `options` are read when the link is opened. */
export function useFrankly(link: string | null | undefined, options?: Options & { enabled?: boolean }): FranklyState;

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "frankly-survey": DetailedHTMLProps<HTMLAttributes<Element>, Element> & FranklyAttributes & { ref?: Ref<Element> };
    }
  }
}
