// A Solr that answers at once: prepared answers of three documents, one after the other.
//
//   node stub_solr.js PORT ANSWERS.json     ANSWERS.json: {"small": [answer, …], "schema": …}
//
// GET /count says how many searches there were.
"use strict";
const http = require("node:http");
const fs = require("node:fs");

const [port, file] = [Number(process.argv[2]), process.argv[3]];
const answers = JSON.parse(fs.readFileSync(file, "utf8"));
const small = answers.small.map((answer) => Buffer.from(JSON.stringify(answer)));
const schema = Buffer.from(JSON.stringify({ schema: answers.schema }));
let searches = 0;

function send(response, body) {
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": body.length });
  response.end(body);
}

const server = http.createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    const path = request.url.split("?")[0];
    if (path === "/count") return send(response, Buffer.from(JSON.stringify({ searches })));
    if (path.endsWith("/schema")) return send(response, schema);
    searches += 1;
    send(response, small[searches % small.length]);
  });
});
server.keepAliveTimeout = 120000;
server.listen(port, "127.0.0.1", 4096);
