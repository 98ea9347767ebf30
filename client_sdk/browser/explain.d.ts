// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/explain`. */
import type { Budget, Explanation, ReportLevel, Survey } from "./frankly.d.ts";

/** What to show before asking: of a client's `survey`, `level` and `signedBy`, in one of the survey's languages. */
export function explain(survey: Survey, level: ReportLevel, signedBy: string[], language?: string, budget?: Budget): Explanation;
