// A client of the MCP SDK for TypeScript. Usage: client.mjs CASE, or client.mjs stdio PROGRAM
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [what, program] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1" }, { capabilities: what === "tool" ? {} : { elicitation: {} } });
if (what !== "tool") {
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
    const field = params.requestedSchema.properties.answer;
    console.log("asked:", params.message.split("\n").at(-1) || params.message);
    const answer = field.enum ? field.enum[0] : /page/i.test(params.message) ? "yes" : "Look at the queue first.";
    return { action: "accept", content: { answer } };
  });
}
if (what === "stdio") {
  await client.connect(new StdioClientTransport({ command: program, args: ["mcp"], env: process.env }));
} else {
  await client.connect(
    new StreamableHTTPClientTransport(new URL(process.env.RADDLE_URL + "/mcp"), {
      requestInit: { headers: { Authorization: "Bearer " + process.env.RADDLE_TOKEN } },
    }),
  );
}
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const print = (r) => console.log(r.isError ? "error:" : "result:", r.structuredContent?.status, r.content[0].text.trim());
await client.listTools();

if (what === "reply") {
  const lines = [];
  print(await call("assistant", { prompt: "Where is order 1007?" }, { onprogress: (p) => lines.push(p.message) }));
  console.log("calls:", lines.filter((l) => l.startsWith("tool call:")).length);
} else if (what === "question" || what === "stdio") {
  print(await call("triage", {}));
} else if (what === "tool") {
  const first = await call("triage", {});
  console.log("status:", first.structuredContent.status);
  print(await call("raddle_answer", { run: first.structuredContent.run, answer: "no" }));
} else if (what === "cancel") {
  const stop = new AbortController();
  try {
    await call("slow", {}, { signal: stop.signal, onprogress: (p) => p.message.includes("work") && stop.abort() });
    console.log("it returned");
  } catch (e) {
    await client.ping(); // the notification is sent before the connection is closed
    console.log("cancelled");
  }
} else if (what === "error") {
  print(await call("assistant", { prompt: "nothing that the transcript knows" }));
}
await client.close();
