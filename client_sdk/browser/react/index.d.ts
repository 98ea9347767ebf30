// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/react`; importing it also types `<frankly-survey>` in TSX. */
import type { DetailedHTMLProps, HTMLAttributes, ReactElement, Ref } from "react";
import type { FranklyEvent, Options } from "../frankly.d.ts";
import type { FranklyState, Properties } from "../component.d.ts";
import type { ErrorDetail, FranklyAttributes, FranklySurvey as Element } from "../element.d.ts";

export type { FranklyState };

/** A listener is called with the event's detail, and the event. */
export type Listener<Detail> = (detail: Detail, event: CustomEvent<Detail>) => void;

export interface FranklySurveyProps extends Properties {
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

/** Open a client for a link; it is closed with the component. `options` are read when the link is opened. */
export function useFrankly(link: string | null | undefined, options?: Options & { enabled?: boolean }): FranklyState;

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "frankly-survey": DetailedHTMLProps<HTMLAttributes<Element>, Element> & FranklyAttributes & { ref?: Ref<Element> };
    }
  }
}
