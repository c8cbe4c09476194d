// @ts-check
/**
 * How the service is doing just now, asked for again and again: states, answers a minute, how long they take. What was
 * counted so far comes from the server, over all its workers; the differences are made and kept here, ten minutes of
 * them, and nothing of it on the server.
 */
import { counted, element, filled } from "./element.js";
import { row } from "./made.js";

/** @typedef {import("./types.js").Words} Words */
/** @typedef {[number | null, number][]} Bounds upper bound in seconds, null for all, with the count up to it */
/** @typedef {{at: number, outcomes: Record<string, number>, whole: Bounds}} Sample */

export const EVERY_MS = 5000;
export const MOST = 121;
const MINUTE_MS = 60_000;
const FINE = ["ok", "passed", "aborted", "noDocuments"];
const HEIGHT = 40;

/** Polls until the page is left; a hidden page sends no requests. @param {Words} words */
export function watch(words) {
  /** @type {Sample[]} */
  const samples = [];
  const look = async () => {
    if (!document.hidden) await taken(samples, words);
    setTimeout(look, EVERY_MS);
  };
  look();
}

/** @param {Sample[]} samples @param {Words} words */
async function taken(samples, words) {
  try {
    const response = await fetch("/admin/now");
    if (!response.ok) throw new Error(String(response.status));
    const { state, outcomes, whole, charts } = await response.json();
    kept(samples, { at: performance.now(), outcomes, whole });
    showState(state, words);
    for (const [id, bars] of Object.entries(charts)) showBars(id, bars);
    showRates(samples, words);
    showWaits(samples, words);
  } catch {
    note(words.unreachable);
  }
}

/** Adds *sample*; smaller counts mean that the service was restarted. */
/** @param {Sample[]} samples @param {Sample} sample */
export function kept(samples, sample) {
  const last = samples.at(-1);
  if (last && Object.entries(last.outcomes).some(([name, count]) => (sample.outcomes[name] ?? 0) < count)) samples.length = 0;
  samples.push(sample);
  samples.splice(0, samples.length - MOST);
}

/** What ended between two samples, by label. @param {Sample} from @param {Sample} to */
const between = (from, to) =>
  Object.fromEntries(Object.entries(to.outcomes).map(([name, count]) => [name, count - (from.outcomes[name] ?? 0)]));

/** @param {Record<string, number>} outcomes */
function counts(outcomes) {
  const all = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  const fine = FINE.reduce((sum, name) => sum + (outcomes[name] ?? 0), 0);
  return { all, failed: all - fine };
}

/** The sample that was there *ms* before the last one, the first when there is none so old. */
/** @param {Sample[]} samples @param {number} ms @returns {Sample} */
function ago(samples, ms) {
  const last = /** @type {Sample} */ (samples.at(-1));
  return samples.find((one) => one.at >= last.at - ms) ?? last;
}

/** Seconds within which *part* of what ended between two samples was whole; null for nothing. */
/** @param {Sample} from @param {Sample} to @param {number} part */
export function quantile(from, to, part) {
  const before = new Map(from.whole);
  const grown = to.whole.map(([bound, count]) => /** @type {const} */ ([bound ?? Infinity, count - (before.get(bound) ?? 0)]));
  const wanted = part * (grown.at(-1)?.[1] ?? 0);
  let [low, below] = [0, 0];
  for (const [bound, count] of grown) {
    if (wanted > 0 && count >= wanted && count > below) return bound === Infinity ? low : low + ((bound - low) * (wanted - below)) / (count - below);
    if (bound !== Infinity) [low, below] = [bound, count];
  }
  return null;
}

/** @param {{what: string, name: string, problem: string, last: string}[]} state @param {Words} words */
function showState(state, words) {
  const rows = state.map((part) =>
    element(
      "li",
      { "data-what": part.what, class: part.problem ? "bad" : "good" },
      element("span", { class: "shape", "aria-hidden": "true" }, part.problem ? "✕" : "✓"),
      " ",
      element("b", {}, part.name),
      " ",
      element("span", { class: "said" }, part.problem || words.works),
      part.last && element("br"),
      part.last && element("span", { class: "fine" }, filled(words.last_failure, { what: part.last })),
    ),
  );
  const place = document.getElementById("state");
  const isNew = place && rows.map((row) => row.textContent).join() !== [...place.children].map((row) => row.textContent).join();
  if (isNew) place.replaceChildren(...rows);
}

/** @param {string} id @param {{name: string, share: number, text: string}[]} bars */
function showBars(id, bars) {
  if (bars.length) document.getElementById(id)?.replaceChildren(...bars.flatMap((bar) => row(bar.name, [[0, bar.share / 100]], bar.text)));
}

/** @param {Sample[]} samples @param {Words} words */
function showRates(samples, words) {
  const steps = samples.slice(1).map((sample, place) => counts(between(/** @type {Sample} */ (samples[place]), sample)));
  const most = Math.max(1, ...steps.map((one) => one.all));
  const marks = steps.flatMap(({ all, failed }, place) => {
    const x = MOST - 1 - steps.length + place;
    const [high, bad] = [(all / most) * HEIGHT, (failed / most) * HEIGHT];
    return [drawn("rect", { x, y: HEIGHT - high, width: 0.9, height: high }), bad > 0 && drawn("rect", { class: "bad", x, y: HEIGHT - high, width: 0.9, height: bad })];
  });
  const last = /** @type {Sample} */ (samples.at(-1));
  const { all, failed } = counts(between(ago(samples, MINUTE_MS), last));
  const said = all ? filled(counted(words.per_minute, all), { count: all, failed }) : words.quiet;
  const isQuiet = steps.every((one) => !one.all);
  show("rates", marks, isQuiet ? [said] : [said, filled(words.at_most, { count: most, seconds: EVERY_MS / 1000 })], words);
}

/** @param {Sample[]} samples @param {Words} words */
function showWaits(samples, words) {
  const windows = samples.slice(1).map((sample, place) => ({ sample, from: ago(samples.slice(0, place + 2), MINUTE_MS) }));
  const lines = [0.5, 0.95].map((part) => windows.map(({ sample, from }) => quantile(from, sample, part)));
  const most = Math.max(0.001, ...lines.flat().map((one) => one ?? 0));
  const marks = lines.map((line, place) => {
    const points = line.flatMap((value, at) => (value === null ? [] : [`${MOST - 1 - line.length + at + 0.5},${HEIGHT - (value / most) * (HEIGHT - 1)}`]));
    return drawn("polyline", { class: place ? "slow" : "median", points: points.join(" ") });
  });
  const last = /** @type {Sample} */ (samples.at(-1));
  const [median, slow] = [0.5, 0.95].map((part) => quantile(/** @type {Sample} */ (samples[0]), last, part));
  const hasNone = median === null || median === undefined || slow === null || slow === undefined;
  show("waits", marks, [hasNone ? words.no_waits : filled(words.waits, { median: told(median), slow: told(slow) })], words);
}

/** @param {number} seconds */
const told = (seconds) => (seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`);

/** @param {string} id @param {(SVGElement | false)[]} marks @param {string[]} said @param {Words} words */
function show(id, marks, said, words) {
  const chart = drawn("svg", { class: "live", viewBox: `0 0 ${MOST - 1} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  chart.append(...marks.filter((mark) => mark !== false));
  const minutes = Math.round(((MOST - 1) * EVERY_MS) / MINUTE_MS);
  const axis = element("p", { class: "axis", "aria-hidden": "true" }, element("span", {}, filled(words.minutes_ago, { count: minutes })), element("span", {}, words.now));
  const place = document.getElementById(id);
  place?.replaceChildren(chart, axis, ...said.map((text) => element("p", { class: "fine" }, text)));
  place?.closest("[data-live]")?.removeAttribute("hidden");
}

/** @param {string} text */
function note(text) {
  for (const id of ["rates", "waits"]) {
    const place = document.getElementById(id);
    if (place && !place.querySelector(".warn")) place.append(element("p", { class: "warn" }, text));
  }
}

/** @param {string} name @param {Record<string, string | number>} traits */
function drawn(name, traits) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(traits)) made.setAttribute(key, String(value));
  return made;
}
