// @ts-check
/** Opens the cited passage over the page: the document's stored text with the quote marked at its exact place. */
import { element, own } from "./element.js";
import { addressOf, SHAPES, saidOf, straight } from "./prose.js";

/** @typedef {import("./types.js").Citation} Citation */

/**
 * @param {Citation} citation
 * @param {import("./types.js").Words} words
 * @param {(label: string, reason: string) => HTMLElement} notice
 */
export async function openPassage(citation, words, notice) {
  const address = addressOf(citation);
  const stored = element("div", { class: "stored", dir: "auto", tabindex: "0", role: "region", "aria-label": words.open_document }, "…");
  const status = element("p", { class: `proof ${citation.status}` }, element("span", { class: "status" }, element("span", { class: "shape", "aria-hidden": "true" }, own(SHAPES, citation.status) ?? ""), ` ${saidOf(citation, words.statuses)}`));
  const dialog = /** @type {HTMLDialogElement} */ (
    element(
      "dialog",
      { "aria-labelledby": "passage-title" },
      element(
        "div",
        { class: "sheet" },
        element(
          "header",
          {},
          element("div", {}, element("h2", { id: "passage-title", dir: "auto" }, straight(citation.title ?? citation.label)), status),
          element("a", { class: "button", href: address }, words.open_document),
          element("button", { click: () => dialog.close(), type: "button" }, words.close),
        ),
        stored,
      ),
    )
  );
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  try {
    const response = await fetch(address, { headers: { Accept: "application/json" } });
    const body = await response.json();
    if (body.error) stored.replaceChildren(notice(body.error.label, body.error.reason));
    else mark(stored, body);
  } catch {
    stored.replaceChildren(notice("network", ""));
  }
}

/** @param {HTMLElement} stored @param {{text: string, start: number | null, end: number | null}} body */
function mark(stored, body) {
  if (body.start === null || body.end === null) {
    stored.replaceChildren(body.text);
    return;
  }
  // Offsets count code points; a string of this language counts halves of the rare ones.
  const points = Array.from(body.text);
  const quote = element("mark", { id: "passage-mark", tabindex: "-1" }, points.slice(body.start, body.end).join(""));
  stored.replaceChildren(points.slice(0, body.start).join(""), quote, points.slice(body.end).join(""));
  quote.scrollIntoView({ block: "center" });
  quote.focus({ preventScroll: true });
}
