// @ts-check
/** The basket: documents that a reader chose, for this visit; asked of alone, summarised or compared. */
import { worked } from "./asking.js";
import { Card } from "./card.js";
import { counted, element, filled, own } from "./element.js";
import { Kept } from "./kept.js";
import { straight } from "./prose.js";

/** @typedef {import("./types.js").Answer} Answer */
/** @typedef {Record<string, any>} Wish what is wanted of whole documents, as `POST /rest/v2.0/ai` takes it */
/**
 * @typedef {object} Acts what the page does besides
 * @property {(text: string) => void} say
 * @property {(text: string, told: number, isWhole?: boolean) => number} speak hands out new sentences
 * @property {() => void} settle clears what was handed out, a moment later
 * @property {(card: Card, error: unknown, running: AbortController) => void} failed
 * @property {(citation: import("./types.js").Citation) => void} open
 * @property {() => void} ask asks the question of these documents alone
 * @property {() => void} emptied
 */

/** A form has at most 1,000 values, the question's own among them. */
const MOST = 900;

export class Basket {
  /**
   * @param {{words: import("./types.js").Words, most: number, user: string}} setup with at most how many documents are summarised or compared
   * @param {HTMLElement} found @param {Acts} acts
   */
  constructor({ words, most, user }, found, acts) {
    this.words = words;
    this.most = most;
    this.found = found;
    this.acts = acts;
    this.kept = new Kept("datafari_rag basket", user);
    const kept = this.kept.read();
    /** The titles of the documents by their ids. @type {Map<string, string>} */
    this.documents = new Map(Array.isArray(kept) ? kept.filter(Array.isArray).map(([id, title]) => [String(id), String(title)]) : []);
    /** @type {AbortController | null} */
    this.running = null;
    this.shown = element("div", { class: "comparison" });
    this.count = element("summary");
    this.list = element("ul");
    const button = (/** @type {string} */ name, /** @type {() => void} */ click) => element("button", { type: "button", class: name, click }, words[name]);
    this.compare = /** @type {HTMLButtonElement} */ (button("compare", () => this.work("synthesize", { query: this.asked().get("q") ?? "" }, words.comparing)));
    this.summarise = /** @type {HTMLButtonElement} */ (button("summarise", () => this.work(this.documents.size > 1 ? "synthesize" : "summarize", {}, words.summarising)));
    const buttons = [button("ask_these", acts.ask), this.summarise, this.compare, button("empty", () => this.empty())];
    this.dock = element("div", { class: "dock", role: "group", "aria-label": words.basket }, element("details", {}, this.count, this.list), ...buttons);
    found.before(this.shown);
    found.parentElement?.append(this.dock);
    this.note();
  }

  asked() {
    return new URLSearchParams(location.search);
  }

  /** The only documents that are searched for the question of the address; none said: all. */
  ids() {
    return this.documents.size && this.asked().has("basket") ? [...this.documents.keys()] : undefined;
  }

  /** Offers the results for choice. */
  offer() {
    const hits = /** @type {HTMLElement[]} */ ([...this.found.querySelectorAll(".hits > li")]);
    for (const hit of hits) {
      const link = /** @type {HTMLAnchorElement} */ (hit.querySelector("h3 a"));
      hit.prepend(this.box(new URL(link.href).searchParams.get("id") ?? "", link.textContent ?? ""));
    }
    hits[0]?.parentElement?.classList.add("choosing");
    this.note();
  }

  /** Stops what is made of the documents, and takes it away. */
  clear() {
    this.running?.abort();
    this.shown.replaceChildren();
  }

  /** @param {string} id @param {string} title */
  box(id, title) {
    const box = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", class: "choice", value: id, autocomplete: "off", "aria-label": filled(this.words.choose, { title }) }));
    box.addEventListener("change", () => {
      if (box.checked) this.documents.set(id, title);
      else this.documents.delete(id);
      this.note();
      this.acts.say(this.count.textContent ?? "");
    });
    return box;
  }

  empty() {
    this.documents.clear();
    this.note();
    this.acts.emptied();
  }

  /** Keeps what is chosen, and shows it with what can be done with it. */
  note() {
    const { words, most, documents } = this;
    const count = documents.size;
    if (count) this.kept.write([...documents]);
    else this.kept.forget();
    // What was taken out here can be put back until the list is left.
    if (!this.list.contains(document.activeElement)) {
      this.list.replaceChildren(...[...documents].map(([id, title]) => element("li", {}, element("label", { dir: "auto" }, this.box(id, title), straight(title)))));
    }
    const boxes = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input.choice"));
    for (const box of boxes) {
      box.checked = documents.has(box.value);
      box.disabled = count >= MOST && !box.checked;
    }
    this.dock.hidden = !count;
    this.compare.disabled = count < 2 || count > most;
    this.summarise.disabled = count > most;
    const sentence = count >= MOST ? words.basket_full : count > most ? counted(words.basket_over, most) : counted(words.basket_count, count);
    this.count.textContent = filled(sentence, { count, most });
  }

  /** @param {string} action @param {Wish} wish @param {string} doing */
  async work(action, wish, doing) {
    this.running?.abort();
    const mine = new AbortController();
    this.running = mine;
    const { words, acts } = this;
    const own = { answer: "query" in wish ? words.comparison : words.summary, searching: doing, failures: { ...words.failures, ...words.basket_failures } };
    const card = new Card({ ...words, ...own }, { stop: () => mine.abort(), retry: () => this.work(action, wish, doing), open: acts.open });
    card.root.addEventListener("keydown", (event) => event.key === "Escape" && mine.abort());
    this.shown.replaceChildren(card.root);
    card.root.scrollIntoView({ block: "nearest" });
    card.stopButton.focus({ preventScroll: true });
    acts.say(doing);
    try {
      await this.grow(card, { action, ...wish }, mine.signal);
    } catch (error) {
      if (card.root.isConnected) acts.failed(card, error, mine);
    }
    acts.settle();
  }

  /** @param {Card} card @param {Wish} wish @param {AbortSignal} signal */
  async grow(card, wish, signal) {
    const documents = new Map(this.documents);
    const [first] = documents.keys();
    const lang = this.asked().get("lang");
    const named = wish.action === "summarize" ? { id: first } : { filters: { id: [...documents.keys()] } };
    let told = 0;
    for await (const { answer, isDone } of worked({ ...wish, ...named, ...(lang ? { lang } : {}) }, signal)) {
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
      return element("p", { class: "warn", dir: "auto" }, filled(own(this.words.left_out, reason) ?? this.words.left_out.notFound, { title }));
    });
  }
}
