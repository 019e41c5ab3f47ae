// A client of raddle with OpenAI's library for JavaScript. Its argument says what it does; see the functions.
import OpenAI from "openai";

const baseURL = process.env.RADDLE_URL + "/v1";
const client = new OpenAI({ baseURL, apiKey: process.env.RADDLE_TOKEN, maxRetries: 0, timeout: 60_000 });

// ask returns a completion and its run.
async function ask(model, text, { headers, ...body } = {}) {
  const { data, response } = await client.chat.completions
    .create({ model, messages: [{ role: "user", content: text }], ...body }, { headers })
    .withResponse();
  return { data, text: data.choices[0].message.content, run: response.headers.get("x-raddle-run") };
}

const actions = {
  // models prints which of two agents are listed.
  async models() {
    const names = [];
    for await (const m of client.models.list()) names.push(m.id);
    console.log(names.filter((n) => n === "assistant" || n === "triage").sort().join(" "));
    console.log((await client.models.retrieve("triage")).owned_by);
  },

  // stream prints a streamed answer. The agent calls its tools in the middle of it.
  async stream() {
    const runner = client.chat.completions.stream({
      model: "assistant",
      messages: [{ role: "user", content: "Where is order 1007, and what would two raddles cost?" }],
      stream_options: { include_usage: true },
    });
    let count = 0;
    runner.on("chunk", () => count++);
    const done = await runner.finalChatCompletion();
    console.log(done.choices[0].message.content.trim());
    console.log(done.choices[0].finish_reason, done.usage.total_tokens, count > 3);
  },

  // question asks for an incident, answers what the run asks, and prints the end.
  async question() {
    let { data, text, run } = await ask("triage", "The checkout is slow.");
    while (data.raddle.status === "waiting") {
      const page = text.includes("Page the engineer");
      console.log("asked:", page ? "page?" : text.trim().split("\n")[0]);
      const next = await ask("triage", page ? "yes" : "Call me.", { headers: { "X-Raddle-Run": run } });
      console.log("same run:", next.run === run);
      ({ data, text } = next);
    }
    console.log(text.split("\n")[0]);
    console.log(data.choices[0].finish_reason, data.raddle.status);
  },

  // cancel closes a stream while the agent works, and prints its run.
  async cancel() {
    const { data, response } = await client.chat.completions
      .create({ model: "slow", messages: [{ role: "user", content: "Work" }], stream: true })
      .withResponse();
    for await (const chunk of data) {
      if (chunk.choices[0].delta.role === "assistant") break; // closes the stream
    }
    console.log(response.headers.get("x-raddle-run"));
  },

  // error prints errors of a request, of a run, and of a stream.
  async error() {
    for (const [model, body] of [["missing", {}], ["assistant", { n: 2 }], ["failing", {}]]) {
      await ask(model, "Hi", body).catch((e) => console.log(e.constructor.name, e.status, JSON.stringify(e.code), JSON.stringify(e.param)));
    }
    try {
      for await (const _ of await client.chat.completions.create({ model: "failing", messages: [{ role: "user", content: "Hi" }], stream: true }));
    } catch (e) {
      console.log(e.constructor.name, JSON.stringify(e.code));
    }
    await new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 }).models.list().catch((e) => console.log(e.constructor.name, e.status));
  },
};

await actions[process.argv[2]]();
