// What the published client (@microsoft/ai-chat-protocol) sees of a service; prints one JSON object.
import { AIChatProtocolClient } from "@microsoft/ai-chat-protocol";

const [base, kind, question] = process.argv.slice(2);
// Without this the client repeats a failed POST three times, each at the model's cost.
const options = { retryOptions: { maxRetries: 0 } };
const message = { role: "user", content: question };

async function streamed(client, sent, request) {
  const seen = { items: 0, text: "", contexts: [], states: [] };
  const items = await client.getStreamedCompletion([sent], request);
  for await (const item of items) {
    seen.items += 1;
    seen.text += item.delta?.content ?? "";
    if (item.context !== undefined) seen.contexts.push(item.context);
    if (item.sessionState !== undefined) seen.states.push(item.sessionState);
  }
  return seen;
}

async function failure(run) {
  try {
    await run();
    return null;
  } catch (error) {
    return error;
  }
}

const kinds = {
  async answers(client) {
    const request = { sessionState: { conversation: 7 }, context: { overrides: { top: 2 } } };
    const whole = await client.getCompletion([message], request);
    return { whole, streamed: await streamed(client, message, request) };
  },
  async memory(client) {
    const first = await client.getCompletion([message], {});
    const follow = { role: "user", content: "Why?" };
    return { second: await client.getCompletion([follow], { sessionState: first.sessionState }) };
  },
  async files(client) {
    const file = new File(["The zebra password is Xylophone-42."], "note.txt", { type: "text/plain" });
    const image = new File([new Uint8Array([1, 2, 3])], "image.png", { type: "image/png" });
    const whole = await client.getCompletion([{ ...message, files: [{ contentType: "text/plain", data: file, filename: "note.txt" }] }], {});
    const refused = await failure(() => client.getCompletion([{ ...message, files: [{ contentType: "image/png", data: image, filename: "image.png" }] }], {}));
    return { whole, refused };
  },
  async failures(client) {
    const before = await failure(() => client.getCompletion([{ role: "user", content: " " }], {}));
    const seen = { text: "" };
    const during = await failure(async () => {
      for await (const item of await client.getStreamedCompletion([message], {})) {
        seen.text += item.delta?.content ?? "";
      }
    });
    return { before, during, text: seen.text };
  },
};

const client = new AIChatProtocolClient(`${base}/api/chat`, { ...options, allowInsecureConnection: true });
console.log(JSON.stringify(await kinds[kind](client)));
