import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getText, isAborted, words } from "../api";
import { Crowd, sumInside } from "../crowd";
import { cost, duration, visible } from "../format";
import type { Look } from "../model";
import { share } from "../share";
import { targetOf } from "../target";
import type { Break } from "../types";
import { Failure, isLost, retryEvery } from "./common";
import { type Area, Viewport } from "./viewport";

const dark = matchMedia("(prefers-color-scheme: dark)");

// useTheme returns the colour scheme of the page.
function useTheme(): string {
  const [theme, setTheme] = useState(dark.matches ? "dark" : "light");
  useEffect(() => {
    const onChange = () => setTheme(dark.matches ? "dark" : "light");
    dark.addEventListener("change", onChange);
    return () => dark.removeEventListener("change", onChange);
  }, []);
  return theme;
}

const words_: Record<string, string> = { done: "done", running: "running", waiting: "waits", failed: "failed" };

// Tint is what the colours of nodes say.
type Tint = "status" | "time" | "cost";

// countText returns how often a node ran, how far it is if it is a map or several nodes, what it has spent if the colours say that, and a note; "" if there is nothing to count.
function countText(place: string, look?: Look, spent = "", note = ""): string {
  const visits = look?.nodes.get(place)?.visits ?? 0;
  const items = look?.items.get(place);
  const fails = look?.nodes.get(place)?.fails ?? 0;
  return [visits > 1 ? `×${visits}` : "", fails > 1 ? `${fails} failed` : "", items ? `${items.done} of ${items.all}` : "", spent, note].filter(Boolean).join(" · ");
}

// markCount writes a text above a node; "" removes it.
function markCount(g: SVGGElement, text: string): void {
  let mark = g.querySelector<SVGTextElement>("text.visits");
  if (text === "") {
    mark?.remove();
    return;
  }
  if (!mark) {
    mark = document.createElementNS("http://www.w3.org/2000/svg", "text");
    mark.setAttribute("class", "visits");
    const box = g.getBBox();
    mark.setAttribute("x", String(box.x + box.width / 2 + 8)); // right of an arrow that comes from above
    mark.setAttribute("y", String(box.y - 4));
    mark.setAttribute("aria-hidden", "true");
    g.append(mark);
  }
  mark.textContent = text;
}

// markBreaks draws a sign at the upper left corner of a node before which a run stops, and at the lower left one if it stops after the node.
function markBreaks(g: SVGGElement, before: boolean, after: boolean): void {
  g.querySelectorAll(".break").forEach((e) => e.remove());
  const box = (g.firstElementChild as SVGGraphicsElement).getBBox();
  for (const y of [...(before ? [box.y] : []), ...(after ? [box.y + box.height] : [])]) {
    const sign = document.createElementNS("http://www.w3.org/2000/svg", "path");
    sign.setAttribute("class", "break");
    sign.setAttribute("d", `M${box.x + 3} ${y - 5}v10M${box.x + 8} ${y - 5}v10`);
    g.append(sign);
  }
}

// A Drawing is a picture with the nodes that it shows.
interface Drawing {
  svg: SVGSVGElement;
  w: number;
  h: number;
  crowd: Crowd;
  nodes: Drawn[];
}

// Drawn is a node of a picture. shape is its outline, and frame whether nodes are drawn inside of it.
interface Drawn {
  place: string;
  kind: string;
  text: string; // what a person sees of it
  g: SVGGElement;
  area: Area;
  frame: boolean;
}

// readDrawing returns the picture that the server has sent.
function readDrawing(text: string, title: string): Drawing {
  const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement as unknown as SVGSVGElement;
  svg.querySelectorAll("script, style, foreignObject, a, image, title").forEach((e) => e.remove());
  const [w, h] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  svg.setAttribute("aria-label", title);
  svg.removeAttribute("width");
  svg.removeAttribute("height");
  svg.setAttribute("data-width", String(w));
  const members = new Map<string, string[]>();
  for (const g of svg.querySelectorAll<SVGGElement>("g[data-members]")) members.set(g.dataset["node"] ?? "", (g.dataset["members"] ?? "").split("\n"));
  return { svg, w, h, crowd: new Crowd(members), nodes: [] };
}

// measureNodes finds the nodes of a picture that is on the page.
function measureNodes(svg: SVGSVGElement): Drawn[] {
  return [...svg.querySelectorAll<SVGGElement>("g[data-node]")].map((g) => {
    const box = (g.firstElementChild as SVGGraphicsElement).getBBox();
    const text = [...g.querySelectorAll("text:not(.visits)")].map((t) => t.textContent ?? "").join(" ");
    return { place: g.dataset["node"] ?? "", kind: g.dataset["kind"] ?? "", text, g, area: { x: box.x, y: box.y, w: box.width, h: box.height }, frame: g.classList.contains("frame") };
  });
}

// nextNode returns the nearest node in the direction of an arrow key.
function nextNode(nodes: Drawn[], from: Drawn, key: string): Drawn | undefined {
  const middle = (a: Area) => [a.x + a.w / 2, a.y + a.h / 2] as const;
  const [x, y] = middle(from.area);
  let best: Drawn | undefined;
  let least = Infinity;
  for (const n of nodes) {
    const [nx, ny] = middle(n.area);
    const [along, across] = key === "ArrowDown" ? [ny - y, nx - x] : key === "ArrowUp" ? [y - ny, nx - x] : key === "ArrowRight" ? [nx - x, ny - y] : [x - nx, ny - y];
    const far = along + 2 * Math.abs(across);
    if (n !== from && along > 0 && far < least) {
      best = n;
      least = far;
    }
  }
  return best;
}

// Chosen is a node that a person has chosen in a picture: several alike have the kind "group". places are the nodes for which it is drawn.
export interface Chosen {
  place: string;
  kind: string;
  places: string[];
}

interface PictureProps {
  path: string;
  title: string;
  look?: Look;
  chosen?: string;
  breaks?: Break[];
  notes?: Map<string, string>; // more words above nodes, by place
  onNode?(node: Chosen): void;
}

// Picture shows the picture that the server draws, and marks what a run did in it. Large pictures are folded, and can be moved and zoomed.
export function Picture({ path, title, look: whole, chosen: wanted, breaks, notes, onNode }: PictureProps) {
  const theme = useTheme();
  const box = useRef<HTMLDivElement>(null);
  const sheet = useRef<HTMLDivElement>(null);
  const viewport = useRef<Viewport | undefined>(undefined);
  const map = useRef<SVGRectElement>(null);
  const [error, setError] = useState("");
  const [drawing, setDrawing] = useState<Drawing>();
  const [round, setRound] = useState(0);
  const [folds, setFolds] = useState<{ off: boolean; open: string[]; closed: string[] }>({ off: false, open: [], closed: [] });
  const [tint, setTint] = useState<Tint>("status");
  const [picked, pick] = useState("");
  const [zoom, setZoom] = useState({ scale: 1, all: true });
  const look = useMemo(() => (whole && drawing ? drawing.crowd.fold(whole) : whole), [whole, drawing]);
  const chosen = wanted === undefined || !drawing ? wanted : drawing.crowd.find(wanted);
  useEffect(() => setFolds({ off: false, open: [], closed: [] }), [path]);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const query = new URLSearchParams();
    if (!folds.off) query.set("fold", "true");
    for (const place of folds.open) query.append("open", place);
    for (const place of folds.closed) query.append("closed", place);
    query.set("theme", theme);
    getText(`${path}${path.includes("?") ? "&" : "?"}${query}`, stop.signal)
      .then((text) => {
        setError("");
        setDrawing(readDrawing(text, title));
      })
      .catch((e: unknown) => {
        if (isAborted(e) || stop.signal.aborted) return;
        setError(words(e));
        if (isLost(e)) timer = window.setTimeout(() => setRound((n) => n + 1), retryEvery);
      });
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, theme, round, folds]);
  useEffect(() => {
    if (!drawing || !box.current || !sheet.current) return;
    sheet.current.style.width = drawing.w + "px";
    sheet.current.style.height = drawing.h + "px";
    sheet.current.replaceChildren(drawing.svg);
    drawing.nodes = measureNodes(drawing.svg);
    drawing.nodes.forEach((n, i) => n.g.setAttribute("tabindex", i === 0 ? "0" : "-1"));
    const v = new Viewport(box.current, sheet.current, drawing.w, drawing.h, () => {
      const seen = v.seen;
      for (const [name, value] of Object.entries({ x: seen.x, y: seen.y, width: seen.w, height: seen.h })) map.current?.setAttribute(name, String(value));
      setZoom((old) => (old.scale === v.scale && old.all === v.showsAll ? old : { scale: v.scale, all: v.showsAll }));
    }, viewport.current);
    viewport.current = v;
    setZoom({ scale: v.scale, all: v.showsAll });
    return () => v.destroy();
  }, [drawing]);
  useEffect(() => {
    if (!drawing) return;
    const { svg, nodes } = drawing;
    const shown = tint === "status" ? undefined : look;
    const spent = nodes.map((n) => (shown ? sumInside(shown, n.place)[tint === "time" ? "ms" : "usd"] : 0));
    const most = Math.max(...spent.filter((_, i) => !nodes[i]!.frame), 0);
    svg.toggleAttribute("data-tint", !!shown);
    nodes.forEach(({ place, kind, text, g, frame }, i) => {
      const n = look?.nodes.get(place);
      g.setAttribute("data-status", look ? (n?.status ?? "none") : "");
      g.toggleAttribute("data-chosen", place === chosen || place === picked);
      g.style.setProperty("--share", shown && most > 0 && !frame ? `${Math.round((spent[i]! / most) * 45)}%` : "0%");
      const counted = countText(place, look, spent[i]! > 0 ? (tint === "time" ? duration(spent[i]!) : cost(spent[i]!)) : "", notes?.get(place));
      markCount(g, counted);
      const stops = (breaks ?? []).filter((b) => b.node === place);
      const [before, after] = [stops.some((b) => !b.after), stops.some((b) => b.after)];
      markBreaks(g, before, after);
      g.setAttribute("role", "button");
      g.setAttribute("aria-label", [text.startsWith(`${place} ${kind}`) ? `${place}, ${kind}, ${counted}` : `${text} ${counted}, ${place}, ${kind}`, n ? words_[n.status] : look ? "not reached" : "", before ? "stops before" : "", after ? "stops after" : ""].filter(Boolean).join(", ")); // what a person sees is in the name
    });
    for (const g of svg.querySelectorAll<SVGGElement>("g.edge")) {
      g.toggleAttribute("data-taken", !!look?.edges.has(g.dataset["from"] + "\n" + g.dataset["to"]));
    }
    svg.setAttribute("role", "group");
    svg.toggleAttribute("data-run", !!look);
  }, [drawing, look, chosen, picked, breaks, notes, tint]);
  useEffect(() => {
    const at = drawing?.nodes.find((n) => n.place === chosen);
    if (at) viewport.current?.show(at.area);
  }, [drawing, chosen]);
  const nodeAt = (e: Event) => {
    const g = targetOf(e)?.closest<SVGGElement>("g[data-node]");
    return drawing?.nodes.find((n) => n.g === g);
  };
  const focus = (n: Drawn) => {
    for (const other of drawing?.nodes ?? []) other.g.setAttribute("tabindex", other === n ? "0" : "-1");
    n.g.focus({ preventScroll: true });
    viewport.current?.show(n.area);
  };
  const choose = (n: Drawn | undefined) => {
    if (!n || !drawing) return;
    pick(n.place);
    for (const other of drawing.nodes) other.g.setAttribute("tabindex", other === n ? "0" : "-1");
    const members = drawing.crowd.members.get(n.place);
    const isGroup = members && !drawing.crowd.isInside(n.place);
    onNode?.({ place: n.place, kind: isGroup ? "group" : n.kind, places: isGroup ? members : [n.place] });
  };
  const onKey = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const at = nodeAt(e);
    const next = at && drawing && e.key.startsWith("Arrow") ? nextNode(drawing.nodes, at, e.key) : undefined;
    if (e.key === "Enter" || e.key === " ") choose(at);
    else if (next) focus(next);
    else if (e.key === "+" || e.key === "=") viewport.current?.zoom(1.25);
    else if (e.key === "-") viewport.current?.zoom(0.8);
    else if (e.key === "0") viewport.current?.fit();
    else if (!e.key.startsWith("Arrow")) return;
    e.preventDefault();
  };
  return (
    <>
      {drawing && <Tools drawing={drawing} zoom={zoom} viewport={viewport} folds={folds} onFolds={setFolds} picked={picked} tint={look ? tint : undefined} onTint={setTint} onFound={focus} />}
      <div class="picture" ref={box} onClick={(e) => choose(nodeAt(e))} onKeyDown={onKey} onFocusCapture={(e) => {
        const at = nodeAt(e);
        if (at) viewport.current?.show(at.area);
      }}>
        <div class="sheet" ref={sheet} />
        {drawing && !zoom.all && (
          <svg class="overview" aria-hidden="true" style={{ width: Math.max(24, Math.min(132, (88 * drawing.w) / drawing.h)), height: Math.max(24, Math.min(88, (132 * drawing.h) / drawing.w)) }} viewBox={`0 0 ${drawing.w} ${drawing.h}`} onPointerDown={(e) => e.stopPropagation()} onClick={(e) => {
            e.stopPropagation();
            const at = e.currentTarget.getBoundingClientRect();
            const s = Math.max(drawing.w / at.width, drawing.h / at.height); // the picture is in the middle
            viewport.current?.show({ x: (e.clientX - at.x - at.width / 2) * s + drawing.w / 2, y: (e.clientY - at.y - at.height / 2) * s + drawing.h / 2, w: 0, h: 0 }, true);
          }}>
            {drawing.nodes.map((n) => (
              <rect key={n.place} x={n.area.x} y={n.area.y} width={n.area.w} height={n.area.h} class={n.frame ? "frame" : "node-" + (look?.nodes.get(n.place)?.status ?? "none")} />
            ))}
            <rect class="seen" ref={map} {...(({ x, y, w, h }) => ({ x, y, width: w, height: h }))(viewport.current?.seen ?? { x: 0, y: 0, w: drawing.w, h: drawing.h })} />
          </svg>
        )}
      </div>
      <Failure text={error} />
    </>
  );
}

interface ToolsProps {
  drawing: Drawing;
  zoom: { scale: number; all: boolean };
  viewport: { current: Viewport | undefined };
  folds: { off: boolean; open: string[]; closed: string[] };
  onFolds(folds: { off: boolean; open: string[]; closed: string[] }): void;
  picked: string;
  tint?: Tint | undefined; // undefined: the picture shows no run
  onTint(tint: Tint): void;
  onFound(n: Drawn): void;
}

// fewestFound is how many nodes a picture has whose nodes can be looked for.
const fewestFound = 8;

// Tools are the buttons above a picture. One that can do nothing is not there.
function Tools({ drawing, zoom, viewport, folds, onFolds, picked, tint, onTint, onFound }: ToolsProps) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(-1);
  const { crowd, nodes } = drawing;
  const found = useMemo(() => (text.trim() ? nodes.filter((n) => `${n.place}\n${n.text}\n${(crowd.members.get(n.place) ?? []).join("\n")}`.toLowerCase().includes(text.trim().toLowerCase())) : []), [text, nodes]);
  useEffect(() => {
    const marked = new Set(found);
    for (const n of nodes) n.g.toggleAttribute("data-found", marked.has(n));
    if (found[0]) viewport.current?.show(found[0].area);
    setAt(-1);
  }, [found]);
  const node = nodes.find((n) => n.place === picked);
  const isFolded = crowd.members.has(picked);
  const change = folds.off || folds.open.length + folds.closed.length > 0;
  const without = (list: string[], place: string) => list.filter((p) => p !== place);
  return (
    <div class="picture-tools" role="group" aria-label="View of the picture">
      <button type="button" aria-label="Smaller picture" onClick={() => viewport.current?.zoom(0.8)}>
        −
      </button>
      <button type="button" title="Show in natural size" onClick={() => viewport.current?.resize(1)}>
        {Math.round(zoom.scale * 100)} %
      </button>
      <button type="button" aria-label="Larger picture" onClick={() => viewport.current?.zoom(1.25)}>
        +
      </button>
      {!zoom.all && (
        <button type="button" onClick={() => viewport.current?.fit()}>
          Fit
        </button>
      )}
      {tint && (
        <select aria-label="What the colours say" value={tint} onChange={(e) => onTint(e.currentTarget.value as Tint)}>
          <option value="status">Status</option>
          <option value="time">Time</option>
          <option value="cost">Cost</option>
        </select>
      )}
      {nodes.length >= fewestFound && (
        <input
          type="search"
          aria-label="Find a node"
          placeholder="Find a node"
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key !== "Enter" || found.length === 0) return;
            e.preventDefault();
            const next = (at + (e.shiftKey ? found.length - 1 : 1)) % found.length;
            setAt(next);
            if (e.ctrlKey || found.length === 1) onFound(found[next]!);
            else viewport.current?.show(found[next]!.area, true);
          }}
        />
      )}
      {text.trim() && <output class="dim">{found.length === 0 ? "none" : at < 0 ? String(found.length) : `${at + 1} of ${found.length}`}</output>}
      {node && isFolded && !share && (
        <button type="button" onClick={() => onFolds({ ...folds, open: [...folds.open, picked], closed: without(folds.closed, picked) })}>
          Unfold {visible(node.place)}
        </button>
      )}
      {node?.frame && !isFolded && !share && (
        <button type="button" onClick={() => onFolds({ ...folds, closed: [...folds.closed, picked], open: without(folds.open, picked) })}>
          Fold {visible(node.place)}
        </button>
      )}
      {change ? (
        <button type="button" onClick={() => onFolds({ off: false, open: [], closed: [] })}>
          Fold again
        </button>
      ) : (
        crowd.members.size > 0 && (
          <button type="button" onClick={() => onFolds({ off: true, open: [], closed: [] })}>
            Unfold all
          </button>
        )
      )}
    </div>
  );
}
