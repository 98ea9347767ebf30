// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/surveyjs`. */
import type { Client, Options, Receipt } from "../frankly.d.ts";
import type { SurveyModel } from "survey-core";

/** A part of the form that is not protected. */
export interface Warning {
  /** Name of the form's question; empty for the form itself. */
  question: string;
  type: string;
  /**
   * type: its answers cannot be randomised. unsigned: the signed survey has no such question. free_text: an "other" or
   * comment field, or fields of a choice, which are removed. derived: it depends on randomised answers, and is removed in any case.
   * posts: the form would send raw answers to SurveyJS, which is switched off. address: an image or HTML whose requests would
   * depend on randomised answers, which is removed. erased: what is shown or opened after completion mentions answers, which it does not see.
   */
  reason: "type" | "unsigned" | "free_text" | "derived" | "posts" | "address" | "erased";
  words: string;
}

export interface ProtectOptions {
  /** If false, nothing is fetched or sent, and completing the form erases all its answers. */
  enabled?: boolean;
  /** Options of `Client.open`. */
  client?: Options;
  /**
   * Name of a form's question (`matrix.row` for a row of a matrix) -> id of the signed question; by default the same name.
   * `name=value` (for a matrix: of a column) -> id of the signed choice or box; by default the same value.
   */
  map?: Record<string, string>;
  /** Questions that cannot be protected: they are removed by default, or left in the form's data for the app, with a note. */
  unprotected?: "hide" | "keep";
  /** The person's token, for a survey with a token rule. */
  token?: string | null;
  strings?: { details?: string; open?: string; passed?: string; final?: string };
  /** Called once per warning; `console.warn` by default. */
  onWarning?: (warning: Warning) => void;
  /** Called if an answer was not sent; the form stays open. */
  onError?: (error: Error) => void;
}

export interface ProtectedForm {
  /** Null if `enabled` is false. */
  client: Client | null;
  warnings: Warning[];
  /** Resolves when the form has been answered. */
  receipt: Promise<Receipt>;
  /** Close the client; the form can no longer be answered or completed, unless it is protected again. */
  close(): void;
}

/** The form's questions do not match those of the signed survey. */
export class FormMismatch extends Error { faults: string[]; }

/** Verify the survey, then send the form's answers through it. Throws the errors of `Client.open`, and FormMismatch; an Error if the form is protected already. */
export function protect(model: SurveyModel, link: string, options?: ProtectOptions): Promise<ProtectedForm>;
