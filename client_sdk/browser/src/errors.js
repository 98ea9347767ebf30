// SPDX-License-Identifier: Apache-2.0
/**
 * Errors of the SDK: the classes and codes of the Python SDK. No message ever contains an answer or a symbol.
 *
 * An error is thrown with the key of its words and what they are about; the words themselves are in texts.js, which
 * the core does without. Classes are named by text because minifying renames variables, not texts.
 */

/** @typedef {[key: string, ...values: any[]]} Said what happened: a key of texts.js, and what its words need */

/** Words for what happened; without texts.js, its key. */
let inWords = (/** @type {Said} */ [key]) => key;

/** Let errors speak from now on. */
export const speak = (/** @type {typeof inWords} */ words) => void (inWords = words);

/** The message of an error, if this page has loaded the texts. */
export const describe = (/** @type {Said} */ ...said) => inWords(said);

export class FranklyError extends Error {
  /** @param {string} code stable slug @param {string | null} field the input at fault @param {Said} said */
  constructor(code, field, ...said) {
    super();
    this.name = this.constructor.name;
    this.code = code;
    this.said = said;
    this.at(field);
  }

  /** Name the input at fault. */
  at(/** @type {string | null} */ field) {
    this.field = field;
    this.detail = describe(...this.said);
    this.message = field ? `${field}: ${this.detail}` : this.detail;
    return this;
  }
}

/**
 * A class under a name that outlives minifying; `given` turns what its constructor takes into what its base's takes.
 * @template {new (...given: any[]) => any} Base @template {any[]} Given
 * @param {string} name @param {Base} base @param {(...given: Given) => any[]} given @param {(error: any, given: Given) => void} [more]
 * @returns {new (...given: Given) => InstanceType<Base>}
 */
const kind = (name, base, given, more = () => {}) => /** @type {any} */ ({
  [name]: class extends base {
    constructor(/** @type {any[]} */ ...own) {
      super(...given(.../** @type {Given} */ (own)));
      more(this, /** @type {Given} */ (own));
    }
  },
}[name]);

/** @typedef {string | null} Field */

/** Input that cannot be used; `code` is one of the problem table. */
export const InvalidInput = kind("InvalidInput", FranklyError, (/** @type {string} */ code, /** @type {Field} */ field, /** @type {Said} */ ...said) => [code, field, ...said]);

/** A signed document failed a numbered acceptance step (`reason`); nothing was sent, do not retry. */
export const DocumentRejected = kind("DocumentRejected", FranklyError,
  (/** @type {string} */ reason, /** @type {Field} */ field, /** @type {Said} */ ...said) => [`document_${reason}`, field, ...said],
  (error, [reason]) => void (error.reason = reason));

const rejected = (/** @type {string} */ name, /** @type {string} */ reason) =>
  kind(name, DocumentRejected, (/** @type {Field} */ field, /** @type {Said} */ ...said) => [reason, field, ...said]);

/** A newer format or an unknown notion: update the app. */
export const UnsupportedDocument = rejected("UnsupportedDocument", "type");
/** The device's time lies outside the window. */
export const ClockError = rejected("ClockError", "window");
/** A lower version than one already accepted. */
export const RollbackDetected = rejected("RollbackDetected", "version");
/** The same version with other content; both are kept as evidence. */
export const Equivocation = rejected("Equivocation", "version");
/** A keys document that does not follow from the last one. */
export const KeyChainError = rejected("KeyChainError", "keys");
/** A proof or checkpoint of the transparency log that does not hold. */
export const LogError = rejected("LogError", "log");

/** No random bits; nothing was drawn and nothing may be sent. */
export const RandomnessError = kind("RandomnessError", FranklyError, () => ["randomness", null, "randomness"]);

/** The link, or the address reports go to, cannot be used. */
export const LinkError = kind("LinkError", FranklyError, (/** @type {string} */ field, /** @type {string} */ key, code = "link") => [code, field, key]);
/** The address, or the page itself, is not https, and not this machine's own. */
export const InsecureTransport = kind("InsecureTransport", LinkError, (/** @type {string} */ field, /** @type {string} */ key) => [field, key, "insecure_transport"]);

/** An honest document that asks for more than this app allows; reason: cap, ceiling, composition, final, unpinned, unlogged. */
export const PolicyRefused = kind("PolicyRefused", FranklyError,
  (/** @type {string} */ reason, /** @type {Field} */ field, /** @type {any[]} */ ...values) => [`policy_${reason}`, field, ...(reason === "budget" ? [] : [reason]), ...values],
  (error, [reason]) => void (error.reason = reason));
/** Together with what this install has answered before, the survey would cost more than the cap. */
export const BudgetExceeded = kind("BudgetExceeded", PolicyRefused, (/** @type {any[]} */ ...said) => ["budget", null, ...said]);

/** An answer is missing, surplus or not one of the choices; `valid` lists what is. The answer is not repeated. */
export const UnknownChoice = kind("UnknownChoice", FranklyError,
  (/** @type {Field} */ question, /** @type {string[]} */ valid, /** @type {string} */ key) => ["unknown_choice", question, key, valid],
  (error, [, valid]) => void (error.valid = valid));

/**
 * This install has answered this survey; `receipt` says what became of that answer.
 * @type {new (receipt: import("../frankly.d.ts").Receipt) => FranklyError & {receipt: import("../frankly.d.ts").Receipt}}
 */
export const AlreadyAnswered = /** @type {any} */ (kind("AlreadyAnswered", FranklyError, (/** @type {any[]} */ ..._receipt) => ["already_answered", null, "already_answered"],
  (error, [receipt]) => void (error.receipt = receipt)));

/** The survey takes no more answers; nothing was drawn. */
export const SurveyClosed = kind("SurveyClosed", FranklyError, (/** @type {any[]} */ ...values) => ["closed", "closes", "survey_closed", ...values]);

/** The browser keeps nothing for this page; nothing was drawn or sent. */
export const StoreError = kind("StoreError", FranklyError, () => ["store", null, "store"]);

/** The server could not be reached or talked nonsense; a retry may help. */
export const NetworkError = kind("NetworkError", FranklyError, (code = "network", key = code, /** @type {any[]} */ ...values) => [code, null, key, ...values]);

const PART_MS = 30_000; // as long as any request may take

/** A part of the SDK that few pages need, loaded when one does, or not in time. @template T @param {() => Promise<T>} load @returns {Promise<T>} */
export const part = (load, limitMs = PART_MS) => new Promise((resolve, reject) => {
  const fail = (/** @type {string} */ code) => () => reject(new NetworkError(code, "no_part"));
  const timer = setTimeout(fail("limit"), limitMs);
  load().then(resolve, fail("network")).finally(() => clearTimeout(timer));
});

/** The result of `work`, or that of `otherwise` for errors of the kind named. */
export const unless = (/** @type {Promise<any>} */ work, /** @type {any} */ kind, /** @type {(error: any) => any} */ otherwise) =>
  work.catch((error) => {
    if (error instanceof kind) return otherwise(error);
    throw error;
  });
