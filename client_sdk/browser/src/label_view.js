// SPDX-License-Identifier: Apache-2.0
/** Nodes of a survey's label: a picture, what a report tells, a trial on the device; and what was sent. All texts become text nodes. */

import { make } from "./fields.js";
import { fitsOf, fitted } from "./fits.js";
import { hostOf, hundred, questionName, people } from "./label.js";
import { drawBelow, systemBits } from "./mechanisms.js";
import { compare } from "./rational.js";
import { truthAt } from "./survey.js";
import { fill } from "./words.js";

/**
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {import("./label.js").Consequence} Consequence
 * @typedef {import("./words.js").Strings} Strings
 * @typedef {ReturnType<typeof import("./explain.js").explain>} Explanation
 * @typedef {(text: string) => (Node | string)[]} Shown returns a text with parts of the other direction isolated
 */

const DRAWS = 20, DOTS = 100, ROW = 10;

/** Return the consequence that tells most about an answer, to stand first. @returns {Consequence} */
const mostTelling = (/** @type {Consequence[]} */ told) => told.reduce((best, one) => {
  if (!best.fit || !one.fit) return best.fit ? one : best; // an answer sent unchanged, or a table too large for chances
  return compare(one.fit.own[1], best.fit.own[1]) > 0 ? one : best;
});

/** Return the label of a survey. `more` and `trial` are elements that stay, open or closed, when the label is made again. */
export function label(
  /** @type {Survey} */ survey, /** @type {Explanation} */ told, /** @type {Strings} */ strings, /** @type {string} */ language, /** @type {Shown} */ shown,
  /** @type {{more: HTMLElement, trial: HTMLElement}} */ { more, trial },
) {
  const { consequences, overall } = told, first = mostTelling(consequences), { fit } = first, isOnly = consequences.length === 1;
  const say = (/** @type {string} */ text) => make("p", {}, ...shown(text));
  more.replaceChildren(make("summary", {}, strings.each), make("dl", {}, ...consequences.flatMap(({ names, sentences }) => [
    ...[...new Set(names)].map((name) => make("dt", {}, ...shown(name))), make("dd", {}, ...sentences.map(say))])));
  tryOut(survey, strings, language, trial);
  return make("section", { class: "label", part: "label", "aria-labelledby": "label" },
    make("h2", { id: "label" }, strings.label),
    ...(isOnly ? [] : [make("p", { class: "about" }, "“", ...shown(first.names[0]), "” ", first.names.length > 1 ? fill(strings.and_more, { n: first.names.length - 1 }) : "")]),
    // The picture says what its sentences say.
    ...(fit && fit.silent[0][0] < fit.silent[0][1]
      ? [make("div", { class: "pictures" }, dots(fit.own, fit.silent, strings.own), dots(fit.other, fit.silent, strings.other)), legend(fit, strings)] : first.sentences.map(say)),
    ...overall.map(say), more, trial);
}

/** Return 100 dots, one for each person: as many are full as send a result that fits, and as many small as send nothing. */
function dots(/** @type {import("./fits.js").Range} */ range, /** @type {import("./fits.js").Range} */ silent, /** @type {string} */ caption) {
  const [low, high] = range.map(hundred), none = hundred(silent[0]);
  const kinds = Array.from({ length: DOTS }, (_, i) => (i < low ? "full" : i < high ? "half" : i >= DOTS - none ? "none" : "other"));
  return make("figure", { part: "picture" }, circles(kinds, ROW), make("figcaption", {}, `${caption}: `, make("strong", {}, people(range))));
}

/** Return circles of these kinds, in rows. */
function circles(/** @type {string[]} */ kinds, /** @type {number} */ row) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${row * 10} ${Math.ceil(kinds.length / row) * 10}`);
  svg.setAttribute("aria-hidden", "true");
  for (const [i, kind] of kinds.entries()) {
    const circle = document.createElementNS(svg.namespaceURI, "circle"), places = { cx: (i % row) * 10 + 5, cy: Math.floor(i / row) * 10 + 5, r: kind === "none" ? 1 : 3.5 };
    for (const [name, value] of Object.entries({ ...places, class: kind })) circle.setAttribute(name, String(value));
    svg.append(circle);
  }
  return svg;
}

/** Return what the kinds of dots mean. */
const legend = (/** @type {import("./fits.js").Fit} */ { silent }, /** @type {Strings} */ strings) => make("p", { class: "legend" },
  ...["full", "other", ...(hundred(silent[0]) ? ["none"] : [])].map((kind) =>
    make("span", {}, circles([kind], 1), ` ${strings[{ full: "dot_fits", other: "dot_other", none: "dot_none" }[kind] ?? ""]}`)));

/** Let a person draw what an answer of theirs could become. Nothing is stored or sent, and the survey's own draw is another one. */
function tryOut(/** @type {Survey} */ survey, /** @type {Strings} */ strings, /** @type {string} */ language, /** @type {HTMLElement} */ trial) {
  const all = survey.blocks.flatMap((block) => block.questions.flatMap((question, q) => (fitted(block, block.mechanism.longest)[q] ? [{ block, question, q }] : [])));
  trial.hidden = !all.length;
  if (!all.length) return;
  const select = (/** @type {string} */ id) => /** @type {HTMLSelectElement} */ (make("select", { id, part: "input", autocomplete: "off" }));
  const options = (/** @type {string[]} */ texts) => texts.map((text, i) => make("option", { value: String(i) }, text));
  const question = select("trial-question"), answer = select("trial-answer"), drawn = make("div", { role: "status" });
  const choose = () => {
    drawn.replaceChildren();
    answer.replaceChildren(make("option", { value: "" }, strings.choose), ...options(all[+question.value].question.choices.map(({ label }) => label[language])));
  };
  question.append(...options(all.map((one) => questionName(one.question, language))));
  question.addEventListener("change", choose);
  answer.addEventListener("change", () => drawn.replaceChildren());
  choose();
  const button = make("button", { type: "button", part: "button", class: "second" }, strings.draw);
  button.addEventListener("click", () => {
    if (!answer.value) return answer.focus();
    const { block, question: { choices }, q } = all[+question.value], truth = +answer.value;
    /** Draws by what they fit. @type {Map<string, {kind: string, text: string, n: number}>} */
    const draws = new Map();
    for (let i = 0; i < DRAWS; i++) {
      const positions = block.questions.map((one, j) => (j === q ? truth : drawBelow(one.choices.length, systemBits)));
      const fits = fitted(block, block.mechanism.sample(/** @type {any} */ (truthAt(block, positions)), systemBits))[q] ?? [];
      const text = fits.map((a) => choices[a].label[language]).join(" / ") || strings.no_hint, kind = fits.includes(truth) ? "full" : fits.length ? "other" : "none";
      const one = draws.get(text) ?? { kind, text, n: 0 };
      draws.set(text, { ...one, n: one.n + 1 });
    }
    drawn.replaceChildren(make("p", {}, strings.drawn_twenty), make("ul", { class: "draws" }, ...[...draws.values()].sort((a, b) => b.n - a.n).map(({ kind, text, n }) =>
      make("li", {}, make("strong", {}, `${n} × `), text, circles(new Array(n).fill(kind), DRAWS)))));
  });
  trial.replaceChildren(make("summary", {}, strings.try), make("p", { class: "note" }, strings.trial),
    make("div", { class: "pair", hidden: all.length === 1 }, make("label", { for: "trial-question" }, strings.try_question), question),
    make("div", { class: "pair" }, make("label", { for: "trial-answer" }, strings.try_answer), answer), button, drawn);
}

/** Return what was sent, in words and as bytes. `report` is its text. */
export function sent(/** @type {Survey} */ survey, /** @type {string} */ report, /** @type {Strings} */ strings, /** @type {string} */ language) {
  const bytes = new TextEncoder().encode(report).length;
  return make("section", { class: "label", part: "sent", "aria-labelledby": "was-sent" },
    make("h2", { id: "was-sent" }, strings.was_sent),
    make("ul", {}, ...lines(survey, report, strings, language).map((line) => make("li", {}, line))),
    make("p", {}, strings.sent_all),
    make("p", {}, fill(strings.results, { host: hostOf(survey), n: survey.min_reports })),
    make("details", {}, make("summary", {}, `${strings.bytes} (${bytes})`), make("pre", { dir: "ltr", tabindex: "0" }, report.trimEnd())));
}

/** Return what a report says about every question, in words. */
function lines(/** @type {Survey} */ { strata, instructed, blocks }, /** @type {string} */ report, /** @type {Strings} */ strings, /** @type {string} */ language) {
  const { y, strata: open, token } = JSON.parse(report), labels = (/** @type {{label: import("./survey.js").Words}[]} */ choices) => choices.map(({ label }) => label[language]).join(" / ");
  return [
    ...strata.map(({ id, text, choices }) => fill(strings.sent_open, { question: text[language], answer: labels(choices.filter((choice) => choice.id === open[id])) })),
    ...(instructed ? [fill(strings.sent_item, { question: instructed.text[language] })] : []),
    ...blocks.flatMap((block, i) => {
      const found = fitted(block, y[i]), fits = fitsOf(block);
      return block.questions.map((one, q) => {
        const answers = found[q], fit = fits[q], name = !answers ? "sent_random" : answers.length ? "sent_fits" : "sent_nothing";
        const line = fill(strings[name], { question: questionName(one, language), answers: labels((answers ?? []).map((a) => one.choices[a])) });
        // At the moment of reading, it helps to know who else sends the same.
        return fit && answers?.length === 1 && fit.other[0][0] ? `${line} ${fill(strings.sent_too, { other: people(fit.other) })}` : line;
      });
    }),
    ...(token ? [strings.sent_token] : []),
  ];
}
