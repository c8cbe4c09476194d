// @ts-check
/** Suggestions while a question is typed: earlier questions of this reader, and titles of documents that he may see. */
import { element } from "./element.js";
import { straight } from "./prose.js";

const PAUSE_MS = 250;
const SHORTEST = 3;
const LONGEST = 200;

/** @param {HTMLInputElement} box @param {HTMLElement} list the box's datalist @param {(typed: string) => string[]} earlierLike */
export function suggest(box, list, earlierLike) {
  let timer = 0;
  /** @type {AbortController | null} */
  let running = null;
  /** The box is a combobox only while there is something to choose. @param {string[]} texts */
  const show = (texts) => {
    const once = [...new Set(texts.map(straight))];
    list.replaceChildren(...once.map((text) => element("option", { value: text })));
    if (once.length) box.setAttribute("list", list.id);
    else box.removeAttribute("list");
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    running?.abort();
    const typed = box.value.trim();
    const earlier = typed.length > LONGEST ? [] : earlierLike(typed);
    show(earlier);
    if (typed.length < SHORTEST || typed.length > LONGEST) return;
    timer = window.setTimeout(async () => {
      const mine = new AbortController();
      running = mine;
      try {
        const response = await fetch(`/search/titles?${new URLSearchParams({ q: typed })}`, { signal: mine.signal });
        const { titles } = await response.json();
        show([...earlier, ...(titles ?? [])]);
      } catch {
        // What was typed meanwhile has suggestions of its own.
        if (!mine.signal.aborted) show(earlier);
      }
    }, PAUSE_MS);
  });
  // A search that begins is no time for suggestions any more.
  box.form?.addEventListener("submit", () => {
    clearTimeout(timer);
    running?.abort();
  });
}
