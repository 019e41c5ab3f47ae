import { useEffect, useRef, useState } from "preact/hooks";
import { getText, isAborted, words } from "../api";
import type { Look } from "../model";
import { targetOf } from "../target";
import type { Break } from "../types";
import { Failure, isLost, retryEvery } from "./common";

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

// countText returns how often a node ran, and how far it is if it is a map; "" if there is nothing to count.
function countText(place: string, look?: Look): string {
  const visits = look?.nodes.get(place)?.visits ?? 0;
  const items = look?.items.get(place);
  const fails = look?.nodes.get(place)?.fails ?? 0;
  return [visits > 1 ? `×${visits}` : "", fails > 1 ? `${fails} failed` : "", items ? `${items.done} of ${items.all}` : ""].filter(Boolean).join(" · ");
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

// Picture shows the picture that the server draws, and marks what a run did in it.
export function Picture({ path, title, look, chosen, breaks, onNode }: { path: string; title: string; look?: Look; chosen?: string; breaks?: Break[]; onNode?(place: string, kind: string): void }) {
  const theme = useTheme();
  const box = useRef<HTMLDivElement>(null);
  const [error, setError] = useState("");
  const [svg, setSvg] = useState<SVGSVGElement>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const query = path.includes("?") ? "&" : "?";
    getText(`${path}${query}theme=${theme}`, stop.signal)
      .then((text) => {
        const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement as unknown as SVGSVGElement;
        root.querySelectorAll("script, style, foreignObject, a, image").forEach((e) => e.remove());
        const [w, h] = [root.getAttribute("width"), root.getAttribute("height")];
        root.setAttribute("aria-label", title);
        root.removeAttribute("width");
        root.removeAttribute("height");
        root.setAttribute("data-width", w ?? "");
        if (w && h) root.style.maxWidth = w + "px";
        root.querySelectorAll("title").forEach((t) => t.remove());
        setError("");
        setSvg(root);
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
  }, [path, theme, round]);
  useEffect(() => {
    if (svg) box.current?.replaceChildren(svg);
  }, [svg]);
  useEffect(() => {
    if (!svg) return;
    for (const g of svg.querySelectorAll<SVGGElement>("g[data-node]")) {
      const place = g.dataset["node"] ?? "";
      const n = look?.nodes.get(place);
      g.setAttribute("data-status", look ? (n?.status ?? "none") : "");
      g.toggleAttribute("data-chosen", place === chosen);
      const counted = countText(place, look);
      markCount(g, counted);
      const stops = (breaks ?? []).filter((b) => b.node === place);
      const [before, after] = [stops.some((b) => !b.after), stops.some((b) => b.after)];
      if (onNode) {
        g.setAttribute("tabindex", "0");
        g.setAttribute("role", "button");
        const kind = g.dataset["kind"] ?? "";
        const shown = [...g.querySelectorAll("text")].map((t) => t.textContent ?? "").join(" "); // what a person sees is in the name
        g.setAttribute("aria-label", [shown.startsWith(`${place} ${kind}`) ? "" : shown, place, kind, counted, n ? words_[n.status] : look ? "not reached" : "", before ? "stops before" : "", after ? "stops after" : ""].filter(Boolean).join(", "));
      }
    }
    for (const g of svg.querySelectorAll<SVGGElement>("g.edge")) {
      g.toggleAttribute("data-taken", !!look?.edges.has(g.dataset["from"] + " " + g.dataset["to"]));
    }
    svg.setAttribute("role", onNode ? "group" : "img");
    svg.toggleAttribute("data-run", !!look);
  }, [svg, look, chosen, breaks]);
  useEffect(() => {
    for (const g of svg?.querySelectorAll<SVGGElement>("g[data-node]") ?? []) {
      const stops = (breaks ?? []).filter((b) => b.node === g.dataset["node"]);
      markBreaks(g, stops.some((b) => !b.after), stops.some((b) => b.after));
    }
  }, [svg, breaks]);
  useEffect(() => {
    const panel = box.current?.closest(".panel");
    const g = svg?.querySelector("g[data-chosen]");
    if (!panel || !g) return;
    const [node, view] = [g.getBoundingClientRect(), panel.getBoundingClientRect()];
    if (node.top < view.top || node.bottom > view.bottom) panel.scrollTop += node.top - view.top - view.height / 3;
  }, [svg, chosen]);
  const choose = (e: Event) => {
    const g = targetOf(e)?.closest<SVGGElement>("g[data-node]");
    if (g && onNode) onNode(g.dataset["node"] ?? "", g.dataset["kind"] ?? "");
  };
  return (
    <>
      <div
        class="picture"
        ref={box}
        onClick={choose}
        onKeyDown={(e) => {
          if (e.key === "Enter" || e.key === " ") {
            choose(e);
            e.preventDefault();
          }
        }}
      />
      <Failure text={error} />
    </>
  );
}
