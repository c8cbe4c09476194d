// @ts-check
/** The search page at work: asks, shows the answer as it grows, and keeps the conversation of this tab. */
import { asked, Failure } from "./asking.js";
import { Basket } from "./basket.js";
import { Card, noticeOf } from "./card.js";
import { Conversation } from "./conversation.js";
import { Earlier } from "./earlier.js";
import { counted, element, filled, own, ROOT } from "./element.js";
import { openPassage } from "./passage.js";
import { straight } from "./prose.js";
import { thumbsOf } from "./thumbs.js";

/** @typedef {import("./types.js").Answer} Answer */

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const app = byId("app");
const setup = JSON.parse(app.dataset.setup ?? "{}");
const words = setup.words;
const form = /** @type {HTMLFormElement} */ (byId("ask"));
const box = /** @type {HTMLInputElement} */ (byId("q"));
const format = /** @type {HTMLSelectElement} */ (byId("format"));
const effort = /** @type {HTMLSelectElement} */ (byId("effort"));
const only = /** @type {HTMLInputElement} */ (byId("only"));
const clear = byId("clear");
const answers = byId("answers");
const state = byId("state");
const spoken = element("div", { class: "unseen", role: "log", "aria-live": "polite" });
const next = /** @type {HTMLInputElement} */ (
  element("input", { type: "text", maxlength: "4000", dir: "auto", autocomplete: "off", "aria-label": words.ask_next, placeholder: words.ask_next })
);
const again = element("form", { class: "again" }, next, element("button", {}, words.ask));
const talk = new Conversation(setup.user);
const earlier = new Earlier(setup.user);
const forget = byId("forget");
/** @type {AbortController | null} */
let running = null;
const basket = new Basket(setup, byId("found"), { say, speak, failed, settle, open: opened, ask: askThese, emptied });

/** @param {URLSearchParams} wanted */
const addressOf = (wanted) => JSON.stringify([...["q", "fq", "format", "effort", "lang"].map((name) => wanted.getAll(name)), basket.ids()]);

/** @param {string} text */
function say(text) {
  state.textContent = text;
}

/** @param {import("./types.js").Citation} citation */
function opened(citation) {
  openPassage(citation, words, (label, reason) => noticeOf(label, reason, words));
}

/**
 * Adds the card of turn *place*, the question above it when it is not the first.
 * @param {string} question @param {number} place
 */
function cardFor(question, place) {
  const card = new Card(words, {
    stop: () => running?.abort(),
    retry: () => ask(question, place),
    next: (proposed) => {
      next.focus({ preventScroll: true });
      ask(proposed, talk.turns.length);
    },
    open: opened,
    thumbs: (answer) => thumbsOf(answer, setup),
  });
  const count = basket.ids()?.length;
  const limited = count && element("p", { class: "fine" }, filled(counted(words.basket_alone, count), { count }));
  const turn = element("div", { class: "turn" }, limited || null, place > 0 && element("p", { class: "asked", dir: "auto" }, element("span", { class: "fine" }, `${words.you_asked} `), question), card.root);
  const old = [...answers.children].filter((one) => one !== again).slice(place);
  const isHere = old.some((one) => one.contains(document.activeElement));
  for (const one of old) one.remove();
  // The field below may hold the focus and half a question: it stays where it is.
  if (again.isConnected) again.before(turn);
  else answers.append(turn);
  if (isHere) card.stopButton.focus({ preventScroll: true });
  return card;
}

/** @param {string} question @param {number} place */
async function ask(question, place) {
  running?.abort();
  const mine = new AbortController();
  running = mine;
  if (place === 0) talk.begin(addressOf(new URLSearchParams(location.search)));
  talk.turns.splice(place);
  const card = cardFor(question, place);
  spoken.replaceChildren();
  say(words.searching);
  if (place > 0) card.root.scrollIntoView({ block: "nearest" });
  try {
    await grow(card, question, place, mine.signal);
  } catch (error) {
    failed(card, error, mine);
  }
  if (running === mine) running = null;
  settle();
}

/** @param {Card} card @param {string} question @param {number} place @param {AbortSignal} signal */
async function grow(card, question, place, signal) {
  const wanted = new URLSearchParams(location.search);
  let told = 0;
  const wish = {
    question,
    signal,
    filters: wanted.getAll("fq"),
    format: wanted.get("format") ?? format.value,
    effort: wanted.get("effort") ?? effort.value,
    language: wanted.get("lang") ?? "",
    history: talk.before(place),
    documents: basket.ids(),
  };
  for await (const { answer, isDone } of asked(wish)) {
    if (isDone) {
      speak(answer.content.message, told, true);
      card.finish(answer);
      talk.put({ question, answer }, place);
      const cited = new Set(answer.content.citations.map((one) => one.document_id).filter(Boolean)).size;
      const used = answer.content.documents.length;
      say(`${words.done}. ${filled(counted(words.used, used), { used, cited })}`);
    } else {
      card.grow(answer);
      told = speak(answer.content.message, told);
    }
  }
}

const SENTENCE_END = /[.!?…؟]["”»’)\]]*(?=\s)|[。！？]|\n/gu;
const LONGEST = 240;

/**
 * Hands what is new of *text* to readers who listen, in whole sentences: a word at a time cannot be followed, and all
 * of it at the end is too late. A sentence without end is cut between words; *isWhole* hands out the rest.
 * @param {string} text @param {number} told how much was handed out @param {boolean} [isWhole]
 * @returns {number} how much is handed out now
 */
function speak(text, told, isWhole = false) {
  const fresh = text.slice(told);
  const end = [...fresh.matchAll(SENTENCE_END)].at(-1);
  const last = end ? end.index + end[0].length : 0;
  const length = isWhole ? fresh.length : last || (fresh.length > LONGEST ? fresh.lastIndexOf(" ") : 0);
  const said = fresh.slice(0, length).replace(/\[[^[\]\n]{1,80}\]|[*`#]/g, "").replace(/\s+/g, " ").trim();
  if (said) spoken.append(element("p", { dir: "auto" }, said));
  return told + Math.max(0, length);
}

/** @param {Card} card @param {Failure} failure */
function fail(card, failure) {
  card.fail(failure);
  const way = wayOut(failure.label);
  if (way) card.tools.prepend(way);
}

/** What this reader can do about a failure besides asking again. @param {string} label */
function wayOut(label) {
  const wanted = new URLSearchParams(location.search);
  if (label === "noDocuments" && (wanted.has("fq") || basket.ids())) {
    for (const name of ["fq", "basket"]) wanted.delete(name);
    return element("a", { class: "button", href: `${ROOT}/?${wanted}` }, words.without_filters);
  }
  const settings = document.querySelector('.top a[href$="/admin"]');
  const isOurs = /^(badSetting|model(?!Busy|Timeout|Garbled)|searchUnavailable|authorityUnavailable)/.test(label);
  return settings && isOurs ? element("a", { class: "button", href: `${ROOT}/admin` }, settings.textContent) : null;
}

/** @param {Card} card @param {unknown} error @param {AbortController} mine */
function failed(card, error, mine) {
  if (mine.signal.aborted) {
    card.stop();
    say(words.stopped);
    return;
  }
  const failure = error instanceof Failure ? error : new Failure("internal", "");
  if (!(error instanceof Failure)) console.error(error);
  fail(card, failure);
  say((own(card.words.failures, failure.label) ?? words.failures.internal).join(". "));
}

function settle() {
  clear.hidden = !talk.turns.length;
  if (!talk.turns.length) again.remove();
  else if (!again.isConnected) answers.append(again);
  // A screen reader has read it by then, and it must not be found a second time next to the answer.
  setTimeout(() => running || spoken.replaceChildren(), 4000);
}

/** @param {URLSearchParams} wanted */
async function showFound(wanted) {
  const found = byId("found");
  found.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(`${ROOT}/found?${wanted}`, { method: "POST", body: new URLSearchParams(basket.ids()?.map((id) => ["documents", id])) });
    const made = new DOMParser().parseFromString(response.ok ? await response.text() : "", "text/html");
    found.replaceChildren(...made.body.childNodes);
  } catch {
    found.replaceChildren();
  }
  basket.offer();
  found.removeAttribute("aria-busy");
}

/** The question is asked again, of the documents in the basket alone. */
function askThese() {
  only.checked = true;
  form.requestSubmit();
}

/** The answer stays, and what comes next is of all documents. */
function emptied() {
  say(words.emptied);
  ofBasket();
  box.focus();
}

/** Says beside the question whether it is of the basket alone: never of an empty one. */
function ofBasket() {
  const wanted = new URLSearchParams(location.search);
  if (wanted.has("basket") && !basket.documents.size) {
    wanted.delete("basket");
    history.replaceState(null, "", `${ROOT}/?${wanted}`);
  }
  only.checked = wanted.has("basket");
}

/** Shows what the address asks for. @param {boolean} isNew whether the answer must be asked for again */
function show(isNew) {
  ofBasket();
  basket.clear();
  const wanted = new URLSearchParams(location.search);
  const question = wanted.get("q")?.trim() ?? "";
  document.body.className = `scripted ${question ? "results" : "first"}`;
  if (!question) {
    answers.replaceChildren();
    byId("found").replaceChildren();
    return;
  }
  document.title = `${straight(question)} · datafari_rag`;
  box.value = question;
  showFound(wanted);
  answers.replaceChildren();
  if (!isNew && talk.recall(addressOf(wanted)) && isRestored()) return;
  answers.replaceChildren();
  ask(question, 0);
}

/** Shows the turns that were kept; says no when they are not what was written there. */
function isRestored() {
  try {
    talk.turns.forEach((turn, place) => cardFor(String(turn.question), place).finish(turn.answer));
  } catch {
    return false;
  }
  settle();
  return true;
}

/** Keeps what was typed here; a question of a link is not this reader's own. @param {string} question */
function remember(question) {
  earlier.note(question);
  forget.hidden = !earlier.all().length;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const question = box.value.trim();
  if (!question) {
    answers.replaceChildren(element("section", { class: "card notice" }, ...noticeOf("noQuery", "", words).childNodes));
    box.focus();
    return;
  }
  const wanted = new URLSearchParams();
  const usual = new Map([["format", "default"], ["effort", ""]]);
  for (const [name, value] of new FormData(form)) if (usual.get(name) !== value) wanted.append(name, String(value));
  const ui = new URLSearchParams(location.search).get("ui");
  if (ui) wanted.set("ui", ui);
  history.pushState(null, "", `${ROOT}/?${wanted}`);
  remember(question);
  box.scrollLeft = 0;
  show(true);
});
for (const wish of [format, effort, only]) wish.addEventListener("change", () => box.value.trim() && document.body.classList.contains("results") && form.requestSubmit());
clear.addEventListener("click", () => {
  running?.abort();
  talk.begin("");
  answers.replaceChildren();
  clear.hidden = true;
  box.value = "";
  say(words.cleared);
  history.pushState(null, "", `${ROOT}/`);
  show(false);
  box.focus();
});
forget.addEventListener("click", () => {
  earlier.forget();
  forget.hidden = true;
  say(words.forgotten);
  box.focus();
});
window.addEventListener("popstate", () => show(false));
document.getElementById("user")?.addEventListener("change", (event) => {
  const who = /** @type {HTMLSelectElement} */ (event.target).form;
  if (!who) return;
  /** @type {HTMLInputElement} */ (who.elements.namedItem("here")).value = location.pathname + location.search;
  who.requestSubmit();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !(event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement)) {
    event.preventDefault();
    box.focus();
  }
  if (event.key === "Escape" && running && !document.querySelector("dialog[open]")) running.abort();
});

again.addEventListener("submit", (event) => {
  event.preventDefault();
  const question = next.value.trim();
  if (!question || running) return;
  next.value = "";
  remember(question);
  ask(question, talk.turns.length);
});

document.cookie = "datafari_rag_script=1; path=/; SameSite=Strict";
document.body.classList.add("scripted");
app.append(spoken);
earlier.suggest(box, byId("earlier"));
forget.hidden = !earlier.all().length;
ofBasket();
if (app.dataset.answer && !basket.ids()) {
  const made = JSON.parse(app.dataset.answer);
  const question = box.value;
  talk.begin(addressOf(new URLSearchParams(location.search)));
  answers.replaceChildren();
  const card = cardFor(question, 0);
  if (made.error) fail(card, new Failure(made.error.label, made.error.reason));
  else {
    card.finish(made);
    talk.put({ question, answer: made }, 0);
  }
  settle();
  basket.offer();
} else show(false);
