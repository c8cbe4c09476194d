// Callers: asks over kept connections, whole answers or streams, and prints one line of JSON with what was measured.
//
//   node load.js '{"mode": "whole"|"streams", "port", "path", "method", "body", "callers", "seconds", "warmup_s",
//                  "ramp_s", "done"}'
//
// Times are milliseconds. Only what began after the warm-up is counted. A stream is lost when it breaks off, has
// another status than 200, or lacks the end mark. *questions* take the place of QUESTION in path and body, in turn.
"use strict";
const net = require("node:net");

const plan = JSON.parse(process.argv[2]);
const clock = () => Number(process.hrtime.bigint() / 1000n) / 1000;
const began = clock();
const counting = began + (plan.warmup_s || 0) * 1000;
const stop = counting + plan.seconds * 1000;
const seen = { latencies: [], ttfts: [], lags: [], gaps: [], tokens: 0, all_tokens: 0, answers: 0, lost: 0, statuses: {}, peak: 0 };
let asked = 0, open = 0, running = plan.callers;

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

class Caller {
  constructor() { this.connect(() => this.ask()); }

  connect(then) {
    this.socket = net.connect(plan.port, "127.0.0.1", then);
    this.socket.setNoDelay(true);
    this.socket.on("data", (data) => this.read(data));
    this.socket.on("error", () => {});
    this.socket.on("close", () => this.closed());
    this.isBusy = false;
  }

  ask() {
    if (clock() >= stop) return this.finish();
    this.started = clock();
    this.isBusy = true;
    this.text = "";
    this.tail = "";
    this.rest = "";
    this.isEnded = false;
    this.head = null;
    this.size = 0;
    this.last = this.first = 0;
    open += 1;
    if (open > seen.peak) seen.peak = open;
    this.socket.write(requestBytes());
  }

  finish() {
    if (this.isOver) return;
    this.isOver = true;
    running -= 1;
    this.socket.destroy();
    if (running === 0) report();
  }

  closed() {
    if (this.isOver) return;
    if (this.isBusy) this.answered(this.mode === "close" && this.isEnded);
    else if (clock() < stop) setTimeout(() => this.connect(() => this.ask()), 20);
    else this.finish();
  }

  read(data) {
    const arrived = clock();
    let text = data.toString("latin1");
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
    this.tail = (this.tail + text).slice(-64);
    const isLast = this.tail.endsWith("\r\n0\r\n\r\n") || this.tail === "0\r\n\r\n";
    if (this.mode === "length" ? this.size >= this.wanted : this.mode === "chunked" && isLast) this.answered(true);
  }

  tokens(fresh, arrived) {
    // A stamp that two reads cut in half is read with the second.
    const text = this.rest + fresh;
    if (plan.done && text.includes(plan.done)) this.isEnded = true;
    let used = 0;
    for (const stamp of text.matchAll(/@(\d{6,16})(?=[^\d])/g)) {
      used = stamp.index + stamp[0].length;
      this.token(arrived, arrived - Number(stamp[1]) / 1000);
    }
    this.rest = text.slice(Math.max(used, text.length - 24));
  }

  token(arrived, lag) {
    const isCounted = arrived >= counting && arrived < stop;
    if (!this.first) {
      this.first = arrived;
      if (this.started >= counting && this.started < stop) seen.ttfts.push(arrived - this.started);
    } else if (isCounted) seen.gaps.push(arrived - this.last);
    this.last = arrived;
    seen.all_tokens += 1;
    if (isCounted) {
      seen.tokens += 1;
      seen.lags.push(lag);
    }
  }

  answered(isWhole) {
    const counted = this.started >= counting;
    open -= 1;
    this.isBusy = false;
    const isGood = isWhole && this.status === 200 && (plan.mode === "whole" || !plan.done || this.isEnded);
    seen.statuses[this.status || 0] = (seen.statuses[this.status || 0] || 0) + 1;
    if (!isGood) seen.lost += 1;
    else if (counted && clock() < stop + 1000) { seen.answers += 1; seen.latencies.push(clock() - this.started); }
    this.status = 0;
    if (this.socket.destroyed || /connection: close/.test(this.head || "")) {
      this.socket.destroy();
      if (clock() < stop) setTimeout(() => this.connect(() => this.ask()), isGood ? 0 : 50);
      else this.finish();
    } else if (isGood) this.ask();
    else setTimeout(() => this.ask(), 50);
  }
}

function spread(values) {
  const sorted = Float64Array.from(values).sort();
  const at = (share) => (sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] : null);
  return { n: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}

function report() {
  const usage = process.cpuUsage();
  const { latencies, ttfts, lags, gaps, ...counts } = seen;
  process.stdout.write(JSON.stringify({
    ...counts, seconds: plan.seconds, cpu_s: (usage.user + usage.system) / 1e6,
    latency_ms: spread(latencies), ttft_ms: spread(ttfts), lag_ms: spread(lags), gap_ms: spread(gaps),
  }) + "\n");
  process.exit(0);
}

for (let number = 0; number < plan.callers; number += 1) {
  setTimeout(() => new Caller(), ((plan.ramp_s || 0) * 1000 * number) / plan.callers);
}
// Whatever hangs: the run is bounded.
setTimeout(() => { seen.lost += open; report(); }, ((plan.warmup_s || 0) + plan.seconds + (plan.grace_s || 30)) * 1000);
