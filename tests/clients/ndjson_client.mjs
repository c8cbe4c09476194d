// What ndjson-readablestream sees of a stream; prints one JSON object.
import readNDJSONStream from "ndjson-readablestream";

const [url, body] = process.argv.slice(2);
const response = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body });
const items = [];
for await (const item of readNDJSONStream(response.body)) items.push(item);
console.log(JSON.stringify({ status: response.status, type: response.headers.get("content-type"), items }));
