// @ts-check
/** The conversation, kept in this tab of this browser and for this user alone; the server keeps nothing of it. */

/** @typedef {{question: string, answer: import("./types.js").Answer}} Turn */

const MOST = 20;

export class Conversation {
  /** @param {string} user @param {Storage | null} storage */
  constructor(user, storage) {
    this.storage = storage;
    this.key = `datafari_rag conversation of ${user}`;
    this.address = "";
    /** @type {Turn[]} */
    this.turns = [];
    // A previous user leaves nothing behind.
    for (const key of Object.keys(storage ?? {})) {
      if (key.startsWith("datafari_rag conversation") && key !== this.key) storage?.removeItem(key);
    }
  }

  /** Says whether the turns of *address* are still known. @param {string} address */
  recall(address) {
    try {
      const kept = JSON.parse(this.storage?.getItem(this.key) ?? "null");
      if (kept?.address !== address || !Array.isArray(kept.turns) || !kept.turns.length) return false;
      [this.address, this.turns] = [address, kept.turns];
      return true;
    } catch {
      return false;
    }
  }

  /** @param {string} address */
  begin(address) {
    [this.address, this.turns] = [address, []];
    this.storage?.removeItem(this.key);
  }

  /** @param {Turn} turn @param {number} place */
  put(turn, place) {
    this.turns.splice(place, 1, turn);
    this.turns = this.turns.slice(-MOST);
    this.keep();
  }

  /** Writes the turns down, as far as this browser lets us. */
  keep() {
    // How it was made may hold the whole prompt; it is for the moment.
    const light = this.turns.map(({ question, answer }) => ({ question, answer: lightened(answer) }));
    try {
      this.storage?.setItem(this.key, JSON.stringify({ address: this.address, turns: light }));
    } catch {
      this.storage?.removeItem(this.key);
    }
  }

  /** The messages before turn *place*. @param {number} place */
  before(place) {
    return this.turns.slice(0, place).flatMap(({ question, answer }) => [
      { role: "user", content: question },
      { role: "assistant", content: answer.content.message },
    ]);
  }
}

/** @param {import("./types.js").Answer} answer */
function lightened(answer) {
  const { message, documents, citations } = answer.content;
  const named = documents.map(({ id, title, url }) => ({ id, title, url }));
  return { ...answer, content: { message, documents: named, citations } };
}
