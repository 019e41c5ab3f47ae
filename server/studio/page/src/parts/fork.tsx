import { useState } from "preact/hooks";
import { get, post, words } from "../api";
import { visible } from "../format";
import { go, runPath } from "../router";
import type { Break, Moment, MomentDetail, PromptTemplate } from "../types";
import { Copy, Dialog, Failure, useLoaded } from "./common";

const promptKey = "initial_prompt";

const textOf = (v: unknown) => (typeof v === "string" ? v : JSON.stringify(v, null, 2));

// findResult returns the step that saves the result of the node of a moment; undefined if there is none, or the moment is that step.
function findResult(moments: Moment[], at: number): Moment | undefined {
  const here = moments.find((m) => m.record === at);
  if (!here?.place || here.kind === "step") return undefined;
  return moments.find((m) => m.record > at && m.kind === "step" && m.from?.includes(here.place!));
}

// readChanges returns the values that a person has changed. It throws if a value that was no text is not JSON.
function readChanges(edits: Record<string, string>, state: Record<string, unknown>): Record<string, unknown> {
  const changed: Record<string, unknown> = {};
  for (const [k, text] of Object.entries(edits)) {
    const old = state[k];
    if (text === textOf(old)) continue;
    try {
      changed[k] = typeof old === "string" ? text : (JSON.parse(text) as unknown);
    } catch {
      throw new Error(`The value of ${k} must be JSON.`);
    }
  }
  return changed;
}

const quote = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

// commandLine returns the command that makes the same fork.
function commandLine(from: string, changed: Record<string, unknown>, templates: Record<string, string>, model: string, start: boolean): string {
  const set = Object.entries(changed).flatMap(([k, v]) => ["--set", `${k}=${JSON.stringify(v)}`]);
  const other = Object.entries(templates).flatMap(([k, v]) => ["--template", `${k}=${v}`]);
  return ["raddle", "runs", "fork", from, ...set, ...other, ...(model ? ["--model", model] : []), ...(start ? ["--resume"] : [])].map(quote).join(" ");
}

// ForkDialog copies the run at a record, changes the copy, and opens it.
export function ForkDialog({ run, at: chosen, moments, breaks, onClose }: { run: string; at: number; moments: Moment[]; breaks: Break[]; onClose(): void }) {
  const path = "runs/" + encodeURIComponent(run);
  const result = findResult(moments, chosen);
  const [after, setAfter] = useState(false);
  const at = after && result ? result.record : chosen;
  const state = useLoaded((s) => get<{ state: Record<string, unknown> }>(`${path}/state?at=${at}`, s), [run, at]);
  const step = useLoaded((s) => get<MomentDetail>(`${path}/records/${at}`, s), [run, at]);
  const [edits, setEdits] = useState<Record<string, string>>({});
  const templates = useLoaded((s) => get<PromptTemplate[]>(path + "/templates", s), [run]);
  const [prompts, setPrompts] = useState<Record<string, string>>({});
  const replaced = Object.fromEntries(Object.entries(prompts).filter(([node, text]) => templates.value?.find((t) => t.node === node)?.text !== text));
  const [model, setModel] = useState("");
  const [start, setStart] = useState(true);
  const [error, setError] = useState("");
  const values = state.value?.state ?? {};
  const written = step.value?.kind === "step" ? (step.value.keys ?? []) : [];
  const keys = Object.keys(values);
  const groups: [string, string[]][] = [
    ["Result of " + (step.value?.from?.join(", ") ?? "the step"), keys.filter((k) => written.includes(k))],
    ["Prompt", keys.filter((k) => k === promptKey && !written.includes(k))],
    ["Other values", keys.filter((k) => k !== promptKey && !written.includes(k))],
  ];
  let command = "";
  try {
    command = commandLine(`${run}@${at}`, readChanges(edits, values), replaced, model, start);
  } catch {
    // the error is shown when the person forks
  }
  const fork = async () => {
    setError("");
    try {
      const changed = readChanges(edits, values);
      const made = await post<{ run: string }>(`${path}/fork`, {
        at,
        start,
        ...(Object.keys(changed).length ? { state: changed } : {}),
        ...(Object.keys(replaced).length ? { templates: replaced } : {}),
        ...(model ? { model } : {}),
        ...(breaks.length ? { breaks } : {}),
      });
      onClose();
      go(runPath(made.run, null, null, "state", `${run}@${at}`));
    } catch (e) {
      setError(words(e));
    }
  };
  return (
    <Dialog title={`Fork ${run} at @${at}`} onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          void fork();
        }}
      >
        <p class="dim">The copy starts with everything up to here. What was recorded is not requested again.</p>
        {result && (
          <label class="check">
            <input
              type="checkbox"
              checked={after}
              onChange={(e) => {
                setEdits({});
                setAfter(e.currentTarget.checked);
              }}
            />{" "}
            Change the result of {visible(moments.find((m) => m.record === chosen)?.place ?? "")}, and continue after it (@{result.record})
          </label>
        )}
        {groups
          .filter(([, list]) => list.length > 0)
          .map(([name, list]) => (
            <fieldset key={name}>
              <legend>{visible(name)}</legend>
              {list.map((k) => (
                <label key={k}>
                  {visible(k)}
                  <textarea rows={textOf(values[k]).includes("\n") ? 4 : 1} value={edits[k] ?? textOf(values[k])} onInput={(e) => setEdits({ ...edits, [k]: e.currentTarget.value })} />
                </label>
              ))}
            </fieldset>
          ))}
        {templates.value && templates.value.length > 0 && (
          <details class="templates" open={Object.keys(replaced).length > 0}>
            <summary>Prompt templates of its nodes</summary>
            <p class="dim">They count for nodes that run in the copy. The file of the agent stays as it is.</p>
            {templates.value.map((t) => (
              <label key={t.node}>
                <span>
                  {visible(t.node)} {t.changed && <small>changed in this run</small>}
                </span>
                <textarea rows={t.text.includes("\n") ? 4 : 2} value={prompts[t.node] ?? t.text} onInput={(e) => setPrompts({ ...prompts, [t.node]: e.currentTarget.value })} />
              </label>
            ))}
          </details>
        )}
        <label>
          Model for every call <input value={model} placeholder="as in the agent" onInput={(e) => setModel(e.currentTarget.value)} />
        </label>
        {breaks.length > 0 && <p class="dim">The copy stops {breaks.map((b) => `${b.after ? "after" : "before"} ${b.node}`).join(", ")}.</p>}
        <label class="check">
          <input type="checkbox" checked={start} onChange={(e) => setStart(e.currentTarget.checked)} /> Continue the copy at once
        </label>
        <Failure text={error || state.error || templates.error} />
        <div class="buttons">
          {command && <Copy label="Copy command" text={command} />}
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class="primary">
            Fork
          </button>
        </div>
      </form>
    </Dialog>
  );
}
