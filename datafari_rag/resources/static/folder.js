// @ts-check
/** The first page over a folder of files: how far they are read, and the page again when something new was read. */
import { filled, ROOT } from "./element.js";

const EVERY_MS = 1000;
const place = /** @type {HTMLElement} */ (document.getElementById("progress"));
const state = /** @type {HTMLElement} */ (place.querySelector("[data-state]"));
const box = /** @type {HTMLInputElement} */ (document.getElementById("q"));

async function look() {
  // A hidden page sends no requests; a page with a question is a different page.
  if (!document.hidden && !new URLSearchParams(location.search).get("q")) {
    try {
      const response = await fetch(`${ROOT}/demo/progress`);
      const { isReading, reading, percent, runs } = await response.json();
      if (String(runs) !== place.dataset.runs && !box.value) return location.reload();
      state.hidden = !isReading;
      state.textContent = `${filled(place.dataset.sentence ?? "", { percent })} ${reading}`;
    } catch {
      state.hidden = true;
    }
  }
  setTimeout(look, EVERY_MS);
}

setTimeout(look, EVERY_MS);
