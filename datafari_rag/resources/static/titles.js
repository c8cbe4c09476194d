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
  /** The box is a combobox only while there is something to choose. @param {string[]} titles */
  const show = (titles) => {
    list.replaceChildren(...titles.map((title) => element("option", { value: straight(title) })));
    if (titles.length) box.setAttribute("list", list.id);
    else box.removeAttribute("list");
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    running?.abort();
    const typed = box.value.trim();
    if (typed.length < SHORTEST || typed.length > LONGEST) return show([]);
    timer = window.setTimeout(async () => {
      running = new AbortController();
      try {
        const response = await fetch(`/search/titles?${new URLSearchParams({ q: typed })}`, { signal: running.signal });
        const { titles } = await response.json();
        show(titles ?? []);
      } catch {
        show([]);
      }
    }, PAUSE_MS);
  });
  // A search that begins is no time for suggestions any more.
  box.form?.addEventListener("submit", () => {
    clearTimeout(timer);
    running?.abort();
  });
}
