// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/explain`. */
import type { Budget, Explanation, ReportLevel, Survey, Texts } from "./frankly.d.ts";

/** Explain a client's `survey` from its `level` and `signedBy`, in one of the survey's languages; show the result before asking. */
export function explain(survey: Survey, level: ReportLevel, signedBy: string[], language?: string, budget?: Budget, texts?: Texts): Explanation;

/** Load the texts of a language such as `de-AT`; if there are none or the network fails, explanations are in English. */
export function learn(language: string): Promise<void>;
