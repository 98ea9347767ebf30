// SPDX-License-Identifier: Apache-2.0
/** Types of `@frankly/sdk/core`: everything except the texts. */
import type { Client as Full, Options } from "./frankly.d.ts";

export type {
  Answers, Budget, Choice, ChoiceRole, Choices, EventName, FranklyEvent, Options, PolicyOptions, Question, Rational, Receipt, ReportLevel, SecretLevel, Survey, Words,
} from "./frankly.d.ts";
export {
  AlreadyAnswered, BudgetExceeded, ClockError, Disabled, DocumentRejected, Equivocation, FranklyError, InsecureTransport, InvalidInput,
  KeyChainError, LinkError, LogError, NetworkError, Policy, PolicyRefused, RandomnessError, RollbackDetected, StoreError,
  SurveyClosed, UnknownChoice, UnsupportedDocument, readLink,
} from "./frankly.js";
export type Client = Omit<Full, "explain">;
export const Client: { open(link: string, options?: Options): Promise<Client> };
