// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/explain`. */
import type { Explanation, Rational, Survey } from "./frankly.d.ts";

/** What to show before asking: of a client's `survey`, `signedBy` and `policy.allowed`, in one of the survey's languages. */
export function explain(survey: Survey, signedBy: string[], language?: string, deltaCap?: Rational): Explanation;
