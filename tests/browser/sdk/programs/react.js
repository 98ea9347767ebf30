// SPDX-License-Identifier: Apache-2.0
/**
 * Stand-ins for the three React functions that the snippet in docs/browser.md uses. As React
 * documents, a component is a function, its element's ref is set before its effects run, and
 * unmounting runs the effects' cleanup functions.
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

/** Mount a component in an element and return a function that unmounts the component. */
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
