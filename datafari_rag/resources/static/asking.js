// @ts-check
/** Asks the service and reads its stream; knows nothing of the page. */

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
 * @property {string} [base] where the service is; the page's own origin when absent
 * @property {string[]} [filters]
 * @property {string} [format]
 * @property {string} [linebreaks]
 * @property {import("./types.js").Message[]} [history]
 * @property {string | null} [category]
 * @property {Record<string, string>} [labels] sentences of failures and their labels
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
  const response = await sent(wish);
  /** @type {Answer} */
  const answer = {
    content: { message: "", documents: [], citations: [] },
    model: response.headers.get("X-RAG-Model") ?? "",
    id: response.headers.get("X-Request-ID") ?? "",
  };
  const isTalk = Boolean(wish.history?.length);
  const take = isTalk ? takeChat : takeRag;
  const memory = { raw: "", labels: wish.labels ?? {}, linebreaks: wish.linebreaks ?? "escaped" };
  let isEnded = false;
  try {
    for await (const line of lines(response)) {
      const had = answer.content.message.length;
      const kind = take(line, answer, memory);
      if (!had && answer.content.message) answer.firstMs = performance.now() - begun;
      if (kind === "end") isEnded = true;
      else if (kind === "more") yield { answer, isDone: false };
    }
  } catch (error) {
    throw error instanceof Failure || wish.signal?.aborted ? error : new Failure("network", String(error), answer);
  }
  if (!isEnded) throw new Failure("network", "", answer);
  answer.wholeMs = performance.now() - begun;
  yield { answer, isDone: true };
}

/** @param {Wish} wish */
async function sent(wish) {
  const base = wish.base ?? "";
  const isTalk = Boolean(wish.history?.length);
  /** @type {RequestInit} */
  const options = { method: "POST", signal: wish.signal, credentials: wish.credentials ?? "same-origin" };
  let path = "/search/select";
  if (isTalk) {
    path = "/chat/stream";
    const overrides = { suggest_followup_questions: true, include_category: wish.category || undefined };
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify({
      messages: [...(wish.history ?? []), { role: "user", content: wish.question }],
      context: { overrides },
    });
  } else {
    const form = new URLSearchParams({ action: "rag", stream: "true", trace: "true", q: wish.question });
    if (wish.format && wish.format !== "default") form.set("format", wish.format);
    for (const filter of wish.filters ?? []) form.append("fq", filter);
    options.body = form;
  }
  let response;
  try {
    response = await fetch(base + path, options);
  } catch (error) {
    if (wish.signal?.aborted) throw error;
    throw new Failure("network", "");
  }
  const type = response.headers.get("Content-Type") ?? "";
  if (response.ok && !type.startsWith("application/json;") && type !== "application/json") return response;
  throw failureOf(await response.json().catch(() => ({})), wish.labels ?? {});
}

/** @param {any} body @param {Record<string, string>} labels */
function failureOf(body, labels) {
  const error = body?.content?.error ?? body?.error ?? {};
  if (typeof error === "string") return new Failure(labels[error] ?? "internal", error);
  return new Failure(error.label ?? "internal", error.reason ?? "");
}

/** @param {any} line @param {Answer} answer @param {{raw: string, linebreaks: string}} memory */
function takeRag(line, answer, memory) {
  const { type, data } = line;
  if (type === "sources.final") answer.content.documents = data.items;
  else if (type === "message.delta") {
    memory.raw += data.text;
    answer.content.message = plain(memory.raw, memory.linebreaks);
  } else if (type === "message.final") {
    Object.assign(answer.content, data, { message: plain(data.text, memory.linebreaks) });
    return "held";
  } else if (type === "error") throw new Failure(data.label, data.reason, answer);
  else if (type === "stream.completed") return "end";
  else return "held";
  return "more";
}

/** @param {any} line @param {Answer} answer @param {{labels: Record<string, string>}} memory */
function takeChat(line, answer, memory) {
  if (line.error) throw new Failure(memory.labels[line.error] ?? "internal", line.error, answer);
  const { context, delta } = line;
  if (context?.data_points) {
    const { text, citations } = context.data_points;
    answer.content.documents = citations.map((/** @type {string} */ label, /** @type {number} */ place) => ({
      id: null,
      title: label,
      content: text[place]?.slice(label.length + 2) ?? "",
    }));
    answer.content.thoughts = context.thoughts;
    return "more";
  }
  if (context?.citations) {
    answer.content.citations = context.citations;
    for (const one of context.citations) {
      const source = answer.content.documents.find((document) => document.title === one.label);
      if (source && one.document_id) Object.assign(source, { id: one.document_id, url: one.url ?? one.document_id });
    }
    answer.followups = context.followup_questions;
    answer.content.finish_reason = context.finish_reason;
    if (!answer.content.documents.length) throw new Failure("noDocuments", answer.content.message);
    return "end";
  }
  answer.content.message += delta?.content ?? "";
  return "more";
}

const ENTITIES = /** @type {Record<string, string>} */ ({ "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&amp;": "&" });

/** Undoes `rag.linebreaks`. @param {string} text @param {string} kind */
function plain(text, kind) {
  if (kind === "escaped") return text.replaceAll("\\n", "\n");
  if (kind === "html") return text.replaceAll("<br/>", "\n").replace(/&(?:lt|gt|quot|amp|#x27);/g, (found) => ENTITIES[found]);
  return text;
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
