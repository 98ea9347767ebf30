// SPDX-License-Identifier: Apache-2.0
/**
 * The client without its words: for pages that have to be small. What few surveys need (log proofs, SRLIP and RLDP,
 * tokens, a store in memory) is loaded when one does. `explain` of explain.js says what to show before asking.
 */

export { Client } from "./client.js";
export {
  FranklyError, InvalidInput, DocumentRejected, UnsupportedDocument, ClockError, RollbackDetected,
  Equivocation, KeyChainError, LogError, RandomnessError, LinkError, InsecureTransport, PolicyRefused,
  BudgetExceeded, UnknownChoice, AlreadyAnswered, SurveyClosed, StoreError, NetworkError,
} from "./errors.js";
export { Policy } from "./ledger.js";
export { readLink } from "./link.js";
