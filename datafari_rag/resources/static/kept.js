// @ts-check
/** What this browser keeps of one reader under a name; nothing of it is on the server. */

/** @typedef {"localStorage" | "sessionStorage"} Kind until it is forgotten, or until this tab is closed */

export class Kept {
  /** @param {string} name @param {string} user @param {Kind} [kind] */
  constructor(name, user, kind = "sessionStorage") {
    this.storage = storageOf(kind);
    this.key = `${name} of ${user}`;
    // A previous user leaves nothing behind.
    for (const storage of [storageOf("localStorage"), storageOf("sessionStorage")]) {
      for (const key of Object.keys(storage ?? {})) {
        if (key.startsWith(name) && (key !== this.key || storage !== this.storage)) storage?.removeItem(key);
      }
    }
  }

  /** @returns {any} */
  read() {
    try {
      return JSON.parse(this.storage?.getItem(this.key) ?? "null");
    } catch {
      return null;
    }
  }

  /** Keeps *value*, as far as this browser lets us. @param {unknown} value */
  write(value) {
    try {
      this.storage?.setItem(this.key, JSON.stringify(value));
    } catch {
      this.forget();
    }
  }

  forget() {
    this.storage?.removeItem(this.key);
  }
}

/** @param {Kind} kind */
function storageOf(kind) {
  try {
    return window[kind];
  } catch {
    return null;
  }
}
