// @ts-check
/** Summarises the document of this page when its reader wants that: its sentences as they come, then their proofs. */
import { lines } from "./asking.js";
import { element, filled, own } from "./element.js";
import { addressOf } from "./prose.js";

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
      told.textContent = filled(words.failed, { reason: error instanceof Error ? error.message : "" });
      button.disabled = false;
    }
  });
}

/** @param {Words} words @param {HTMLElement} told */
async function summarise(words, told) {
  const response = await fetch("/rest/v2.0/ai/stream", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ action: "summarize", id: words["id"] }),
  });
  if (!response.ok) throw new Error((await response.json()).content?.message ?? "");
  let text = "";
  for await (const { type, data } of lines(response)) {
    if (type === "message.delta") told.textContent = text += data.text;
    else if (type === "message.final") told.replaceChildren(...proved(data.text, data.citations, words));
    else if (type === "error") throw new Error(data.message);
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
    const status = own(words["statuses"], one.status) ?? one.status;
    const traits = { class: `mark ${one.status}`, href: addressOf(one), title: `${status}: ${words["open_passage"]}` };
    parts.push(points.slice(at, one.answer_start).join(""), element("a", traits, `[${index + 1}]`));
    at = one.answer_end;
  });
  parts.push(points.slice(at).join(""));
  return parts;
}
