// @ts-check
/** Files dropped on the page of a demo over one's own files, or chosen there: sent one after the other. */
import { element, filled, own } from "./element.js";
import { straight } from "./prose.js";

const MOST = 50;
const form = /** @type {HTMLFormElement} */ (document.getElementById("drop"));
const chooser = /** @type {HTMLInputElement} */ (form.elements.namedItem("file"));
const list = /** @type {HTMLElement} */ (document.getElementById("dropped"));
const words = JSON.parse(form.dataset.words ?? "{}");
const failures = JSON.parse(document.getElementById("app")?.dataset.setup ?? "{}").words?.failures ?? {};
const token = /** @type {HTMLInputElement} */ (form.elements.namedItem("csrf_token")).value;
/** Files that came while others were on their way wait for these. */
let last = Promise.resolve();

/** Sends one file; the sentence to show for it. @param {File} file @returns {Promise<string>} */
async function sent(file) {
  if (!file.size) return words.empty;
  const data = new FormData();
  data.append("file", file);
  try {
    const response = await fetch("/demo/files", { method: "POST", headers: { "X-CSRF-Token": token }, body: data });
    if (response.ok) return words.kept;
    const { error } = await response.json();
    return (own(failures, error.label) ?? failures.internal).join(". ");
  } catch {
    return failures.network.join(". ");
  }
}

/** @param {File[]} files */
async function take(files) {
  // The page is not read again meanwhile (`folder.js`): what is on its way would be lost.
  document.body.dataset.sending = "yes";
  for (const file of files.slice(0, MOST)) {
    const state = element("span", { class: "fine" }, words.sending);
    const item = element("li", {}, element("bdi", {}, straight(file.name)), " ", state);
    list.append(item);
    state.textContent = await sent(file);
    if (state.textContent !== words.kept) item.dataset.refused = "yes";
  }
  if (files.length > MOST) list.append(element("li", {}, filled(words.too_many, { count: MOST })));
  delete document.body.dataset.sending;
}

// What was refused stays when the page is read again because another file has been read (`folder.js`).
for (const [name, why] of JSON.parse(sessionStorage.getItem("refused") ?? "[]"))
  list.append(element("li", { "data-refused": "yes" }, element("bdi", {}, name), " ", element("span", { class: "fine" }, why)));
sessionStorage.removeItem("refused");

/** The browser takes its list back when the event is over. @param {Iterable<File>} files */
function add(files) {
  const all = [...files];
  last = last.then(() => take(all));
}

/** Whether files are dragged, and not a word or a link of the page. @param {DragEvent} event */
const hasFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;

let depth = 0;
/** Every element that is passed over says so. @param {number} now */
const drag = (now) => document.body.classList.toggle("dropping", (depth = Math.max(0, now)) > 0);
document.addEventListener("dragenter", (event) => hasFiles(event) && drag(depth + 1));
document.addEventListener("dragleave", (event) => hasFiles(event) && drag(depth - 1));
document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
document.addEventListener("drop", (event) => {
  if (!hasFiles(event)) return;
  // Else the browser leaves the page and shows the file.
  event.preventDefault();
  drag(0);
  add(event.dataTransfer?.files ?? []);
});
chooser.addEventListener("change", () => {
  add(chooser.files ?? []);
  chooser.value = "";
});
