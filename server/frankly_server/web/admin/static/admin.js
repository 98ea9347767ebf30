// SPDX-License-Identifier: Apache-2.0
// Progressive enhancements, and passkeys, which need scripts. All other features work without this file.
"use strict";

// The page of a job polls the job's state, and reloads when the job has ended.
const job = document.querySelector("[data-job]");
if (job) {
  const words = job.querySelector("[role=status]");
  const bar = job.querySelector("progress");
  const follow = async () => {
    try {
      const answer = await fetch(job.dataset.job, { credentials: "same-origin" });
      const told = await answer.json();
      bar.value = told.done;
      if (told.state !== "running" && told.state !== "cancelling") {
        location.reload();
        return;
      }
      words.textContent = told.detail ? `Designing ${told.detail}: ${told.done} of ${told.total} done.` : words.textContent;
    } catch {
      words.textContent = "The server does not respond; trying again.";
    }
    setTimeout(follow, 700);
  };
  setTimeout(follow, 500);
}

// Fields appear when the choice that needs them is made, and a number belongs to "Another level".
for (const choice of document.querySelectorAll("[data-opens]")) {
  const fields = document.getElementById(choice.dataset.opens);
  choice.addEventListener("change", () => { fields.open = true; });
  if (choice.value === "other") fields.addEventListener("input", () => { choice.checked = true; });
}

// A field that counts only with one choice makes this choice when something is entered.
for (const field of document.querySelectorAll("[data-chooses]")) {
  const choice = document.getElementById(field.dataset.chooses);
  field.addEventListener("input", () => { choice.checked ||= field.value !== ""; });
}

// Of the answers that a question can depend on, those of the chosen question are shown.
for (const select of document.querySelectorAll("[data-shows]")) {
  const groups = select.form.querySelectorAll(`[data-${select.dataset.shows}]`);
  const show = () => groups.forEach((group) => { group.hidden = group.dataset[select.dataset.shows] !== select.value; });
  select.addEventListener("change", show);
  show();
}

// Further rows for a question's choices; without scripts, saving gives three more.
const addRow = (table) => {
  const row = table.tBodies[0].rows[table.tBodies[0].rows.length - 1].cloneNode(true), number = table.tBodies[0].rows.length + 1;
  for (const input of row.querySelectorAll("input")) {
    if (input.type === "radio") Object.assign(input, { value: String(number - 1), checked: false });
    else input.value = "";
    input.setAttribute("aria-label", (input.getAttribute("aria-label") ?? "").replace(/\d+/, number));
  }
  table.tBodies[0].append(row);
  return row;
};
for (const table of document.querySelectorAll("table[data-rows]")) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "quiet small", textContent: "Add a row" });
  button.addEventListener("click", () => addRow(table).querySelector("input").focus());
  table.parentElement.after(button);
}

// What is typed into a form is kept in this tab until it is saved: a session may end, or a page be left by mistake.
for (const form of document.querySelectorAll("form[data-keep]")) {
  const key = `frankly kept ${form.getAttribute("action")}`, seen = form.elements.seen.value;
  const fields = () => [...form.elements].filter(({ name, type }) => name && !["csrf", "seen"].includes(name) && !["submit", "file"].includes(type));
  const state = () => fields().map(({ name, type, value, checked }) => [name, ["radio", "checkbox"].includes(type) ? `${value}${checked ? " on" : ""}` : value]);
  const first = JSON.stringify(state());
  const read = () => { try { return JSON.parse(sessionStorage.getItem(key)); } catch { return null; } };
  const kept = read(), clear = () => sessionStorage.removeItem(key);
  if (kept && kept.isSent && kept.seen !== seen) clear();
  else if (kept && JSON.stringify(kept.state) !== first && !document.getElementById("refusal")) {
    const table = form.querySelector("table[data-rows]");
    while (table && fields().length < kept.state.length) addRow(table);
    fields().forEach((field, i) => {
      const [name, value] = kept.state[i] ?? [];
      if (name !== field.name) return;
      if (["radio", "checkbox"].includes(field.type)) field.checked = value.endsWith(" on");
      else field.value = value;
    });
    const note = document.createElement("p"), drop = document.createElement("button");
    note.className = "note warn";
    note.setAttribute("role", "status");
    note.textContent = "What you had typed and not saved is back. ";
    Object.assign(drop, { type: "button", className: "quiet small", textContent: "Discard it" });
    drop.addEventListener("click", () => { clear(); isSaved = true; location.reload(); });
    note.append(drop);
    form.prepend(note);
  }
  let isSaved = false;
  const keep = (isSent) => { try { sessionStorage.setItem(key, JSON.stringify({ seen, isSent, state: state() })); } catch { /* a full store keeps nothing */ } };
  form.addEventListener("input", () => keep(false));
  form.addEventListener("submit", () => { isSaved = true; keep(true); });
  addEventListener("beforeunload", (event) => { if (!isSaved && JSON.stringify(state()) !== first) event.preventDefault(); });
}

// The message of a refusal stands beside its field.
const refusal = document.getElementById("refusal");
const [, wrongName, row] = refusal?.dataset.field.split(".").pop().match(/^(.*?)(?:\[(\d+)])?$/) ?? [];
const namesakes = wrongName ? document.querySelectorAll(`main form [name="${CSS.escape(wrongName)}"]:not([type=hidden])`) : [];
const wrong = namesakes[row] ?? [...namesakes].find((one) => one.checked) ?? namesakes[0];
if (wrong && !document.getElementById(`${wrong.id}-error`)) {
  for (let part = wrong.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  wrong.form.classList.add(`shown-${wrongName}`);
  refusal.querySelector("small")?.remove();
  (wrong.closest("table") ?? wrong.closest("label") ?? wrong).before(refusal);
  wrong.setAttribute("aria-invalid", "true");
  wrong.setAttribute("aria-describedby", `refusal ${wrong.getAttribute("aria-describedby") ?? ""}`.trim());
  wrong.focus();
}

// A refusal that the server has put beside its field.
document.querySelector("[aria-invalid=true]")?.focus();

// Printing needs scripts; browsers print without this button too.
for (const button of document.querySelectorAll("[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => print());
}

// A copy button after each text that is meant to be copied.
for (const text of document.querySelectorAll("pre[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet small";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Press Ctrl-C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  text.after(button);
}

// Passkey form: stores the browser's credential in a field, then submits the form as usual.
const toBytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const toText = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential) continue;
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const options = JSON.parse(form.dataset.options);
    options.challenge = toBytes(options.challenge);
    if (options.user) options.user.id = toBytes(options.user.id);
    for (const known of options.excludeCredentials ?? []) known.id = toBytes(known.id);
    try {
      const made = await navigator.credentials[form.dataset.passkey]({ publicKey: options });
      const response = {};
      for (const part of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
        if (made.response[part]) response[part] = toText(made.response[part]);
      }
      form.elements.credential.value = JSON.stringify({ id: made.id, rawId: toText(made.rawId), type: made.type, response });
    } catch {
      form.querySelector("[role=alert]").textContent = "No passkey was used. Try again, or use your password.";
      return;
    }
    form.submit();
  });
}
