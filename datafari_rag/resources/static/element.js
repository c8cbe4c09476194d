// @ts-check

/** The path below which the service is, "" at the root of its host: these files are in a folder of it. */
export const ROOT = new URL("..", import.meta.url).pathname.replace(/\/$/, "");

/**
 * Makes one element; texts become text nodes, never markup.
 * @param {string} name
 * @param {Record<string, string | boolean | ((event: Event) => void) | null | undefined>} [traits] attributes, and listeners as functions
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {HTMLElement}
 */
export function element(name, traits = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(traits)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false).map((child) => child));
  return made;
}

/**
 * What *record* itself has under a name that came from elsewhere; never what every object has.
 * @template T
 * @param {Record<string, T>} record
 * @param {string} name
 * @returns {T | undefined}
 */
export const own = (record, name) => (Object.hasOwn(record, name) ? record[name] : undefined);

/**
 * One of two sentences, for one and for any other number.
 * @param {string[]} sentences
 * @param {number} count
 */
export const counted = (sentences, count) => sentences[count === 1 ? 0 : 1];

/**
 * Fills the places `{name}` of a sentence.
 * @param {string} sentence
 * @param {Record<string, string | number>} values
 */
export const filled = (sentence, values) => sentence.replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all));
