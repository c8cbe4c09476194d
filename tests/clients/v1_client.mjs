// What clients from npm see of /v1: the openai package and the Vercel AI SDK's providers; prints one JSON object.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenResponses } from "@ai-sdk/open-responses";
import OpenAI from "openai";

const [base, question] = process.argv.slice(2);
const baseURL = `${base}/v1`;
const model = "datafari";
const messages = [{ role: "user", content: question }];
const client = new OpenAI({ baseURL, apiKey: "unused", maxRetries: 0 });

const seen = { models: [] };
for await (const one of client.models.list()) seen.models.push(one.id);

const whole = await client.chat.completions.create({ model, messages });
const helper = client.chat.completions.stream({ model, messages });
const streamed = await helper.finalChatCompletion();
seen.chat = whole.choices[0].message;
seen.chatStreamed = streamed.choices[0].message;

const response = await client.responses.create({ model, input: question });
const events = [];
const stream = client.responses.stream({ model, input: question });
for await (const event of stream) events.push(event.type);
const last = await stream.finalResponse();
seen.response = { text: response.output_text, annotations: response.output[0].content[0].annotations };
seen.responseStreamed = { text: last.output_text, annotations: last.output[0].content[0].annotations };
seen.events = [...new Set(events)];

seen.errors = [];
for (const wrong of [{ model: "nosuchmodel" }, { model, n: 2 }]) {
  const refused = await client.chat.completions.create({ messages, ...wrong }).catch((error) => error);
  seen.errors.push({ name: refused.constructor.name, status: refused.status, code: refused.code, param: refused.param });
}

const compatible = createOpenAICompatible({ name: "datafari", baseURL })(model);
const open = createOpenResponses({ name: "datafari", url: `${baseURL}/responses` })(model);
const prompt = [{ role: "user", content: [{ type: "text", text: question }] }];
for (const [name, provided] of Object.entries({ compatible, open })) {
  const told = await provided.doGenerate({ prompt });
  const texts = told.content.filter((part) => part.type === "text");
  const flow = await provided.doStream({ prompt });
  const parts = [];
  for await (const part of flow.stream) parts.push(part);
  seen[name] = {
    text: texts.map((part) => part.text).join(""),
    streamed: parts.filter((part) => part.type === "text-delta").map((part) => part.delta).join(""),
    finish: [told.finishReason.unified, parts.at(-1).finishReason.unified],
    errors: parts.filter((part) => part.type === "error").length,
    metadata: [texts.at(-1).providerMetadata, parts.findLast((part) => part.type === "text-end").providerMetadata],
  };
}
console.log(JSON.stringify(seen));
