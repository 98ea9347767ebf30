// SPDX-License-Identifier: Apache-2.0
/**
 * Errors of the SDK: the classes and codes of the Python SDK. No message contains a respondent's answer or symbol.
 *
 * An error is thrown with the key of its text and the values in it; the texts are in texts.js, which core.js does not
 * load. Class names are strings, because minifying renames variables but not strings.
 */

/** @typedef {[key: string, ...values: any[]]} Said key of a text in texts.js, and the values in that text */

/** Function that returns the text of a key; without texts.js, the key itself. */
let inWords = (/** @type {Said} */ [key]) => key;

/** Set the function that returns the texts of errors. */
export const speak = (/** @type {typeof inWords} */ words) => void (inWords = words);

/** Return a message, or its key if the texts are not loaded. */
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

  /** Set the name of the invalid input. */
  at(/** @type {string | null} */ field) {
    this.field = field;
    this.detail = describe(...this.said);
    this.message = field ? `${field}: ${this.detail}` : this.detail;
    return this;
  }
}

/**
 * Return a class whose name survives minifying; `given` maps the arguments of its constructor to those of the base
 * class.
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

/** Input that cannot be used; `code` is a code from the table of problems. */
export const InvalidInput = kind("InvalidInput", FranklyError, (/** @type {string} */ code, /** @type {Field} */ field, /** @type {Said} */ ...said) => [code, field, ...said]);

/** A signed document failed an acceptance step (`reason`); no report was sent, do not retry. */
export const DocumentRejected = kind("DocumentRejected", FranklyError,
  (/** @type {string} */ reason, /** @type {Field} */ field, /** @type {Said} */ ...said) => [`document_${reason}`, field, ...said],
  (error, [reason]) => void (error.reason = reason));

const rejected = (/** @type {string} */ name, /** @type {string} */ reason) =>
  kind(name, DocumentRejected, (/** @type {Field} */ field, /** @type {Said} */ ...said) => [reason, field, ...said]);

/** The document uses a format, notion or kind that is not supported: update the app. */
export const UnsupportedDocument = rejected("UnsupportedDocument", "type");
/** The device's time lies outside the document's window. */
export const ClockError = rejected("ClockError", "window");
/** A lower version or a smaller log than one seen before. */
export const RollbackDetected = rejected("RollbackDetected", "version");
/** The same version with other content, or a forked log; both pieces are kept as evidence. */
export const Equivocation = rejected("Equivocation", "version");
/** Keys that do not follow from the known ones. */
export const KeyChainError = rejected("KeyChainError", "keys");
/** An invalid proof or checkpoint of the transparency log, or one with too few witnesses. */
export const LogError = rejected("LogError", "log");

/** The browser gave no random bits; nothing may be sent. */
export const RandomnessError = kind("RandomnessError", FranklyError, () => ["randomness", null, "randomness"]);

/** The link, the relay, or the address that collects reports cannot be used. */
export const LinkError = kind("LinkError", FranklyError, (/** @type {string} */ field, /** @type {string} */ key, code = "link") => [code, field, key]);
/** An address, or the page itself, is neither https nor on this machine; or another host's survey would collect its reports on this machine. */
export const InsecureTransport = kind("InsecureTransport", LinkError, (/** @type {string} */ field, /** @type {string} */ key) => [field, key, "insecure_transport"]);

/** A valid document that exceeds the limits of this app; reason: cap, ceiling, composition, final, unpinned, unlogged or budget. */
export const PolicyRefused = kind("PolicyRefused", FranklyError,
  (/** @type {string} */ reason, /** @type {Field} */ field, /** @type {any[]} */ ...values) => [`policy_${reason}`, field, ...(reason === "budget" ? [] : [reason]), ...values],
  (error, [reason]) => void (error.reason = reason));
/** The survey costs more than the respondent's remaining budget. */
export const BudgetExceeded = kind("BudgetExceeded", PolicyRefused, (/** @type {any[]} */ ...said) => ["budget", null, ...said]);

/** An answer is missing, unexpected or not one of the choices; `valid` lists the valid choices or question ids. */
export const UnknownChoice = kind("UnknownChoice", FranklyError,
  (/** @type {Field} */ question, /** @type {string[]} */ valid, /** @type {string} */ key) => ["unknown_choice", question, key, valid],
  (error, [, valid]) => void (error.valid = valid));

/**
 * This respondent has already answered this survey; `receipt` is the state of that answer.
 * @type {new (receipt: import("../frankly.d.ts").Receipt) => FranklyError & {receipt: import("../frankly.d.ts").Receipt}}
 */
export const AlreadyAnswered = /** @type {any} */ (kind("AlreadyAnswered", FranklyError, (/** @type {any[]} */ ..._receipt) => ["already_answered", null, "already_answered"],
  (error, [receipt]) => void (error.receipt = receipt)));

/** The client was opened with `enabled: false` and has no survey; check `client.enabled` first. */
export const Disabled = kind("Disabled", FranklyError, () => ["disabled", null, "switched_off"]);

/** The survey is closed; nothing was drawn. */
export const SurveyClosed = kind("SurveyClosed", FranklyError, (/** @type {any[]} */ ...values) => ["closed", "closes", "survey_closed", ...values]);

/** The browser's storage cannot be used; no new report was sent. */
export const StoreError = kind("StoreError", FranklyError, () => ["store", null, "store"]);

/** The server could not be reached or sent an unusable response; a retry may help. */
export const NetworkError = kind("NetworkError", FranklyError, (code = "network", key = code, /** @type {any[]} */ ...values) => [code, null, key, ...values]);

const PART_MS = 30_000; // time limit for loading a part

/**
 * Load a module of the SDK that few pages need; throws NetworkError if it does not load in time.
 * @template T @param {() => Promise<T>} load @returns {Promise<T>}
 */
export const part = (load, limitMs = PART_MS) => new Promise((resolve, reject) => {
  const fail = (/** @type {string} */ code) => () => reject(new NetworkError(code, "no_part"));
  const timer = setTimeout(fail("limit"), limitMs);
  load().then(resolve, fail("network")).finally(() => clearTimeout(timer));
});

/** Return the result of `work`, or of `otherwise` if `work` fails with an error of this class. */
export const unless = (/** @type {Promise<any>} */ work, /** @type {any} */ kind, /** @type {(error: any) => any} */ otherwise) =>
  work.catch((error) => {
    if (error instanceof kind) return otherwise(error);
    throw error;
  });
