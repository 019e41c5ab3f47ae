// The text of replies that arrive now, by the agents that write them. A journal has replies only when they are complete.
import type { Event } from "./types";

// Reply is what has arrived of one reply. Its key is that of the task that asks for it.
export interface Reply {
  key: string;
  path: string; // of the agent in the run; "" for the agent that was started
  text: string;
}

const mostText = 20000;

// Replies keeps the replies that are not complete.
export class Replies {
  private readonly open = new Map<string, Reply>();
  private readonly old = new Set<string>(); // replies of a connection that was lost: their text comes again
  private changed = false;

  // add takes an event of a run. It returns the reply that is complete now, if there is one, and whether the event was a piece of a reply.
  add(e: Event): { piece: boolean; complete?: Reply } {
    const type = e.kind === "emitted" ? e.data["type"] : "";
    if (type === "reasoning_delta") return { piece: true };
    const key = (e.path ?? "") + (e.task ?? "");
    const reply = this.open.get(key);
    if (type === "text_delta") {
      const text = String(e.data["text"] ?? "");
      const before = reply && !this.old.has(key) ? reply.text : "";
      this.old.delete(key);
      this.open.set(key, { key, path: e.path ?? "", text: (before + text).slice(-mostText) });
      this.changed = true;
      return { piece: true };
    }
    if (e.kind === "run.ended") {
      const last = [...this.open.values()].find((r) => r.path === "");
      for (const r of [...this.open.values()]) if (r.path.startsWith(e.path ?? "")) this.forget(r.key);
      return last && !e.path ? { piece: false, complete: last } : { piece: false }; // a reply that was stopped is as long as it became
    }
    if (!reply || !(type === "replied" || type === "retrying" || e.kind === "task.done")) return { piece: false };
    this.forget(key);
    return type === "replied" ? { piece: false, complete: reply } : { piece: false };
  }

  private forget(key: string): void {
    this.open.delete(key);
    this.old.delete(key);
    this.changed = true;
  }

  // expectAgain notes that the connection is new: the server repeats the text of replies that are not complete.
  expectAgain(): void {
    for (const key of this.open.keys()) this.old.add(key);
  }

  // takeChange returns the replies if they have changed since the last call, in the order in which they began.
  takeChange(): Reply[] | null {
    if (!this.changed) return null;
    this.changed = false;
    return this.list();
  }

  // list returns the replies in the order in which they began.
  list(): Reply[] {
    return [...this.open.values()];
  }
}
