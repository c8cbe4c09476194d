// @ts-check
/**
 * The answer's Markdown as elements, built node by node: no markup of the answer is ever parsed by the browser.
 * `web/pages/markdown.py` makes the same for pages without script.
 */
import { element } from "./element.js";

/** @typedef {import("./types.js").Citation} Citation */
/** @typedef {import("./types.js").Source} Source */

export const SHAPES = /** @type {Record<string, string>} */ ({ verified: "✓", supported: "≈", unsupported: "✕", unknown: "?" });

const BLOCK = /^\s*(?:(#{1,6})\s+|([-*•–])\s+|(\d{1,3})[.)]\s+)(.*)$/;
const INLINE =
  /`(?<code>[^`\n]+)`|\*\*(?=\S)(?<bold>.+?)(?<=\S)\*\*|(?<![\w*])\*(?=[^\s*])(?<italic>[^*\n]+?)(?<=\S)\*(?![\w*])|[[【［](?<mark>[^[\]【】［］\n]{1,240})[\]】］](?:\((?<target>[^()\s]{1,2000})\))?/gu;
const PLACE = /^(?:\^|(?:documents?|docs?\.?|sources?)\s*[#:]?\s*)?(\d{1,4})(?:†.*)?$/;

/** @param {string} text */
export const folded = (text) =>
  text.normalize("NFKC").toLowerCase().replace(/[“”„«»]/g, '"').replace(/[‘’]/g, "'").replace(/[‐-―]/g, "-").replace(/\s+/g, " ").trim();

/** @param {string} inside */
function numbersIn(inside) {
  const place = PLACE.exec(inside);
  if (place) return [Number(place[1])];
  return /^\d{1,4}(?:\s*[,;]\s*\d{1,4})+$/.test(inside) ? (inside.match(/\d+/g) ?? []).map(Number) : [];
}

/** Hands out the citations of an answer in the order of its marks; before they are known, plain numbers. */
export class Marks {
  /**
   * @param {Source[]} documents
   * @param {Citation[] | null} citations null while the answer is still being written
   * @param {Record<string, string>} words the word for each status
   * @param {(citation: Citation, badge: HTMLElement) => void} [open] shows a passage
   * @param {string} [base] where the service is, when that is not this page's own server
   */
  constructor(documents, citations, words, open, base = "") {
    this.base = base;
    this.documents = documents;
    this.citations = citations;
    this.words = words;
    this.open = open;
    this.taken = 0;
  }

  /** @param {string | null} id */
  place(id) {
    return this.documents.findIndex((document) => id !== null && document.id === id) + 1;
  }

  /** @param {string} inside @returns {HTMLElement[] | null} */
  badges(inside) {
    const wanted = folded(inside);
    const numbers = numbersIn(wanted).filter((number) => number >= 1 && number <= this.documents.length);
    if (this.citations === null) return this.pending(wanted, numbers);
    const next = this.citations[this.taken];
    if (!next) return null;
    const count = wanted === folded(next.label) ? 1 : numbers.length;
    if (!count) return null;
    const mine = this.citations.slice(this.taken, this.taken + count);
    this.taken += count;
    return mine.map((citation) => this.badge(citation));
  }

  /** @param {string} wanted @param {number[]} numbers */
  pending(wanted, numbers) {
    const named = this.documents.findIndex((document) => folded(document.title) === wanted) + 1;
    const places = named ? [named] : numbers;
    return places.length ? places.map((number) => element("span", { class: "badge" }, String(number))) : null;
  }

  /** @param {Citation} citation */
  badge(citation) {
    const shape = element("span", { class: "shape", "aria-hidden": "true" }, SHAPES[citation.status] ?? "?");
    const said = element("span", { class: "unseen" }, ` ${this.words[citation.status] ?? citation.status}`);
    const number = String(this.place(citation.document_id) || "");
    if (citation.document_id === null) return element("span", { class: `badge ${citation.status}`, title: citation.label }, shape, said);
    const traits = { class: `badge ${citation.status}`, ...linkTo(citation, this.base), title: citation.label };
    const badge = element("a", traits, number, shape, said);
    badge.addEventListener("click", (event) => this.follow(event, citation, badge));
    return badge;
  }

  /** @param {MouseEvent} event @param {Citation} citation @param {HTMLElement} badge */
  follow(event, citation, badge) {
    if (!this.open || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.open(citation, badge);
  }
}

/** @param {{document_id: string | null, field?: string | null, start?: number | null, end?: number | null}} citation @param {string} [base] */
export function addressOf(citation, base = "") {
  const query = new URLSearchParams({ id: citation.document_id ?? "" });
  if (citation.field) query.set("field", citation.field);
  const hasPlace = typeof citation.start === "number" && typeof citation.end === "number";
  if (hasPlace) {
    query.set("start", String(citation.start));
    query.set("end", String(citation.end));
  }
  return `${base}/documents?${query}${hasPlace ? "#passage" : ""}`;
}

/** A page of another site opens our document beside itself. @param {Parameters<typeof addressOf>[0]} citation @param {string} [base] */
export const linkTo = (citation, base = "") => ({ href: addressOf(citation, base), target: base ? "_blank" : null, rel: base ? "noopener" : null });

/** Fills *parent* with the answer's text. @param {HTMLElement} parent @param {string} text @param {Marks} marks */
export function proseInto(parent, text, marks) {
  parent.replaceChildren(...[...grouped(text)].map(([kind, lines]) => block(kind, lines, marks)));
}

/** @param {string} kind @param {string[]} lines @param {Marks} marks */
function block(kind, lines, marks) {
  if (kind === "code") return element("pre", { dir: "ltr" }, element("code", {}, lines.join("\n")));
  if (kind === "bullet" || kind === "number") {
    const items = lines.map((line) => element("li", {}, ...inline(line, marks)));
    return element(kind === "bullet" ? "ul" : "ol", { dir: "auto" }, ...items);
  }
  const parts = lines.flatMap((line, place) => [...(place ? [element("br")] : []), ...inline(line, marks)]);
  return element(kind === "heading" ? "h4" : "p", { dir: "auto" }, ...parts);
}

/** @param {string} text @returns {Generator<[string, string[]]>} */
function* grouped(text) {
  let kind = "";
  /** @type {string[]} */
  let lines = [];
  let isCode = false;
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (/^\s*```/.test(line)) {
      if (lines.length) yield [kind, lines];
      isCode = !isCode;
      [kind, lines] = ["code", []];
      continue;
    }
    const [now, rest] = isCode ? ["code", line] : kindOf(line);
    if (lines.length && (now !== kind || now === "heading")) {
      yield [kind, lines];
      lines = [];
    }
    kind = now;
    if (now) lines.push(rest);
  }
  if (lines.length) yield [kind, lines];
}

/** @param {string} line */
function kindOf(line) {
  const found = BLOCK.exec(line);
  if (!found) return line.trim() ? ["paragraph", line.trim()] : ["", ""];
  return [found[1] ? "heading" : found[2] ? "bullet" : "number", found[4]];
}

/** @param {string} text @param {Marks} marks @returns {(Node | string)[]} */
function inline(text, marks) {
  /** @type {(Node | string)[]} */
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(text.slice(at, found.index), ...piece(found, marks));
    at = (found.index ?? 0) + found[0].length;
  }
  parts.push(text.slice(at));
  return parts;
}

/** @param {RegExpMatchArray} found @param {Marks} marks @returns {(Node | string)[]} */
function piece(found, marks) {
  const { code, bold, italic, mark, target } = found.groups ?? {};
  if (code) return [element("code", { dir: "ltr" }, code)];
  if (bold) return [element("strong", {}, ...inline(bold, marks))];
  if (italic) return [element("em", {}, ...inline(italic, marks))];
  if (target) {
    const document = marks.documents.find((one) => one.url === target && one.id);
    return document ? [element("a", linkTo({ document_id: document.id }, marks.base), mark)] : [mark];
  }
  return marks.badges(mark) ?? [found[0]];
}
