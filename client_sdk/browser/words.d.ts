// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/words`. */

/** Load the texts of a language such as `de-AT`; where there are none, or the network fails, they are in English. */
export function learn(language: string): Promise<void>;

/** The element's texts by name, in a language that `learn` has loaded; otherwise in English. */
export function stringsFor(language: string): Record<string, string>;
