import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { get, post, remove, words } from "../api";
import { count, exact } from "../format";
import { isFinal } from "../live";
import { Dialog, Failure, useLoaded, useSettled } from "../parts/common";
import { RunTable } from "../parts/runs";
import { go, route, type RunFilter, runPath, runsPath } from "../router";
import { isShortcut } from "../target";
import type { AgentInfo, Page, RunInfo, RunPage } from "../types";

// failedStatuses are those of runs that have ended by a failure or a limit.
export const failedStatuses = "failed,step-limit,visit-limit,timed-out,stuck,cleaned-up,given-up";

const statuses: [string, string][] = [
  ["", "any status"],
  ["running,queued", "working"],
  ["waiting", "waits"],
  ["paused,crashed", "stopped"],
  ["done", "done"],
  [failedStatuses, "failed"],
  ["abandoned", "abandoned"],
];

const times: [string, string][] = [
  ["", "any time"],
  ["1h", "last hour"],
  ["24h", "last 24 hours"],
  ["7d", "last 7 days"],
  ["30d", "last 30 days"],
];

const ways: [string, string][] = [
  ["", "anything"],
  ["terminal", "the terminal"],
  ["api", "the API or this page"],
  ["trigger", "a trigger"],
  ["openai", "OpenAI"],
  ["mcp", "MCP"],
  ["a2a", "A2A"],
  ["agui", "AG-UI"],
  ["acp", "ACP"],
];

// queryOf returns the request for the runs of a filter.
function queryOf(f: RunFilter, after: string): string {
  const q = new URLSearchParams({ limit: "50" });
  const add = (name: string, value: string | undefined) => value && q.set(name, value);
  add("text", f.text);
  add("status", f.status);
  add("agent", f.agent);
  add("model", f.model);
  add("via", f.via);
  const [, n, unit] = /^(\d+)([hd])$/.exec(f.last ?? "") ?? [];
  if (n) q.set("since", new Date(Date.now() - Number(n) * (unit === "d" ? 24 : 1) * 3600_000).toISOString());
  if (Number(f.seconds) > 0) q.set("min_seconds", f.seconds!);
  if (Number(f.cost) > 0) q.set("min_cost_usd", f.cost!);
  add("cursor", after);
  return "runs?" + q.toString();
}

interface Action {
  name: string;
  verb: string;
  done: string;
  danger: boolean;
  warning: string;
  takes(r: RunInfo): boolean;
  run(r: RunInfo): Promise<unknown>;
}

const pathOf = (r: RunInfo) => "runs/" + encodeURIComponent(r.run);
const isWorking = (r: RunInfo) => r.status === "running" || r.status === "queued";

const actions: Action[] = [
  {
    name: "Resume",
    verb: "Resume",
    done: "resumed",
    danger: false,
    warning: "They continue where they stopped. What was recorded is not requested again.",
    takes: (r) => !isFinal(r.status) && !isWorking(r) && r.status !== "waiting",
    run: (r) => post(pathOf(r) + "/resume"),
  },
  {
    name: "Cancel",
    verb: "Cancel",
    done: "cancelled",
    danger: true,
    warning: "They end permanently. Their journals stay.",
    takes: (r) => !isFinal(r.status),
    run: (r) => post(pathOf(r) + "/cancel"),
  },
  {
    name: "Delete",
    verb: "Delete",
    done: "deleted",
    danger: true,
    warning: "Their journals are removed permanently, and nothing brings them back.",
    takes: (r) => !isWorking(r),
    run: (r) => remove(pathOf(r)),
  },
];

// Choice is a field that is a list of values. One of the address that is not in the list is shown, too.
function Choice({ label, value, list, onChange }: { label: string; value: string; list: [string, string][]; onChange(v: string): void }) {
  const shown = list.some(([v]) => v === value) ? list : [...list, [value, value] as [string, string]];
  return (
    <select aria-label={label} value={value} onChange={(e) => onChange(e.currentTarget.value)}>
      {shown.map(([v, name]) => (
        <option key={v} value={v}>
          {name}
        </option>
      ))}
    </select>
  );
}

// Filters shows which runs the list has, and changes it.
function Filters({ filter }: { filter: RunFilter }) {
  const agents = useLoaded((s) => get<Page<AgentInfo>>("agents?limit=200", s), []);
  const [text, setText] = useState(filter.text ?? "");
  const settled = useSettled(text, 250);
  const set = (change: RunFilter) => {
    const now = route.value.page === "runs" ? route.value.filter : filter;
    go(runsPath({ ...now, ...change }), true);
  };
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (settled === text && settled !== (filter.text ?? "")) set({ text: settled });
  }, [settled]);
  useEffect(() => {
    if (document.activeElement !== field.current) setText(filter.text ?? ""); // the way back has changed it
  }, [filter.text]);
  const names = agents.value?.items.map((a): [string, string] => [a.name, a.name]) ?? [];
  return (
    <form class="filters" role="search" aria-label="Filter runs" onSubmit={(e) => e.preventDefault()}>
      <input ref={field} id="run-text" type="search" aria-label="Text in prompt, title, output, question, reason or id" placeholder="Search: prompt, title, output, id" value={text} onInput={(e) => setText(e.currentTarget.value)} />
      <Choice label="Status" value={filter.status ?? ""} list={statuses} onChange={(status) => set({ status })} />
      <Choice label="Agent" value={filter.agent ?? ""} list={[["", "any agent"], ...names]} onChange={(agent) => set({ agent })} />
      <Choice label="Started" value={filter.last ?? ""} list={times} onChange={(last) => set({ last })} />
      <Choice label="Started by" value={filter.via ?? ""} list={ways.map(([v, n]) => [v, "by " + n])} onChange={(via) => set({ via })} />
      <label>
        worked at least
        <input type="number" min="0" step="any" value={filter.seconds ?? ""} onChange={(e) => set({ seconds: e.currentTarget.value })} /> s
      </label>
      <label>
        cost at least $<input type="number" min="0" step="any" value={filter.cost ?? ""} onChange={(e) => set({ cost: e.currentTarget.value })} />
      </label>
      {filter.model && (
        <span>
          model {filter.model}{" "}
          <button type="button" onClick={() => set({ model: "" })}>
            Any model
          </button>
        </span>
      )}
      {Object.keys(filter).length > 0 && (
        <button type="button" onClick={() => (setText(""), go("runs", true))}>
          Clear
        </button>
      )}
    </form>
  );
}

// Runs lists the runs of the store, newest first, and does things with several of them. Keys: j and k move, x selects, / searches.
export function Runs({ filter, after }: { filter: RunFilter; after: string }) {
  const key = JSON.stringify(filter) + after;
  const list = useLoaded((s) => get<RunPage>(queryOf(filter, after), s), [key], filter.text ? 5000 : 2000);
  const before = useRef<RunPage | undefined>(undefined);
  if (list.value) before.current = list.value;
  const page = list.value ?? before.current; // while another page is read, this one stays
  const runs = page?.items ?? [];
  const [chosen, setChosen] = useState(new Set<string>());
  const [asked, setAsked] = useState<Action>();
  const [report, setReport] = useState("");
  const [failures, setFailures] = useState<string[]>([]);
  useEffect(() => setChosen(new Set()), [key]);
  const selected = runs.filter((r) => chosen.has(r.run));
  const act = async (a: Action) => {
    const of = selected.filter(a.takes);
    const failed: string[] = [];
    for (const [i, r] of of.entries()) {
      setReport(`${a.name}: ${i + 1} of ${of.length} …`);
      try {
        await a.run(r);
      } catch (e) {
        failed.push(`${r.run}: ${words(e)}`);
      }
    }
    setReport(`${count(of.length - failed.length, "run")} ${a.done}`);
    setFailures(failed);
    setChosen(new Set());
    list.reload();
  };
  useLayoutEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (!isShortcut(e) && !(e.target instanceof HTMLInputElement && e.target.type === "checkbox")) return;
      if (document.querySelector("dialog[open]") || e.ctrlKey || e.metaKey || e.altKey) return;
      const links = [...document.querySelectorAll<HTMLAnchorElement>("table.runs td.what a")];
      const row = document.activeElement?.closest("tr");
      const at = links.findIndex((l) => l.closest("tr") === row);
      if (e.key === "j") links[Math.min(links.length - 1, at + 1)]?.focus();
      else if (e.key === "k") links[Math.max(0, at - 1)]?.focus();
      else if (e.key === "x" && row) row.querySelector<HTMLInputElement>("input[type=checkbox]")?.click();
      else if (e.key === "/") document.getElementById("run-text")?.focus();
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const filtered = Object.keys(filter).length > 0;
  const [earlier, later] = selected.map((r) => r.run).sort(); // ids begin with the time of the start
  return (
    <main id="main" class="wide">
      <div class="bar">
        <h1>Runs</h1>
        <span class="dim">newest first</span>
      </div>
      <Filters filter={filter} />
      <div class="selection" role="group" aria-label="Selected runs">
        <span role="status">{report || (selected.length > 0 ? `${selected.length} selected` : list.value ? "" : "Searching …")}</span>
        {selected.length === 2 && (
          <a class="button" href={runPath(later!, null, null, "", earlier)}>
            Compare
          </a>
        )}
        {selected.length > 0 &&
          actions.map((a) => (
            <button key={a.name} type="button" disabled={!selected.some(a.takes)} onClick={() => (setReport(""), setFailures([]), setAsked(a))}>
              {a.name} {selected.filter(a.takes).length}
            </button>
          ))}
      </div>
      {failures.map((f) => (
        <Failure key={f} text={f} />
      ))}
      <Failure text={list.error} />
      <div class={list.value ? "" : "stale"} aria-busy={!list.value}>
        {page && (runs.length > 0 || !page.reached) && (
          <RunTable
            runs={runs}
            empty={filtered ? "No run is like this." : "Nothing has run yet. Start an agent on Home, or with: raddle run AGENT"}
            chosen={{
              has: (run) => chosen.has(run),
              set: (run, on) => {
                setReport("");
                setChosen((old) => {
                  const next = new Set(old);
                  if (on) next.add(run);
                  else next.delete(run);
                  return next;
                });
              },
            }}
          />
        )}
      </div>
      {page?.reached && <p class="empty">Looked back to {exact(page.reached)}{runs.length === 0 ? " and found no run like this" : ""}.</p>}
      <div class="pages">
        {after && <a href={runsPath(filter)}>Newest</a>}
        {page?.next_cursor && <a href={runsPath(filter, page.next_cursor)}>{page.reached ? "Look further back" : "Older runs"}</a>}
      </div>
      {asked && (
        <Dialog title={`${asked.verb} ${count(selected.filter(asked.takes).length, "run")}?`} onClose={() => setAsked(undefined)}>
          <p>{asked.warning}</p>
          <div class="buttons">
            <button type="button" autofocus onClick={() => setAsked(undefined)}>
              Leave them
            </button>
            <button
              type="button"
              class={asked.danger ? "danger" : "primary"}
              onClick={() => {
                setAsked(undefined);
                void act(asked);
              }}
            >
              {asked.verb} {count(selected.filter(asked.takes).length, "run")}
            </button>
          </div>
        </Dialog>
      )}
    </main>
  );
}
