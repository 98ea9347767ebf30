// SPDX-License-Identifier: Apache-2.0
/** Fields of the element's form, one per question or group of boxes, for all ways of answering (spec 3.5). */

import { boxId, ofNumber, skipped, ticked } from "./ways.js";

/** @typedef {import("./survey.js").Question} Question */

const MOST_BUTTONS = 20; // with more plain choices, the field is a list

/** Return an element with attributes and children; strings become text nodes, never HTML. */
export function make(/** @type {string} */ tag, /** @type {Record<string, string | boolean>} */ attributes = {}, /** @type {(Node | string)[]} */ ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== false) made.setAttribute(name, value === true ? "" : value);
  made.append(...children);
  return made;
}

/**
 * A field is made once for each survey that an element shows, and then only written again: what was entered stays in its
 * controls, and nowhere else, whichever language the form is in and wherever its nodes are.
 */
export class Field {
  #error = make("p", { class: "error", part: "error" });
  /** @type {HTMLInputElement[]} */ #inputs;
  /** @type {HTMLInputElement | undefined} */ #number;
  /** @type {HTMLSelectElement | undefined} */ #list;
  /** Elements with a text of the survey. @type {[HTMLElement, import("./survey.js").Words][]} */ #texts = [];
  #note;
  #noteName;
  isWrong = false; // true while it shows an error
  /** @type {import("./words.js").Strings} */ #strings = {};

  /**
   * `questions` is one question or the boxes of one; `noteName` is the name of the note of a question asked in the clear. The field has no
   * texts before `write`.
   */
  constructor(/** @type {Question[]} */ questions, noteName = "") {
    const [first] = questions, { id, choices, box } = first, ranges = choices.filter(({ from }) => from !== undefined);
    this.questions = questions;
    this.name = box?.of ?? id;
    this.#noteName = noteName;
    this.#error.id = `error-${id}`;
    this.#note = make("p", { class: "note", id: `note-${id}` });
    const said = (/** @type {HTMLElement} */ element, /** @type {import("./survey.js").Words} */ words) => {
      this.#texts.push([element, words]);
      return element;
    };
    const hasNote = noteName || box || ranges.length, described = `${hasNote ? `note-${id} ` : ""}error-${id}`;
    const isScale = choices.some(({ score }) => score !== undefined) && !ranges.length;
    if (!isScale && !ranges.length && choices.length > MOST_BUTTONS) this.#list = /** @type {HTMLSelectElement} */ (make("select", {
      part: "input", name: id, required: true, autocomplete: "off", "aria-labelledby": `legend-${id}`, "aria-describedby": described,
    }, make("option", { value: "" }), ...choices.map(({ id: value, label }) => said(make("option", { value }), label))));
    const option = (/** @type {string} */ type, /** @type {string} */ value, /** @type {{label: import("./survey.js").Words, role?: string}} */ { label, role }) =>
      make("label", { class: role ? "choice role" : "choice", part: "choice" },
        make("input", { type, part: "input", name: id, value, autocomplete: "off" }), said(make("span"), label));
    const options = this.#list ? [] : box
      ? questions.map((one) => option("checkbox", boxId(one), /** @type {import("./survey.js").Box} */ (one.box)))
      : choices.filter(({ from }) => from === undefined).map((choice) => option("radio", choice.id, choice));
    this.#inputs = options.map((label) => /** @type {HTMLInputElement} */ (label.firstChild));
    const [{ from: least = 0 } = {}] = ranges;
    if (ranges.length) this.#number = /** @type {HTMLInputElement} */ (make("input", {
      type: "number", part: "input", step: "1", min: String(least), required: !options.length, autocomplete: "off",
      inputmode: least < 0 ? "text" : "numeric", // numeric keyboards may lack a minus sign
      "aria-labelledby": `legend-${id}`, "aria-describedby": described,
    }));
    const single = this.#number ?? this.#list;
    this.node = make("fieldset", {
      part: "question", id: `question-${id}`, role: box || single ? "group" : "radiogroup",
      "aria-required": !box && !single && "true", "aria-describedby": !single && described,
    },
      said(make("legend", { part: "legend", id: `legend-${id}` }), (box ?? first).text), ...(hasNote ? [this.#note] : []),
      ...(single ? [single] : []), ...(isScale ? [make("div", { class: "scale" }, ...options)] : options), this.#error);
    this.node.addEventListener("input", ({ target }) => this.#exclude(/** @type {HTMLInputElement} */ (target)));
  }

  /** Write all texts in a language. */
  write(/** @type {string} */ language, /** @type {import("./words.js").Strings} */ strings) {
    const [{ choices, box }] = this.questions, ranges = choices.filter(({ from }) => from !== undefined);
    this.#strings = strings;
    for (const [element, words] of this.#texts) element.textContent = words[language];
    // A question asked in the clear is plain, so a question has at most one note.
    this.#note.replaceChildren(...(this.#noteName ? [strings[this.#noteName]] : box ? [strings.boxes]
      : [strings.range, ...ranges.flatMap(({ label }, i) => [i ? " / " : " ", make("bdi", {}, label[language])])]));
    if (this.isWrong) this.complain(true);
  }

  /** Untick the inputs that exclude the changed input, or that it excludes. */
  #exclude(/** @type {HTMLInputElement} */ changed) {
    const hasRole = (/** @type {HTMLInputElement} */ box) => this.questions[this.#inputs.indexOf(box)].box?.role;
    if (changed === this.#number) for (const input of this.#inputs) input.checked = false;
    else if (this.#number) this.#number.value = "";
    else if (this.questions[0].box && changed.checked)
      for (const box of this.#inputs) if (box !== changed && (hasRole(box) || hasRole(changed))) box.checked = false;
  }

  /**
   * The person's answer in the form that `client.answer` accepts; undefined if missing or invalid.
   * @returns {string | number | string[] | undefined}
   */
  get answer() {
    const values = this.#inputs.filter(({ checked }) => checked).map(({ value }) => value), [first] = this.questions;
    if (first.box) return values;
    const number = this.#number?.valueAsNumber;
    return ofNumber(first, number) ? number : values[0] ?? (this.#list?.value || undefined);
  }

  /** Return the choice for one of the field's questions; undefined if it has no answer. */
  choiceOf(/** @type {Question} */ question) {
    const { answer } = this;
    if (Array.isArray(answer)) return ticked(answer.includes(boxId(question)));
    return typeof answer === "number" ? ofNumber(question, answer) : answer;
  }

  /** Give the answer to a question that is not asked, if it is one of its choices: it is shown, and cannot be changed. */
  fix(/** @type {string | null | undefined} */ choice) {
    if (!this.questions[0].choices.some(({ id }) => id === choice)) return;
    for (const input of this.#inputs) input.checked = input.value === choice;
    if (this.#list) this.#list.value = /** @type {string} */ (choice);
    for (const control of this.#list ? [this.#list] : this.#inputs) control.disabled = true;
  }

  /** Show an error at the field, or remove it. */
  complain(/** @type {boolean} */ isWrong) {
    this.isWrong = isWrong;
    const { missing, number } = this.#strings, { value = "", validity, min = "" } = this.#number ?? {};
    this.#error.replaceChildren(!isWrong ? "" : value || validity?.badInput ? number.replace("{least}", min) : missing);
    if (!this.questions[0].box) (this.#number ?? this.#list ?? this.node).setAttribute("aria-invalid", String(isWrong));
  }

  focus() {
    (this.#number ?? this.#list ?? this.#inputs[0]).focus();
  }
}

/** Hide the fields that a rule skips, and show the others. An unanswered question has no choice, so it fulfils no rule. */
export function follow(/** @type {Field[]} */ fields) {
  /** @type {Record<string, string | undefined>} */
  const chosen = {};
  for (const field of fields)
    for (const question of field.questions) {
      const instead = skipped(question, chosen);
      field.node.hidden = instead !== undefined;
      chosen[question.id] = instead ?? field.choiceOf(question);
    }
}
