// @ts-check
/** Lets a reader choose some of the results, and shows what they say together: cited and proved as any answer. */
import { worked } from "./asking.js";
import { Card } from "./card.js";
import { element, filled, own } from "./element.js";
import { straight } from "./prose.js";

/** @typedef {import("./types.js").Answer} Answer */
/**
 * @typedef {object} Acts what the page does besides
 * @property {(text: string) => void} say
 * @property {(text: string, told: number, isWhole?: boolean) => number} speak hands out new sentences
 * @property {() => void} settle clears what was handed out, a moment later
 * @property {(card: Card, error: unknown, running: AbortController) => void} failed
 * @property {(citation: import("./types.js").Citation) => void} open
 */

const FEWEST = 2;

export class Comparison {
  /**
   * @param {{words: import("./types.js").Words, most: number}} setup with at most how many documents are compared here
   * @param {Acts} acts
   */
  constructor({ words, most }, acts) {
    this.words = words;
    this.most = most;
    this.acts = acts;
    /** The titles of the chosen documents by their ids. @type {Map<string, string>} */
    this.chosen = new Map();
    /** @type {HTMLInputElement[]} */
    this.boxes = [];
    /** @type {AbortController | null} */
    this.running = null;
    this.shown = element("div", { class: "comparison" });
    this.counted = element("p");
    this.button = /** @type {HTMLButtonElement} */ (element("button", { type: "button", class: "main" }, words.compare));
    this.dock = element("div", { class: "dock", role: "group", "aria-label": words.compare }, this.counted, this.button);
  }

  /** Offers the results in *found* for choice, none of them chosen. @param {HTMLElement} found @param {URLSearchParams} wanted */
  offer(found, wanted) {
    this.running?.abort();
    this.shown.replaceChildren();
    this.chosen.clear();
    const hits = /** @type {HTMLElement[]} */ ([...found.querySelectorAll(".hits > li")]);
    const list = hits[0]?.parentElement;
    if (!list || this.most < FEWEST || hits.length < FEWEST) return;
    this.boxes = hits.map((hit) => this.box(hit));
    list.classList.add("choosing");
    list.after(this.dock);
    list.closest(".beside")?.before(this.shown);
    this.button.onclick = () => this.compare(wanted, new Map(this.chosen));
    this.note();
  }

  /** Puts a box before the result *hit*. @param {HTMLElement} hit */
  box(hit) {
    const link = /** @type {HTMLAnchorElement} */ (hit.querySelector("h3 a"));
    const id = new URL(link.href).searchParams.get("id") ?? "";
    const title = link.textContent ?? "";
    const box = /** @type {HTMLInputElement} */ (
      element("input", { type: "checkbox", autocomplete: "off", "aria-label": filled(this.words.choose, { title }) })
    );
    box.addEventListener("change", () => {
      if (box.checked) this.chosen.set(id, title);
      else this.chosen.delete(id);
      this.acts.say(this.note());
    });
    hit.prepend(box);
    return box;
  }

  /** Says how many are chosen, and lets no more be chosen than are taken. */
  note() {
    const { words, most } = this;
    const count = this.chosen.size;
    const isFull = count >= most;
    for (const box of this.boxes) box.disabled = isFull && !box.checked;
    this.dock.hidden = !count;
    this.button.disabled = count < FEWEST;
    this.counted.textContent = filled(count < FEWEST ? words.choose_more : isFull ? words.chosen_all : words.chosen_count, { count, most });
    return this.counted.textContent;
  }

  /** @param {URLSearchParams} wanted @param {Map<string, string>} documents titles by ids */
  async compare(wanted, documents) {
    this.running?.abort();
    const mine = new AbortController();
    this.running = mine;
    const { words } = this;
    const failures = { ...words.failures, ...words.comparison_failures };
    const acts = { stop: () => mine.abort(), retry: () => this.compare(wanted, documents), open: this.acts.open };
    const card = new Card({ ...words, answer: words.comparison, searching: words.comparing, retry: words.compare_again, failures }, acts);
    card.root.addEventListener("keydown", (event) => event.key === "Escape" && mine.abort());
    this.shown.replaceChildren(card.root);
    card.root.scrollIntoView({ block: "nearest" });
    card.stopButton.focus({ preventScroll: true });
    this.acts.say(words.comparing);
    try {
      await this.grow(card, documents, wanted, mine.signal);
    } catch (error) {
      if (card.root.isConnected) this.acts.failed(card, error, mine);
    }
    this.acts.settle();
  }

  /** @param {Card} card @param {Map<string, string>} documents @param {URLSearchParams} wanted @param {AbortSignal} signal */
  async grow(card, documents, wanted, signal) {
    const query = wanted.get("q") ?? "";
    const lang = wanted.get("lang");
    const wish = { action: "synthesize", query, filters: { id: [...documents.keys()] }, ...(lang ? { lang } : {}) };
    let told = 0;
    for await (const { answer, isDone } of worked(wish, signal)) {
      if (isDone) {
        card.finish(answer);
        card.prose.before(...this.left(answer, documents));
        this.acts.say(this.words.done);
      } else {
        if (answer.progress) card.words.searching = filled(this.words.reading, answer.progress);
        card.grow(answer);
      }
      told = this.acts.speak(answer.content.message, told, isDone);
    }
  }

  /** Names the documents that are not in *answer*, and why. @param {Answer} answer @param {Map<string, string>} documents */
  left({ skipped = [] }, documents) {
    return skipped.map(({ id, reason }) => {
      const title = straight(documents.get(id) ?? id);
      return element("p", { class: "warn", dir: "auto" }, filled(own(this.words.left_out, reason) ?? this.words.left_out.notFound, { title, most: this.most }));
    });
  }
}
