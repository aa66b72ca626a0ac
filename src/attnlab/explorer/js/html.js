// @ts-check
/** Making and changing elements. Text is always text: nothing here reads HTML. */

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {{[name: string]: any}} Props */

const SVG = "http://www.w3.org/2000/svg";
/** Set as properties, since their attributes only give the first value. */
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected", "open", "indeterminate"]);

/**
 * An element: `h("button", {class: "tool", onclick: act, "aria-label": "Undo"}, "Undo")`.
 * Functions under `on...` are listeners; `style` and `dataset` are objects; null and false leave a prop out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) setProp(element, name, value);
  append(element, children);
  return element;
}

/**
 * An element of SVG; all props but listeners are attributes.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...(Child | Child[])} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, props, ...children) {
  const element = /** @type {SVGElementTagNameMap[K]} */ (document.createElementNS(SVG, tag));
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

/** @param {HTMLElement} element @param {string} name @param {any} value */
function setProp(element, name, value) {
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "style") Object.assign(element.style, value);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (PROPERTIES.has(name)) Reflect.set(element, name, value);
  else setAttribute(element, name, value);
}

/**
 * Set an attribute, or remove it where the value is null or false; nothing happens where it stands already.
 * @param {Element} element @param {string} name @param {string | number | boolean | null | undefined} value
 */
export function setAttribute(element, name, value) {
  const wanted = value === null || value === undefined || value === false ? null : value === true ? "" : String(value);
  if (element.getAttribute(name) === wanted) return;
  if (wanted === null) element.removeAttribute(name);
  else element.setAttribute(name, wanted);
}

/** @param {Element} element @param {(Child | Child[])[]} children */
function append(element, children) {
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false)
      element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Replace the children, where they are not the same already.
 * @param {Element} element @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  const nodes = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  if (nodes.length === element.childNodes.length && nodes.every((node, i) => node === element.childNodes[i])) return;
  element.replaceChildren();
  append(element, nodes);
}

/** Set the text, where it is another. @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * One child for each item, made by `make` where the list grew, brought up to date by `update`: what stays is
 * not made anew, so focus and hover stay too.
 * @template T
 * @template {Element} E
 * @param {Element} parent
 * @param {readonly T[]} items
 * @param {(item: T, index: number) => E} make
 * @param {(element: E, item: T, index: number) => void} update
 */
export function each(parent, items, make, update) {
  while (parent.children.length > items.length) parent.lastElementChild?.remove();
  items.forEach((item, index) => {
    if (index >= parent.children.length) parent.append(make(item, index));
    update(/** @type {E} */ (parent.children[index]), item, index);
  });
}

/**
 * A region that screen readers read out when its text changes, and the function that changes it.
 * @param {"polite" | "assertive"} [urgency]
 */
export function announcer(urgency = "polite") {
  const region = h("div", { class: "unseen", role: "status", "aria-live": urgency, "aria-atomic": "true" });
  return { element: region, announce: (/** @type {string} */ text) => setText(region, text) };
}

const NOTICED = 4000;

/** What has just happened, seen for a while and read out, and the function that says it. */
export function notice() {
  const region = h("div", { class: "notice", role: "status", "aria-live": "polite", "aria-atomic": "true" });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let ending;
  const tell = (/** @type {string} */ text) => {
    clearTimeout(ending);
    setText(region, text);
    ending = setTimeout(() => setText(region, ""), NOTICED);
  };
  return { element: region, tell, stop: () => clearTimeout(ending) };
}

/**
 * Where keys, pastes and drops for the explorer arrive: the whole document, where the page is the explorer alone.
 * @param {HTMLElement} root @returns {Document | HTMLElement}
 */
export function reach(root) {
  return root.parentElement === document.body ? document : root;
}

/** A noun with its article. @param {string} noun */
export function aOrAn(noun) {
  return `${/^[aeiou]/i.test(noun) ? "an" : "a"} ${noun}`;
}

let made = 0;
/** A new id, for labels. @param {string} stem */
export function newId(stem) {
  made += 1;
  return `${stem}-${made}`;
}
