// Callers: asks over kept connections, whole answers or streams, and prints one line of JSON with what was measured.
//
//   node load.js '{"mode": "whole"|"streams", "port", "path", "method", "body", "seconds", "warmup_s", "grace_s",
//                  "callers" | "rate", "spread", "limit", "done", "tokens"}'
//
// With "callers" each asks again as soon as it is answered: good for throughput, and for nothing else. With "rate" so
// many ask in a second whatever became of those before ("even" or "poisson" spread), on a kept connection that is free or
// else on a new one, and what they wait counts from the moment they were to ask: a slow answer hides no other's wait.
// Times are milliseconds. Only what was to begin between the warm-up and the end is counted, however late it ends. A
// stream is lost when it breaks off, has another status than 200, lacks the end mark, or has not all its tokens.
// *questions* take the place of QUESTION in path and body, in turn.
"use strict";
const net = require("node:net");

const plan = JSON.parse(process.argv[2]);
const clock = () => Number(process.hrtime.bigint() / 1000n) / 1000;
const began = clock();
const counting = began + (plan.warmup_s || 0) * 1000;
const stop = counting + plan.seconds * 1000;
const seen = { tokens: 0, all_tokens: 0, bytes: 0, answers: 0, lost: 0, statuses: {}, peak: 0, connections: 0, never_asked: 0 };
const times = { latency_ms: [], ttft_ms: [], lag_ms: [], gap_ms: [], late_ms: [], refused_ms: [] };
const opens = [];
let asked = 0, open = 0, running = plan.callers || 0, planned = began;
const idle = [], waiting = [];

// The same arrivals in each run.
let seed = 20261121;
function random() {
  seed = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
}

function requestBytes() {
  const question = plan.questions ? plan.questions[asked % plan.questions.length] : "";
  asked += 1;
  const body = (plan.body || "").replace("QUESTION", question);
  const head = [
    `${plan.method} ${plan.path.replace("QUESTION", encodeURIComponent(question))} HTTP/1.1`,
    `Host: 127.0.0.1:${plan.port}`, "Accept: */*", ...(plan.headers || []),
  ];
  if (body) head.push("Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`);
  return head.join("\r\n") + "\r\n\r\n" + body;
}

class Connection {
  constructor(then) {
    seen.connections += 1;
    this.socket = net.connect(plan.port, "127.0.0.1", then);
    this.socket.setNoDelay(true);
    this.socket.on("data", (data) => this.read(data));
    this.socket.on("error", () => {});
    this.socket.on("close", () => this.closed());
  }

  ask(due) {
    this.due = due;
    this.isBusy = true;
    this.text = this.tail = this.rest = "";
    this.isEnded = false;
    this.head = null;
    this.status = this.size = this.said = this.last = this.newest = 0;
    this.socket.write(requestBytes());
  }

  closed() {
    this.isGone = true;
    if (this.isBusy) this.answered(this.mode === "close" && (this.isEnded || plan.mode === "whole"));
    else if (idle.includes(this)) idle.splice(idle.indexOf(this), 1);
  }

  read(data) {
    if (!this.isBusy) return;
    const arrived = clock();
    seen.bytes += data.length;
    let text = data.latin1Slice();
    if (this.head === null) {
      this.text += text;
      const end = this.text.indexOf("\r\n\r\n");
      if (end < 0) return;
      this.head = this.text.slice(0, end).toLowerCase();
      text = this.text.slice(end + 4);
      this.text = "";
      this.status = Number(this.head.slice(9, 12));
      const length = /content-length: (\d+)/.exec(this.head);
      this.mode = length ? "length" : this.head.includes("chunked") ? "chunked" : "close";
      this.wanted = length ? Number(length[1]) : 0;
    }
    this.size += text.length;
    if (plan.mode === "streams") this.tokens(text, arrived);
    const end = text.length >= 7 ? text.slice(-7) : (this.tail + text).slice(-7);
    this.tail = end;
    if (this.mode === "length" ? this.size >= this.wanted : this.mode === "chunked" && /(^|\r\n)0\r\n\r\n$/.test(end)) this.answered(true);
  }

  tokens(fresh, arrived) {
    // The end repeats words of the answer in its citations.
    if (this.isEnded) return;
    // A stamp, or an end mark, that two reads cut in half is read with the second.
    let text = this.rest + fresh;
    const end = plan.done ? text.indexOf(plan.done) : -1;
    if (end >= 0) {
      this.isEnded = true;
      text = text.slice(0, end);
    }
    let at = 0, used = 0;
    while ((at = text.indexOf("@", used)) >= 0) {
      let past = at + 1, stamp = 0, code = 0;
      while ((code = text.charCodeAt(past)) >= 48 && code <= 57) { stamp = stamp * 10 + code - 48; past += 1; }
      if (past === text.length) break;
      used = past;
      // The end of a stream may quote the answer: what was there before is no further token.
      if (past - at > 6 && stamp > this.newest) {
        this.newest = stamp;
        this.token(arrived, arrived - stamp / 1000);
      }
    }
    const kept = at >= 0 ? at : Math.max(used, text.length - 24);
    this.rest = text.slice(Math.min(kept, Math.max(used, text.length - 24)));
  }

  token(arrived, lag) {
    const isCounted = arrived >= counting && arrived < stop;
    if (!this.said) {
      if (this.due >= counting && this.due < stop) times.ttft_ms.push(arrived - this.due);
    } else if (isCounted) times.gap_ms.push(arrived - this.last);
    this.last = arrived;
    this.said += 1;
    seen.all_tokens += 1;
    if (!isCounted) return;
    seen.tokens += 1;
    times.lag_ms.push(lag);
  }

  answered(isWhole) {
    const now = clock();
    open -= 1;
    this.isBusy = false;
    const isSaid = plan.mode === "whole" || ((!plan.done || this.isEnded) && this.said === (plan.tokens || this.said));
    const isGood = isWhole && this.status === 200 && isSaid;
    seen.statuses[this.status] = (seen.statuses[this.status] || 0) + 1;
    if (this.status === 503) times.refused_ms.push(now - this.due);
    if (!isGood) seen.lost += 1;
    else {
      if (this.due >= counting && this.due < stop) times.latency_ms.push(now - this.due);
      if (now >= counting && now < stop) seen.answers += 1;
    }
    if (this.isGone || /connection: close/.test(this.head || "")) {
      this.isGone = true;
      this.socket.destroy();
    }
    if (plan.callers) again(this, isGood);
    else free(this);
  }
}

function begin(connection, due) {
  open += 1;
  if (open > seen.peak) seen.peak = open;
  const now = clock();
  if (due >= counting && due < stop) { opens.push(open); times.late_ms.push(now - due); }
  if (connection) connection.ask(due);
  else { const fresh = new Connection(() => fresh.ask(due)); fresh.isBusy = true; fresh.due = due; fresh.status = 0; fresh.said = 0; fresh.head = ""; }
}

// Callers that ask again as soon as they are answered.
function again(connection, isGood) {
  if (clock() >= stop) {
    connection.socket.destroy();
    running -= 1;
    if (running === 0) report();
    return;
  }
  const next = () => begin(connection.isGone ? null : connection, clock());
  if (isGood) next();
  else setTimeout(next, 50);
}

// Callers that come when they come.
function free(connection) {
  if (waiting.length) begin(connection.isGone ? null : connection, waiting.shift());
  else if (!connection.isGone) idle.push(connection);
  if (planned >= stop && open === 0 && waiting.length === 0) report();
}

function arrivals() {
  const now = clock();
  while (planned <= now && planned < stop) {
    const due = planned;
    if (idle.length) begin(idle.pop(), due);
    else if (open < (plan.limit || 8192)) begin(null, due);
    else waiting.push(due);
    planned += (1000 / plan.rate) * (plan.spread === "poisson" ? -Math.log(1 - random()) : 1);
  }
  if (planned < stop) setTimeout(arrivals, Math.max(0, Math.floor(planned - clock())));
  else if (open === 0 && waiting.length === 0) report();
}

function spread(values) {
  const sorted = Float64Array.from(values).sort();
  const at = (share) => (sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] : null);
  return { n: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

function report() {
  const usage = process.cpuUsage();
  const found = { ...seen, seconds: plan.seconds, cpu_s: (usage.user + usage.system) / 1e6 };
  found.mean_open = opens.reduce((sum, one) => sum + one, 0) / (opens.length || 1);
  for (const [name, values] of Object.entries(times)) found[name] = spread(values);
  process.stdout.write(JSON.stringify(found) + "\n", () => process.exit(0));
}

if (plan.callers) for (let number = 0; number < plan.callers; number += 1) begin(null, clock());
else arrivals();
// Whatever hangs: the run is bounded, and what is still open or waits to be asked is lost.
setTimeout(() => { seen.never_asked = waiting.length; seen.lost += open + waiting.length; report(); },
  ((plan.warmup_s || 0) + plan.seconds + (plan.grace_s || 30)) * 1000);
