// @ts-check
/** Thumbs up and down, with a reason; only ids are sent. */
import { element, ROOT } from "./element.js";

/**
 * @param {import("./types.js").Answer} answer
 * @param {{words: import("./types.js").Words, token: string, hasFeedback: boolean}} setup
 */
export function thumbsOf(answer, setup) {
  if (!setup.hasFeedback) return null;
  const { words } = setup;
  const place = element("div", { class: "thumbs", role: "group", "aria-label": words.helpful });
  const send = async (/** @type {string} */ verdict, /** @type {string | null} */ reason) => {
    const { documents, citations } = answer.content;
    const body = {
      request_id: answer.id,
      verdict,
      reason,
      documents: documents.map((one) => one.id).filter(Boolean),
      cited: [...new Set(citations.map((one) => one.document_id).filter(Boolean))],
    };
    const headers = { "Content-Type": "application/json", "X-CSRF-Token": setup.token };
    const response = await fetch(`${ROOT}/feedback`, { method: "POST", headers, body: JSON.stringify(body) }).catch(() => null);
    const said = element("span", { role: "status", tabindex: "-1" }, response?.ok ? words.thanks : words.failures.network[0]);
    place.replaceChildren(said);
    said.focus();
  };
  const why = () => {
    const options = Object.entries(words.reasons).map(([value, text]) => element("option", { value }, String(text)));
    const choice = /** @type {HTMLSelectElement} */ (element("select", { "aria-label": words.reason }, ...options));
    place.replaceChildren(choice, element("button", { type: "button", class: "quiet", click: () => send("down", choice.value) }, words.send));
    choice.focus();
  };
  place.append(
    element("span", {}, words.helpful),
    element("button", { type: "button", class: "quiet", click: () => send("up", null) }, words.yes),
    element("button", { type: "button", class: "quiet", click: why }, words.no),
  );
  return place;
}
