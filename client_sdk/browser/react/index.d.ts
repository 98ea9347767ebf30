// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/react`; importing it also types `<frankly-survey>` in TSX. */
import type { DetailedHTMLProps, HTMLAttributes, ReactElement, Ref } from "react";
import type { Options } from "../frankly.d.ts";
import type { FranklyState, Listeners, Properties } from "../component.d.ts";
import type { FranklyAttributes, FranklySurvey as Element } from "../element.d.ts";

export type { FranklyState };

export interface FranklySurveyProps extends Properties, Omit<Listeners, "onLog_renamed"> {
  className?: string;
  id?: string;
  onLogRenamed?: Listeners["onLog_renamed"];
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
