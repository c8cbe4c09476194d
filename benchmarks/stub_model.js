// A model that speaks at a set pace, so that what a service adds can be told from what the model takes.
//
//   node stub_model.js PORT
//
// POST /pace {"first_ms", "interval_ms", "tokens"} sets the pace; POST anything else is answered in that pace, as a
// stream when the body asks for one. Each token ends in "@" and the microseconds of the monotonic clock at which it was
// written, so that whoever reads it knows its age.
"use strict";
const http = require("node:http");

let pace = { first_ms: 0, interval_ms: 100, tokens: 50 };
let opened = 0;
const HEAD = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" };
const END =
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"stub","choices":[{"index":0,"delta":{},' +
  '"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

const chunk = (text) =>
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"stub","choices":[{"index":0,"delta":' +
  `{"content":"${text}"},"finish_reason":null}]}\n\n`;
const now = () => process.hrtime.bigint() / 1000n;

function whole(response) {
  const answer = {
    id: "c", object: "chat.completion", created: 1, model: "stub",
    choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: answerText } }],
    usage: { prompt_tokens: 12000, completion_tokens: 40, total_tokens: 12040 },
  };
  const body = Buffer.from(JSON.stringify(answer));
  response.writeHead(200, { "Content-Type": "application/json", "Content-Length": body.length });
  response.end(body);
}
const answerText =
  "The default of this setting is the value that the manual names [1]. It can be changed in the configuration file, " +
  "and the change is read when the server starts again [2]. Other values are described with their effect [3].";

function streamed(response) {
  let left = pace.tokens;
  const { interval_ms } = pace;
  response.socket.setNoDelay(true);
  response.writeHead(200, HEAD);
  const speak = () => {
    left -= 1;
    const last = left === 0 ? " [1]." : "";
    response.write(chunk(` word @${now()}${last}`));
    if (left > 0) return;
    clearInterval(timer);
    response.end(END);
  };
  let timer;
  setTimeout(() => {
    timer = setInterval(speak, interval_ms);
    response.on("close", () => clearInterval(timer));
    speak();
  }, pace.first_ms);
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = Buffer.concat(parts);
    if (request.url === "/pace") {
      pace = { ...pace, ...JSON.parse(body) };
      response.end("{}");
      return;
    }
    if (request.method === "GET") {
      response.end(JSON.stringify({ object: "list", data: [], opened }));
      return;
    }
    // A stream is asked for near an end of the body; parsing 60 KB each time would cost more than answering.
    const edges = body.length < 4096 ? body.toString("latin1") : body.toString("latin1", 0, 2048) + body.toString("latin1", body.length - 2048);
    if (/"stream":\s*true/.test(edges)) return streamed(response);
    if (pace.first_ms > 0) setTimeout(() => whole(response), pace.first_ms);
    else whole(response);
  });
});
server.on("connection", () => (opened += 1));
server.keepAliveTimeout = 120000;
server.listen(Number(process.argv[2]), "127.0.0.1", 8192);
