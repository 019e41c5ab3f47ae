// What a run looks like at a moment: a fold over its moments, so that moving the playhead asks the server for nothing.
import type { Moment } from "./types";

export type NodeStatus = "done" | "running" | "waiting" | "failed";

// NodeLook is how a node looks. stuck: it has failed, and has not started again since; fails counts its failures, and those of its agents, items and calls.
export interface NodeLook {
  status: NodeStatus;
  visits: number;
  fails: number;
  stuck: boolean;
}

export interface Look {
  nodes: Map<string, NodeLook>;
  edges: Set<string>; // two places on two lines
  items: Map<string, Items>; // of maps, by place
  spent: Map<string, Spent>; // on effects, by place
}

// Spent is how long effects have worked, in milliseconds, and what they cost in US dollars as far as the prices are known.
export interface Spent {
  ms: number;
  usd: number;
}

// Items is how far a map is.
export interface Items {
  done: number;
  all: number;
}

const stepKinds = new Set(["start", "call", "step", "edit", "fork", "snapshot"]);

const inBranch = /\[\d+\]$/; // the path of a node in one of the branches of a map

// A Fold is what the moments up to one of them come to.
interface Fold extends Look {
  frames: Map<string, Items>; // maps that run, by the path of their node
  stopped: string[]; // places with which the last drive has failed
}

const savedEvery = 500;

// Looks finds how a run looks at any of its moments. It saves a fold every so many moments, so that moving the playhead costs the same in a long run.
export class Looks {
  private readonly saved: Fold[] = []; // the fold before moment i * savedEvery

  constructor(private readonly moments: Moment[]) {
    const fold: Fold = { nodes: new Map(), edges: new Set(), items: new Map(), spent: new Map(), frames: new Map(), stopped: [] };
    moments.forEach((m, i) => {
      if (i % savedEvery === 0) this.saved.push(copyFold(fold));
      addMoment(fold, m);
    });
    this.saved.push(copyFold(fold));
  }

  // at returns the look after the moments up to a record; null: after all.
  at(record: number | null): Look {
    const end = indexAt(this.moments, record) + 1;
    if (end === this.moments.length) return this.saved[this.saved.length - 1]!;
    const start = Math.floor(end / savedEvery);
    const fold = copyFold(this.saved[start]!);
    for (let i = start * savedEvery; i < end; i++) addMoment(fold, this.moments[i]!);
    return fold;
  }
}

function copyFold(f: Fold): Fold {
  const items = new Map([...f.items].map(([place, n]) => [place, { ...n }]));
  const frames = new Map([...f.frames].map(([path, n]) => [path, { ...n }]));
  for (const [path, n] of f.frames) for (const [place, shown] of f.items) if (n === shown) items.set(place, frames.get(path)!); // one object is both
  return { nodes: new Map([...f.nodes].map(([place, n]) => [place, { ...n }])), edges: new Set(f.edges), items, spent: new Map([...f.spent].map(([place, s]) => [place, { ...s }])), frames, stopped: f.stopped };
}

// addMoment adds a moment to a fold.
function addMoment(f: Fold, m: Moment): void {
  const node = (place: string) => {
    let n = f.nodes.get(place);
    if (!n) f.nodes.set(place, (n = { status: "done", visits: 0, fails: 0, stuck: false }));
    return n;
  };
  const set = (place: string, status: NodeStatus) => {
    const n = node(place);
    n.status = n.stuck ? "failed" : status;
  };
  const start = (place: string) => {
    node(place).stuck = false;
    set(place, "running");
  };
  for (const place of m.failed ?? []) {
    const n = node(place);
    n.fails++;
    n.stuck = true;
    n.status = "failed";
  }
  if (m.place && (m.took_ms || m.cost_usd)) {
    const s = f.spent.get(m.place) ?? { ms: 0, usd: 0 };
    f.spent.set(m.place, { ms: s.ms + (m.took_ms ?? 0), usd: s.usd + (m.cost_usd ?? 0) });
  }
  if (m.kind === "end") f.stopped = m.failed ?? [];
  if (m.kind === "claim") {
    f.stopped.forEach(start);
    f.stopped = [];
  }
  if (m.tasks && m.node && m.place) {
    const counts = { done: 0, all: m.tasks };
    f.frames.set(m.node, counts);
    f.items.set(m.place, counts);
  }
  if (m.kind === "step") {
    for (const from of m.from ?? []) {
      set(from, "done");
      node(from).visits++;
      for (const to of m.next ?? []) f.edges.add(from + "\n" + to);
    }
  }
  if (stepKinds.has(m.kind)) {
    for (const to of m.next ?? []) {
      if (m.tasks) set(to, "running"); // another item of it may have failed
      else start(to);
    }
  }
  if (!m.place) {
    if (m.kind === "end") endNodes(f.nodes, m.status ?? "");
    return;
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
      if (m.kind === "task" && inBranch.test(m.node ?? "")) {
        node(m.place).visits++;
        const counts = f.frames.get(m.node!.slice(0, m.node!.lastIndexOf("/")));
        if (counts && counts.done < counts.all) counts.done++;
      }
      if (m.kind === "task" || !isRunning(f.nodes, m.place)) set(m.place, "done");
      break;
    case "failure":
      set(m.place, "failed");
      break;
  }
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
