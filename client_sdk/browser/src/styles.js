// SPDX-License-Identifier: Apache-2.0
/**
 * The element's style, as a constructed style sheet, so that it works under a strict CSP without inline styles. Pages
 * can change it by CSS parts and variables. From a width of 30em, the points of a scale are in one row: their flex
 * basis is then negative, and below 30em larger than the row.
 */

export const CSS = `
:host { --accent: var(--frankly-accent, light-dark(#0b5c6b, #7fd3e2)); --on-accent: var(--frankly-on-accent, light-dark(#fff, #06232a));
  --line: var(--frankly-line, light-dark(#8a979b, #75858a)); --soft: var(--frankly-soft, light-dark(#eef4f5, #1d2a2e));
  --wrong: var(--frankly-wrong, light-dark(#a3161a, #ffb0ab)); --text: var(--frankly-text, light-dark(#17262a, #e8f0f1));
  color-scheme: light dark; display: block; color: var(--text); font: inherit; line-height: 1.5; text-align: start; overflow-wrap: anywhere; }
:host([hidden]) { display: none; }
* { box-sizing: border-box; }
h1 { font-size: 1.6em; line-height: 1.25; margin: 0 0 .6em; }
p { margin: 0 0 1em; }
h2 { font-size: 1.1em; line-height: 1.3; margin: 0 0 .6em; }
h3 { font-size: 1em; margin: 1.2em 0 .4em; }
.promise { background: var(--soft); border-inline-start: 4px solid var(--accent); padding: .8em 1em; border-radius: 4px; margin: 0 0 1em; }
.promise p { margin: 0; }
.about { font-weight: 600; }
.label .about { list-style: none; padding: 0; }
.label { border: 1px solid var(--line); border-radius: 8px; padding: 1em; margin: 0 0 1.25em; }
.label p, .label ul { margin: 0 0 .6em; }
.label ul { padding-inline-start: 1.2em; }
.label details { border: 0; border-block-start: 1px solid var(--line); border-radius: 0; padding: .6em 0 0; margin: .8em 0 0; }
.label summary + * { margin-block-start: .6em; }
.pictures { display: flex; flex-wrap: wrap; gap: .8em 1.5em; margin: 0 0 .6em; }
figure { flex: 1 1 6.5em; max-inline-size: 12em; margin: 0; }
figcaption { font-size: .9em; margin: .4em 0 0; }
svg { display: block; inline-size: 100%; }
circle { fill: none; stroke: var(--line); }
.full { fill: var(--accent); stroke: var(--accent); }
circle.none { fill: var(--line); }
.legend { display: flex; flex-wrap: wrap; gap: .2em 1em; font-size: .9em; }
.legend svg { display: inline-block; inline-size: .8em; }
dt { font-weight: 600; }
dd { margin: 0 0 .8em; }
.trial:not([hidden]) { border: 1px dashed var(--accent); border-radius: 8px; padding: .6em 1em; }
.pair { margin: 0 0 .6em; }
.pair label { display: block; font-weight: 600; }
.pair select { inline-size: 100%; }
.second { background: none; color: inherit; border: 1px solid var(--line); padding: .5em 1em; margin: 0 0 .8em; }
.label .draws { list-style: none; padding: 0; margin: 0; }
.draws li { font-weight: 400; margin: .4em 0 0; }
.draws svg { max-inline-size: 20em; }
[role="status"]:empty { padding: 0; margin: 0; }
pre { white-space: pre-wrap; font-size: .8em; background: var(--soft); border-radius: 6px; padding: .8em; margin: 0; }
fieldset { border: 1px solid var(--line); border-radius: 8px; margin: 0 0 1.25em; padding: .9em 1em; min-inline-size: 0; }
legend { float: inline-start; inline-size: 100%; font-weight: 600; padding: 0; margin: 0 0 .4em; }
legend + * { clear: both; }
fieldset[aria-invalid="true"] { border-color: var(--wrong); }
.choice { display: flex; gap: .75em; align-items: center; min-block-size: 2.75em; padding: .25em .4em; border-radius: 6px; cursor: pointer; }
.choice:hover { background: var(--soft); }
input { inline-size: 1.25em; block-size: 1.25em; margin: 0; flex: none; accent-color: var(--accent); }
.scale { display: flex; flex-wrap: wrap; }
.scale .choice { flex: 1 1 calc((30em - 100%) * 999); gap: .5em; overflow-wrap: break-word; }
.scale .role { flex-basis: 100%; }
.error { color: var(--wrong); font-weight: 600; margin: .25em 0 0; }
.error:empty { display: none; }
.note { font-size: .9em; margin: 0 0 .3em; }
button, .back { font: inherit; font-weight: 600; background: var(--accent); color: var(--on-accent); border: 0; border-radius: 8px; padding: .8em 1.4em; min-block-size: 2.75em; cursor: pointer; }
.back { display: inline-block; text-decoration: none; }
code { font-size: 1.1em; font-weight: 600; user-select: all; }
button[disabled] { opacity: .6; cursor: progress; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
select, [type="text"], [type="number"] { font: inherit; color: inherit; background: light-dark(#fff, #10191c); border: 1px solid var(--line); border-radius: 6px; padding: .4em .6em; min-block-size: 2.75em; max-inline-size: 100%; }
[type="text"], [type="number"] { inline-size: 100%; block-size: auto; margin: .25em 0; }
[type="number"] { inline-size: 9em; }
select[aria-invalid="true"], [type="text"][aria-invalid="true"], [type="number"][aria-invalid="true"] { border-color: var(--wrong); }
.progress:not([hidden]) { display: flex; flex-wrap: wrap; gap: .2em .8em; align-items: center; font-size: .9em; margin: 0 0 1em; }
progress { flex: 1 1 8em; accent-color: var(--accent); }
.invitation { margin: 0 0 1.25em; }
.invitation label { font-weight: 600; }
.languages { display: flex; gap: .6em; align-items: center; flex-wrap: wrap; margin: 0 0 1em; }
details { border: 1px solid var(--line); border-radius: 8px; padding: .7em 1em; margin: 0 0 1.25em; }
summary { cursor: pointer; font-weight: 600; min-block-size: 1.6em; }
.words { margin: .8em 0 0; font-size: .92em; }
.words div { margin: 0 0 1em; }
.words p { margin: 0 0 .3em; }
.words details { margin: 1em 0 0; }
.words summary + div { margin-block-start: .8em; }
[role="status"], [role="alert"] { font-weight: 600; background: var(--soft); border-radius: 8px; padding: 1em; margin: 0 0 1em; }
[role="alert"] { border: 1px solid var(--wrong); }
@media print {
  details::details-content { content-visibility: visible; block-size: auto; display: block; }
  .trial:not([hidden]), .progress:not([hidden]), .languages, button { display: none; }
  fieldset, .label { break-inside: avoid; }
}
`;
