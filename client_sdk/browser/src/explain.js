// SPDX-License-Identifier: Apache-2.0
/** Plain words about a survey (step 11), word for word those of the Python SDK. */

import { isEndless } from "./audit.js";
import { reportLength, textOfReport } from "./documents.js";
import { guess as guessOf, isUnchanged } from "./guesses.js";
import { formLevel } from "./ledger.js";
import { ZERO, rational } from "./rational.js";
import { lnUp, percent, percentUp, times } from "./shown.js";

/**
 * @typedef {import("./rational.js").Rational} Rational
 * @typedef {import("./documents.js").Survey} Survey
 * @typedef {import("./documents.js").Block} Block
 * @typedef {import("./documents.js").Promised} Promised
 */

const LIMITS =
  "What this cannot protect: your network address is visible to whoever runs the server unless you use a relay; a device or operating " +
  "system in strange hands sees everything; nobody can stop somebody from making you answer, and nobody can check that an answer is " +
  "true. Once sent, an answer cannot be withdrawn. If this app's memory is erased it no longer knows that you have answered; answering again then would tell more about you.";

/** Explain a verified survey in one of its languages, the first by default; `deltaCap` is the policy's `allowed`. */
export function explain(/** @type {Survey} */ survey, /** @type {string[]} */ signedBy, /** @type {string | undefined} */ language = undefined, deltaCap = ZERO) {
  const chosen = language !== undefined && survey.languages.includes(language) ? language : survey.languages[0];
  const blocks = survey.blocks.map((block) => explainBlock(block, chosen));
  const form = formLevel(survey.blocks, deltaCap), shown = leaves(survey);
  const words = [
    survey.title[chosen],
    ...(survey.consent ? [`The survey’s own words: “${survey.consent[chosen]}”`] : []),
    "Your answers are randomised here, on this device; only what is listed below leaves it.",
    ...(survey.strata.length ? [`These answers leave as you give them, not randomised: ${survey.strata.map((q) => q.text[chosen]).join("; ")}`] : []),
    ...(survey.token ? [survey.token.key === null
      ? "Your invitation leaves with that as it is: whoever handed it out can tell by it which random result is yours."
      : "Your token leaves with that as it is; it was signed unseen, so that it does not tell whom it was given to."] : []),
    ...blocks.map((block) => block.words),
    ledger(survey, form),
    `What leaves, once, as ${reportLength(survey)} bytes (spaces fill the end): ${shown}`,
    `Signed by: ${signedBy.map((key) => key.slice(0, 16)).join(", ")}. A signature says who made the survey, not that a prior is true.`,
    LIMITS,
  ].join("\n\n");
  return { title: survey.title[chosen], blocks, formNats: lnUp(form.level), formDelta: form.delta, signedBy, leaves: shown, words, toString: () => words };
}

function explainBlock(/** @type {Block} */ block, /** @type {string} */ language) {
  const { mechanism: m, questions } = block;
  const guess = guessOf(m), blind = rational(1, m.answers), same = sameOf(m);
  const words = [
    ...questions.map((q) => `${q.text[language]} (${q.choices.map((c) => c.label[language]).join(" / ")})`),
    ...chances(block, same, language),
    `Whoever guesses from what leaves is right ${percent(guess)} of the time; by guessing blindly, ${percent(blind)}, if all answers are equally common.`,
    ...block.promises.map(promise),
  ];
  if (block.restsOnPrior)
    words.push(isEndless(block.ceiling)
      ? "Without that, there is no limit: some symbols rule out some answers for certain. The answer itself is not protected."
      : `Without that, odds change by at most ×${times(block.ceiling)}, which is also what protects the answer itself.`);
  return { block: block.id, questions: questions.map((q) => q.text[language]), same, guess, blind, ceiling: block.ceiling, unchanged: isUnchanged(m), words: words.join("\n  ") };
}

/** The range of the diagonal's chances if every symbol y speaks for answer y more than for any other. @returns {[Rational, Rational] | null} */
function sameOf(/** @type {import("./mechanisms.js").Mechanism} */ m) {
  if (m.kind !== "dense" || m.weights.length !== m.weights[0].length) return null;
  if (m.weights.some((row, x) => row.some((w, y) => x !== y && w >= m.weights[y][y]))) return null;
  const own = m.weights.map((row, x) => row[x]), D = 1n << BigInt(m.bits);
  return [rational(Math.min(...own), D), rational(Math.max(...own), D)];
}

function chances(/** @type {Block} */ { mechanism: m, questions }, /** @type {[Rational, Rational] | null} */ same, /** @type {string} */ language) {
  const D = 1n << BigInt(m.bits), of = (/** @type {number} */ w) => percent(rational(w, D));
  if (same && same[0][0] === same[0][1]) return ["Your answer to this is sent unchanged."];
  if (same) {
    const [low, high] = same.map(percent), even = same[0].join() === same[1].join();
    return [`What leaves names your true answer with a chance of ${even ? low : `${low} to ${high}, depending on the answer`}; otherwise it names another one.`];
  }
  if (m.kind === "unary")
    return [`What leaves is a yes or a no for every answer: for the true one a yes with a chance of ${of(m.keep)}, for any other with a chance of ${of(m.flip)}.`];
  if (m.kind === "subset")
    return [`What leaves is a random set of ${m.size} of the ${m.answers} answers; the true one is among them with a chance of ${of(m.inside)}.`];
  if (BigInt(m.answers) * m.reports > 64n)
    return [`What leaves is one of ${m.reports} symbols that do not stand for answers; their chances for every answer are listed in the signed survey.`];
  const labels = questions.reduce((/** @type {string[]} */ all, q) => all.flatMap((head) => q.choices.map((c) => (head ? `${head} / ` : "") + c.label[language])), [""]);
  return ["What leaves is a symbol that does not stand for one answer:", ...labels.map((label, x) => {
    // Rounding leaves a few units of 2^-48 where an optimum has zeros: never, for any reader.
    const told = row(m, x).filter(([, chance]) => chance[0] << 24n > chance[1]).map(([y, chance]) => `${y} with a chance of ${percent(chance)}`);
    return `  if your answer is ${label}: ${told.join(", ")}.`;
  })];
}

/** Every symbol with its chance, given answer x. @returns {[string, Rational][]} */
function row(/** @type {import("./mechanisms.js").Dense | import("./mechanisms.js").Product} */ m, /** @type {number} */ x) {
  if (m.kind === "dense") return m.weights[x].map((w, y) => [String(y), rational(w, 1n << BigInt(m.bits))]);
  return m.parts(x).map((part, j) => row(m.factors[j], part)).reduce((all, own) =>
    all.flatMap(([y, p]) => own.map(([z, q]) => /** @type {[string, Rational]} */ ([`${y} and ${z}`, rational(p[0] * q[0], p[1] * q[1])]))));
}

function promise(/** @type {Promised} */ { claim, secret, source, secrets }) {
  const by = claim.level ? times(rational(...claim.level)) : "∞";
  if (secret === null) {
    const said = `Nobody’s odds between two answers of yours change by more than ×${by}, whatever they know`;
    return claim.delta ? `${said}, except with a chance of at most ${percentUp(claim.delta)}.` : `${said}.`;
  }
  return `${about(claim, secret, secrets, by)}, as long as this published table is true: ${source}.`;
}

function about(/** @type {import("./audit.js").Claim} */ claim, /** @type {string} */ secret, /** @type {string[]} */ secrets, /** @type {string} */ by) {
  if (claim.notion === "dpv" && claim.level)
    return `Nobody can be surer than ${percentUp(claim.level)} that your “${secret}” is “${secrets[claim.sensitive ?? 0]}”`;
  if (claim.notion === "alip") {
    const low = claim.low_level ? times(rational(...claim.low_level)) : "∞";
    return `Nobody’s belief about your “${secret}” grows by more than ×${by} or shrinks by more than ÷${low}`;
  }
  if (claim.notion === "lip" || claim.notion === "srlip")
    return `Nobody’s belief about your “${secret}” changes by more than ×${by}${claim.notion === "srlip" ? ", even for those who know some of your answers here" : ""}`;
  return `Nobody’s odds about your “${secret}” change by more than ×${by}`;
}

/** What the whole form costs, and which block counts how. */
function ledger(/** @type {Survey} */ { blocks }, /** @type {import("./ledger.js").FormLevel} */ form) {
  const counted = form.lines.map((line) => `${line.block} by its ${line.by}, ${lnUp(line.value)}`).join(", ");
  /** @type {Map<string, string[]>} */
  const secrets = new Map();
  for (const { secret, claim } of blocks.flatMap((block) => block.promises))
    if (secret !== null) secrets.set(secret, [...(secrets.get(secret) ?? []), claim.notion]);
  const together = [...secrets].map(([secret, notions]) =>
    // A sum that mixes both notions bounds beliefs: ε secret-LDP is ε-LIP, the reverse would need twice the level.
    notions.every((notion) => notion === "secret-ldp" || notion === "rldp")
      ? `Nobody’s odds about your “${secret}” change by more than ×${times(form.level)}`
      : `Nobody’s belief about your “${secret}” changes by more than ×${times(form.level)}`);
  const all = together.length
    ? `${together.join("; ")}, by everything that leaves taken together and if the tables are true.`
    : `By everything that leaves, nobody’s odds about you change by more than ×${times(form.level)}.`;
  const fails = form.delta[0] ? ` This fails with a chance of at most ${percentUp(form.delta)}, which this app allows.` : "";
  return `Answering everything costs ${lnUp(form.level)} nats (${counted}). ${all}${fails}`;
}

/** The report as it will look, with placeholders where random things stand. */
function leaves(/** @type {Survey} */ survey) {
  const strata = Object.fromEntries(survey.strata.map((q) => [q.id, "your public answer"]));
  const sample = textOfReport({ doc: survey.digest, id: "", y: [], strata, token: survey.token && "your token" });
  const symbols = survey.blocks.map(({ mechanism: { longest } }) =>
    typeof longest === "string" ? `<${longest.length} hex digits>` : typeof longest === "number" ? `0–${longest}` : `[${longest.map((part) => `0–${part}`).join()}]`);
  return sample.replace('"id":""', '"id":<32 random hex digits>').replace('"y":[]', () => `"y":[${symbols.join()}]`);
}
