// @ts-check
/** What this reader asked earlier, kept in his browser alone: nothing of it is on the server, and one click clears it. */
import { element } from "./element.js";
import { Kept } from "./kept.js";
import { straight } from "./prose.js";

const MOST = 50;
const LONGEST = 200;
const SHOWN = 3;

export class Earlier {
  /** Without a user name, the next user of this machine may be a different person: then it ends with the tab. @param {string} user */
  constructor(user) {
    this.kept = new Kept("datafari_rag earlier questions", user, user ? "localStorage" : "sessionStorage");
  }

  /** The questions, the latest first. @returns {string[]} */
  all() {
    const kept = this.kept.read();
    return Array.isArray(kept) ? kept.filter((one) => typeof one === "string").slice(0, MOST) : [];
  }

  /** @param {string} question */
  note(question) {
    if (question.length > LONGEST) return;
    const others = this.all().filter((one) => one.toLowerCase() !== question.toLowerCase());
    this.kept.write([question, ...others].slice(0, MOST));
  }

  /** Suggests them while something is typed; the box is a combobox only while there is something to choose. */
  /** @param {HTMLInputElement} box @param {HTMLElement} list the box's datalist */
  suggest(box, list) {
    box.addEventListener("input", () => {
      const typed = box.value.trim();
      const like = typed.length > LONGEST ? [] : this.like(typed).map(straight);
      list.replaceChildren(...like.map((text) => element("option", { value: text })));
      if (like.length) box.setAttribute("list", list.id);
      else box.removeAttribute("list");
    });
  }

  /** Those that have, for each word of *typed*, one that begins like it; the latest first. @param {string} typed */
  like(typed) {
    const wanted = wordsOf(typed);
    if (!wanted.length) return [];
    const fits = (/** @type {string[]} */ words) => wanted.every((one) => words.some((word) => word.startsWith(one)));
    const others = this.all().filter((one) => one.toLowerCase() !== typed.toLowerCase());
    return others.filter((one) => fits(wordsOf(one))).slice(0, SHOWN);
  }

  forget() {
    this.kept.forget();
  }
}

/** @param {string} text */
const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
