// The geometry of a waterfall: times as places on an axis whose idle times are folded, and spans packed into rows.
import { duration } from "./format";
import type { Chart, Span } from "./types";

// foldShare is the part of the axis that a folded time has, and mostFolded that of all of them.
const foldShare = 0.03;
const mostFolded = 0.3;

// An Axis places times. A place is a part of the whole axis, from 0 to 1; x is a part of what is shown of it.
export class Axis {
  readonly folds: { left: number; width: number; title: string }[];
  private readonly worked: number;
  private readonly fold: number; // the length of each folded time, in ms of the axis
  private readonly all: number;

  constructor(
    private readonly chart: Chart,
    private readonly from: number,
    private readonly length: number,
  ) {
    this.worked = Math.max(1, chart.worked_ms);
    const n = chart.folds.length;
    this.fold = n > 0 ? (this.worked * Math.min(foldShare, mostFolded / n)) / (1 - mostFolded) : 0;
    this.all = this.worked + n * this.fold;
    this.folds = chart.folds
      .map((f) => {
        const left = this.x(f.start_ms);
        return { left, width: this.x(f.end_ms) - left, title: `${duration(f.end_ms - f.start_ms)} without work: ${f.why === "question" ? "a question was open" : "no process worked on the run"}` };
      })
      .filter((f) => f.left + f.width > 0 && f.left < 1);
  }

  // place returns the place of a time.
  place(ms: number): number {
    let at = Math.min(Math.max(0, ms), this.chart.total_ms);
    let v = at;
    for (const f of this.chart.folds) {
      if (at <= f.start_ms) break;
      const inside = Math.min(at, f.end_ms) - f.start_ms;
      v += (inside / (f.end_ms - f.start_ms)) * this.fold - inside;
    }
    return v / this.all;
  }

  // x returns where a time is in what is shown.
  x(ms: number): number {
    return (this.place(ms) - this.from) / this.length;
  }

  // timeAt returns the time at a part of what is shown.
  timeAt(x: number): number {
    const wanted = this.from + x * this.length;
    let low = 0;
    let high = this.chart.total_ms;
    for (let i = 0; i < 50; i++) {
      const middle = (low + high) / 2;
      if (this.place(middle) < wanted) low = middle;
      else high = middle;
    }
    return high;
  }

  // windowOf returns what to show for a time to fill most of it.
  windowOf(start: number, end: number): { from: number; length: number } {
    const [a, b] = [this.place(start), this.place(end)];
    const length = Math.min(1, Math.max(1 / 4096, (b - a) * 1.25));
    return { from: Math.min(1 - length, Math.max(0, (a + b) / 2 - length / 2)), length };
  }
}

// A Bar is a span in its place.
export interface Bar {
  span: Span;
  path: string;
  left: number;
  width: number;
}

// A Row is a lane, or a part of one whose spans overlap. around: the time of all that is in the lane and below it.
export interface Row {
  path: string;
  above: string; // the lane that it is in; "": none
  name: string;
  depth: number;
  level: number; // of the rows of a lane
  children: number; // lanes in it
  closed: boolean;
  around: { left: number; width: number } | null;
  bars: Bar[];
}

export interface Shown {
  text: string;
  failed: boolean;
  critical: boolean;
  closed: Set<string>;
}

const mostLevels = 6;
const narrow = 0.001; // of what is shown: narrower spans at one place are one mark

const isIn = (path: string, above: string) => path.startsWith(above + "/");

// rowsOf returns the rows of a chart that are to be shown.
export function rowsOf(chart: Chart, axis: Axis, shown: Shown): Row[] {
  const words = shown.text.toLowerCase().split(/\s+/).filter(Boolean);
  const filters = words.length > 0 || shown.failed || shown.critical;
  const wanted = (path: string, s: Span) =>
    (!shown.failed || s.failed) && (!shown.critical || s.critical) && words.every((w) => `${path} ${s.what} ${s.name ?? ""}`.toLowerCase().includes(w));
  const rows: Row[] = [];
  for (let i = 0; i < chart.lanes.length; i++) {
    const lane = chart.lanes[i]!;
    let end = i + 1; // of the lanes in it
    while (end < chart.lanes.length && chart.lanes[end]!.depth > lane.depth) end++;
    const inside = chart.lanes.slice(i + 1, end).filter((l) => isIn(l.path, lane.path));
    const spans = filters ? lane.spans.filter((s) => wanted(lane.path, s)) : lane.spans;
    if (filters && spans.length === 0 && !inside.some((l) => l.spans.some((s) => wanted(l.path, s)))) continue;
    const closed = shown.closed.has(lane.path);
    const left = axis.x(lane.start_ms);
    const cut = lane.path.lastIndexOf("/");
    const row = (level: number): Row => ({
      path: lane.path,
      above: cut < 0 ? "" : lane.path.slice(0, cut),
      name: lane.path === "" ? "the run" : lane.path.slice(cut + 1),
      depth: lane.depth,
      level,
      children: inside.length,
      closed,
      around: inside.length > 0 && level === 0 ? { left, width: axis.x(lane.end_ms) - left } : null,
      bars: [],
    });
    const levels = pack(lane.path, spans, axis);
    if (levels.length === 0) levels.push([]);
    levels.forEach((bars, level) => rows.push({ ...row(level), bars }));
    if (closed) i = end - 1;
  }
  return rows;
}

// pack puts spans into as few rows as they need without overlaps, and leaves out what could not be seen.
function pack(path: string, spans: Span[], axis: Axis): Bar[][] {
  const levels: { bars: Bar[]; end: number; drawn: number }[] = [];
  for (const span of spans) {
    const left = axis.x(span.start_ms);
    const width = axis.x(span.end_ms) - left;
    let level = levels.find((l) => l.end <= span.start_ms);
    if (!level) {
      if (levels.length < mostLevels) levels.push((level = { bars: [], end: 0, drawn: -1 }));
      else level = levels.reduce((a, b) => (b.end < a.end ? b : a));
    }
    level.end = span.end_ms;
    if (left + width < 0 || left > 1) continue;
    if (left + width < level.drawn + narrow && !span.failed && !span.critical) continue;
    level.drawn = left + width;
    level.bars.push({ span, path, left: Math.max(-0.01, left), width: Math.min(1.01, left + width) - Math.max(-0.01, left) });
  }
  return levels.map((l) => l.bars);
}
