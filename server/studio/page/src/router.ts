// Which page is shown, and what of it: everything that a person can look at has an address.
import { signal } from "@preact/signals";
import { share } from "./share";
import { targetOf } from "./target";

export type Route =
  | { page: "home" }
  | { page: "inbox" }
  | { page: "runs"; filter: RunFilter; after: string }
  | { page: "agent"; agent: string }
  | { page: "run"; run: string; at: number | null; sel: number | null; tab: string; beside: string; view: string }
  | { page: "chat"; agent: string; session: string }
  | { page: "unknown" };

// RunFilter is which runs a list has, as the address says it: "" or no field means any. last is a time back from now, such as 24h or 7d.
export type RunFilter = Partial<Record<(typeof filterNames)[number], string>>;

export const filterNames = ["text", "status", "agent", "model", "via", "last", "seconds", "cost"] as const;

const base = new URL(document.baseURI).pathname;

export function parse(url: URL): Route {
  if (share) {
    const [place = "", query = ""] = url.hash.slice(1).split("?");
    return readPlace(share.run, place.replace("@", ""), new URLSearchParams(query));
  }
  const parts = url.pathname.slice(base.length).split("/").filter(Boolean).map(decodeURIComponent);
  const [first, second, third] = parts;
  if (first === undefined) return { page: "home" };
  if (first === "inbox") return { page: "inbox" };
  if (first === "runs" && !second) {
    const filter: RunFilter = {};
    for (const name of filterNames) {
      const value = url.searchParams.get(name);
      if (value) filter[name] = value;
    }
    return { page: "runs", filter, after: url.searchParams.get("after") ?? "" };
  }
  if (first === "agents" && second) return { page: "agent", agent: second };
  if (first === "runs" && second) {
    const [both = "", at] = second.split("@");
    const [first = "", other] = both.split("...");
    if (other) url.searchParams.set("beside", first);
    return readPlace(other || first, at, url.searchParams);
  }
  if (first === "chat" && second) return { page: "chat", agent: second, session: third ?? "" };
  return { page: "unknown" };
}

function readPlace(run: string, at: string | undefined, query: URLSearchParams): Route {
  const number = (text: string | null | undefined) => (text && /^\d+$/.test(text) ? Number(text) : null);
  return { page: "run", run, at: number(at), sel: number(query.get("record")), tab: query.get("show") ?? "moment", beside: share ? "" : (query.get("beside") ?? ""), view: query.get("view") ?? "" };
}

export const route = signal<Route>(parse(new URL(location.href)));

addEventListener("popstate", () => {
  route.value = parse(new URL(location.href));
});

// go shows another address. With replace, the way back does not stop here.
export function go(path: string, replace = false): void {
  const url = new URL(path, document.baseURI);
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  route.value = parse(url);
}

// runPath returns the address of a moment of a run, next to another one, or a moment RUN@N of it, if that is given. view is waterfall, or "" for rows.
export function runPath(run: string, at?: number | null, sel?: number | null, tab?: string, beside?: string, view?: string): string {
  const query = new URLSearchParams();
  if (sel) query.set("record", String(sel));
  if (tab && tab !== "moment") query.set("show", tab);
  const isPoint = beside?.includes("@");
  if (beside && isPoint) query.set("beside", beside);
  if (view) query.set("view", view);
  const text = query.toString();
  if (share) return `#${at ? "@" + at : ""}${text ? "?" + text : ""}`;
  const first = beside && !isPoint ? encodeURIComponent(beside) + "..." : "";
  return `runs/${first}${encodeURIComponent(run)}${at ? "@" + at : ""}${text ? "?" + text : ""}`;
}

// runsPath returns the address of the list of runs that a filter selects, from a cursor on.
export function runsPath(filter: RunFilter, after = ""): string {
  const query = new URLSearchParams();
  for (const name of filterNames) if (filter[name]) query.set(name, filter[name]);
  if (after) query.set("after", after);
  const text = query.toString();
  return "runs" + (text ? "?" + text : "");
}

// followLink shows the address of a link in the page, unless the person wants it elsewhere.
export function followLink(e: MouseEvent): void {
  const link = targetOf(e)?.closest("a");
  if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  if (link.origin !== location.origin || link.target || link.hasAttribute("download") || link.pathname.includes("/api/")) return;
  e.preventDefault();
  go(link.href);
}
