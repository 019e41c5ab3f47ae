import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { count, duration, since, visible } from "../format";
import { Axis, type Bar, type Row, rowsOf } from "../lanes";
import type { Chart, Moment, Span } from "../types";
import { Failure, useLoaded, useSettled, useView } from "./common";

const rowHeight = 24;
const spare = 8;
const mostZoom = 4096;

// describe says what a span is, for people.
function describe(path: string, s: Span): string {
  const parts = [
    `${path || "the run"}: ${[s.what, s.name].filter(Boolean).join(" ")}`,
    s.untimed ? "time not recorded" : duration(s.end_ms - s.start_ms) + (s.open ? " so far" : ""),
    `from ${since(s.start_ms)}`,
    s.first_ms ? `first part after ${duration(s.first_ms)}` : "",
    s.retries ? `tried again ${count(s.retries, "time")}${s.retry_ms ? ` after waits of ${duration(s.retry_ms)}` : ""}` : "",
    s.failed ? "failed" : "",
    s.critical ? "on the critical path" : "",
  ];
  return parts.filter(Boolean).join(", ");
}

// tellRow says what is in a row, for those who do not see it.
function tellRow(r: Row): string {
  const spans = r.bars.slice(0, 3).map((b) => [b.span.what, b.span.name, duration(b.span.end_ms - b.span.start_ms), b.span.failed ? "failed" : ""].filter(Boolean).join(" "));
  return [r.level > 0 ? r.path : "", ...spans, r.bars.length > 3 ? `and ${r.bars.length - 3} more` : ""].filter(Boolean).join(", ");
}

// place sets where an element is in its lane, in parts of its width.
const place = (left: number, width: number) => (e: HTMLElement | null) => {
  e?.style.setProperty("left", left * 100 + "%");
  e?.style.setProperty("width", width * 100 + "%");
};

// SpanBar draws a span. Narrow ones have no text.
function SpanBar({ bar, chosen, onChoose }: { bar: Bar; chosen: boolean; onChoose(s: Span): void }) {
  const s = bar.span;
  const length = s.end_ms - s.start_ms;
  const classes = ["span", "span-" + s.what, s.failed ? "failed" : "", s.critical ? "critical" : "", s.open ? "open" : "", chosen ? "chosen" : ""];
  return (
    <span class={classes.filter(Boolean).join(" ")} ref={place(bar.left, bar.width)} title={describe(bar.path, s)} onClick={() => onChoose(s)}>
      {!!s.retry_ms && length > 0 && <span class="waited" ref={place(0, Math.min(1, s.retry_ms / length))} />}
      {bar.width > 0.06 && <span class="label">{(s.failed ? "✕ " : "") + visible(s.name || s.what)}</span>}
    </span>
  );
}

// Waterfall draws when the parts of a run worked. Choosing a span moves the playhead to the moment of its record. Only the rows in view are in the page.
export function Waterfall({ run, moments, at, onMove }: { run: string; moments: Moment[]; at: number | null; onMove(record: number): void }) {
  const newest = useSettled(moments.at(-1)?.record ?? 0, 300);
  const loaded = useLoaded((s) => get<Chart>(`runs/${encodeURIComponent(run)}/waterfall`, s), [run, newest]);
  const kept = useRef<Chart | undefined>(undefined);
  if (loaded.value) kept.current = loaded.value;
  const chart = kept.current;
  const [text, setText] = useState("");
  const [only, setOnly] = useState("");
  const [closed, setClosed] = useState(new Set<string>());
  const [window_, setWindow] = useState({ from: 0, length: 1 });
  const [chosen, setChosen] = useState<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useView(box, 400, !!chart);
  const axis = useMemo(() => (chart ? new Axis(chart, window_.from, window_.length) : undefined), [chart, window_]);
  const rows = useMemo(() => (chart && axis ? rowsOf(chart, axis, { text, failed: only === "failed", critical: only === "critical", closed }) : []), [chart, axis, text, only, closed]);
  const row = rows.findIndex((r) => r.bars.some((b) => b.span.record === chosen));
  useEffect(() => {
    const b = box.current;
    if (!b || row < 0) return;
    if (row * rowHeight < b.scrollTop) b.scrollTop = row * rowHeight;
    else if ((row + 1) * rowHeight > b.scrollTop + b.clientHeight) b.scrollTop = (row + 1) * rowHeight - b.clientHeight;
  }, [chosen, row]);
  if (!chart || !axis) return loaded.error ? <Failure text={loaded.error} /> : <p class="empty">Loading when the parts of the run worked …</p>;
  const choose = (s: Span | undefined) => {
    if (!s) return;
    setChosen(s.record);
    onMove(s.record);
  };
  const chosenBar = rows[row]?.bars.find((b) => b.span.record === chosen);
  const zoomTo = (s: Span) => setWindow(axis.windowOf(s.start_ms, s.end_ms));
  const zoom = (by: number) =>
    setWindow((w) => {
      const length = Math.min(1, Math.max(1 / mostZoom, w.length / by));
      const middle = chosenBar ? axis.place((chosenBar.span.start_ms + chosenBar.span.end_ms) / 2) : w.from + w.length / 2;
      return { from: Math.min(1 - length, Math.max(0, middle - length / 2)), length };
    });
  const toggle = (path: string) =>
    setClosed((old) => {
      const next = new Set(old);
      if (!next.delete(path)) next.add(path);
      return next;
    });
  const onKey = (e: KeyboardEvent) => {
    const step = (r: Row | undefined) => choose(r?.bars[0]?.span);
    const beside = (by: number) => {
      const bars = rows[row]?.bars ?? [];
      choose(bars[bars.findIndex((b) => b.span.record === chosen) + by]?.span);
    };
    const next = (from: number, by: number) => {
      let i = from + by;
      while (rows[i] && rows[i]!.bars.length === 0) i += by;
      step(rows[i]);
    };
    if (e.key === "ArrowDown") next(row, 1);
    else if (e.key === "ArrowUp") next(row < 0 ? rows.length : row, -1);
    else if (e.key === "ArrowRight") beside(1);
    else if (e.key === "ArrowLeft") beside(-1);
    else if (e.key === "Enter" && chosenBar) zoomTo(chosenBar.span);
    else if (e.key === " " && rows[row]) toggle(rows[row]!.above || rows[row]!.path);
    else if (e.key === "+") zoom(2);
    else if (e.key === "-") zoom(0.5);
    else if (e.key === "0") setWindow({ from: 0, length: 1 });
    else return;
    e.preventDefault();
  };
  const here = at === null ? undefined : moments.find((m) => m.record === at);
  const playhead = here ? axis.x(Date.parse(here.time) - Date.parse(chart.start)) : -1;
  const first = Math.max(0, Math.floor(view.top / rowHeight) - spare);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / rowHeight) + spare);
  return (
    <div class="waterfall">
      <p class="critical-path">
        {chart.critical ? (
          <>
            <strong>Critical path:</strong> {visible(chart.critical)}
          </>
        ) : (
          "Nothing is known that took long."
        )}
      </p>
      {chart.untimed > 0 && <p class="dim">An earlier version has recorded {count(chart.untimed, "effect")} without the time: they are marks where they ended, and in no critical path.</p>}
      <div class="zoom">
        <input type="search" aria-label="Find a node, model or tool" placeholder="Node, model, tool" value={text} onInput={(e) => setText(e.currentTarget.value)} />
        <select aria-label="Which spans" value={only} onChange={(e) => setOnly(e.currentTarget.value)}>
          <option value="">all</option>
          <option value="failed">failed only</option>
          <option value="critical">critical path only</option>
        </select>
        <output>
          {since(axis.timeAt(0))} to {since(axis.timeAt(1))}
        </output>
        <button type="button" aria-label="Zoom out of the waterfall" disabled={window_.length === 1} onClick={() => zoom(0.5)}>
          −
        </button>
        <button type="button" aria-label="Zoom into the waterfall" disabled={window_.length <= 1 / mostZoom} onClick={() => zoom(2)}>
          +
        </button>
        <button type="button" disabled={!chosenBar} onClick={() => chosenBar && zoomTo(chosenBar.span)}>
          Zoom to it
        </button>
        <button type="button" disabled={window_.length === 1} onClick={() => setWindow({ from: 0, length: 1 })}>
          All
        </button>
      </div>
      <div
        class="lanes"
        ref={box}
        role="listbox"
        tabIndex={0}
        aria-label="When the parts worked"
        aria-activedescendant={row >= first && row < last ? "lane-" + row : undefined}
        onScroll={(e) => setView({ top: e.currentTarget.scrollTop, height: e.currentTarget.clientHeight })}
        onKeyDown={onKey}
      >
        <div class="rows" ref={(d) => d?.style.setProperty("height", rows.length * rowHeight + "px")}>
          {rows.slice(first, last).map((r, i) => (
            <div
              key={r.path + " " + r.level}
              id={"lane-" + (first + i)}
              role="option"
              aria-selected={first + i === row}
              class="lane-row"
              ref={(d) => d?.style.setProperty("top", (first + i) * rowHeight + "px")}
            >
              <span class={"name depth-" + Math.min(r.depth, 5)} title={r.path} onClick={() => r.children > 0 && toggle(r.path)}>
                {r.level === 0 && (
                  <>
                    <span class="fold-mark" aria-hidden="true">
                      {r.children > 0 ? (r.closed ? "▸" : "▾") : ""}
                    </span>
                    {visible(r.name)}
                    {r.closed && <span class="dim"> {r.children} in it</span>}
                  </>
                )}
              </span>
              <span class="unseen">{tellRow(r)}</span>
              <span class="track" aria-hidden="true">
                {axis.folds.map((f) => (
                  <span key={f.left} class="fold" ref={place(f.left, f.width)} title={f.title} />
                ))}
                {r.around && <span class="around" ref={place(r.around.left, r.around.width)} />}
                {r.bars.map((b) => (
                  <SpanBar key={b.span.record + b.span.what} bar={b} chosen={b.span.record === chosen} onChoose={choose} />
                ))}
                {playhead >= 0 && playhead <= 1 && <span class="playhead" ref={(e) => e?.style.setProperty("left", playhead * 100 + "%")} />}
              </span>
            </div>
          ))}
        </div>
      </div>
      {rows.length === 0 && <p class="empty">{chart.lanes.length === 0 ? "Nothing has worked yet." : "No span is like this."}</p>}
      <p class="dim told" role="status">
        {chosenBar
          ? describe(chosenBar.path, chosenBar.span)
          : [
              `${count(chart.lanes.length, "lane")}, worked ${duration(chart.worked_ms)}`,
              chart.folds.length > 0 ? `${duration(chart.total_ms - chart.worked_ms)} without work ${chart.folds.length === 1 ? "is" : "are"} folded` : "",
            ]
              .filter(Boolean)
              .join("; ")}
      </p>
    </div>
  );
}
