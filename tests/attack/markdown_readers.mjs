// Reads lines of JSON {given, shown} and renders `shown` with readers of Markdown that others wrote. Writes one line of
// JSON: how many texts there were, and for each reader what it made a thing of that loads, runs or leads elsewhere.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const require = createRequire(`${folder}/package.json`);
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);

const { default: MarkdownIt } = await load("markdown-it");
const commonmark = require("commonmark");
const { micromark } = await load("micromark");
const { gfm, gfmHtml } = await load("micromark-extension-gfm");
const { marked } = await load("marked");
const showdown = require("showdown");
const snarkdown = require("snarkdown");

const markdownIt = new MarkdownIt({ html: true, linkify: false });
const parser = new commonmark.Parser();
const renderer = new commonmark.HtmlRenderer();
const converter = new showdown.Converter();
const READERS = {
  "markdown-it": (text) => markdownIt.render(text),
  commonmark: (text) => renderer.render(parser.parse(text)),
  micromark: (text) => micromark(text, { allowDangerousHtml: true }),
  "micromark-gfm": (text) => micromark(text, { extensions: [gfm()], htmlExtensions: [gfmHtml()], allowDangerousHtml: true }),
  marked: (text) => marked.parse(text),
  showdown: (text) => converter.makeHtml(text),
  snarkdown: (text) => (snarkdown.default ?? snarkdown)(text),
};

const LOADING = new Set(
  "img script svg iframe object embed link meta base form video audio style area map math picture source track frame applet body button".split(" "),
);
const TAG = /<([a-zA-Z][\w-]*)((?:\s+|\/)[^<>]*?)?\/?>/g;
const RUNNING = /\s(?:on\w+|src|style|srcset|action|background)\s*=/;
const ENTITIES = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&amp;": "&" };

const plain = (text) => {
  const written = text.replace(/&(?:lt|gt|quot|#39|amp);/g, (entity) => ENTITIES[entity]);
  try {
    return decodeURI(written);
  } catch {
    return written;
  }
};
const bare = (address) => address.replace(/^(?:mailto:|https?:\/\/)/, "");

/** A bare address that a reader makes a link of, showing itself, stays text for the filter: no words disguise it. */
function isDisguised(html, tag, attributes) {
  const target = plain(/href\s*=\s*"([^"]*)"/.exec(attributes)?.[1] ?? "").trim();
  if (target === "" || target === "undefined" || target.startsWith("#")) return false;
  if (!/^[a-z][a-z0-9+.-]*:|[/\\]/i.test(target)) return false; // a word: it leads nowhere but beside the page itself
  const text = plain(html.slice(tag.index + tag[0].length, html.indexOf("</a>", tag.index)).replace(/<[^>]*>/g, "")).trim();
  return bare(target) !== bare(text) && !/^(?:https?:\/\/|www\.|mailto:)/i.test(text);
}

function problem(html) {
  for (const tag of html.matchAll(TAG)) {
    const [name, attributes] = [tag[1].toLowerCase(), tag[2] ?? ""];
    if (LOADING.has(name)) return tag[0];
    if (name === "input" && !/type="checkbox"/.test(attributes)) return tag[0];
    if (RUNNING.test(attributes) && name !== "td" && name !== "th") return tag[0];
    if (name === "a" && /href/.test(attributes) && isDisguised(html, tag, attributes)) return tag[0];
  }
  return null;
}

let texts = 0;
const holes = Object.fromEntries(Object.keys(READERS).map((name) => [name, []]));
for await (const line of createInterface({ input: process.stdin })) {
  const { given, shown } = JSON.parse(line);
  texts += 1;
  for (const [name, render] of Object.entries(READERS)) {
    let html = "";
    try {
      html = render(shown);
    } catch {
      continue; // a reader that fails shows nothing
    }
    const found = problem(html);
    if (found !== null) holes[name].push({ given, shown, found });
  }
}
process.stdout.write(`${JSON.stringify({ texts, holes })}\n`);
