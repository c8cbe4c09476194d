// @ts-check
/**
 * The answer's Markdown as elements, built node by node: no markup of the answer is ever parsed by the browser.
 * `web/pages/results.py` makes the same for pages without script.
 */
import { element, own, ROOT } from "./element.js";

/** @typedef {import("./types.js").Citation} Citation */
/** @typedef {import("./types.js").Source} Source */

export const SHAPES = /** @type {Record<string, string>} */ ({ verified: "✓", quoted: "○", near: "○", unsupported: "–", unknown: "?" });

/**
 * What a badge says: its status in words, and how a near place differs. @param {Citation} citation
 * @param {Record<string, string>} words the words for each status, and for what differs
 */
export function saidOf(citation, words) {
  const lists = /** @type {const} */ (["missing", "added"]).filter((name) => citation[name]?.length);
  const differing = lists.map((name) => (words[name] ?? "{words}").replace("{words}", () => straight((citation[name] ?? []).join(", "))));
  return [own(words, citation.status) ?? citation.status, ...differing].join(". ");
}

/** Whether a badge has a status: what states nothing has a number alone. @param {Citation} citation */
export const states = (citation) => citation.claim !== "" || citation.document_id === null;

/** Stands for each half of a mark while Markdown is read: a mark is never part of code, of a link or of a list. */
const MASK = "\ufffc";
const BLOCK = /^\s*(?:(#{1,6})\s+|([-*•–])\s+|(\d{1,3})[.)]\s+)(.*)$/s;
const INLINE =
  /`(?<code>[^`\n]+)`|\*\*(?=\S)(?<bold>(?:(?!\*\*).)+)(?<=\S)\*\*|(?<![\w*])\*(?=[^\s*])(?<italic>[^*\n]+)(?<=\S)\*(?![\w*])/gu;
const ROW = /^\|[^|]*\|/;
const RULE = /^[|:\- \t]*$/;
const FENCE = /^\s*```[^\n]*$/;
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g;

/** Without the controls that reverse the direction of the text after them. @param {string} text */
export const straight = (text) => text.replace(DIRECTIONS, "");

/**
 * @typedef {object} Part a stretch of the answer
 * @property {string} text
 * @property {string} masked the same with its marks hidden
 * @property {number} at where it begins
 */

/** @param {Part} part @param {number} start @param {number} [end] @returns {Part} */
const cut = (part, start, end) => ({ text: part.text.slice(start, end), masked: part.masked.slice(start, end), at: part.at + start });

/**
 * The position of each mark of *text*, with its citations. Places on the wire count code points; a string of this language
 * counts halves of the rare ones. What does not fit the text is none.
 * @param {string} text @param {Citation[]} citations
 */
function marksIn(text, citations) {
  const wanted = citations.filter((one) => Number.isInteger(one.answer_start) && Number.isInteger(one.answer_end));
  wanted.sort((one, other) => one.answer_start - other.answer_start);
  /** @type {Map<number, {end: number, citations: Citation[]}>} */
  const marks = new Map();
  const starts = [...startsOf(text)];
  let free = 0;
  for (const one of wanted) {
    const [start, end] = [starts[one.answer_start], starts[one.answer_end]];
    const known = marks.get(start ?? -1);
    if (known) known.citations.push(one);
    else if (start !== undefined && end !== undefined && start >= free && end > start) {
      marks.set(start, { end, citations: [one] });
      free = end;
    }
  }
  return marks;
}

/** Where each code point begins, and where the text ends. @param {string} text */
function* startsOf(text) {
  let at = 0;
  for (const point of text) {
    yield at;
    at += point.length;
  }
  yield at;
}

/** Puts the citations of an answer where their marks are; before they are known, a mark is text like any other. */
export class Marks {
  /**
   * @param {Source[]} documents
   * @param {Citation[] | null} citations null while the answer is still being written
   * @param {Record<string, string>} words the words for each status, and for what differs
   * @param {(citation: Citation, badge: HTMLElement) => void} [open] shows a passage
   * @param {string} [base] where the service is, when that is not this page's own server
   */
  constructor(documents, citations, words, open, base = ROOT) {
    this.base = base;
    this.documents = documents;
    this.citations = citations ?? [];
    this.words = words;
    this.open = open;
    /** @type {ReturnType<typeof marksIn>} */
    this.places = new Map();
  }

  /** Returns *text* with its marks hidden, from now on those of this text. @param {string} text @returns {Part} */
  laid(text) {
    this.places = marksIn(text, this.citations);
    let [masked, at] = ["", 0];
    for (const [start, { end }] of this.places) {
      masked += text.slice(at, start) + MASK.repeat(end - start);
      at = end;
    }
    return { text, masked: masked + text.slice(at), at: 0 };
  }

  /** @param {string | null} id */
  place(id) {
    return this.documents.findIndex((document) => id !== null && document.id === id) + 1;
  }

  /** @param {Citation} citation */
  badge(citation) {
    const isProved = states(citation);
    const shape = isProved && element("span", { class: "shape", "aria-hidden": "true" }, own(SHAPES, citation.status) ?? "?");
    const title = straight(citation.label);
    const said = element("span", { class: "said" }, ` ${isProved ? `${title}: ${saidOf(citation, this.words)}` : title}`);
    const kind = `badge ${isProved ? citation.status : "plain"}`;
    if (citation.document_id === null) return element("span", { class: kind, tabindex: "0" }, shape, said);
    const number = String(this.place(citation.document_id) || "");
    const badge = element("a", { class: kind, ...linkTo(citation, this.base) }, number, shape, said);
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

/** @param {{document_id: string | null, field?: string | null, start?: number | null, end?: number | null, page?: number | null}} citation @param {string} [base] */
export function addressOf(citation, base = ROOT) {
  const query = new URLSearchParams({ id: citation.document_id ?? "" });
  if (citation.field) query.set("field", citation.field);
  if (typeof citation.page === "number") query.set("page", String(citation.page));
  const hasPlace = typeof citation.start === "number" && typeof citation.end === "number";
  if (hasPlace) {
    query.set("start", String(citation.start));
    query.set("end", String(citation.end));
  }
  return `${base}/documents?${query}${hasPlace ? "#passage" : ""}`;
}

/** A page of another site opens our document beside itself. @param {Parameters<typeof addressOf>[0]} citation @param {string} [base] */
export function linkTo(citation, base = ROOT) {
  const isElsewhere = base !== ROOT;
  return { href: addressOf(citation, base), target: isElsewhere ? "_blank" : null, rel: isElsewhere ? "noopener" : null };
}

/** Fills *parent* with the answer's text. @param {HTMLElement} parent @param {string} text @param {Marks} marks */
export function proseInto(parent, text, marks) {
  parent.replaceChildren();
  for (const [kind, lines] of grouped(marks.laid(text))) parent.append(block(kind, lines, marks));
}

/**
 * Appends one child after the other: a long answer has more of them than a call may have arguments.
 * @param {HTMLElement} made @param {Iterable<Node | string>} children
 */
function holding(made, children) {
  for (const child of children) made.append(child);
  return made;
}

/** @param {string} kind @param {Part[]} lines @param {Marks} marks */
function block(kind, lines, marks) {
  if (kind === "code") return element("pre", { dir: "ltr" }, element("code", {}, straight(lines.map((line) => line.text).join("\n"))));
  if (kind === "bullet" || kind === "number") {
    const items = lines.map((line) => holding(element("li"), inline(line, marks)));
    return holding(element(kind === "bullet" ? "ul" : "ol", { dir: "auto" }), items);
  }
  if (kind === "row" && lines.length > 1 && isRule(lines[1])) return table(lines, marks);
  const made = element(kind === "heading" ? "h4" : "p", { dir: "auto" });
  for (const [place, line] of lines.entries()) {
    if (place) made.append(element("br"));
    holding(made, inline(line, marks));
  }
  return made;
}

/** @param {Part} line */
const isRule = (line) => line.masked.includes("-") && RULE.test(line.masked);

/** Rows as a table, the first one with the names of its columns. @param {Part[]} lines @param {Marks} marks */
function table(lines, marks) {
  const made = element("table", { dir: "auto" });
  for (const [place, line] of lines.entries())
    if (!isRule(line)) made.append(holding(element("tr"), cellsOf(line).map((one) => holding(element(place ? "td" : "th"), inline(one, marks)))));
  return element("div", { class: "wide" }, made);
}

/** @param {Part} line */
function cellsOf(line) {
  const cells = [];
  let at = line.masked.indexOf("|") + 1;
  for (const cell of line.masked.slice(at).split("|")) {
    const end = at + cell.length;
    const isBlank = !cell.trim();
    if (end < line.masked.length || !isBlank) cells.push(cut(line, end - cell.trimStart().length, isBlank ? end : at + cell.trimEnd().length));
    at = end + 1;
  }
  return cells;
}

/** @param {Part} whole @returns {Generator<[string, Part[]]>} */
function* grouped(whole) {
  let kind = "";
  /** @type {Part[]} */
  let lines = [];
  let isCode = false;
  for (const line of linesOf(whole)) {
    if (FENCE.test(line.masked)) {
      if (lines.length) yield [kind, lines];
      isCode = !isCode;
      [kind, lines] = ["code", []];
      continue;
    }
    const [now, rest] = isCode ? /** @type {const} */ (["code", line]) : kindOf(line);
    if (lines.length && (now !== kind || now === "heading")) {
      yield [kind, lines];
      lines = [];
    }
    kind = now;
    if (now) lines.push(rest);
  }
  if (lines.length) yield [kind, lines];
}

/** @param {Part} whole */
function* linesOf(whole) {
  let at = 0;
  for (const line of whole.text.split("\n")) {
    yield cut(whole, at, at + line.length);
    at += line.length + 1;
  }
}

/** @param {Part} line @returns {[string, Part]} */
function kindOf(line) {
  const found = BLOCK.exec(line.masked);
  if (!found) {
    const rest = cut(line, line.masked.length - line.masked.trimStart().length, line.masked.trimEnd().length);
    return [ROW.test(rest.masked) ? "row" : rest.text ? "paragraph" : "", rest];
  }
  return [found[1] ? "heading" : found[2] ? "bullet" : "number", cut(line, line.masked.length - found[4].length)];
}

/** @param {Part} part @param {Marks} marks @returns {Generator<Node | string>} */
function* inline(part, marks) {
  let at = 0;
  for (const found of part.masked.matchAll(INLINE)) {
    yield* plain(cut(part, at, found.index), marks);
    yield piece(found, part, marks);
    at = found.index + found[0].length;
  }
  yield* plain(cut(part, at), marks);
}

/** @param {RegExpExecArray} found @param {Part} part @param {Marks} marks @returns {Node | string} */
function piece(found, part, marks) {
  const { code, bold, italic } = found.groups ?? {};
  if (code) return element("code", { dir: "ltr" }, straight(part.text.slice(found.index + 1, found.index + 1 + code.length)));
  if (bold) return holding(element("strong"), inline(cut(part, found.index + 2, found.index + 2 + bold.length), marks));
  return holding(element("em"), inline(cut(part, found.index + 1, found.index + 1 + (italic ?? "").length), marks));
}

/** Words without Markdown, each of their marks as its badges. @param {Part} part @param {Marks} marks @returns {Generator<Node | string>} */
function* plain(part, marks) {
  let at = 0;
  for (let hidden = part.masked.indexOf(MASK); hidden >= 0; ) {
    const mark = marks.places.get(part.at + hidden);
    if (mark) {
      yield straight(part.text.slice(at, hidden));
      for (const citation of mark.citations) yield marks.badge(citation);
      at = mark.end - part.at;
    }
    hidden = part.masked.indexOf(MASK, mark ? at : hidden + 1);
  }
  yield straight(part.text.slice(at));
}
