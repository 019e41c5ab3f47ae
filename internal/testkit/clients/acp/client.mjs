// An editor with ACP's SDK for TypeScript. Usage: client.mjs PROGRAM CASE
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";

const [program, what] = process.argv.slice(2);
const child = spawn(program, ["acp", what === "cancel" ? "slow" : "assistant"], { stdio: ["pipe", "pipe", "inherit"] });
let text = "";
let calls = 0;
let plans = 0;

const editor = client({ name: "test" })
  .onNotification(methods.client.session.update, ({ params }) => {
    const u = params.update;
    if (u.sessionUpdate === "agent_message_chunk") text += u.content.text;
    if (u.sessionUpdate === "tool_call") calls++;
    if (u.sessionUpdate === "plan") plans++;
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    console.log("permission:", params.options.map((o) => o.kind).join(", "));
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  });

await editor.connectWith(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (ctx) => {
  await ctx.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  const { sessionId } = await ctx.request(methods.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
  const say = async (prompt) => {
    text = "";
    const res = await ctx.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: prompt }] });
    console.log(res.stopReason, text.trim());
  };
  if (what === "reply") {
    await say("Where is order 1007, and what would two raddles cost?");
    console.log("calls:", calls);
  } else if (what === "question") {
    await say("Reserve a raddle for Ada.");
    await say("today");
    console.log("plan:", plans > 0);
  } else if (what === "cancel") {
    const turn = say("work");
    while (!existsSync("started")) await sleep(50);
    await ctx.notify(methods.agent.session.cancel, { sessionId });
    await turn;
  } else if (what === "error") {
    await say("nothing that the transcript knows").catch((e) => console.log("error:", /run/.test(e.message)));
  }
});
child.stdin.end();
process.exit(0);
