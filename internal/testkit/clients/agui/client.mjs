// Runs an agent over AG-UI with the protocol's own client, which checks every event and their order.
//
//   client.mjs AGENT PROMPT [ANSWER...]
//
// It answers the interrupts of the run with the words that follow: yes and no for calls of tools and confirmations, a text
// for the rest. The word "close" closes the connection when the agent works. It prints what it saw, one thing a line, and the
// conversation at the end.
import { HttpAgent } from "@ag-ui/client";
import { isDeepStrictEqual } from "node:util";

const [name, prompt, ...answers] = process.argv.slice(2);

const agent = new HttpAgent({
  url: `${process.env.RADDLE_URL}/agui/${name}`,
  headers: { Authorization: `Bearer ${process.env.RADDLE_TOKEN}` },
  threadId: `thread-${process.pid}`,
  initialMessages: [{ id: "user-1", role: "user", content: prompt }],
});

const print = (...words) => console.log(...words);
let pieces = 0;
let last;

const subscriber = {
  onEvent({ event }) {
    last = event;
    switch (event.type) {
      case "RUN_STARTED":
        print("started");
        break;
      case "STEP_STARTED":
        print("step", event.stepName);
        if (answers[0] === "close" && ["think", "work"].includes(event.stepName)) {
          agent.abortRun();
        }
        break;
      case "TEXT_MESSAGE_CONTENT":
        pieces++;
        break;
      case "TOOL_CALL_START":
        print("call", event.toolCallId, event.toolCallName);
        break;
      case "TOOL_CALL_RESULT":
        print("result", event.toolCallId);
        break;
      case "CUSTOM":
        print("custom", event.name);
        break;
      case "RUN_ERROR":
        print("error", event.code, event.message.split("\n")[0]);
        break;
    }
  },
};

// run starts or continues the agent. It returns whether it can go on.
async function run(resume) {
  try {
    await agent.runAgent({ resume }, subscriber);
  } catch (error) {
    print("failed", error.message.split("\n")[0]);
    return false;
  }
  return last.type === "RUN_FINISHED";
}

function answerTo(interrupt) {
  const word = answers.shift();
  if (word === undefined) {
    return undefined;
  }
  if (word === "cancel") {
    return { interruptId: interrupt.id, status: "cancelled" };
  }
  let payload = word;
  if (interrupt.reason === "tool_call") {
    payload = { approved: word === "yes" };
  } else if (interrupt.reason === "confirmation") {
    payload = word === "yes";
  }
  return { interruptId: interrupt.id, status: "resolved", payload };
}

let more = await run();
while (more && agent.pendingInterrupts.length > 0) {
  const resume = [];
  for (const interrupt of agent.pendingInterrupts) {
    print("interrupt", interrupt.reason, interrupt.toolCallId ?? "-", JSON.stringify(interrupt.message.split("\n")[0]));
    resume.push(answerTo(interrupt));
  }
  if (resume.includes(undefined)) {
    break;
  }
  more = await run(resume);
}
if (last?.type === "RUN_FINISHED") {
  print("finished", last.outcome.type, JSON.stringify(last.result ?? null));
}
print("pieces", pieces > 0);
for (const m of agent.messages) {
  print("message", m.role, JSON.stringify(m.content ?? ""), (m.toolCalls ?? []).map((c) => c.function.name).join(","));
}
if (!isDeepStrictEqual(agent.state, {})) {
  print("state", JSON.stringify(agent.state));
}
