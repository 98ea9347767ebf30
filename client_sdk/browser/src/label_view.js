// SPDX-License-Identifier: Apache-2.0
/** Nodes of a survey's label: a picture, what a report tells, a trial on the device; and what was sent. All texts become text nodes. */

import { fitted } from "./explained_kinds.js";
import { make } from "./fields.js";
import { isPlain } from "./fits.js";
import { hostOf, hundred, namesOf, people, sourcesOf } from "./label.js";
import { drawBelow, systemBits } from "./mechanisms.js";
import { ZERO, compare, plus, rational } from "./rational.js";
import { truthAt } from "./survey.js";
import { fill } from "./words.js";

/**
 * @typedef {import("./survey.js").Survey} Survey
 * @typedef {import("./label.js").Consequence} Consequence
 * @typedef {import("./words.js").Strings} Strings
 * @typedef {ReturnType<typeof import("./explain.js").explain>} Explanation
 * @typedef {(text: string) => (Node | string)[]} Shown returns a text with parts of the other direction isolated
 */

const DRAWS = 20, DOTS = 100, ROW = 10, MOST_NAMES = 4;

/** Return how much a report tells, to put the consequence that tells most first: own less other people, more than that if sent unchanged, less if unknown. */
const telling = (/** @type {Consequence} */ { fit }) => (fit ? plus(fit.own[1], [-fit.other[0][0], fit.other[0][1]]) : ZERO);

/** Return the label of a survey. `more` and `trial` are elements that stay, open or closed, when the label is made again. */
export function label(
  /** @type {Survey} */ survey, /** @type {Explanation} */ told, /** @type {Strings} */ strings, /** @type {string} */ language, /** @type {Shown} */ shown,
  /** @type {{more: HTMLElement, trial: HTMLElement}} */ { more, trial },
) {
  const { consequences, overall } = told;
  const section = (/** @type {Node[]} */ ...nodes) => make("section", { class: "label", part: "label", "aria-labelledby": "label" }, make("h2", { id: "label" }, strings.label), ...nodes);
  if (!consequences.length) return section(...overall.map((text) => make("p", {}, ...shown(text)))); // all that this arm asks is asked in the clear
  const first = consequences.reduce((best, one) => (compare(telling(one), telling(best)) > 0 ? one : best));
  const isSource = sourcesOf(survey).includes(first.questions[0]); // then other questions hint at it
  const { fit, sentences, notes } = first, isPictured = fit && fit.own[1][0] && !isPlain(fit);
  const say = (/** @type {string} */ text) => make("p", {}, ...shown(text));
  more.replaceChildren(make("summary", {}, strings.each), make("dl", {}, ...consequences.flatMap((one) => [
    ...one.names.map((name) => make("dt", {}, ...shown(name))), make("dd", {}, ...[...one.sentences, ...one.notes].map(say))])));
  tryOut(survey, consequences, strings, language, trial);
  return section(
    ...(consequences.length > 1 ? about(first.names, strings, shown) : []),
    // The picture says what its sentences say.
    ...(isPictured ? [make("div", { class: "pictures" }, dots(fit.own, fit.silent, strings.own), dots(fit.other, fit.silent, strings.other)), legend(fit, isSource ? strings.by_itself : strings.dot_none, strings)] : sentences.map(say)),
    ...[...notes, ...overall].map(say), more, trial);
}

/** Return the names of the questions that the picture is about: all of a few. */
function about(/** @type {string[]} */ all, /** @type {Strings} */ strings, /** @type {Shown} */ shown) {
  const some = all.length > MOST_NAMES ? all.slice(0, MOST_NAMES - 1) : all, left = all.length - some.length;
  return [make("ul", { class: "about" }, ...some.map((name) => make("li", {}, ...shown(name))), ...(left ? [make("li", {}, fill(strings.and_more, { n: left }))] : []))];
}

/** Return 100 dots, one for each person: as many are full as send a result that fits, and as many small as send nothing. */
function dots(/** @type {import("./fits.js").Range} */ range, /** @type {import("./fits.js").Range} */ silent, /** @type {string} */ caption) {
  const full = hundred(range[0]), none = hundred(silent[0]);
  const kinds = Array.from({ length: DOTS }, (_, i) => (i < full ? "full" : i >= DOTS - none ? "none" : "other"));
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
const legend = (/** @type {import("./fits.js").Fit} */ { silent }, /** @type {string} */ none, /** @type {Strings} */ { dot_fits: full, dot_other: other }) =>
  make("p", { class: "legend" }, ...Object.entries({ full, other, ...(hundred(silent[0]) && { none: `${none}: ${people(silent)}` }) }).map(([kind, text]) =>
    make("span", {}, circles([kind], 1), ` ${text}`)));

/** Let a person draw what an answer of theirs could become. Nothing is stored or sent, and the survey's own draw is another one. */
function tryOut(/** @type {Survey} */ survey, /** @type {Consequence[]} */ told, /** @type {Strings} */ strings, /** @type {string} */ language, /** @type {HTMLElement} */ trial) {
  const names = namesOf(survey, language), sources = sourcesOf(survey), known = told.flatMap(({ questions, fit }) => (fit ? questions : []));
  const all = survey.blocks.flatMap((block) => block.questions.flatMap((question, q) => (known.includes(question.id) ? [{ block, question, q }] : [])));
  trial.hidden = !all.length;
  if (!all.length) return;
  const select = (/** @type {string} */ id) => /** @type {HTMLSelectElement} */ (make("select", { id, part: "input", autocomplete: "off" }));
  const options = (/** @type {string[]} */ texts) => texts.map((text, i) => make("option", { value: String(i) }, text));
  const question = select("trial-question"), answer = select("trial-answer"), drawn = make("div", { role: "status" });
  const choose = () => {
    drawn.replaceChildren();
    answer.replaceChildren(make("option", { value: "" }, strings.choose), ...options(all[+question.value].question.choices.map(({ label }) => label[language])));
  };
  question.append(...options(all.map((one) => names.get(one.question.id) ?? "")));
  question.addEventListener("change", choose);
  answer.addEventListener("change", () => drawn.replaceChildren());
  choose();
  const button = make("button", { type: "button", part: "button", class: "second" }, strings.draw);
  button.addEventListener("click", () => {
    if (!answer.value) {
      drawn.replaceChildren(strings.choose);
      return answer.focus();
    }
    const { block, question: { id, choices }, q } = all[+question.value], truth = +answer.value;
    /** Draws by what they fit. @type {Map<string, {kind: string, text: string, n: number}>} */
    const draws = new Map();
    for (let i = 0; i < DRAWS; i++) {
      const positions = block.questions.map((one, j) => (j === q ? truth : drawBelow(one.choices.length, systemBits)));
      const found = fitted(block, block.mechanism.sample(/** @type {any} */ (truthAt(block, positions)), systemBits))[q], fits = found?.answers ?? [];
      const kind = fits.includes(truth) ? "full" : fits.length || !found ? "other" : "none";
      const text = fits.length ? fill(strings.fits, { answers: fits.map((a) => choices[a].label[language]).join(" / ") }) : found && !sources.includes(id) ? strings.dot_none : strings.by_itself;
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
function lines(/** @type {Survey} */ survey, /** @type {string} */ report, /** @type {Strings} */ strings, /** @type {string} */ language) {
  const { strata, instructed, blocks } = survey, names = namesOf(survey, language), sources = sourcesOf(survey);
  const { y, strata: open, token } = JSON.parse(report), labels = (/** @type {{label: import("./survey.js").Words}[]} */ choices) => choices.map(({ label }) => label[language]).join(" / ");
  return [
    ...strata.map(({ id, text, choices }) => fill(strings.sent_open, { question: text[language], answer: labels(choices.filter((choice) => choice.id === open[id])) })),
    ...(instructed ? [fill(strings.sent_item, { question: instructed.text[language] })] : []),
    ...blocks.flatMap((block, i) => {
      const found = fitted(block, y[i]);
      return block.questions.flatMap((one, q) => {
        const { answers, share: [n, d] } = found[q] ?? { answers: undefined, share: ZERO }, name = !answers ? "sent_random" : answers.length ? "sent_fits" : "sent_nothing";
        const line = fill(strings[name], { question: names.get(one.id), answers: labels((answers ?? []).map((a) => one.choices[a])) });
        // What is sent about a question that a rule skips hints at the one it depends on.
        if (name === "sent_nothing" && sources.includes(one.id)) return [];
        // At the moment of reading, it helps to know who else sends the same.
        return answers?.length === 1 ? `${line} ${fill(strings.sent_too, { other: people([rational(d - n, d)]) })}` : line;
      });
    }),
    ...(token ? [strings.sent_token] : []),
  ];
}
