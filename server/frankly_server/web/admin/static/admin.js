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

// Pictures as PNG are the browser's work: it has the fonts.
for (const link of document.querySelectorAll("a[data-png]")) {
  link.hidden = false;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const picture = new Image();
    picture.addEventListener("load", () => {
      const canvas = document.createElement("canvas"), scale = 3;
      canvas.width = picture.naturalWidth * scale;
      canvas.height = picture.naturalHeight * scale;
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((file) => {
        const address = URL.createObjectURL(file);
        Object.assign(document.createElement("a"), { href: address, download: link.dataset.png }).click();
        setTimeout(() => { URL.revokeObjectURL(address); }, 10_000);
      }, "image/png");
    });
    picture.addEventListener("error", () => { link.textContent = link.dataset.failed; });
    picture.src = link.href;
  });
}

// A field that counts only with one choice makes this choice when something is entered.
for (const field of document.querySelectorAll("[data-chooses]")) {
  const choice = document.getElementById(field.dataset.chooses);
  field.addEventListener("input", () => { choice.checked ||= field.value !== ""; });
}

// The slider says its stop in words, and an exact level in the fold for experts gives way to it.
const slider = document.querySelector("input[data-words]");
if (slider) {
  const words = JSON.parse(slider.dataset.words), exact = slider.form.elements.epsilon;
  const say = () => {
    slider.ariaValueText = words[slider.value];
    slider.form.querySelector("output").value = exact.value ? `Exact level: ${exact.value}` : words[slider.value];
  };
  slider.addEventListener("input", () => { exact.value = ""; say(); });
  exact.addEventListener("input", () => { slider.value = slider.dataset.stored; say(); });
  // The browser may fill fields in again after this script, when somebody comes back.
  addEventListener("pageshow", say);
}

// A slider of a share says its value in per cent.
const inPercent = new Intl.NumberFormat(`${document.documentElement.lang}-u-nu-latn`, { style: "percent", maximumFractionDigits: 1 });
for (const share of document.querySelectorAll("input[data-percent]")) {
  const say = () => { share.form.querySelector("output").value = share.ariaValueText = inPercent.format(share.value); };
  share.addEventListener("input", say);
  addEventListener("pageshow", say);
}

// What the protection would mean is asked anew after each change of its form.
const outlook = document.querySelector("[data-outlook]");
if (outlook) {
  const { form } = slider, part = (name) => outlook.querySelector(`[data-part=${name}]`), button = outlook.querySelector("button");
  const made = (tag, text, name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });
  const fill = ({ sentences = [], rows = [], example = "", notes = [], refused = "" }) => {
    part("sentences").replaceChildren(...sentences.map((one) => made("li", one)));
    part("rows").replaceChildren(...rows.map(({ text, figure, about, margin, word }) => {
      const row = document.createElement("tr"), heads = [...outlook.querySelectorAll("th[scope=col]")].slice(1);
      const cells = [figure, about.toLocaleString("en"), margin, word || "–"].map((one, i) => made("td", one, heads[i].className));
      cells.forEach((cell, i) => { cell.dataset.th = heads[i].textContent; });
      row.append(Object.assign(made("th", text), { scope: "row" }), ...cells);
      return row;
    }));
    part("example").textContent = example;
    part("notes").replaceChildren(...notes.map((one) => made("p", one, "hint")));
    part("status").textContent = refused && `Not known yet: ${refused}`;
    part("rows").closest("div").hidden = !rows.length;
    part("known").hidden = Boolean(refused);
  };
  let current = new AbortController(), timer;
  const ask = async () => {
    current.abort();
    const { signal } = current = new AbortController();
    part("status").textContent = "Working it out …";
    outlook.ariaBusy = "true";
    let told = { busy: "the server is busy" };
    try {
      for (let tries = 0; told.busy && tries < 20; tries++) {
        if (tries) await new Promise((done) => setTimeout(done, 2000));
        const answer = await fetch(button.formAction, { method: "POST", body: new FormData(form), headers: { Accept: "application/json" }, credentials: "same-origin", signal });
        if (!answer.headers.get("Content-Type").startsWith("application/json")) throw new Error(answer.status);
        told = await answer.json();
      }
    } catch {
      told = { refused: "the server does not respond, or you are signed out. What you typed is kept in this tab: reload the page." };
    }
    if (signal.aborted) return;
    fill(told.busy ? { refused: told.busy } : told);
    outlook.ariaBusy = "false";
  };
  button.hidden = button.disabled = true;
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 300); });
  addEventListener("pageshow", (event) => { if (event.persisted || !outlook.hasAttribute("data-told")) ask(); });
}

// Of the answers that a question can depend on, those of the chosen question are shown.
for (const select of document.querySelectorAll("[data-shows]")) {
  const groups = select.form.querySelectorAll(`[data-${select.dataset.shows}]`);
  const show = () => groups.forEach((group) => {
    group.hidden = group.dataset[select.dataset.shows] !== select.value;
    // What is not shown is not sent.
    if (group.hidden) for (const tick of group.querySelectorAll(":checked")) tick.checked = false;
  });
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

// What is typed into a form is kept in this tab until it is saved: a session may end, or a page be left by mistake. Of each
// changed field, the value that the draft had is kept too: a field that others have changed meanwhile is not written over.
const KEPT = "frankly kept";
const refused = document.getElementById("refusal");
for (const form of document.querySelectorAll("form[data-keep]")) {
  const key = `${KEPT} ${form.dataset.keep}`, seen = form.elements.seen.value, table = form.querySelector("table[data-rows]");
  const valueOf = ({ type, value, checked }) => (["radio", "checkbox"].includes(type) ? `${value}${checked ? " on" : ""}` : value);
  /** The fields that a person can fill in, by name and number. */
  const fields = () => {
    const counts = {}, found = new Map();
    for (const field of form.elements) {
      const { name, type } = field;
      if (!name || ["submit", "file"].includes(type)) continue;
      counts[name] = (counts[name] ?? -1) + 1;
      if (type !== "hidden") found.set(`${name} ${counts[name]}`, field);
    }
    return found;
  };
  let kept = null, isSaved = false;
  try { kept = JSON.parse(sessionStorage.getItem(key)); } catch { /* nothing is kept */ }
  const clear = () => sessionStorage.removeItem(key);
  const bases = new Map([...fields()].map(([place, field]) => [place, valueOf(field)]));
  const changed = () => [...fields()].flatMap(([place, field]) => (valueOf(field) === (bases.get(place) ?? "") ? [] : [[place, bases.get(place) ?? "", valueOf(field)]]));
  const keep = (isSent) => { try { sessionStorage.setItem(key, JSON.stringify({ seen, isSent, changes: changed() })); } catch { /* a full store keeps nothing */ } };
  if (kept && refused) { // the server shows what was typed; it is not saved yet
    for (const [place, base] of kept.changes) bases.set(place, base);
    keep(false);
  } else if (kept && kept.isSent && kept.seen !== seen) clear();
  else if (kept?.changes.length) {
    const homeless = [];
    for (const [place, base, value] of kept.changes) {
      const [name, number] = place.split(" ");
      while (table && table.querySelector(`[name="${CSS.escape(name)}"]`) && !fields().has(place) && Number(number) < 100) addRow(table);
      const field = fields().get(place);
      if (field && valueOf(field) === value) continue;
      if (!field || valueOf(field) !== base) homeless.push(value);
      else if (["radio", "checkbox"].includes(field.type)) field.checked = value.endsWith(" on");
      else field.value = value;
    }
    if (changed().length || homeless.length) {
      const note = document.createElement("p"), drop = document.createElement("button");
      note.className = "note warn";
      note.setAttribute("role", "status");
      note.textContent = `${changed().length ? "What you had typed and not saved is back. " : ""}${homeless.length
        ? `Not put back, because the draft has changed since: ${homeless.map((value) => `“${value}”`).join(", ")}. ` : ""}`;
      Object.assign(drop, { type: "button", className: "quiet small", textContent: "Discard it" });
      drop.addEventListener("click", () => { clear(); isSaved = true; location.reload(); });
      note.append(drop);
      form.prepend(note);
    }
  }
  form.addEventListener("input", () => keep(false));
  form.addEventListener("submit", () => { isSaved = true; keep(true); });
  addEventListener("beforeunload", (event) => { if (!isSaved && changed().length) event.preventDefault(); });
}
// Whoever signs in next in this tab gets nothing of it.
document.querySelector("form[action$='/sign-out']")?.addEventListener("submit", () => {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(KEPT)) sessionStorage.removeItem(key);
});

// The language and the extent of a preview are chosen independently.
const frame = document.querySelector("iframe[name=preview]");
for (const link of document.querySelectorAll("a[target=preview][data-part]")) link.addEventListener("click", (event) => {
  const here = frame.contentWindow.location, to = new URL(link.href);
  to[link.dataset.part === "hash" ? "search" : "hash"] = here[link.dataset.part === "hash" ? "search" : "hash"];
  event.preventDefault();
  here.assign(to);
  for (const one of document.querySelectorAll(`a[data-part=${link.dataset.part}]`)) one.toggleAttribute("aria-current", one === link);
});

// The message of a refusal stands beside its field.
const refusal = refused;
const [, wrongName, row] = refusal?.dataset.field.split(".").pop().match(/^(.*?)(?:\[(\d+)])?$/) ?? [];
const namesakes = wrongName ? document.querySelectorAll(`main form [name="${CSS.escape(wrongName)}"]:not([type=hidden])`) : [];
const named = namesakes[row] ?? [...namesakes].find((one) => one.checked) ?? namesakes[0];
// An answer on which a question depends is shown only with its question, which is chosen above it.
const wrong = named?.closest("[hidden]") ? named.form.querySelector("[data-shows]") : named;
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
