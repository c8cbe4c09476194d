// @ts-check
/** The conversation, kept in this tab of this browser and for this user alone; the server keeps nothing of it. */
import { Kept } from "./kept.js";

/** @typedef {{question: string, answer: import("./types.js").Answer}} Turn */

const MOST = 20;

export class Conversation {
  /** @param {string} user */
  constructor(user) {
    this.kept = new Kept("datafari_rag conversation", user);
    this.address = "";
    /** @type {Turn[]} */
    this.turns = [];
  }

  /** Says whether the turns of *address* are still known. @param {string} address */
  recall(address) {
    const kept = this.kept.read();
    if (kept?.address !== address || !Array.isArray(kept.turns) || !kept.turns.length) return false;
    [this.address, this.turns] = [address, kept.turns];
    return true;
  }

  /** @param {string} address */
  begin(address) {
    [this.address, this.turns] = [address, []];
    this.kept.forget();
  }

  /** @param {Turn} turn @param {number} place */
  put(turn, place) {
    this.turns.splice(place, 1, turn);
    this.turns = this.turns.slice(-MOST);
    this.keep();
  }

  keep() {
    // How it was made may hold the whole prompt; it is for the moment.
    const turns = this.turns.map(({ question, answer }) => ({ question, answer: lightened(answer) }));
    this.kept.write({ address: this.address, turns });
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
