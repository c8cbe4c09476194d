// Reads an answer as JSON, lays it out as the page does, and writes the words of each block as JSON.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** As much of a browser's element as the script uses. */
class Shown {
  children = [];
  append(...children) {
    this.children.push(...children);
  }
  replaceChildren(...children) {
    this.children = children;
  }
  setAttribute() {}
  get words() {
    return this.children.map((child) => (child instanceof Shown ? child.words : child)).join("");
  }
}
globalThis.document = { createElement: () => new Shown() };

const { Marks, proseInto } = await import(pathToFileURL(process.argv[2]).href);
const page = new Shown();
proseInto(page, JSON.parse(readFileSync(0, "utf8")), new Marks([], null, {}));
console.log(JSON.stringify(page.children.map((block) => block.words)));
