import { useEffect, useRef, useState } from "preact/hooks";
import { duration, exact, since, visible } from "../format";
import { indexAt } from "../model";
import type { Moment } from "../types";
import { useView } from "./common";

const rowHeight = 26;
const spare = 8;

const marks: Record<string, string> = { reply: "✎", call: "⚒", search: "⌕", script: "▸", question: "◆", answer: "◇", start: "▶", claim: "▶", step: "→", end: "■", failure: "✕", edit: "✍", fork: "⑂" };

const mostZoom = 4096;

// A Span is the part of a run's time that the lanes of the rows show, in ms.
interface Span {
  from: number;
  length: number;
}

// spanAt returns the span of a zoom, with a time in its middle if the run is that long.
function spanAt(start: number, end: number, zoom: number, at: number): Span {
  const length = Math.max(1, end - start) / zoom;
  return { from: Math.min(Math.max(start, at - length / 2), Math.max(start, end - length)), length };
}

// Lane shows when a moment was, and how long it took, within a span.
function Lane({ m, span }: { m: Moment; span: Span }) {
  const end = Date.parse(m.time);
  const clamp = (x: number) => Math.min(100, Math.max(0, x));
  const left = clamp(((end - (m.took_ms ?? 0) - span.from) / span.length) * 100);
  const right = clamp(((end - span.from) / span.length) * 100);
  const outside = end < span.from || end - (m.took_ms ?? 0) > span.from + span.length;
  return (
    <span class="lane" aria-hidden="true">
      {!outside && (
        <span
          class="bar-time"
          ref={(s) => {
            s?.style.setProperty("left", `min(${left}%, 100% - 2px)`); // the end of the run is visible, too
            s?.style.setProperty("width", right - left + "%");
          }}
        />
      )}
    </span>
  );
}

// Timeline lists the moments of a run. Only the rows in view are in the page, however many there are.
export function Timeline({ mark, moments, at, sel, onMove }: { mark: string; moments: Moment[]; at: number | null; sel: number | null; onMove(record: number): void }) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useView(box, 600);
  const here = indexAt(moments, at);
  const chosen = sel === null ? here : indexAt(moments, sel);
  useEffect(() => {
    const b = box.current;
    if (!b) return;
    const top = chosen * rowHeight;
    if (top < b.scrollTop) b.scrollTop = top;
    else if (top + rowHeight > b.scrollTop + b.clientHeight) b.scrollTop = top + rowHeight - b.clientHeight;
  }, [chosen, moments.length, view.height]);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - spare);
  const last = Math.min(moments.length, Math.ceil((view.top + view.height) / rowHeight) + spare);
  const start = moments[0] ? Date.parse(moments[0].time) : 0;
  const end = moments.length > 0 ? Date.parse(moments[moments.length - 1]!.time) : 0;
  const [zoom, setZoom] = useState(1);
  const span = spanAt(start, end, zoom, moments[chosen] ? Date.parse(moments[chosen].time) : start);
  const move = (i: number) => {
    const m = moments[Math.min(moments.length - 1, Math.max(0, i))];
    if (m) onMove(m.record);
  };
  return (
    <>
      <div class="zoom" role="group" aria-label="Zoom of the timeline">
        <output>
          {since(span.from - start)} to {since(span.from - start + span.length)}
        </output>
        <button type="button" aria-label="Zoom out" disabled={zoom === 1} onClick={() => setZoom(zoom / 2)}>
          −
        </button>
        <button type="button" aria-label="Zoom in" disabled={zoom >= mostZoom || span.length <= 1} onClick={() => setZoom(zoom * 2)}>
          +
        </button>
      </div>
      <div
        class="timeline"
        ref={box}
        role="listbox"
        tabIndex={0}
        aria-label="What happened"
        aria-activedescendant={moments[chosen] && chosen >= first && chosen < last ? mark + "moment-" + moments[chosen].record : undefined}
        onScroll={(e) => setView({ top: e.currentTarget.scrollTop, height: e.currentTarget.clientHeight })}
        onKeyDown={(e) => {
          const step: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -moments.length, End: moments.length };
          const by = step[e.key];
          if (by !== undefined) {
            e.preventDefault();
            move(chosen + by);
          }
        }}
      >
        <div class="rows" ref={(d) => d?.style.setProperty("height", moments.length * rowHeight + "px")}>
          {moments.slice(first, last).map((m, i) => (
            <div
              key={m.record}
              id={mark + "moment-" + m.record}
              role="option"
              aria-selected={first + i === chosen}
              class={"row kind-" + (m.effect ?? m.kind) + (m.status === "failed" ? " failed" : "") + (first + i > here ? " later" : "")}
              ref={(d) => d?.style.setProperty("top", (first + i) * rowHeight + "px")}
              title={exact(m.time)}
              onClick={() => onMove(m.record)}
            >
              <span class="mark" aria-hidden="true">
                {m.status === "failed" ? "✕" : (marks[m.effect ?? ""] ?? marks[m.kind] ?? "·")}
              </span>
              <span class="words">{visible(m.text)}</span>
              <span class="took">{m.took_ms ? duration(m.took_ms) : ""}</span>
              <span class="offset">{since(Date.parse(m.time) - start)}</span>
              <Lane m={m} span={span} />
            </div>
          ))}
        </div>
      </div>
    </>
  );
}
