// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/vue`; importing it also types `<frankly-survey>` in templates and TSX. */
import type { DefineComponent, HTMLAttributes, MaybeRefOrGetter, ShallowRef } from "vue";
import type { Options } from "../frankly.d.ts";
import type { FranklyState, Listeners, Properties } from "../component.d.ts";
import type { FranklyAttributes } from "../element.d.ts";

export type { FranklyState };

export interface FranklySurveyProps extends Properties, Listeners {}

export const FranklySurvey: DefineComponent<FranklySurveyProps>;

/** Return a ref to the client opened for a link; it is closed with the component. `options` are read when the link is opened. */
export function useFrankly(
  link: MaybeRefOrGetter<string | null | undefined>,
  options?: Options & { enabled?: MaybeRefOrGetter<boolean> },
): Readonly<ShallowRef<FranklyState>>;

declare module "vue" {
  interface GlobalComponents { "frankly-survey": DefineComponent<FranklyAttributes & HTMLAttributes>; }
}
