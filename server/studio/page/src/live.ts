// The events of a run as they happen. A lost connection is opened again after the last event, so that nothing is missing or seen twice.
import { address, Problem } from "./api";
import { share } from "./share";
import type { Event } from "./types";

export type Connection = "open" | "lost" | "ended";

interface Listener {
  onEvent(e: Event): void;
  onConnection(c: Connection): void;
}

const firstWait = 300;
const longestWait = 5000;

// follow reads the events of a run until the run has ended or the returned function is called. It starts after a record.
export function follow(run: string, after: number, listener: Listener): () => void {
  if (share) return () => {};
  const stop = new AbortController();
  let last = String(after);
  let wait = firstWait;
  const loop = async () => {
    while (!stop.signal.aborted) {
      try {
        const r = await fetch(address(`api/v1/runs/${encodeURIComponent(run)}/events?after=${encodeURIComponent(last)}`), {
          credentials: "same-origin",
          headers: { Accept: "text/event-stream" },
          signal: stop.signal,
        });
        if (!r.ok || !r.body) throw new Problem(r.status, "", r.statusText);
        listener.onConnection("open");
        wait = firstWait;
        const end = await read(r.body, (id, e) => {
          if (id !== "") last = id;
          listener.onEvent(e);
        });
        if (end?.reason === "ended" && isFinal(end.status ?? "")) {
          listener.onConnection("ended");
          return;
        }
        if (end) {
          // The server has ended the stream itself: nothing is lost, and the run may continue later.
          await new Promise((done) => setTimeout(done, longestWait));
          continue;
        }
      } catch (e) {
        if (stop.signal.aborted) return;
        if (e instanceof Problem && (e.status === 404 || e.status === 401)) {
          listener.onConnection("lost");
          return;
        }
      }
      listener.onConnection("lost");
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, longestWait);
    }
  };
  void loop();
  return () => stop.abort();
}

// End is why the server ends a stream.
interface End {
  reason: string;
  status?: string;
}

// isFinal reports whether a run with a status never continues.
export function isFinal(status: string): boolean {
  return ["done", "abandoned", "cleaned-up", "halted"].includes(status);
}

// read reads a stream of events. It returns why the server has ended it, null if the connection was lost.
async function read(body: ReadableStream<Uint8Array>, onEvent: (id: string, e: Event) => void): Promise<End | null> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  let end: End | null = null;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return end;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      let id = "";
      let name = "";
      let data = "";
      for (const line of block.split("\n")) {
        if (line.startsWith("id: ")) id = line.slice(4);
        else if (line.startsWith("event: ")) name = line.slice(7);
        else if (line.startsWith("data: ")) data += line.slice(6);
      }
      if (data === "") continue;
      if (name === "end") end = JSON.parse(data) as End;
      else onEvent(id, JSON.parse(data) as Event);
    }
  }
}
