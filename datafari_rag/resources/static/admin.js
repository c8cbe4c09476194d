// @ts-check
/** The settings page at work: what is typed is checked as `datafari-rag check` would, before anything is saved. */
import { Card, noticeOf } from "./card.js";
import { Failure } from "./asking.js";
import { counted, element, filled, own } from "./element.js";
import { watch } from "./live.js";
import { openPassage } from "./passage.js";

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const form = /** @type {HTMLFormElement} */ (byId("settings"));
const { words } = JSON.parse(form.dataset.setup ?? "{}");
const summary = byId("summary");
const saveButton = /** @type {HTMLButtonElement} */ (byId("save"));
const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".setting")]);
const nothing = summary.textContent ?? "";
let isSaving = false;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let newest = 0;

/** @param {string} path */
async function posted(path) {
  const token = String(new FormData(form).get("csrf_token"));
  const body = new URLSearchParams();
  for (const [name, value] of new FormData(form)) body.append(name, String(value));
  const response = await fetch(path, { method: "POST", body, headers: { "X-CSRF-Token": token } });
  const answer = await response.json();
  if (answer.error && !answer.present) throw new Failure(answer.error.label, answer.error.reason);
  return answer;
}

async function check() {
  const mine = ++newest;
  const found = await posted("/admin/check").catch(() => null);
  if (!found || mine !== newest) return;
  const keys = new Set(found.changes);
  for (const row of rows) {
    const key = row.dataset.key ?? "";
    const messages = found.problems.filter((/** @type {any} */ one) => one.key === key).map((/** @type {any} */ one) => one.message);
    const place = row.querySelector(".problem");
    const input = row.querySelector("input, select");
    if (place && place.textContent?.trim() !== messages.join(" ")) place.textContent = messages.join(" ");
    if (messages.length) input?.setAttribute("aria-invalid", "true");
    else input?.removeAttribute("aria-invalid");
    row.classList.toggle("touched", keys.has(key));
  }
  const said = found.problems.length ? words.has_problems : words.changes;
  summary.textContent = keys.size ? filled(counted(said, keys.size), { count: keys.size }) : nothing;
  saveButton.disabled = found.problems.length > 0;
}

form.addEventListener("input", (event) => {
  if (/** @type {HTMLElement} */ (event.target).id === "try") return;
  clearTimeout(timer);
  timer = setTimeout(check, 250);
});
form.addEventListener("submit", () => (isSaving = true));
window.addEventListener("beforeunload", (event) => {
  if (!isSaving && document.querySelector(".touched")) event.preventDefault();
});

const find = /** @type {HTMLInputElement} */ (byId("find"));
const only = /** @type {HTMLInputElement} */ (byId("only"));
function narrow() {
  const wanted = find.value.toLowerCase();
  for (const row of rows) {
    const isFound = (row.textContent ?? "").toLowerCase().includes(wanted);
    row.hidden = !isFound || (only.checked && !row.classList.contains("differs") && !row.classList.contains("touched"));
  }
  for (const group of document.querySelectorAll(".group")) {
    /** @type {HTMLElement} */ (group).hidden = !group.querySelector(".setting:not([hidden])");
  }
}
find.hidden = false;
/** @type {HTMLElement} */ (document.querySelector(".only")).hidden = false;
find.addEventListener("input", (event) => {
  event.stopPropagation();
  narrow();
});
find.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
only.addEventListener("change", narrow);

byId("probe").addEventListener("click", async () => {
  const said = /** @type {HTMLElement} */ (document.querySelector("#model-state [role=status]"));
  said.textContent = words.trying;
  try {
    const { problem, took_ms } = await posted("/admin/probe");
    said.textContent = problem ? `✕ ${problem}` : `✓ ${filled(words.took, { ms: took_ms })}`;
  } catch (error) {
    said.textContent = `✕ ${error instanceof Failure && error.message ? error.message : words.failures.network[0]}`;
  }
});

const trial = /** @type {HTMLDialogElement} */ (byId("trial"));
const question = /** @type {HTMLInputElement} */ (byId("try"));
byId("try-open").hidden = false;
byId("try-open").addEventListener("click", () => {
  trial.showModal();
  question.focus();
});
byId("try-close").addEventListener("click", () => trial.close());
byId("try-ask").addEventListener("click", attempt);
question.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  attempt();
});

/** What is tried, in the words of the file. */
function tried() {
  return [...document.querySelectorAll(".setting.touched")].map((place) => {
    const input = /** @type {HTMLInputElement | HTMLSelectElement | null} */ (place.querySelector("input, select"));
    return `${/** @type {HTMLElement} */ (place).dataset["key"]}=${input?.value}`;
  });
}

async function attempt() {
  byId("tried").textContent = tried().join(" · ") || nothing;
  const cards = ["present", "changed"].map((name) => {
    const card = new Card(words, { open: (citation) => openPassage(citation, words, (label, reason) => noticeOf(label, reason, words)) });
    card.toolbar(false);
    byId(name).replaceChildren(card.root);
    return { name, card };
  });
  try {
    const both = await posted("/admin/try");
    for (const { name, card } of cards) {
      const made = both[name];
      if (made.error) card.fail(new Failure(made.error.label, made.error.reason));
      else card.finish(made);
    }
  } catch (error) {
    const failure = error instanceof Failure ? error : new Failure("network", "");
    for (const { name } of cards) byId(name).replaceChildren(element("p", { class: "warn" }, failure.message || own(words.failures, failure.label)?.[0]));
  }
}

document.getElementById("user")?.addEventListener("change", (event) => /** @type {HTMLSelectElement} */ (event.target).form?.requestSubmit());
document.body.classList.add("scripted");
watch(words);
// Whoever was faster than this script, or came back to the page, has typed already.
if (document.querySelector("[aria-invalid]") || [...form.querySelectorAll("input")].some((input) => input.value !== input.defaultValue)) check();
