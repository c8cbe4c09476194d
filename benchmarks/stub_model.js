// A model that speaks at a set pace, so that what a service adds can be told from what the model takes.
//
//   node stub_model.js PORT
//
// POST /pace {"first_ms", "interval_ms", "tokens"} sets the pace, GET says how late it was kept since; POST anything else is answered in that pace, as a
// stream when the body asks for one. Each token ends in "@" and the microseconds of the monotonic clock at which it was
// written, so that whoever reads it knows its age.
"use strict";
const http = require("node:http");

let pace = { first_ms: 0, interval_ms: 100, tokens: 50 };
let opened = 0;
const late = new Uint32Array(2000);
const HEAD = { "Content-Type": "text/event-stream", "Cache-Control": "no-cache", "Transfer-Encoding": "chunked" };
const END =
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"stub","choices":[{"index":0,"delta":{},' +
  '"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

const chunk = (text) =>
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"stub","choices":[{"index":0,"delta":' +
  `{"content":"${text}"},"finish_reason":null}]}\n\n`;
const now = () => process.hrtime.bigint() / 1000n;
const clock = () => Number(process.hrtime.bigint() / 1000n) / 1000;

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

// Each token has its time, counted from the first; one that comes late makes no other late. How late they were is kept.
function streamed(response) {
  const { first_ms, interval_ms, tokens } = pace;
  const begins = clock() + first_ms;
  let said = 0, timer;
  const { socket } = response;
  socket.setNoDelay(true);
  response.writeHead(200, HEAD);
  response.flushHeaders();
  // Framed here: the library's own framing takes a fifth more CPU.
  const say = (text) => socket.write(`${text.length.toString(16)}\r\n${text}\r\n`, "latin1");
  const speak = () => {
    late[Math.min(late.length - 1, Math.max(0, Math.round(clock() - begins - said * interval_ms)))] += 1;
    said += 1;
    say(chunk(` word @${now()}${said === tokens ? " [1]." : ""}`));
    if (said === tokens) { say(END); response.end(); }
    else timer = setTimeout(speak, Math.max(1, begins + said * interval_ms - clock()));
  };
  timer = setTimeout(speak, Math.max(1, begins - clock()));
  response.on("close", () => clearTimeout(timer));
}

function lateness() {
  const all = late.reduce((sum, one) => sum + one, 0);
  const at = (share) => { let sum = 0; return late.findIndex((one) => (sum += one) > share * all); };
  return all ? { p50: at(0.5), p99: at(0.99), max: late.findLastIndex((one) => one > 0) } : null;
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = Buffer.concat(parts);
    if (request.url === "/pace") {
      pace = { ...pace, ...JSON.parse(body) };
      late.fill(0);
      response.end("{}");
      return;
    }
    if (request.method === "GET") {
      response.end(JSON.stringify({ object: "list", data: [], opened, late_ms: lateness() }));
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
