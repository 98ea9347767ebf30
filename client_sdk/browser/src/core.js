// SPDX-License-Identifier: Apache-2.0
/**
 * The client without its texts, for pages that have to be small. Modules that few surveys need (log proofs, rare
 * notions, tokens, a store in memory) are loaded on demand. `explain` in explain.js returns the explanation to show
 * before asking.
 */

export { Client } from "./client.js";
export {
  FranklyError, InvalidInput, DocumentRejected, UnsupportedDocument, ClockError, RollbackDetected,
  Equivocation, KeyChainError, LogError, RandomnessError, LinkError, InsecureTransport, PolicyRefused,
  BudgetExceeded, UnknownChoice, AlreadyAnswered, Disabled, SurveyClosed, StoreError, NetworkError,
} from "./errors.js";
export { Policy } from "./ledger.js";
export { readLink } from "./link.js";
