// @ts-check
/** Asks the service and reads its stream; knows nothing of the page. */

import { ROOT } from "./element.js";

/** @typedef {import("./types.js").Answer} Answer */
/** @typedef {import("./types.js").Source} Source */

/** A failure by its label of the service; "network" when the connection itself failed. */
export class Failure extends Error {
  /** @param {string} label @param {string} reason @param {Answer | null} [partial] */
  constructor(label, reason, partial = null) {
    super(reason);
    this.label = label;
    this.partial = partial;
  }
}

/**
 * @typedef {object} Wish
 * @property {string} question
 * @property {string} [base] where the service is, for a page of another site: there it is asked as every caller asks it
 * @property {string[]} [filters]
 * @property {string[] | undefined} [documents] the only ones that are searched
 * @property {string} [format]
 * @property {string} [effort] in how many steps is searched
 * @property {string} [language] of the answer, when the address names one
 * @property {import("./types.js").Message[]} [history]
 * @property {AbortSignal} [signal]
 * @property {RequestCredentials} [credentials]
 */

/**
 * Yields the answer as it grows: after its sources, after each piece, and once more complete (`isDone`).
 * @param {Wish} wish
 * @returns {AsyncGenerator<{answer: Answer, isDone: boolean}>}
 */
export async function* asked(wish) {
  const begun = performance.now();
  yield* grown(await sent(wish), begun, wish.signal);
}

/**
 * Yields what *wish* has the service make of whole documents, in the same way.
 * @param {Record<string, any>} wish @param {AbortSignal} [signal]
 */
export async function* worked(wish, signal) {
  const begun = performance.now();
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wish), signal: signal ?? null };
  yield* grown(await opened(`${ROOT}/rest/v2.0/ai/stream`, options), begun, signal);
}

/**
 * @param {Response} response @param {number} begun @param {AbortSignal} [signal]
 * @returns {AsyncGenerator<{answer: Answer, isDone: boolean}>}
 */
async function* grown(response, begun, signal) {
  /** @type {Answer} */
  const answer = {
    content: { message: "", documents: [], citations: [] },
    model: response.headers.get("X-RAG-Model") ?? "",
    id: response.headers.get("X-Request-ID") ?? "",
  };
  let isEnded = false;
  try {
    for await (const line of lines(response)) {
      const had = answer.content.message.length;
      const kind = take(line, answer);
      if (!had && answer.content.message) answer.firstMs = performance.now() - begun;
      if (kind === "end") isEnded = true;
      else if (kind === "more") yield { answer, isDone: false };
    }
  } catch (error) {
    throw error instanceof Failure || signal?.aborted ? error : new Failure("network", String(error), answer);
  }
  if (!isEnded) throw new Failure("network", "", answer);
  answer.wholeMs = performance.now() - begun;
  yield { answer, isDone: true };
}

/** @param {Wish} wish */
async function sent(wish) {
  /** @type {RequestInit} */
  const options = { method: "POST", signal: wish.signal ?? null, credentials: wish.credentials ?? "same-origin" };
  const wanted = new URLSearchParams();
  if (wish.format && wish.format !== "default") wanted.set("format", wish.format);
  if (wish.effort) wanted.set("effort", wish.effort);
  if (wish.language) wanted.set("lang", wish.language);
  for (const filter of wish.filters ?? []) wanted.append("fq", filter);
  if (wish.base !== undefined) {
    options.body = new URLSearchParams([["action", "rag"], ["linebreaks", "newline"], ["stream", "true"], ["trace", "true"], ["q", wish.question], ...wanted]);
    return opened(`${wish.base}/search/select`, options);
  }
  options.headers = { "Content-Type": "application/json" };
  const messages = [...(wish.history ?? []), { role: "user", content: wish.question }];
  options.body = JSON.stringify({ messages, context: { overrides: { documents: wish.documents } } });
  return opened(`${ROOT}/talk?${wanted}`, options);
}

/** @param {string} address @param {RequestInit} options */
async function opened(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Failure("network", "");
  }
  const type = response.headers.get("Content-Type") ?? "";
  if (response.ok && !type.startsWith("application/json;") && type !== "application/json") return response;
  throw failureOf(await response.json().catch(() => ({})));
}

/** @param {any} body */
function failureOf(body) {
  return failureIn(body?.content?.error ?? body?.error ?? {});
}

/** Where labels are another API's, ours is their cause. @param {any} error @param {Answer | null} [partial] */
const failureIn = (error, partial = null) => new Failure(error.cause ?? error.label ?? "internal", error.reason ?? "", partial);

/** @param {any} line @param {Answer} answer */
function take(line, answer) {
  const { type, data } = line;
  if (type === "sources.final") {
    answer.content.documents = data.items;
    answer.isFound = true;
    note(data, answer);
  } else if (type === "model.waiting") {
    answer.tryAt = performance.now() + data.seconds * 1000;
  } else if (type === "message.delta") {
    answer.content.message += data.text;
  } else if (type === "message.final") {
    const { text, citations, thoughts, finish_reason, spent, support } = data;
    Object.assign(answer.content, { message: text, citations, thoughts, finish_reason, spent, support });
    note(data, answer);
    if (data.model) answer.model = data.model;
    answer.followups = data.followup_questions;
    return "held";
  } else if (type === "phase") {
    noteWork(data, answer);
  } else if (type === "error") throw failureIn(data, answer);
  else if (type === "stream.completed") return "end";
  else return "held";
  return "more";
}

/** Notes what readers should know of the documents. @param {any} data @param {Answer} answer */
function note({ partial_results, few_words, other_language }, answer) {
  if (partial_results) answer.content.partial_results = true;
  if (few_words) answer.content.few_words = true;
  if (other_language) answer.content.other_language = true;
}

/** Notes how far work on whole documents is, what it leaves out, and that no model writes. @param {any} data @param {Answer} answer */
function noteWork({ name, skipped, estimate }, answer) {
  const [, done, total] = /\((\d+)\/(\d+)\)$/.exec(name) ?? [];
  answer.progress = total ? { done, total } : undefined;
  if (skipped) answer.skipped = skipped;
  if (estimate?.strategy === "extractive") answer.model = "builtin:extractive";
}

/** @param {Response} response */
async function* lines(response) {
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      held += decoder.decode(value, { stream: !done });
      const whole = held.split("\n");
      held = whole.pop() ?? "";
      for (const line of whole) if (line.trim()) yield JSON.parse(line);
      if (done) break;
    }
    if (held.trim()) yield JSON.parse(held);
  } finally {
    reader.cancel().catch(() => {});
  }
}
