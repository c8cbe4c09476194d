// @ts-check
/** Suggestions while a question is typed: titles of documents that this reader may see. */
import { element } from "./element.js";
import { straight } from "./prose.js";

const PAUSE_MS = 250;
const SHORTEST = 3;
const LONGEST = 200;

/** @param {HTMLInputElement} box @param {HTMLElement} list the box's datalist */
export function suggest(box, list) {
  let timer = 0;
  /** @type {AbortController | null} */
  let running = null;
  box.addEventListener("input", () => {
    clearTimeout(timer);
    running?.abort();
    const typed = box.value.trim();
    if (typed.length < SHORTEST || typed.length > LONGEST) return list.replaceChildren();
    timer = window.setTimeout(async () => {
      running = new AbortController();
      try {
        const response = await fetch(`/search/titles?${new URLSearchParams({ q: typed })}`, { signal: running.signal });
        const { titles } = await response.json();
        list.replaceChildren(...(titles ?? []).map((/** @type {string} */ title) => element("option", { value: straight(title) })));
      } catch {
        list.replaceChildren();
      }
    }, PAUSE_MS);
  });
  // A search that begins is no time for suggestions any more.
  box.form?.addEventListener("submit", () => {
    clearTimeout(timer);
    running?.abort();
  });
}
