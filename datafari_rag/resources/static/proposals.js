// @ts-check
/**
 * What could be asked next, from what this reader was given already: questions that the documents themselves put, and
 * documents that were found and not cited. No model is asked, and nothing is fetched.
 *
 * A document's words become a question only in this shape: one short sentence of plain words that begins as a question
 * does. A title becomes part of one only when it is plain words too.
 */
import { filled } from "./element.js";

const MOST = 3;
const SHORTEST = 4;
const QUESTION =
  /(?<![\p{L}\p{N}])(?:How|What|Why|When|Where|Which|Who|Can|Does|Do|Is|Are|Should|Comment|Pourquoi|Quand|Où|Qu['’]est-ce|Quel(?:le)?s?|Qui|Que|Combien|Peut-on|Est-ce|Faut-il)(?![\p{L}\p{N}])[\p{L}\p{N}\p{Zs},'’"“”«»()_/+.*-]{8,100}?\s?\?/gu;
const PLAIN = /^[\p{L}\p{N}][\p{L}\p{N}\p{M}\p{Zs}\p{Pd}.,:;'’“”"&()/+_#!]{1,79}$/u;

/** @typedef {{id: string | null, title: string, content?: string}} Known */

/**
 * @param {string[]} asked what was asked so far, the last one last
 * @param {Known[]} used documents of the answer
 * @param {(string | null)[]} cited ids of those that it cites
 * @param {Known[]} found further documents, best first
 * @param {import("./types.js").Words} words
 * @returns {string[]} at most three, none that was asked already
 */
export function proposalsOf(asked, used, cited, found, words) {
  const told = new Set(asked.map(bare));
  const own = questionsIn(used, wordsOf(asked.at(-1) ?? ""));
  const others = [...used.filter((one) => !cited.includes(one.id)), ...found.filter((one) => used.every((known) => known.id !== one.id))];
  const named = others.filter((one) => PLAIN.test(one.title)).map((one) => filled(words.next_about, { title: one.title }));
  const all = [...own.slice(0, MOST - 1), ...named, ...own.slice(MOST - 1)];
  return [...new Map(all.map((question) => [bare(question), question]))].filter(([key]) => !told.has(key)).map(([, question]) => question).slice(0, MOST);
}

/** Questions in the documents that share a word with what was asked, those that share most first. */
/** @param {Known[]} documents @param {Set<string>} wanted */
function questionsIn(documents, wanted) {
  const found = documents.flatMap((one) => (one.content ?? "").match(QUESTION) ?? []).map((text) => text.replace(/\s+/g, " "));
  const shared = (/** @type {string} */ text) => [...wordsOf(text)].filter((word) => wanted.has(word)).length;
  // One that has no word of its own was asked already, only longer.
  const near = found.filter((text) => shared(text) > 0 && shared(text) < wordsOf(text).size);
  return near.sort((one, other) => shared(other) - shared(one));
}

/** @param {string} text */
const wordsOf = (text) => new Set(bare(text).split(" ").filter((word) => word.length >= SHORTEST));

/** @param {string} text */
const bare = (text) =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
