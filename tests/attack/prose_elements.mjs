// Reads lines of JSON {shown}, lays each out as the page does, and writes the names of the elements and of what was set
// in them as JSON.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const names = new Set();
const made = (name) =>
  new Proxy({ append() {}, replaceChildren() {}, setAttribute: (attribute) => names.add(`${name} ${attribute}`) }, {
    set: (_, property) => Boolean(names.add(`${name} ${String(property)}`)),
  });
globalThis.document = {
  createElement: (name) => {
    names.add(name);
    return made(name);
  },
};

const { Marks, proseInto } = await import(pathToFileURL(process.argv[2]).href);
for await (const line of createInterface({ input: process.stdin })) {
  proseInto(made("page"), JSON.parse(line).shown, new Marks([], null, {}));
}
console.log(JSON.stringify([...names].filter((name) => !name.startsWith("page"))));
