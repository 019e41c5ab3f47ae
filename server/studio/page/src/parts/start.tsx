import { useState } from "preact/hooks";
import { post, words } from "../api";
import { visible } from "../format";
import { go, runPath } from "../router";
import type { AgentInfo } from "../types";
import { Failure } from "./common";

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
