// @ts-check
/** Summarises the document of this page when its reader wants that: its sentences as they come, then their proofs. */
import { Failure, worked } from "./asking.js";
import { element, filled, own } from "./element.js";
import { addressOf, saidOf } from "./prose.js";

/** @typedef {import("./types.js").Citation} Citation */
/** @typedef {import("./types.js").Words} Words */

const place = document.getElementById("summary");
if (place) offer(place);

/** @param {HTMLElement} section */
function offer(section) {
  const words = JSON.parse(section.dataset["words"] ?? "{}");
  const button = section.querySelector("button");
  const told = section.querySelector("p");
  if (!button || !told) return;
  section.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    told.textContent = words.summarising;
    try {
      await summarise(words, told);
      button.remove();
    } catch (error) {
      const known = error instanceof Failure && own(words.failures, error.label);
      told.textContent = filled(words.failed, { reason: known ? known[0] : words.failures.internal[0] });
      button.disabled = false;
    }
  });
}

/** @param {Words} words @param {HTMLElement} told */
async function summarise(words, told) {
  for await (const { answer, isDone } of worked({ action: "summarize", id: words.id })) {
    const { message, citations } = answer.content;
    const { done, total } = answer.progress ?? {};
    if (isDone) told.replaceChildren(...proved(message, citations, words));
    else told.textContent = message || `${words.summarising}${total ? ` ${done}/${total}` : ""}`;
  }
}

/**
 * The text with a link in place of each mark: to the words of the document that prove the sentence.
 * @param {string} text @param {Citation[]} citations @param {Words} words
 */
function proved(text, citations, words) {
  // Places count code points; a string of this language counts halves of the rare ones.
  const points = Array.from(text);
  /** @type {(Node | string)[]} */
  const parts = [];
  let at = 0;
  citations.forEach((one, index) => {
    const traits = { class: `mark ${one.status}`, href: addressOf(one), title: `${saidOf(one, words.statuses)} – ${words.open_passage}` };
    parts.push(points.slice(at, one.answer_start).join(""), element("a", traits, `[${index + 1}]`));
    at = one.answer_end;
  });
  parts.push(points.slice(at).join(""));
  return parts;
}
