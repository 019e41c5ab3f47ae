import { useEffect, useRef, useState } from "preact/hooks";
import { getText, isAborted, words } from "../api";
import type { Look } from "../model";
import { Failure } from "./common";

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

// markVisits writes at the corner of a node how often it ran; 0 removes the mark.
function markVisits(g: SVGGElement, visits: number): void {
  let mark = g.querySelector<SVGTextElement>("text.visits");
  if (visits === 0) {
    mark?.remove();
    return;
  }
  if (!mark) {
    mark = document.createElementNS("http://www.w3.org/2000/svg", "text");
    mark.setAttribute("class", "visits");
    const box = (g.firstElementChild as SVGGraphicsElement).getBBox();
    mark.setAttribute("x", String(box.x + box.width));
    mark.setAttribute("y", String(box.y - 4));
    mark.setAttribute("text-anchor", "end");
    mark.setAttribute("aria-hidden", "true");
    g.append(mark);
  }
  mark.textContent = `×${visits}`;
}

// Picture shows the picture that the server draws, and marks what a run did in it.
export function Picture({ path, title, look, chosen, onNode }: { path: string; title: string; look?: Look; chosen?: string; onNode?(place: string): void }) {
  const theme = useTheme();
  const box = useRef<HTMLDivElement>(null);
  const [error, setError] = useState("");
  const [svg, setSvg] = useState<SVGSVGElement>();
  useEffect(() => {
    const stop = new AbortController();
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
        if (!isAborted(e)) setError(words(e));
      });
    return () => stop.abort();
  }, [path, theme]);
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
      markVisits(g, n && n.visits > 1 ? n.visits : 0);
      if (onNode) {
        g.setAttribute("tabindex", "0");
        g.setAttribute("role", "button");
        const kind = g.dataset["kind"] ?? "";
        g.setAttribute("aria-label", [place, kind, n ? words_[n.status] : look ? "not reached" : "", n && n.visits > 1 ? `${n.visits} times` : ""].filter(Boolean).join(", "));
      }
    }
    for (const g of svg.querySelectorAll<SVGGElement>("g.edge")) {
      g.toggleAttribute("data-taken", !!look?.edges.has(g.dataset["from"] + " " + g.dataset["to"]));
    }
    svg.setAttribute("role", onNode ? "group" : "img");
    svg.toggleAttribute("data-run", !!look);
  }, [svg, look, chosen]);
  useEffect(() => {
    const panel = box.current?.closest(".panel");
    const g = svg?.querySelector("g[data-chosen]");
    if (!panel || !g) return;
    const [node, view] = [g.getBoundingClientRect(), panel.getBoundingClientRect()];
    if (node.top < view.top || node.bottom > view.bottom) panel.scrollTop += node.top - view.top - view.height / 3;
  }, [svg, chosen]);
  const choose = (e: Event) => {
    const g = (e.target as Element).closest<SVGGElement>("g[data-node]");
    if (g && onNode) onNode(g.dataset["node"] ?? "");
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
