import { useLayoutEffect, useState } from "preact/hooks";
import { get } from "../api";
import { Ago, Failure, useLoaded } from "../parts/common";
import { AnswerForm } from "../parts/question";
import { runPath } from "../router";
import { isShortcut } from "../target";
import type { OpenQuestion, Page, Run } from "../types";

// Inbox shows all open questions. Keys: j and k choose one, 1 to 9 answer it. What allows something must have the focus: j and k give it.
export function Inbox() {
  const list = useLoaded((s) => get<Page<OpenQuestion>>("questions?limit=200", s), [], 2000);
  const open = list.value?.items ?? [];
  const [chosen, setChosen] = useState("");
  const keyOf = (o: OpenQuestion) => o.run + " " + o.question.id;
  const at = Math.max(0, open.findIndex((o) => keyOf(o) === chosen));
  // A layout effect: a key that comes before the first question is painted is not lost.
  useLayoutEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (!isShortcut(e)) return;
      if (e.key !== "j" && e.key !== "k") return;
      const next = Math.min(open.length - 1, Math.max(0, e.key === "j" ? at + 1 : at - 1));
      const target = open[next];
      if (!target) return;
      setChosen(keyOf(target));
      document.getElementById("question-" + next)?.focus();
      e.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  return (
    <main id="main" class="narrow">
      <h1>Inbox</h1>
      <Failure text={list.error} />
      {list.value && open.length === 0 && <p class="empty">Nothing waits for an answer. Questions of all runs come here.</p>}
      {open.map((o, i) => (
        <article class={"card" + (i === at ? " chosen" : "")} key={keyOf(o)} id={"question-" + i} tabIndex={-1}>
          <header>
            <a href={runPath(o.run)}>{o.agent}</a> <span class="dim">{o.question.node ?? ""}</span> <Ago time={o.since} />
          </header>
          {o.part ? <LongQuestion o={o} onAnswered={list.reload} keys={i === at} /> : <AnswerForm run={o.run} q={o.question} onAnswered={list.reload} keys={i === at} />}
        </article>
      ))}
    </main>
  );
}

// LongQuestion asks a question of which the list has only the beginning: the run has all of it.
function LongQuestion({ o, onAnswered, keys }: { o: OpenQuestion; onAnswered: () => void; keys: boolean }) {
  const run = useLoaded((s) => get<Run>("runs/" + encodeURIComponent(o.run), s), [o.run, o.question.id]);
  const q = run.value?.questions?.find((q) => q.id === o.question.id);
  if (q) return <AnswerForm run={o.run} q={q} onAnswered={onAnswered} keys={keys} />;
  return (
    <>
      <p class="dim">{o.question.prompt}…</p>
      <Failure text={run.error} />
    </>
  );
}
