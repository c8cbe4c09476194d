// @ts-check
/** The card of one answer: it grows while it is written, and ends complete, stopped or failed. */
import { Failure } from "./asking.js";
import { counted, element, filled, own } from "./element.js";
import { madeOf } from "./made.js";
import { linkTo, Marks, proseInto, saidOf, SHAPES, states, straight } from "./prose.js";

/** @typedef {import("./types.js").Answer} Answer */
/** @typedef {import("./types.js").Citation} Citation */

const FEW = 3;

export class Card {
  /**
   * @param {import("./types.js").Words} words
   * @param {{stop?: () => void, retry?: () => void, next?: (question: string) => void,
   *   open?: (citation: Citation) => void, thumbs?: (answer: Answer) => HTMLElement | null, base?: string}} acts
   */
  constructor(words, acts) {
    this.words = words;
    this.acts = acts;
    /** @type {Answer | null} */
    this.answer = null;
    this.phase = element("span", { class: "phase" }, words.searching);
    this.by = element("span", { class: "by" });
    this.prose = element("div", { class: "prose" });
    this.proofs = element("div", { class: "proofs" });
    this.after = element("div");
    this.stopButton = element("button", { type: "button", click: () => acts.stop?.() }, words.stop);
    this.tools = element("div", { class: "tools" }, this.stopButton);
    this.root = element(
      "section",
      { class: "card answer busy", "aria-label": words.answer, "aria-busy": "true" },
      element("header", {}, element("h2", {}, words.answer), this.phase, this.by),
      element("div", { class: "split" }, element("div", {}, this.prose, this.tools), this.proofs),
      this.after,
    );
    this.isDue = false;
  }

  /** Shows the answer so far; at most once a frame. @param {Answer} answer */
  grow(answer) {
    this.answer = answer;
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      if (!this.root.classList.contains("busy") || !this.answer) return;
      this.phase.textContent = this.awaited(this.answer);
      this.flush();
    });
  }

  /** What is waited for; the seconds until the model is tried again are counted down. @param {Answer} answer */
  awaited({ content, isFound, tryAt = 0 }) {
    if (content.message) return this.words.writing;
    const seconds = Math.ceil((tryAt - performance.now()) / 1000);
    if (seconds <= 0) return isFound ? this.words.waiting : this.words.searching;
    setTimeout(() => this.answer && this.grow(this.answer), 1000);
    return filled(this.words.next_try, { seconds });
  }

  /** @param {Answer} answer */
  finish(answer) {
    this.answer = answer;
    const { message, documents, citations, finish_reason } = answer.content;
    this.end(this.words.done);
    const marks = new Marks(documents, citations, this.words.statuses, this.acts.open, this.acts.base);
    proseInto(this.prose, message, marks);
    this.note(answer, finish_reason === "length");
    this.by.textContent = modelOf(answer);
    this.proofs.replaceChildren(this.sources(marks));
    this.tools.before(this.counts());
    const made = madeOf(answer, this.words);
    if (answer.followups?.length) this.propose(answer.followups);
    if (made) this.after.append(made);
    this.toolbar(true);
  }

  stop() {
    this.flush();
    this.end(this.words.stopped);
    this.toolbar(Boolean(this.answer?.content.message));
  }

  /** @param {Failure} failure */
  fail(failure) {
    const partial = failure.partial?.content.message;
    this.flush();
    this.end(partial ? this.words.broken : "");
    const notice = noticeOf(failure.label, failure.message, this.words);
    if (!partial) {
      this.root.classList.add("notice");
      this.root.dataset.label = failure.label;
      this.root.querySelector("header")?.remove();
      this.prose.className = "";
    }
    (partial ? this.after : this.prose).replaceChildren(...notice.childNodes);
    this.toolbar(false);
  }

  /** Shows what came since the last frame. */
  flush() {
    if (!this.answer) return;
    const { message, documents } = this.answer.content;
    proseInto(this.prose, message, new Marks(documents, null, this.words.statuses));
  }

  /** @param {string} said */
  end(said) {
    this.root.classList.remove("busy");
    this.root.removeAttribute("aria-busy");
    this.phase.textContent = said;
  }

  /** @param {boolean} hasText */
  toolbar(hasText) {
    const { words, acts, answer } = this;
    const root = /** @type {Document | ShadowRoot} */ (this.root.getRootNode());
    const hadFocus = root.activeElement === this.stopButton;
    this.tools.replaceChildren();
    if (acts.retry) this.tools.append(element("button", { type: "button", click: () => acts.retry?.() }, words.retry));
    if (hadFocus) /** @type {HTMLElement | null} */ (this.tools.firstElementChild)?.focus({ preventScroll: true });
    if (!hasText || !answer) return;
    const copy = element("button", { type: "button" }, words.copy);
    copy.addEventListener("click", async () => {
      await copied(asText(answer, words));
      copy.textContent = words.copied;
      setTimeout(() => (copy.textContent = words.copy), 1500);
    });
    this.tools.append(copy);
    const thumbs = acts.thumbs?.(answer);
    if (thumbs) this.tools.append(thumbs);
  }

  /** @param {Answer} answer @param {boolean} isCut */
  note(answer, isCut) {
    const isExtractive = answer.model.startsWith("builtin:extractive");
    const isFallback = answer.model.includes("fallback=1");
    const said = [isFallback && this.words.fallback, isExtractive && this.words.extractive].filter(Boolean).join(" ");
    if (said) this.prose.before(element("p", { class: "note" }, said));
    if (answer.content.few_words) this.prose.before(element("p", { class: "warn" }, this.words.few_words));
    if (answer.content.other_language) this.prose.before(element("p", { class: "warn" }, this.words.other_language));
    if (answer.content.partial_results) this.prose.before(element("p", { class: "warn" }, this.words.partial));
    const { support } = answer.content;
    const dropped = support?.dropped ?? 0;
    if (support?.replaced) this.prose.before(element("p", { class: "warn" }, this.words.replaced[support.replaced]));
    else if (dropped) this.prose.after(element("p", { class: "warn" }, filled(counted(this.words.dropped, dropped), { dropped })));
    if (isCut) this.prose.after(element("p", { class: "warn" }, this.words.cut));
  }

  counts() {
    const { documents, citations } = /** @type {Answer} */ (this.answer).content;
    const cited = new Set(citations.map((one) => one.document_id).filter(Boolean)).size;
    const used = filled(counted(this.words.used, documents.length), { used: documents.length, cited });
    // As many as there are badges: what states nothing has none.
    const shapes = citations.filter(states).map((one) => own(SHAPES, one.status) ?? "?");
    const kinds = Object.entries(/** @type {Record<string, string>} */ (this.words.badges));
    const numbers = kinds.map(([shape, told]) => [shapes.filter((one) => one === shape).length, told]);
    const badges = numbers.filter(([number]) => number).map(([number, told]) => filled(String(told), { number }));
    return element("p", { class: "counts" }, [used, ...badges].join(" · "));
  }

  /** @param {Marks} marks */
  sources(marks) {
    const { documents, citations } = /** @type {Answer} */ (this.answer).content;
    const items = documents.map((document) => {
      const mine = citations.filter((one) => document.id !== null && one.document_id === document.id);
      const once = [...new Map(mine.filter(states).map((one) => [`${one.start} ${one.end} ${one.status}`, one])).values()];
      const title = document.id
        ? element("a", { ...linkTo({ document_id: document.id }, this.acts.base), dir: "auto" }, document.title)
        : element("span", { dir: "auto" }, document.title);
      const proofs = once.map((one) => this.proof(one, marks));
      const rest = proofs.splice(FEW);
      const more = rest.length ? element("details", { class: "more-list" }, element("summary", {}, `+ ${rest.length}`), ...rest) : null;
      const date = (document.last_modified || "").slice(0, 10);
      const dated = date && element("time", { class: "fine", datetime: date }, date);
      const name = fileName(document.url);
      const named = name && name !== document.title ? element("span", { class: "fine", dir: "auto" }, ` ${name}`) : null;
      return element("li", {}, title, named, dated && " ", dated || null, !mine.length && element("span", { class: "fine" }, ` ${this.words.not_cited}`), ...proofs, more);
    });
    return element("div", {}, element("h3", { class: "sources-title" }, this.words.sources), element("ol", { class: "sources" }, ...items));
  }

  /** @param {Citation} one @param {Marks} marks */
  proof(one, marks) {
    const shape = element("span", { class: "shape", "aria-hidden": "true" }, own(SHAPES, one.status) ?? "?");
    const link = element("a", linkTo(one, this.acts.base), this.words.open_passage);
    link.addEventListener("click", (event) => marks.follow(event, one, link));
    return element(
      "p",
      { class: `proof ${one.status}` },
      element("span", { class: "status" }, shape, ` ${saidOf(one, this.words.statuses)}`),
      one.context && element("span", { class: "place", dir: "auto" }, straight(one.context)),
      one.quote && quoteOf(one),
      one.place && element("span", { class: "place", dir: "auto" }, straight(one.place)),
      typeof one.start === "number" && link,
    );
  }

  /** Shows what could be asked next, each a button. @param {string[]} questions */
  propose(questions) {
    if (!questions.length || !this.acts.next) return;
    const buttons = questions.map((question) => element("button", { type: "button", dir: "auto", click: () => this.acts.next?.(question) }, question));
    const list = element("div", { class: "next" }, ...buttons);
    this.tools.after(element("div", { class: "proposals" }, element("h3", { class: "sources-title" }, this.words.followups), list));
  }
}

/** The whole statement with the words of the answer marked in it. @param {Citation} one */
function quoteOf(one) {
  const points = Array.from(one.quote ?? "");
  const [from, to] = [(one.match_start ?? 0) - (one.start ?? 0), (one.match_end ?? 0) - (one.start ?? 0)];
  if (one.status !== "quoted" || from < 0 || to <= from || to > points.length) return element("q", { dir: "auto" }, straight(points.join("")));
  const parts = [points.slice(0, from), points.slice(from, to), points.slice(to)].map((part) => straight(part.join("")));
  return element("q", { dir: "auto" }, parts[0], element("mark", {}, parts[1]), parts[2]);
}

/** The file's name as it is read; "" for a part without an ending: an address of the web. @param {string | null | undefined} url */
function fileName(url) {
  try {
    const name = decodeURIComponent(new URL(url ?? "").pathname.split("/").pop() ?? "");
    return name.includes(".") ? straight(name) : "";
  } catch {
    return "";
  }
}

/** @param {string} label @param {string} reason @param {import("./types.js").Words} words */
export function noticeOf(label, reason, words) {
  const [title, hint] = own(words.failures, label) ?? words.failures.internal;
  const shown = ["internal", "badSetting"].includes(label) ? element("p", { class: "fine" }, reason) : null;
  return element("div", {}, element("h2", {}, title), element("p", {}, hint), shown);
}

/** @param {Answer} answer */
const modelOf = (answer) => answer.model.split(";")[0].replace(/^builtin:extractive$/, "");

/** @param {Answer} answer @param {import("./types.js").Words} words */
function asText(answer, words) {
  const list = answer.content.documents.map((document, place) => `[${place + 1}] ${document.title}${document.url ? ` — ${document.url}` : ""}`);
  return `${answer.content.message}\n\n${words.sources}:\n${list.join("\n")}\n`;
}

/** Plain http on an intranet has no clipboard of its own. @param {string} text */
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).catch(() => {});
  const area = /** @type {HTMLTextAreaElement} */ (element("textarea", { class: "unseen", "aria-hidden": "true" }));
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
