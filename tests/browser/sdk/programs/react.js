// SPDX-License-Identifier: Apache-2.0
/**
 * The three functions of React that the snippet in docs/browser.md uses, as React documents them: a component
 * is a function, its element's ref is set before its effects run, and unmounting cleans effects up.
 */
let effects = [];
export const useRef = (current) => ({current});
export const useEffect = (act) => void effects.push(act);
export const createElement = (type, {ref, ...attributes}) => {
  const made = document.createElement(type);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  ref.current = made;
  return made;
};

/** Mount a component in an element; returns a function that unmounts it. */
export function mount(component, props, place) {
  effects = [];
  const made = component(props);
  place.append(made);
  const undo = effects.map((act) => act());
  return () => {
    for (const one of undo) one?.();
    made.remove();
  };
}
