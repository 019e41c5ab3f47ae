import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { cost, duration, short, visible } from "../format";
import type { Look } from "../model";
import { Failure, useLoaded } from "../parts/common";
import { Json } from "../parts/json";
import { Picture } from "../parts/picture";
import { Status } from "../parts/status";
import { go, route, runPath } from "../router";
import { isShortcut } from "../target";
import type { Comparison, Difference, Moments, NodeWork, Work } from "../types";
import { type Place, Run } from "./run";

// RunPage shows a run at the moment of the address, and next to it another run, if the address says so: the one that it was forked from, or one to compare with.
export function RunPage({ beside, view, ...place }: Place & { beside: string; view: string }) {
  const show = (v: string) => go(runPath(place.run, place.at, place.sel, place.tab, "", v), true);
  if (beside) return <Pair {...place} beside={beside} />;
  return <Run {...place} view={view} onView={show} onGo={(at, sel, tab) => go(runPath(place.run, at, sel, tab, "", view), true)} />;
}

// twin returns the record of one run that belongs to a record of the other: that of the last pair which is not after it.
function twin(pairs: [number, number][], record: number): number | null {
  let found: number | null = null;
  for (const [from, to] of pairs) {
    if (from > record) break;
    found = to;
  }
  return found;
}

// Pair compares two runs, A and B, and shows both. Their playheads move together, as far as their records are about the same.
function Pair({ beside, ...place }: Place & { beside: string }) {
  const [first = "", start] = beside.split("@");
  const [other, setOther] = useState<Place>({ run: first, at: start ? Number(start) : null, sel: null, tab: "state" });
  const [together, setTogether] = useState(true);
  const [looks, setLooks] = useState<{ a?: Look; b?: Look }>({});
  const ends = useRef({ a: 0, b: 0 });
  const { value: c, error, reload } = useLoaded((s) => get<Comparison>(`runs/${encodeURIComponent(first)}/comparison?with=${encodeURIComponent(place.run)}`, s), [first, place.run]);
  const pairs = useMemo(() => ({ a: (c?.pairs ?? []).map((p) => [p.a, p.b] as [number, number]), b: (c?.pairs ?? []).map((p) => [p.b, p.a] as [number, number]) }), [c]);
  useEffect(() => setOther({ run: first, at: start ? Number(start) : null, sel: null, tab: "state" }), [beside]);
  const moveB = (at: number | null, sel: number | null, tab: string) => {
    go(runPath(place.run, at, sel, tab, beside), true);
    if (together && at !== place.at) setOther((o) => ({ ...o, at: at === null ? null : (twin(pairs.b, at) ?? o.at), sel: null }));
  };
  const moveA = (at: number | null, sel: number | null, tab: string) => {
    if (together && at !== other.at) {
      const to = at === null ? null : (twin(pairs.a, at) ?? place.at);
      if (to !== place.at) go(runPath(place.run, to, null, place.tab, beside), true);
    }
    setOther((o) => ({ ...o, at, sel, tab }));
  };
  const goBoth = (a: number | undefined, b: number | undefined) => {
    const toA = a ?? (b ? twin(pairs.b, b) : null);
    const toB = b ?? (a ? twin(pairs.a, a) : null);
    setOther((o) => ({ ...o, at: toA ?? o.at, sel: null, tab: "moment" }));
    go(runPath(place.run, toB ?? place.at, null, "moment", beside), true);
  };
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (!isShortcut(e) || document.querySelector("dialog[open]") || (e.key !== "[" && e.key !== "]")) return;
      // Keys may come faster than the page is drawn: the address says where the playhead is.
      const at = (route.value.page === "run" ? route.value.at : place.at) ?? ends.current.b;
      const list = pairs.b.map(([b]) => b);
      const to = e.key === "[" ? list.filter((r) => r < at).at(-1) : list.find((r) => r > at);
      if (to !== undefined) moveB(to, null, place.tab);
      e.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  const onLook = (side: "a" | "b") => (look: Look, newest: number) => {
    if (ends.current[side] > 0 && ends.current[side] !== newest) reload(); // the run has continued
    ends.current[side] = newest;
    setLooks((old) => (old[side] === look ? old : { ...old, [side]: look }));
  };
  return (
    <main id="main" class="compare">
      <Summary a={first} b={place.run} isFork={start !== undefined} comparison={c} error={error} looks={looks} onGo={goBoth} together={together} onTogether={setTogether} />
      <div class="pair">
        <Run {...other} aside="A" onGo={moveA} onLook={onLook("a")} />
        <Run {...place} aside="B" onGo={moveB} onLook={onLook("b")} />
      </div>
    </main>
  );
}

// columns are what the table says of a node in each run. One that is empty for all nodes is not there.
const columns: [name: string, of: (w: Work) => string][] = [
  ["Time", (w) => (w.took_ms > 0 ? duration(w.took_ms) : "")],
  ["Cost", (w) => (w.cost_usd > 0 ? cost(w.cost_usd) : "")],
  ["Ran", (w) => [w.visits ? `${w.visits}×` : "", w.failed ? `${w.failed} failed` : "", w.retries ? `${w.retries} again` : ""].filter(Boolean).join(", ")],
  ["Tokens", (w) => (w.tokens ? short(w.tokens) : "")],
];

interface SummaryProps {
  a: string;
  b: string;
  isFork: boolean; // which a person looks at first, and then at what differs
  comparison: Comparison | undefined;
  error: string;
  looks: { a?: Look; b?: Look };
  onGo(a: number | undefined, b: number | undefined): void;
  together: boolean;
  onTogether(on: boolean): void;
}

// Summary says how two runs differ.
function Summary({ a, b, isFork, comparison: c, error, looks, onGo, together, onTogether }: SummaryProps) {
  const [isOpen, setOpen] = useState(!isFork);
  return (
    <header class="comparison">
      <div class="bar">
        <h1>A and B</h1>
        <dl class="sides">
          {c &&
            [c.a, c.b].map((side, i) => (
              <>
                <dt>{"AB"[i]}</dt>
                <dd>
                  <a href={runPath(side.run)}>{side.agent}</a> <code>{side.run}</code> <Status status={side.status} /> {duration(side.worked_ms)}
                  {side.calls > 0 && `, ${cost(side.cost_usd)}, ${short(side.tokens)} tokens`}
                </dd>
              </>
            ))}
        </dl>
      </div>
      <Failure text={error} />
      {!c && !error && <p class="empty">Comparing …</p>}
      {c && (
        <>
          <p class="told">{visible(c.text[0]!.toUpperCase() + c.text.slice(1))}.</p>
          <div class="bar">
            {c.first ? (
              <span>
                First difference: {visible(c.first.text)}.{" "}
                <button type="button" onClick={() => onGo(c.first?.a, c.first?.b)}>
                  Go there
                </button>
              </span>
            ) : (
              <span class="dim">All that both have recorded is the same.</span>
            )}
            <button type="button" aria-pressed={together} onClick={() => onTogether(!together)}>
              Move both playheads
            </button>
          </div>
          <details class="both" open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
            <summary>Picture and nodes of both</summary>
            {isOpen && (
              <div class="overlaid">
                <section class="panel" aria-label="Picture of both">
                  <Overlay run={b} looks={looks} />
                </section>
                <section class="panel" aria-label="Nodes of both" tabIndex={0}>
                  <NodeTable nodes={c.nodes} onGo={onGo} />
                  <States a={a} b={b} />
                </section>
              </div>
            )}
          </details>
        </>
      )}
    </header>
  );
}

// NodeTable says what each node did in both runs.
function NodeTable({ nodes, onGo }: { nodes: NodeWork[]; onGo(a: number | undefined, b: number | undefined): void }) {
  const shown = columns.filter(([, of]) => nodes.some((n) => of(n.a) || of(n.b)));
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Node</th>
          {shown.map(([name]) => (
            <>
              <th scope="col" class="number">
                {name} A
              </th>
              <th scope="col" class="number">
                B
              </th>
            </>
          ))}
        </tr>
      </thead>
      <tbody>
        {nodes.map((n) => (
          <tr key={n.node} class={differs(n.a, n.b) ? "differs" : ""}>
            <th scope="row">
              <button type="button" class="plain" onClick={() => onGo(n.a.record, n.b.record)}>
                {visible(n.node || "the agent")}
              </button>
            </th>
            {shown.map(([, of]) =>
              [n.a, n.b].map((w) => <td class="number">{w.record ? of(w) : "–"}</td>),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// isFar reports whether two numbers differ by more than a fifth of the greater one.
const isFar = (x: number, y: number) => Math.abs(x - y) > 0.2 * Math.max(x, y);

// isSlower reports whether people notice that two times, in milliseconds, differ.
const isSlower = (x: number, y: number) => isFar(x, y) && Math.abs(x - y) > 50;

// differs reports whether a node did something else, or took or cost noticeably more or less.
function differs(a: Work, b: Work): boolean {
  return a.visits !== b.visits || a.failed !== b.failed || a.retries !== b.retries || isFar(a.cost_usd, b.cost_usd) || isSlower(a.took_ms, b.took_ms);
}

// Overlay shows what both runs did, in the picture of the second.
function Overlay({ run, looks: { a, b } }: { run: string; looks: { a?: Look; b?: Look } }) {
  const both = useMemo(() => {
    if (!a || !b) return undefined;
    const notes = new Map<string, string>();
    const nodes = new Map([...a.nodes, ...b.nodes]);
    for (const place of nodes.keys()) {
      const [inA, inB] = [a.nodes.has(place), b.nodes.has(place)];
      const [x, y] = [a.spent.get(place)?.ms ?? 0, b.spent.get(place)?.ms ?? 0];
      if (inA !== inB) notes.set(place, inA ? "only A" : "only B");
      else if (isSlower(x, y)) notes.set(place, `${duration(x)} → ${duration(y)}`);
    }
    const look: Look = { nodes, edges: new Set([...a.edges, ...b.edges]), items: b.items, spent: b.spent };
    return { look, notes };
  }, [a, b]);
  return <Picture path={`runs/${encodeURIComponent(run)}/picture.svg?plain=true`} title="Graph of both runs" {...(both ? { look: both.look, notes: both.notes } : {})} />;
}

// States shows in which keys the final states differ, when it is opened.
function States({ a, b }: { a: string; b: string }) {
  const [open, setOpen] = useState(false);
  const ends = useLoaded(
    async (s) => {
      if (!open) return undefined;
      const line = await get<Moments>(`runs/${encodeURIComponent(a)}/timeline`, s);
      const last = line.items.at(-1)?.record ?? 1;
      return get<Difference>(`runs/${encodeURIComponent(a)}/diff?a=${last}&b=${encodeURIComponent(b)}`, s);
    },
    [a, b, open],
  );
  return (
    <details onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>States at the end</summary>
      <Failure text={ends.error} />
      {ends.value?.changes.length === 0 && <p class="empty">They are the same.</p>}
      <ul class="keys">
        {ends.value?.changes.map((d) => (
          <li key={`${d.path ?? ""} ${d.key}`}>
            <span class="json-key">{visible([d.path, d.key].filter(Boolean).join("/"))}</span>
            <div class="sides">
              <span>A</span> {d.was === undefined ? <span class="dim">none</span> : <Json value={d.was} depth={1} />}
              <span>B</span> {d.is === undefined ? <span class="dim">none</span> : <Json value={d.is} depth={1} />}
            </div>
          </li>
        ))}
      </ul>
    </details>
  );
}
