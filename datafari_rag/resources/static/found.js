// @ts-check
/** The plain results below the answer: the same search as any other caller's, as this reader may see it. */
import { counted, element, filled, own } from "./element.js";
import { straight } from "./prose.js";

const ROWS = 10;
const TAG = /<\/?(?:span|em|b|strong|mark)\b[^<>]*>/i;
const PREVIEW = 240;

/**
 * @param {HTMLElement} place
 * @param {URLSearchParams} wanted the page's own parameters
 * @param {string[]} facets
 * @param {import("./types.js").Words} words
 */
export async function showFound(place, wanted, facets, words) {
  const query = new URLSearchParams({ rows: String(ROWS), hl: "true", facet: "true", relax: "true", fl: "id,title,url,last_modified,extension,preview_content" });
  for (const name of ["q", "fq", "start", "sort", "lang"]) for (const value of wanted.getAll(name)) query.append(name, value);
  for (const name of facets) query.append("facet.field", name);
  const response = await fetch("/search/select", { method: "POST", body: query });
  const body = await response.json();
  if (body.error || !body.response) return place.replaceChildren();
  const { numFound, start, docs } = body.response;
  const hits = element("ol", { class: "hits" }, ...docs.map((/** @type {any} */ row) => hit(row, body.highlighting?.[row.id] ?? {})));
  const list = element("div", {}, hits, pages(numFound, start, wanted, words));
  const beside = element("div", { class: "beside" }, filters(body.facet_counts?.facet_fields ?? {}, wanted, words), list);
  const title = numFound ? filled(counted(words.results, numFound), { count: numFound }) : words.no_results;
  return place.replaceChildren(element("h2", {}, title), ...notes(body.relaxation, numFound, wanted, words), beside);
}

/**
 * How the search was relaxed, and what could be asked instead.
 * @param {any} relaxation @param {number} total @param {URLSearchParams} wanted @param {import("./types.js").Words} words
 */
function notes(relaxation, total, wanted, words) {
  if (!relaxation || (total && !relaxation.isRelaxed)) return [];
  const { missing, proposals, latest } = relaxation;
  const reason = filled(missing.length ? counted(words.missing, missing.length) : words.not_all, { words: missing.join(", ") });
  const links = proposals.map((/** @type {string} */ one) => element("li", {}, element("a", { href: addressWith(wanted, "q", [one]), dir: "auto" }, straight(one))));
  const opens = latest.map((/** @type {any} */ one) => element("li", {}, element("a", { href: `/documents?${new URLSearchParams({ id: one.id })}`, dir: "auto" }, straight(one.title))));
  return [
    element("p", { class: "relaxed" }, straight(reason), total > 0 && ` ${words.some_words}`),
    links.length > 0 && element("p", { class: "instead" }, words.did_you_mean),
    links.length > 0 && element("ul", { class: "instead" }, ...links),
    opens.length > 0 && element("p", { class: "instead" }, words.latest),
    opens.length > 0 && element("ul", { class: "instead" }, ...opens),
  ].filter((one) => one instanceof Node);
}

/** @param {any} value */
const first = (value) => (Array.isArray(value) ? value[0] : value) ?? "";

/** @param {any} row @param {Record<string, string[]>} marked */
function hit(row, marked) {
  // Where a link must not lead, the service gives the path of the document's own page.
  const url = String(first(row.url)).replace(/^\/documents\?.*$/s, "");
  const title = String(first(row.title)).trim() || url.split("/").pop() || row.id;
  const date = String(first(row.last_modified)).slice(0, 10);
  const cuts = Object.values(marked).find((texts) => texts.length);
  const preview = String(first(row.preview_content)).replace(/\s+/g, " ").trim();
  const snippet = cuts ? highlighted(cuts.join(" … ")) : [straight(preview).slice(0, PREVIEW) + (preview.length > PREVIEW ? "…" : "")];
  return element(
    "li",
    {},
    element("h3", { dir: "auto" }, element("a", { href: `/documents?${new URLSearchParams({ id: row.id })}` }, straight(title))),
    element("p", { class: "where", dir: "auto" }, straight(where(url || row.id)), date && " · ", date && element("time", { datetime: date }, date)),
    element("p", { class: "snippet", dir: "auto" }, ...snippet),
  );
}

/** The engine's tags become marks; all else of a stretch is text. @param {string} text */
function highlighted(text) {
  /** @type {(Node | string)[]} */
  const parts = [];
  let isMarked = false;
  for (const part of text.split(/(<\/?(?:span|em|b|strong|mark)\b[^<>]*>)/i)) {
    if (TAG.test(part)) isMarked = !part.startsWith("</");
    else if (part) parts.push(isMarked ? element("mark", {}, straight(unescaped(part))) : straight(unescaped(part)));
  }
  return parts;
}

const NAMED = /** @type {Record<string, string>} */ ({ lt: "<", gt: ">", quot: '"', amp: "&", apos: "'" });

/** @param {string} text */
const unescaped = (text) =>
  text.replace(/&(?:(lt|gt|quot|amp|apos)|#x([0-9a-f]{1,6})|#(\d{1,7}));/gi, (all, name, hex, number) => {
    if (name) return NAMED[name.toLowerCase()];
    const point = hex ? parseInt(hex, 16) : Number(number);
    return point <= 0x10ffff ? String.fromCodePoint(point) : all;
  });

/** @param {string} url */
function where(url) {
  try {
    const { hostname, pathname } = new URL(url);
    return decodeURI(`${hostname}${pathname}`).replace(/^\/+|\/+$/g, "").replaceAll("/", " › ");
  } catch {
    return url.replace(/^\/+|\/+$/g, "").replaceAll("/", " › ");
  }
}

/** @param {URLSearchParams} wanted @param {string} name @param {string[]} values */
function addressWith(wanted, name, values) {
  const changed = new URLSearchParams(wanted);
  changed.delete("start");
  changed.delete(name);
  for (const value of values) changed.append(name, value);
  return `/?${changed}`;
}

/** @param {Record<string, (string | number)[]>} fields @param {URLSearchParams} wanted @param {import("./types.js").Words} words */
function filters(fields, wanted, words) {
  const active = wanted.getAll("fq");
  const groups = Object.entries(fields).flatMap(([name, flat]) => {
    const links = [];
    for (let place = 0; place + 1 < flat.length && links.length < 8; place += 2) {
      const spelled = `${name}:"${String(flat[place]).replace(/[\\"]/g, "\\$&")}"`;
      const isOn = active.includes(spelled);
      if (!flat[place + 1] && !isOn) continue;
      const address = addressWith(wanted, "fq", isOn ? active.filter((one) => one !== spelled) : [...active, spelled]);
      const inner = [element("span", { dir: "auto" }, straight(String(flat[place]))), element("span", { class: "count" }, String(flat[place + 1]))];
      links.push(element("li", {}, element("a", { href: address, "aria-current": isOn && "true" }, ...inner)));
    }
    return links.length ? [element("h3", {}, own(words.fields, name) ?? name), element("ul", {}, ...links)] : [];
  });
  return groups.length ? element("nav", { class: "facets", "aria-label": words.filters }, ...groups) : null;
}

/** @param {number} total @param {number} start @param {URLSearchParams} wanted @param {import("./types.js").Words} words */
function pages(total, start, wanted, words) {
  const links = [];
  if (start > 0) links.push(element("a", { rel: "prev", href: addressWith(wanted, "start", [String(Math.max(0, start - ROWS))]) }, words.previous));
  if (start + ROWS < total) links.push(element("a", { rel: "next", href: addressWith(wanted, "start", [String(start + ROWS)]) }, words.following));
  return links.length ? element("nav", { class: "more", "aria-label": words.pages }, ...links) : null;
}
