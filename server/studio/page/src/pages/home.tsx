import { useState } from "preact/hooks";
import { get, post, words } from "../api";
import { Ago, Failure, useLoaded } from "../parts/common";
import { AnswerForm } from "../parts/question";
import { Status } from "../parts/status";
import { go, runPath } from "../router";
import type { AgentInfo, OpenQuestion, Page, RunInfo } from "../types";
import { visible } from "../format";

// Home shows what needs a person, what runs, what ran, and starts agents.
export function Home() {
  const questions = useLoaded((s) => get<Page<OpenQuestion>>("questions?limit=5", s), [], 2000);
  const [filter, setFilter] = useState("");
  const runs = useLoaded((s) => get<Page<RunInfo>>("runs?limit=50" + (filter ? "&text=" + encodeURIComponent(filter) : ""), s), [filter], 2000);
  const agents = useLoaded((s) => get<Page<AgentInfo>>("agents?limit=200", s), []);
  const open = questions.value?.items ?? [];
  return (
    <div class="columns">
      <main id="main">
        <section aria-labelledby="needs">
          <h1 id="needs">Needs you</h1>
          <Failure text={questions.error} />
          {questions.value && open.length === 0 && <p class="empty">Nothing waits for an answer.</p>}
          {open.map((o) => (
            <article class="card" key={o.run + o.question.id}>
              <header>
                <a href={runPath(o.run)}>{o.agent}</a> <span class="dim">asks</span> <Ago time={o.since} />
              </header>
              <AnswerForm run={o.run} q={o.question} onAnswered={() => (questions.reload(), runs.reload())} />
            </article>
          ))}
          {questions.value?.next_cursor && <a href="inbox">All open questions</a>}
        </section>
        <section aria-labelledby="runs">
          <div class="bar">
            <h2 id="runs">Runs</h2>
            <input type="search" placeholder="Text, agent or id" aria-label="Filter runs" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
          </div>
          <Failure text={runs.error} />
          <RunTable runs={runs.value?.items} empty={filter ? "No run has this text." : "Nothing has run yet. Start an agent here, or with: raddle run AGENT"} />
        </section>
      </main>
      <aside aria-label="Start an agent">
        <StartForm agents={agents.value?.items ?? []} />
        <Failure text={agents.error} />
      </aside>
    </div>
  );
}

// RunTable lists runs.
export function RunTable({ runs, empty }: { runs: RunInfo[] | undefined; empty: string }) {
  if (!runs) return null;
  if (runs.length === 0) return <p class="empty">{empty}</p>;
  return (
    <div class="scroll">
      <table class="runs">
        <thead>
          <tr>
            <th scope="col">Status</th>
            <th scope="col">Agent</th>
            <th scope="col">Run</th>
            <th scope="col">What</th>
            <th scope="col" class="number">
              Started
            </th>
          </tr>
        </thead>
        <tbody>
          {runs.map((r) => (
            <tr key={r.run}>
              <td>
                <Status status={r.status} />
              </td>
              <td>
                <a href={"agents/" + encodeURIComponent(r.agent)}>{r.agent}</a>
              </td>
              <td>
                <a href={runPath(r.run)}>
                  <code>{r.run}</code>
                </a>
              </td>
              <td class="what">{visible(r.questions?.[0]?.prompt.trim().split("\n").at(-1) ?? r.reason ?? (r.session ? "session " + r.session : ""))}</td>
              <td class="number">
                <Ago time={r.started} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// StartForm starts an agent and opens its run.
export function StartForm({ agents, fixed }: { agents: AgentInfo[]; fixed?: string }) {
  const [name, setName] = useState(fixed ?? "");
  const [prompt, setPrompt] = useState("");
  const [values, setValues] = useState<Record<string, string>>({});
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const agent = agents.find((a) => a.name === (name || agents[0]?.name));
  const start = async () => {
    if (!agent) return;
    setBusy(true);
    setError("");
    try {
      const variables = Object.fromEntries(Object.entries(values).filter(([, v]) => v !== ""));
      const { run } = await post<{ run: string }>("runs", { agent: agent.name, ...(prompt ? { prompt } : {}), ...(Object.keys(variables).length ? { variables } : {}) });
      go(runPath(run));
    } catch (e) {
      setError(words(e));
      setBusy(false);
    }
  };
  return (
    <form
      class="start"
      onSubmit={(e) => {
        e.preventDefault();
        void start();
      }}
    >
      <h2>Start an agent</h2>
      {!fixed && (
        <label>
          Agent
          <select value={agent?.name} onChange={(e) => (setName(e.currentTarget.value), setValues({}))}>
            {agents.map((a) => (
              <option key={a.name}>{a.name}</option>
            ))}
          </select>
        </label>
      )}
      {agent?.description && <p class="dim">{visible(agent.description)}</p>}
      {agent?.variables?.map((v) => (
        <label key={v.name}>
          {v.name} <small>{visible(v.description)}</small>
          <input value={values[v.name] ?? ""} placeholder={v.default ?? ""} onInput={(e) => setValues({ ...values, [v.name]: e.currentTarget.value })} />
        </label>
      ))}
      <label>
        Prompt
        <textarea rows={4} value={prompt} onInput={(e) => setPrompt(e.currentTarget.value)} />
      </label>
      {(agent?.starters?.length ?? 0) > 0 && (
        <ul class="starters">
          {agent?.starters?.map((s) => (
            <li key={s}>
              <button type="button" onClick={() => setPrompt(s)}>
                {visible(s)}
              </button>
            </li>
          ))}
        </ul>
      )}
      <button type="submit" class="primary" disabled={busy || !agent}>
        Run
      </button>
      <Failure text={error} />
    </form>
  );
}
