// What a run did in a picture in which one node is drawn for several.
import type { Items, Look, NodeLook, Spent } from "./model";

// A Crowd knows which nodes a picture shows, and the nodes that each of them is drawn for.
export class Crowd {
  private readonly shown = new Map<string, string>(); // by the place of a node that is not drawn

  constructor(readonly members: Map<string, string[]>) {
    for (const [place, list] of members) for (const m of list) this.shown.set(m, place);
  }

  // isInside reports whether the members of a node are inside of it: those of others are alike.
  isInside(place: string): boolean {
    return this.members.get(place)?.[0]?.startsWith(place + "/") ?? false;
  }

  // find returns the node that is drawn for a place.
  find(place: string): string {
    for (let at = place; at !== ""; at = at.slice(0, Math.max(0, at.lastIndexOf("/")))) {
      const shown = this.shown.get(at);
      if (shown !== undefined) return shown;
    }
    return place;
  }

  // fold returns a look by the nodes that are drawn.
  fold(look: Look): Look {
    if (this.members.size === 0) return look;
    const nodes = new Map<string, NodeLook>();
    const items = new Map<string, Items>();
    const spent = new Map<string, Spent>();
    for (const [place, n] of look.nodes) if (this.find(place) === place) nodes.set(place, n);
    for (const [place, n] of look.items) if (this.find(place) === place) items.set(place, n);
    for (const [place, s] of look.spent) {
      const at = this.find(place);
      const sum = spent.get(at) ?? { ms: 0, usd: 0 };
      spent.set(at, { ms: sum.ms + s.ms, usd: sum.usd + s.usd });
    }
    for (const [place, list] of this.members) {
      const there = list.map((m) => look.nodes.get(m)).filter((n) => n !== undefined);
      if (there.length === 0) continue;
      const fails = there.reduce((sum, n) => sum + n.fails, 0);
      const own = nodes.get(place);
      if (this.isInside(place)) {
        if (own) nodes.set(place, { ...own, fails: own.fails + fails });
        continue;
      }
      const has = (status: string) => there.some((n) => n.status === status);
      const status = has("failed") ? "failed" : has("waiting") ? "waiting" : has("running") ? "running" : "done";
      nodes.set(place, { status, visits: Math.max(...there.map((n) => n.visits)), fails, stuck: false });
      items.set(place, { done: there.filter((n) => n.status === "done").length, all: list.length });
    }
    const edges = new Set<string>();
    for (const edge of look.edges) {
      edges.add(
        edge
          .split("\n")
          .map((place) => this.find(place))
          .join("\n"),
      );
    }
    return { nodes, items, edges, spent };
  }
}

// sumInside returns what was spent in a node and in what is inside of it.
export function sumInside(look: Look, place: string): Spent {
  const sum = { ms: 0, usd: 0 };
  for (const [at, s] of look.spent) {
    if (at !== place && !at.startsWith(place + "/")) continue;
    sum.ms += s.ms;
    sum.usd += s.usd;
  }
  return sum;
}
