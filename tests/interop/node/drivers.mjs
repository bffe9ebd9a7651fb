// The Node clients, each as an async generator from a place and a model to what the client decodes. Copied beside the
// installed packages and started there by `interop.py` as `drivers.mjs CLIENT PACKAGE`; jobs and results are those of
// python/drivers.py.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const AT_ONCE = 24;
const MILLISECONDS = 20_000;
const asked = [{ role: "user", content: "hello" }];

// How a client that knows no API asks for a stream.
function target(base, api, model) {
  if (api === "events") return [`${base}/events/${model}`.replace(/\/-$/, ""), { method: "GET" }];
  const body = JSON.stringify({ model, messages: asked, stream: api !== "document" });
  return [`${base}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body }];
}

async function* fetched(base, api, model) {
  const [url, init] = target(base, api, model);
  const response = await fetch(url, init);
  const decoder = new TextDecoder();
  for await (const part of response.body) yield decoder.decode(part, { stream: true });
}

async function* fetchedLines(base, api, model) {
  let held = "";
  for await (const part of fetched(base, api, model)) {
    held += part;
    const lines = held.split("\n");
    held = lines.pop();
    yield* lines;
  }
}

// Waits for what a client calls back with, as a generator.
async function* called(start) {
  const queue = [];
  let wake = () => {};
  const end = Symbol("end");
  const push = (thing) => { queue.push(thing); wake(); };
  const stop = start(push, (error) => push({ [end]: true, error }));
  try {
    for (;;) {
      while (queue.length === 0) await new Promise((resolve) => { wake = resolve; });
      const thing = queue.shift();
      if (thing[end]) { if (thing.error) throw thing.error; return; }
      yield thing;
    }
  } finally {
    stop?.();
  }
}

const drivers = {
  async *openai(base, api, model) {
    const { OpenAI } = await import("openai");
    const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "x", maxRetries: 0, timeout: MILLISECONDS });
    if (api === "chat") yield* await client.chat.completions.create({ model, messages: asked, stream: true });
    else if (api === "completions") yield* await client.completions.create({ model, prompt: "hello", stream: true });
    else if (api === "responses") yield* await client.responses.create({ model, input: "hello", stream: true });
    else yield await client.chat.completions.create({ model, messages: asked });
  },

  async *anthropic(base, api, model) {
    const { Anthropic } = await import("@anthropic-ai/sdk");
    const client = new Anthropic({ baseURL: base, apiKey: "x", maxRetries: 0, timeout: MILLISECONDS });
    yield* await client.messages.create({ model, max_tokens: 64, messages: asked, stream: true });
  },

  async *google(base, api, model) {
    const { GoogleGenAI } = await import("@google/genai");
    const client = new GoogleGenAI({ apiKey: "x", httpOptions: { baseUrl: base, timeout: MILLISECONDS } });
    for await (const chunk of await client.models.generateContentStream({ model, contents: "hello" })) {
      const { sdkHttpResponse, ...rest } = chunk; // holds the date
      yield rest;
    }
  },

  async *ollama(base, api, model) {
    const { Ollama } = await import("ollama");
    const client = new Ollama({ host: base });
    if (api === "ollama-chat") yield* await client.chat({ model, messages: asked, stream: true });
    else yield* await client.generate({ model, prompt: "hello", stream: true });
  },

  async *cohere(base, api, model) {
    const { CohereClientV2 } = await import("cohere-ai");
    const client = new CohereClientV2({ token: "x", baseUrl: base, environment: base });
    yield* await client.chatStream({ model, messages: asked }, { maxRetries: 0 });
  },

  async *eventsource(base, api, model) {
    const { EventSource } = await import("eventsource");
    yield* called((push, end) => {
      const source = new EventSource(target(base, api, model)[0]);
      const told = (event) => push([event.type, event.data, event.lastEventId]);
      source.addEventListener("greeting", told);
      source.addEventListener("heartbeat", told);
      source.onmessage = told;
      // The stream's end: it would open it again.
      source.onerror = (event) => end(event.code ? new Error(event.message) : undefined);
      return () => source.close();
    });
  },

  async *eventsourceParser(base, api, model) {
    const { EventSourceParserStream } = await import("eventsource-parser/stream");
    const [url, init] = target(base, api, model);
    const response = await fetch(url, init);
    yield* response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream({ onError: "terminate" }));
  },

  async *fetchEventSource(base, api, model) {
    const { fetchEventSource } = await import("@microsoft/fetch-event-source");
    // It is written for pages, so that it runs in one here, as far as it and the server can tell.
    globalThis.window ??= globalThis;
    globalThis.document ??= { hidden: false, addEventListener() {}, removeEventListener() {} };
    const [url, init] = target(base, api, model);
    init.headers = { ...init.headers, "user-agent": "Mozilla/5.0 (X11; Linux x86_64)" };
    yield* called((push, end) => {
      fetchEventSource(url, {
        ...init,
        openWhenHidden: true,
        onmessage: (message) => push(message),
        onclose: () => end(),
        onerror: (error) => { throw error; },
      }).catch(end);
    });
  },

  async *aiOpenai(base, api, model) {
    const { createOpenAI } = await import("@ai-sdk/openai");
    const provider = createOpenAI({ baseURL: `${base}/v1`, apiKey: "x" });
    yield* streamed(api === "responses" ? provider.responses(model) : api === "completions" ? provider.completion(model) : provider.chat(model));
  },

  async *aiCompatible(base, api, model) {
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    yield* streamed(createOpenAICompatible({ name: "engine", baseURL: `${base}/v1`, apiKey: "x" })(model));
  },

  async *aiAnthropic(base, api, model) {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    yield* streamed(createAnthropic({ baseURL: `${base}/v1`, apiKey: "x" })(model));
  },

  async *langchainOpenai(base, api, model) {
    const { ChatOpenAI } = await import("@langchain/openai");
    const chat = new ChatOpenAI({ model, apiKey: "x", maxRetries: 0, configuration: { baseURL: `${base}/v1` } });
    for await (const chunk of await chat.stream("hello")) yield chunk.toDict();
  },

  async *handCut(base, api, model) {
    for await (const line of fetchedLines(base, api, model)) {
      if (!line.trim()) continue;
      const data = line.slice(6);
      if (data.trim() === "[DONE]") break;
      yield JSON.parse(data);
    }
  },

  async *handPrefix(base, api, model) {
    for await (const line of fetchedLines(base, api, model)) {
      if (line.startsWith("data: ") && line.trim() !== "data: [DONE]") yield JSON.parse(line.slice(6));
    }
  },

  async *fetchJson(base, api, model) {
    const [url, init] = target(base, api, model);
    yield await (await fetch(url, init)).json();
  },
};

async function* streamed(model) {
  const { streamText } = await import("ai");
  const parts = streamText({ model, prompt: "hello", maxOutputTokens: 64, maxRetries: 0, onError() {} }).fullStream;
  for await (const part of parts) {
    if (part.type === "error") throw part.error;
    yield JSON.parse(JSON.stringify(part, own));
  }
}

// What a client makes up by itself, or copies from headers.
function own(key, value) {
  return ["timestamp", "headers", "request", "messageId"].includes(key) ? undefined : value;
}

async function run(driver, job) {
  const objects = [];
  let error = null;
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error("no end in time")), MILLISECONDS + 5_000).unref());
  const whole = (async () => {
    for await (const thing of driver(job.base, job.api, job.model)) objects.push(thing);
  })();
  try {
    await Promise.race([whole, late]);
  } catch (problem) {
    error = `${problem?.name ?? "Error"}: ${problem?.message ?? problem}`.slice(0, 300);
  }
  return { id: job.id, objects, error };
}

const [name, packaged] = process.argv.slice(2);
// What a client prints is not what it decodes.
const say = (thing) => process.stdout.write(`${JSON.stringify(thing)}\n`);
for (const level of ["log", "info", "warn", "debug", "error"]) console[level] = () => {};
process.on("unhandledRejection", () => {});
say({ version: packaged === "-" ? process.version : JSON.parse(readFileSync(`node_modules/${packaged}/package.json`)).version, runtime: `Node ${process.version}` });

const jobs = [];
for await (const line of createInterface({ input: process.stdin })) jobs.push(JSON.parse(line));
await Promise.all(Array.from({ length: AT_ONCE }, async () => {
  for (let job = jobs.shift(); job; job = jobs.shift()) say(await run(drivers[name], job));
}));
process.stdout.write("", () => process.exit(0));
