// What a run looks like at a moment: a fold over its moments, so that moving the playhead asks the server for nothing.
import type { Moment } from "./types";

export type NodeStatus = "done" | "running" | "waiting" | "failed";

export interface Look {
  nodes: Map<string, { status: NodeStatus; visits: number }>;
  edges: Set<string>; // "from to" by place
}

const stepKinds = new Set(["start", "call", "step", "edit", "fork", "snapshot"]);

const inBranch = /\[\d+\]$/; // the path of a node in one of the branches of a map

// lookAt returns the look of a run after the moments up to a record; null: after all.
export function lookAt(moments: Moment[], at: number | null): Look {
  const nodes: Look["nodes"] = new Map();
  const edges: Look["edges"] = new Set();
  const current = new Map<string, string[]>(); // what runs next, by frame
  const node = (place: string) => {
    let n = nodes.get(place);
    if (!n) nodes.set(place, (n = { status: "done", visits: 0 }));
    return n;
  };
  const set = (place: string, status: NodeStatus) => {
    node(place).status = status;
  };
  for (const m of moments) {
    if (at !== null && m.record > at) break;
    if (m.kind === "step") {
      for (const from of m.from ?? []) {
        const n = node(from);
        n.status = "done";
        n.visits++;
        for (const to of m.next ?? []) edges.add(from + " " + to);
      }
    }
    if (stepKinds.has(m.kind)) {
      const frame = m.node ?? "";
      current.set(frame, m.next ?? []);
      for (const to of m.next ?? []) set(to, "running");
    }
    if (!m.place) {
      if (m.kind === "end") endNodes(nodes, m.status ?? "");
      continue;
    }
    switch (m.kind) {
      case "question":
        set(m.place, "waiting");
        break;
      case "answer":
        set(m.place, "running");
        break;
      case "task":
      case "effect":
        if (m.kind === "task" && inBranch.test(m.node ?? "")) node(m.place).visits++;
        if (m.kind === "task" || !isRunning(nodes, m.place)) set(m.place, "done");
        break;
      case "failure":
        set(m.place, "failed");
        break;
    }
  }
  return { nodes, edges };
}

function isRunning(nodes: Look["nodes"], place: string): boolean {
  return nodes.get(place)?.status === "running";
}

// endNodes sets what still runs when a drive ends.
function endNodes(nodes: Look["nodes"], status: string): void {
  for (const [place, n] of nodes) {
    if (n.status !== "running") continue;
    if (status === "failed") n.status = "failed";
    else if (status === "waiting" || status === "paused") n.status = "waiting";
    else if (n.visits === 0) nodes.delete(place);
    else n.status = "done";
  }
}

// indexAt returns the index of the last moment up to a record.
export function indexAt(moments: Moment[], at: number | null): number {
  if (at === null) return moments.length - 1;
  let low = 0;
  let high = moments.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (moments[middle]!.record <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
