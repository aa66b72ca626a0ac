// @ts-check
/** The words of the field in plain English, a dialog that shows them, and links to it. */

import { h, newId } from "./html.js";

/** @typedef {{name: string, text: string}} Term  other terms stand in brackets: `[head]`, `[heads|head]` */

/** @type {readonly Term[]} */
export const TERMS = [
  { name: "ablation", text: "Taking a part of the [model] out and watching what it then gets wrong. What fails shows what the part was for." },
  { name: "activation", text: "A number that the [model] computes on the way to its answer. It depends on the input; a [weight] does not." },
  { name: "attention", text: "How a [token] gathers information from other tokens: it gives each of them a weight and takes the weighted mean of their [values|value]." },
  { name: "baseline", text: "What takes the place of a part that is switched off: nothing (zero), its mean over training examples (mean), or what it computes for one other example (resample)." },
  { name: "carry", text: "The 1 that goes over to the next column of a sum. In 999+1 it goes through all three columns: a carry chain of 3." },
  { name: "causal mask", text: "A rule for the [decoder]: a [token] of the answer may look at tokens before it, never at those that come later." },
  { name: "cross-attention", text: "[Attention|attention] of the [decoder] to the input: [queries|query] come from the answer, [keys|key] and [values|value] from what the [encoder] made of the input." },
  { name: "decoder", text: "The part of the [model] that says the answer, one [token] after the other. Each token that it has said is read again before the next." },
  { name: "early guess", text: "The answer that the [model] would give if it stopped after a layer: the [readout] is applied to the [residual stream] early. Also called logit lens." },
  { name: "embedding", text: "A list of numbers that stands for a [token], learned in training. It is what the first layer is given." },
  { name: "encoder", text: "The part of the [model] that reads the whole input at once." },
  { name: "feed-forward part", text: "The part of a layer that works on each [token] by itself, with many [neurons|neuron]. Attention moves information between tokens, this part works on it." },
  { name: "greedy decoding", text: "Saying the most probable [token] each time, without trying others." },
  { name: "head", text: "One of several attentions that work side by side in a [site]. Each has its own [queries|query], [keys|key] and [values|value], and so its own [pattern]. encoder.0.self.2 is head 2 of the first layer of the encoder." },
  { name: "key", text: "What a [token] offers to be found by: a [query] that fits it gives it a high [score]." },
  { name: "layer", text: "One round of [attention] and [feed-forward part]. Layers follow each other and write into the same [residual stream]." },
  { name: "logit", text: "A number for each possible answer: the higher, the more the [model] is for it. The [softmax] makes probabilities of them." },
  { name: "model", text: "Here a transformer: layers of [attention] and [feed-forward parts|feed-forward part], whose [weights|weight] were learned from examples." },
  { name: "neuron", text: "One number inside a [feed-forward part]. It is high for some inputs and near zero for others." },
  { name: "patch", text: "A small square of a picture, which the [model] treats as one [token]." },
  { name: "patching", text: "Putting what a part computed for one input in while the [model] answers another. If the answer follows, the part carried what differs. Here it is called swap." },
  { name: "pattern", text: "The weights of a [head]: a row for each [query], a column for each [key]. A row sums to 1." },
  { name: "position", text: "Where a [token] stands. Attention itself does not see it, so the [model] is told, for example by a number pattern added to each [embedding]." },
  { name: "query", text: "What a [token] looks for. The [score] of a key is how well it fits the query." },
  { name: "readout", text: "The last step: it turns the [residual stream] into [logits|logit]." },
  { name: "residual stream", text: "The list of numbers that each [token] carries through the [model]. Every part reads it and adds to it." },
  { name: "score", text: "How well a [key] fits a [query], before the [softmax]. Scores times 0 make a [head] look everywhere alike; large factors make it look at one place." },
  { name: "site", text: "One attention of the [model] with all of its [heads|head], such as encoder.0.self." },
  { name: "snapshot", text: "The [weights|weight] as they were at one moment of the training." },
  { name: "softmax", text: "Turns any numbers into shares that sum to 1: the largest gets the most." },
  { name: "stratum", text: "A group of examples that have something in common, such as sums with a carry chain of 3." },
  { name: "token", text: "One piece of the input or the answer: a digit, a number, a sign, a [patch] of a picture." },
  { name: "value", text: "What a [token] hands over to those that attend to it." },
  { name: "weight", text: "A number that was learned in training and stays as it is. (The entries of a [pattern] are also called weights: of attention.)" },
];

/** A word that opens the glossary. @type {(name: string, text?: string) => HTMLElement} */
export function explained(name, text = name) {
  return h("button", { type: "button", class: "term", dataset: { term: name } }, text);
}

/**
 * A text whose words in brackets open the glossary.
 * @type {(text: string) => (Node | string)[]}
 */
export function withTerms(text) {
  return text.split(/\[([^\]]+)\]/).map((part, at) => {
    if (at % 2 === 0) return part;
    const [shown, name = shown] = part.split("|");
    return explained(name, shown);
  });
}

/**
 * The dialog. Whatever has `data-term` inside of `root` opens it.
 * @type {(root: HTMLElement) => {element: HTMLElement, open: (name?: string) => void, destroy: () => void}}
 */
export function createGlossary(root) {
  const id = newId("glossary");
  const title = h("h2", { id: `${id}-title` }, "Glossary");
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const entries = new Map(TERMS.map(({ name, text }) => [name, h("div", { class: "entry", id: `${id}-${name.replaceAll(" ", "-")}` },
    h("dt", { tabindex: -1 }, name), h("dd", null, ...withTerms(text)))]));
  const dialog = h("dialog", { class: "glossary", "aria-labelledby": title.id, dataset: { name: "glossary" } },
    h("div", { class: "dialog-head" }, title, close), h("dl", null, [...entries.values()]));

  /** @type {(name?: string) => void} */
  function open(name = "") {
    if (!dialog.open) dialog.showModal();
    for (const [each, entry] of entries) entry.classList.toggle("chosen", each === name);
    const entry = entries.get(name);
    entry?.scrollIntoView({ block: "center" });
    entry?.querySelector("dt")?.focus();
  }

  /** @type {(event: Event) => void} */
  function clicked(event) {
    const target = event.target instanceof Element ? event.target.closest("[data-term]") : null;
    if (target instanceof HTMLElement) open(target.dataset.term);
  }

  root.addEventListener("click", clicked);
  return { element: dialog, open, destroy: () => root.removeEventListener("click", clicked) };
}
