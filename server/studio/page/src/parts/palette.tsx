import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { age, visible } from "../format";
import { chatPath } from "../pages/chat";
import { go, runPath, runsPath } from "../router";
import type { AgentInfo, Page, RunPage } from "../types";
import { Dialog, useLoaded, useSettled } from "./common";
import { nameRun } from "./runs";

// A Target is a place that the palette leads to.
interface Target {
  path: string;
  kind: string;
  name: string;
  note: string;
}

const pages: Target[] = [
  { path: "./", kind: "page", name: "Home", note: "" },
  { path: "inbox", kind: "page", name: "Inbox", note: "open questions" },
  { path: "runs", kind: "page", name: "Runs", note: "all runs" },
  { path: runsPath({ status: "running,queued" }), kind: "page", name: "Runs that work now", note: "" },
  { path: runsPath({ last: "24h", status: "failed" }), kind: "page", name: "Runs that failed today", note: "" },
];

// matches reports whether a name has all words of a text.
const matches = (text: string, t: Target) => text.toLowerCase().split(/\s+/).every((w) => (t.name + " " + t.note).toLowerCase().includes(w));

// Palette leads to a page, an agent or a run that a person names.
export function Palette({ onClose }: { onClose(): void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const settled = useSettled(text.trim(), 120);
  const agents = useLoaded((s) => get<Page<AgentInfo>>("agents?limit=200", s), []);
  const runs = useLoaded((s) => get<RunPage>("runs?limit=8" + (settled ? "&text=" + encodeURIComponent(settled) : ""), s), [settled]);
  const named = (agents.value?.items ?? []).flatMap((a): Target[] => [
    { path: "agents/" + encodeURIComponent(a.name), kind: "agent", name: a.name, note: a.description ?? "" },
    ...(a.kind === "agent" ? [{ path: chatPath(a.name), kind: "talk", name: "Talk with " + a.name, note: "" }] : []),
  ]);
  const wanted = text.trim();
  const targets = [
    ...[...pages, ...named].filter((t) => matches(wanted, t)).slice(0, wanted ? 8 : 6),
    ...(runs.value?.items ?? []).map((r): Target => ({ path: runPath(r.run), kind: "run", name: nameRun(r), note: `${r.agent}, ${r.status}, ${age(r.started)}` })),
  ];
  const at = Math.min(chosen, targets.length - 1);
  useEffect(() => setChosen(0), [wanted]);
  useEffect(() => document.getElementById("palette-" + at)?.scrollIntoView({ block: "nearest" }), [at]);
  const open = (t: Target | undefined) => {
    if (!t) return;
    onClose();
    go(t.path);
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label="A page, an agent or a run"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={targets.length > 0 ? "palette-" + at : undefined}
        placeholder="A page, an agent, or words of a run"
        class="palette"
        autofocus
        value={text}
        onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={(e) => {
          if (e.key === "ArrowDown") setChosen(Math.min(targets.length - 1, at + 1));
          else if (e.key === "ArrowUp") setChosen(Math.max(0, at - 1));
          else if (e.key === "Enter") open(targets[at]);
          else return;
          e.preventDefault();
        }}
      />
      <ul id="palette-list" class="targets" role="listbox" aria-label="Places">
        {targets.map((t, i) => (
          <li key={t.kind + t.path} id={"palette-" + i} role="option" aria-selected={i === at} onClick={() => open(t)}>
            <span class="badge">{t.kind}</span> <span class="name">{visible(t.name)}</span> <span class="dim">{visible(t.note)}</span>
          </li>
        ))}
      </ul>
      {targets.length === 0 && <p class="empty">{runs.value ? "Nothing has these words." : "Searching …"}</p>}
    </Dialog>
  );
}
