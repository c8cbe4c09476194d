// @ts-check
/** "How this answer was made": what the service says of its steps to this reader, with pictures. */
import { counted, element, filled, own } from "./element.js";

/** @typedef {import("./types.js").Answer} Answer */

/** @param {Answer} answer @param {import("./types.js").Words} words @returns {HTMLElement | null} */
export function madeOf(answer, words) {
  const thoughts = answer.content.thoughts ?? [];
  if (thoughts.length < 4) return null;
  const [, query, results, prompt] = thoughts;
  const details = element("details", { class: "made" }, element("summary", {}, words.how_made));
  details.append(
    element("h4", {}, words.query_sent),
    element("p", {}, element("code", { dir: "auto" }, String(query.description ?? ""))),
    steps(query.props?.steps ?? [], words),
    element("h4", {}, words.chosen),
    ...passages(results, words),
    element("p", { class: "fine" }, filled(words.budget, { chars: prompt.props?.document_chars ?? 0 })),
    ...candidates(results.props?.candidates ?? [], words),
    ...told(prompt, words),
    element("h4", {}, words.times),
    times(answer, prompt.props?.timings_ms ?? {}, words),
    element("p", { class: "fine" }, modelOf(answer.model, words)),
    spentOn(answer.content.spent, words),
  );
  return details;
}

/** What all steps took together, where there were several. @param {import("./types.js").Spent | undefined} spent @param {import("./types.js").Words} words */
function spentOn(spent, words) {
  if (!spent) return "";
  const tokens = spent.inputTokens + spent.outputTokens;
  return element("p", { class: "fine spent" }, filled(words.spent, { searches: spent.searches, calls: spent.modelCalls, tokens }));
}

/** The header `X-RAG-Model: NAME; tries=N; fallback=0|1` in words. @param {string} header @param {import("./types.js").Words} words */
function modelOf(header, words) {
  const [name, ...facts] = header.split(";").map((part) => part.trim());
  const known = new Map(facts.map((fact) => /** @type {[string, string]} */ (fact.split("="))));
  const tries = Number(known.get("tries") ?? 0);
  const said = [name, tries && filled(counted(words.calls, tries), { tries }), known.get("fallback") === "1" && words.substitute];
  return filled(words.model, { said: said.filter(Boolean).join(" · ") });
}

/** @param {{step: string, query: string, found: number}[]} all @param {import("./types.js").Words} words */
function steps(all, words) {
  const only = all.length === 1 ? all[0] : null;
  if (only) return element("p", { class: "fine" }, `${only.found} ${words.found}`);
  const rows = all.map((one) => element("tr", {}, element("td", {}, own(words.steps, one.step) ?? one.step), element("td", { dir: "auto" }, one.query), element("td", {}, String(one.found))));
  const head = element("tr", {}, element("th", { scope: "col" }, words.step), element("th", { scope: "col" }, words.query_sent), element("th", { scope: "col" }, words.found));
  return element("div", { class: "wide" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

/** One bar a document: the whole width is the document, the filled parts are the passages that were chosen. */
/** @param {import("./types.js").Thought} results @param {import("./types.js").Words} words */
function passages(results, words) {
  const shown = /** @type {{label: string, chars: number}[]} */ (Array.isArray(results.description) ? results.description : []);
  const exact = /** @type {{label: string, document_chars: number, spans: [number, number][]}[]} */ (results.props?.passages ?? []);
  const most = Math.max(1, ...shown.map((one) => one.chars));
  const bars = shown.flatMap((one) => {
    const place = exact.find((known) => known.label === one.label);
    const parts = place ? place.spans.map(([start, end]) => [start / place.document_chars, end / place.document_chars]) : [[0, one.chars / most]];
    return row(one.label, parts, `${one.chars} ${words.characters}`);
  });
  return [element("dl", { class: "bars" }, ...bars)];
}

/** @param {any[]} all @param {import("./types.js").Words} words */
function candidates(all, words) {
  if (!all.length) return [];
  const rows = all.slice(0, 60).map((one) => {
    const place = one.start === undefined ? "" : `${one.start}–${one.end}`;
    const cells = [String(one.score), place, own(words.verdicts, one.verdict) ?? one.verdict].map((text) => element("td", {}, text));
    return element("tr", {}, element("td", { dir: "auto" }, one.id), ...cells);
  });
  const head = element("tr", {}, ...words.columns.map((/** @type {string} */ name) => element("th", { scope: "col" }, name)));
  const table = element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": words.candidates }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
  return [element("details", {}, element("summary", {}, words.candidates), table)];
}

/** @param {import("./types.js").Thought} prompt @param {import("./types.js").Words} words */
function told(prompt, words) {
  if (!Array.isArray(prompt.description)) return [];
  const all = prompt.description.map((/** @type {string} */ one) => element("pre", { dir: "auto" }, one));
  const chars = prompt.description.reduce((/** @type {number} */ sum, /** @type {string} */ one) => sum + one.length, 0);
  const size = filled(words.prompt_size, { chars, messages: all.length, tokens: prompt.props?.["max_tokens"] ?? "–" });
  return [element("p", { class: "fine" }, size), element("details", {}, element("summary", {}, words.prompt), ...all)];
}

/** @param {Answer} answer @param {Record<string, number>} stages @param {import("./types.js").Words} words */
function times(answer, stages, words) {
  const named = Object.entries(stages).map(([name, ms]) => /** @type {[string, number]} */ ([own(words.stages, name) ?? name, ms]));
  if (answer.firstMs !== undefined) named.push([words.first_words, answer.firstMs]);
  if (answer.wholeMs !== undefined) named.push([words.whole, answer.wholeMs]);
  const most = Math.max(1, ...named.map(([, ms]) => ms));
  return element("dl", { class: "bars" }, ...named.flatMap(([name, ms]) => row(name, [[0, ms / most]], `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`)));
}

/** @param {string} name @param {number[][]} parts from 0 to 1 @param {string} value */
export function row(name, parts, value) {
  const track = element("div", { class: "track", "aria-hidden": "true" });
  for (const [start, end] of parts) {
    const part = element("i");
    part.style.left = `${100 * start}%`;
    part.style.width = `${100 * (end - start)}%`;
    track.append(part);
  }
  return [element("dt", { dir: "auto" }, name), element("dd", {}, track), element("dd", { class: "value" }, value)];
}
