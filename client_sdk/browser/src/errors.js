// SPDX-License-Identifier: Apache-2.0
/** What the SDK throws: the classes and codes of the Python SDK. No message ever contains an answer or a symbol. */

export class FranklyError extends Error {
  /** @param {string} detail @param {string} code stable slug @param {string | null} [field] the input at fault */
  constructor(detail, code, field = null) {
    super(field ? `${field}: ${detail}` : detail);
    this.name = this.constructor.name;
    this.detail = detail;
    this.code = code;
    this.field = field;
  }
}

/** Input that cannot be used; `code` is one of the problem table. */
export class InvalidInput extends FranklyError {}

/** A signed document failed a numbered acceptance step; nothing was sent, do not retry. */
export class DocumentRejected extends FranklyError {
  constructor(/** @type {string} */ reason, /** @type {string} */ detail, /** @type {string | null} */ field = null) {
    super(detail, `document_${reason}`, field);
    this.reason = reason;
  }

  /** The same refusal, its field seen from further outside. */
  under(/** @type {string} */ path) {
    this.field = [path, .../** @type {any} */ (this).field ? [/** @type {any} */ (this).field] : []].join(".");
    this.message = `${this.field}: ${this.detail}`;
    return this;
  }
}

const kind = (/** @type {string} */ reason, /** @type {string | null} */ usual = null) =>
  class extends DocumentRejected {
    constructor(/** @type {string} */ detail, /** @type {string | null} */ field = usual) {
      super(reason, detail, field);
    }
  };

/** A newer format or an unknown notion: update the app. */
export class UnsupportedDocument extends kind("type") {}
/** The device's time lies outside the window. */
export class ClockError extends kind("window") {}
/** A lower version than one already accepted. */
export class RollbackDetected extends kind("version", "version") {}
/** The same version with other content; both are kept as evidence. */
export class Equivocation extends kind("version", "version") {}
/** A keys document that does not follow from the last one. */
export class KeyChainError extends kind("keys") {}
/** A proof or checkpoint of the transparency log that does not hold. */
export class LogError extends kind("log") {}

/** No random bits; nothing was drawn and nothing may be sent. */
export class RandomnessError extends FranklyError {
  constructor() {
    super("the operating system gave no random bits; nothing was sent, try again later", "randomness");
  }
}

/** The link, or the address reports go to, cannot be used. */
export class LinkError extends FranklyError {
  constructor(/** @type {string} */ detail, code = "link", field = "link") {
    super(detail, code, field);
  }
}

/** The address, or the page itself, is not https, and not this machine's own. */
export class InsecureTransport extends LinkError {
  constructor(/** @type {string} */ detail, field = "link") {
    super(detail, "insecure_transport", field);
  }
}

/** An honest document that asks for more than this app allows; reason: cap, ceiling, composition, unpinned, unlogged. */
export class PolicyRefused extends FranklyError {
  constructor(/** @type {string} */ reason, /** @type {string} */ detail, /** @type {string | null} */ field = null) {
    super(detail, `policy_${reason}`, field);
    this.reason = reason;
  }
}

/** Together with what this install has answered before, the survey would cost more than the cap. */
export class BudgetExceeded extends PolicyRefused {
  constructor(/** @type {string} */ detail) {
    super("budget", detail);
  }
}

/** An answer is missing, surplus or not one of the choices; `valid` lists what is. The answer is not repeated. */
export class UnknownChoice extends FranklyError {
  constructor(/** @type {string | null} */ question, /** @type {string[]} */ valid, /** @type {string} */ detail) {
    super(`${detail}; valid: ${valid.join(", ")}`, "unknown_choice", question);
    this.valid = valid;
  }
}

/** This install has answered this survey; `receipt` says what became of that answer. */
export class AlreadyAnswered extends FranklyError {
  constructor(/** @type {import("../frankly.d.ts").Receipt} */ receipt) {
    super("this survey has been answered here; the first answer stands", "already_answered");
    this.receipt = receipt;
  }
}

/** The survey takes no more answers; nothing was drawn. */
export class SurveyClosed extends FranklyError {
  constructor(/** @type {string} */ detail) {
    super(detail, "closed", "closes");
  }
}

/** The browser keeps nothing for this page; nothing was drawn or sent. */
export class StoreError extends FranklyError {
  constructor(/** @type {string} */ detail) {
    super(detail, "store");
  }
}

/** The server could not be reached or talked nonsense; a retry may help. */
export class NetworkError extends FranklyError {
  constructor(/** @type {string} */ detail, code = "network") {
    super(detail, code);
  }
}

/** A part of the SDK that few pages need, loaded when one does. @template T @param {() => Promise<T>} load */
export const part = (load) => load().catch(() => {
  throw new NetworkError("a part of the SDK could not be loaded; reload the page when the network is back");
});
