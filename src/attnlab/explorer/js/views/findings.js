// @ts-check
/** What the doctor finds wrong with the run: the diagnosis that is kept, or one that is made on request. */

import { partsIn } from "../diagnosis.js";
import { fill, h, setText } from "../html.js";
import { copyText } from "./edits_list.js";
import { evidence } from "./evidence.js";
import { createRunning } from "./running.js";

/** @import {Named} from "../diagnosis.js" */
/** @import {App, Diagnosis, Finding, Model, Subject, View} from "../types.js" */

/** @param {App} app @returns {View} */
export function create(app) {
  const begin = h("button", { type: "button", dataset: { name: "diagnose" }, onclick: () => running.start({ analysis: "doctor" }) });
  const whose = h("p", { class: "hint" });
  const list = h("div", { class: "findings", "aria-live": "polite" });
  /** @type {ReturnType<typeof createRunning<Diagnosis>>} */
  const running = createRunning(app, app.diagnosed);
  const element = h("section", { class: "panel", "aria-label": "Findings", dataset: { name: "findings" } },
    h("div", { class: "panel-head" }, whose, begin), running.elements, list);
  /** @type {Subject | null} */
  let subject = null;
  /** @type {Diagnosis | null | undefined} */
  let shown;
  let asked = "";

  /** Ask for what is kept, once for each subject. @param {Subject} given */
  function ask(given) {
    subject = given;
    shown = undefined;
    running.stop("");
    asked = "Looking for an earlier diagnosis …";
    app.port.findings().then(
      (kept) => answered(given, kept, ""),
      (error) => answered(given, null, error instanceof Error ? error.message : String(error)),
    );
  }

  /** @param {Subject} given @param {Diagnosis | null} kept @param {string} problem */
  function answered(given, kept, problem) {
    if (subject !== given) return;
    asked = kept || problem ? "" : "Nobody has looked yet.";
    running.stop(problem);
    if (kept) app.diagnosed(kept);
    else setText(whose, asked);
  }

  /** @param {Model} model */
  function render(model) {
    if (subject !== model.subject) ask(model.subject);
    const { diagnosis } = model;
    begin.hidden = model.subject.source === "handout";
    setText(begin, diagnosis ? "Look again" : "Look for faults");
    setText(whose, diagnosis ? `The weights that were kept, without edits. ${diagnosis.checked}.` : asked);
    if (shown === diagnosis) return;
    shown = diagnosis;
    fill(list, ...(diagnosis ? drawn(diagnosis, model.subject) : []));
  }

  /** @param {Diagnosis} diagnosis @param {Subject} subject */
  function drawn({ findings, unchecked }, subject) {
    const left = unchecked.map(([kinds, why]) => h("div", null, h("dt", null, why), h("dd", null, kinds)));
    return [
      findings.length ? h("ol", { class: "finding-list" }, findings.map((each, at) => findingOf(each, at + 1, subject))) : h("p", null, "Nothing found."),
      left.length > 0 && h("details", null, h("summary", null, "What could not be checked"), h("dl", { class: "facts-list" }, left)),
    ];
  }

  /** @param {Finding} finding @param {number} number @param {Subject} subject */
  function findingOf(finding, number, subject) {
    const { kind, severity, confidence, source, text, explained_by: cause, remedy, command, code, why } = finding;
    const parts = partsIn(finding, subject).map((part) => h("button", { type: "button", class: "chip", dataset: { part: part.at }, onclick: () => choose(part) }, part.at));
    return h("li", { class: `finding ${severity}`, dataset: { kind } },
      h("h3", null, `${number}. ${kind}`, h("span", { class: `severity ${severity}` }, severity)),
      h("p", null, sentence(text)),
      h("p", { class: "number" }, `Confidence ${Math.round(100 * confidence)}%, by ${source}${cause ? `; explained by ${cause}` : ""}.`),
      parts.length > 0 && h("div", { class: "chips", role: "group", "aria-label": "The parts it names; each shows itself" }, parts),
      evidence(finding),
      h("p", null, h("b", null, "What to do: "), sentence(remedy)),
      command && copied(command, `Copy the command against ${kind}`),
      code && copied(code, `Copy the code against ${kind}`),
      why && h("details", null, h("summary", null, "Why it happens"), h("p", null, why)));
  }

  /** @param {string} code @param {string} label */
  function copied(code, label) {
    return h("div", { class: "copied" }, h("pre", null, h("code", null, code)),
      h("button", { type: "button", "aria-label": label, onclick: () => copyText(app, code) }, "Copy"));
  }

  /** Show a part that a finding names. @param {Named} part */
  function choose({ heads: [head], feed }) {
    if (head) app.dispatch({ type: "choose", head });
    else app.dispatch({ type: "feed", feed });
    app.dispatch({ type: "view", view: head ? "heads" : "neurons" });
  }

  return { element, render, destroy: () => running.stop("") };
}

/** A sentence with a capital and a full stop. @param {string} text */
export function sentence(text) {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}
