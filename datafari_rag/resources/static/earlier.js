// @ts-check
/** What this reader asked earlier, kept in his browser alone: nothing of it is on the server, and one click clears it. */

const PREFIX = "datafari_rag earlier questions";
const MOST = 50;
const LONGEST = 200;
const SHOWN = 3;

export class Earlier {
  /**
   * Without a user name, the next user of this machine may be a different person: then it ends with the tab.
   * @param {string} user @param {(kind: "localStorage" | "sessionStorage") => Storage | null} storageOf
   */
  constructor(user, storageOf) {
    this.storage = storageOf(user ? "localStorage" : "sessionStorage");
    this.key = `${PREFIX} of ${user}`;
    // A previous user leaves nothing behind.
    for (const storage of [storageOf("localStorage"), storageOf("sessionStorage")]) {
      for (const key of Object.keys(storage ?? {})) {
        if (key.startsWith(PREFIX) && (key !== this.key || storage !== this.storage)) storage?.removeItem(key);
      }
    }
  }

  /** The questions, the latest first. @returns {string[]} */
  all() {
    try {
      const kept = JSON.parse(this.storage?.getItem(this.key) ?? "[]");
      return Array.isArray(kept) ? kept.filter((one) => typeof one === "string").slice(0, MOST) : [];
    } catch {
      return [];
    }
  }

  /** @param {string} question */
  note(question) {
    if (question.length > LONGEST) return;
    const others = this.all().filter((one) => one.toLowerCase() !== question.toLowerCase());
    try {
      this.storage?.setItem(this.key, JSON.stringify([question, ...others].slice(0, MOST)));
    } catch {
      this.forget();
    }
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
    this.storage?.removeItem(this.key);
  }
}

/** @param {string} text */
const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
