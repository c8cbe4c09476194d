// @ts-check
/**
 * `<datafari-answer>`: the answer card in a page of another site. The page loads this one file as a module and has
 * the element once; `docs/clients.md` says what its attributes do.
 */
import { asked, Failure } from "./asking.js";
import { Card } from "./card.js";

const BASE = new URL("..", import.meta.url).href.replace(/\/$/, "");

class DatafariAnswer extends HTMLElement {
  static observedAttributes = ["question"];

  constructor() {
    super();
    this.place = document.createElement("div");
    /** @type {AbortController | null} */
    this.running = null;
    /** @type {AbortController | null} */
    this.listening = null;
    /** @type {Promise<any> | null} */
    this.setup = null;
    this.attachShadow({ mode: "open" }).append(this.place);
  }

  connectedCallback() {
    const form = formOf(this.getAttribute("form"));
    const listening = new AbortController();
    this.listening = listening;
    const asks = (/** @type {Event} */ event) => {
      if (this.hasAttribute("stay")) event.preventDefault();
      this.ask(String((form && new FormData(form).get(this.parameter)) ?? ""));
    };
    form?.addEventListener("submit", asks, { signal: listening.signal });
    this.ask(this.getAttribute("question") ?? new URLSearchParams(location.search).get(this.parameter) ?? "");
  }

  disconnectedCallback() {
    this.listening?.abort();
    this.running?.abort();
  }

  attributeChangedCallback() {
    if (this.isConnected) this.ask(this.getAttribute("question") ?? "");
  }

  get parameter() {
    return this.getAttribute("parameter") ?? "q";
  }

  /** Asks *question* and shows its answer in place of the one before. @param {string} question */
  async ask(question) {
    this.running?.abort();
    this.place.replaceChildren();
    if (!question.trim()) return;
    const mine = new AbortController();
    this.running = mine;
    this.setup ??= this.prepared();
    const setup = await this.setup.catch(() => null);
    if (!setup) this.setup = null;
    if (!setup || mine.signal.aborted) return;
    const { words } = setup;
    const card = new Card(words, { base: BASE, stop: () => mine.abort(), retry: () => this.ask(question) });
    this.place.replaceChildren(card.root);
    /** @type {RequestCredentials} */
    const credentials = this.hasAttribute("with-credentials") ? "include" : "omit";
    const format = this.getAttribute("format") ?? "default";
    try {
      for await (const { answer, isDone } of asked({ question, base: BASE, signal: mine.signal, credentials, format })) {
        if (isDone) card.finish(answer);
        else card.grow(answer);
      }
    } catch (error) {
      if (mine.signal.aborted) card.stop();
      else card.fail(error instanceof Failure ? error : new Failure("internal", ""));
    }
  }

  /** Fetches words and styles once; nothing of the page around is touched. */
  async prepared() {
    const language = this.getAttribute("lang") ?? document.documentElement.lang ?? "";
    const [setup, style] = await Promise.all([
      fetch(`${BASE}/widget.json?ui=${encodeURIComponent(language.slice(0, 2))}`, { credentials: "omit" }).then((response) => response.json()),
      fetch(`${BASE}/static/page.css`, { credentials: "omit" }).then((response) => response.text()),
    ]);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style.replaceAll(":root", ":host") + ":host{display:block;color:var(--ink);font:1rem/1.6 system-ui,sans-serif}.card{margin:0}");
    if (this.shadowRoot) this.shadowRoot.adoptedStyleSheets = [sheet];
    return setup;
  }
}

/** The form that *selector* names; what names none, or is none, is no form. @param {string | null} selector */
function formOf(selector) {
  try {
    const found = selector ? document.querySelector(selector) : null;
    return found instanceof HTMLFormElement ? found : null;
  } catch {
    return null;
  }
}

customElements.define("datafari-answer", DatafariAnswer);
