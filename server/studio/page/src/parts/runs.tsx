import { cost, duration, exact, firstLine, short, visible } from "../format";
import { runPath } from "../router";
import type { RunInfo } from "../types";
import { Ago, Heads, type Column } from "./common";
import { Status } from "./status";

// nameRun returns what a person calls a run: the first message of its conversation, its prompt, or else its id.
export function nameRun(r: RunInfo): string {
  return firstLine(r.title ?? "") || firstLine(r.prompt ?? "") || r.session || r.run;
}

// saysNow returns what is to say of a run now: what it asks, why it failed, or what it has returned.
function saysNow(r: RunInfo): string {
  const asked = r.questions?.[0]?.prompt;
  if (asked) return "asks: " + firstLine(asked);
  if (r.reason) return r.reason.trim().split("\n").at(-1) ?? "";
  const turn = r.title && r.prompt && firstLine(r.prompt) !== firstLine(r.title) ? firstLine(r.prompt) + " → " : "";
  return r.output ? turn + firstLine(r.output) : turn ? firstLine(r.prompt ?? "") : "";
}

// cameBy returns what started a run, and for whom.
export function cameBy(r: RunInfo): string {
  const from = r.from ? "fork" : "";
  return [from || (r.via ?? ""), r.by && r.by !== "first" ? r.by : ""].filter(Boolean).join(", ");
}

// Chosen are the runs of a table that a person has selected.
export interface Chosen {
  has(run: string): boolean;
  set(run: string, on: boolean): void;
}

const columns: Column[] = [["Status"], ["Run"], ["Agent"], ["Model", "cut"], ["By", "cut"], ["Tokens", "number"], ["Cost", "number"], ["Worked", "number"], ["Started", "number"]];

// RunTable lists runs, and lets a person select some if chosen is given.
export function RunTable({ runs, empty, chosen }: { runs: RunInfo[] | undefined; empty: string; chosen?: Chosen }) {
  if (!runs) return null;
  if (runs.length === 0) return <p class="empty">{empty}</p>;
  const all = runs.every((r) => chosen?.has(r.run));
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table of runs">
      <table class={"runs" + (chosen ? " choosable" : "")}>
        <thead>
          <tr>
            {chosen && (
              <th scope="col">
                <input type="checkbox" aria-label="Select all runs of this page" checked={all} onChange={() => runs.forEach((r) => chosen.set(r.run, !all))} />
              </th>
            )}
            <Heads columns={columns} />
          </tr>
        </thead>
        <tbody>
          {runs.map((r) => (
            <tr key={r.run} class={chosen?.has(r.run) ? "chosen" : ""}>
              {chosen && (
                <td class="check">
                  <input type="checkbox" aria-label={"Select " + r.run} checked={chosen.has(r.run)} onChange={(e) => chosen.set(r.run, e.currentTarget.checked)} />
                </td>
              )}
              <td>
                <Status status={r.status} />
              </td>
              <td class="what">
                <a href={runPath(r.run)} title={r.run}>
                  {visible(nameRun(r))}
                </a>
                <div class="says">{visible(saysNow(r)) || <code>{r.run}</code>}</div>
              </td>
              <td class="agent">
                <a href={"agents/" + encodeURIComponent(r.agent)}>{r.agent}</a>
              </td>
              <td class="cut" title={r.usage.models?.join(", ")}>
                {visible(r.usage.models?.[0] ?? "")}
                {(r.usage.models?.length ?? 0) > 1 && <span class="dim"> +{r.usage.models!.length - 1}</span>}
              </td>
              <td class="cut" title={cameBy(r)}>
                {visible(cameBy(r))}
              </td>
              <td class="number" title={`${r.usage.input_tokens} in, ${r.usage.output_tokens} out`}>
                {r.usage.input_tokens + r.usage.output_tokens > 0 ? short(r.usage.input_tokens + r.usage.output_tokens) : ""}
              </td>
              <td class="number">{r.usage.calls > 0 && r.usage.cost_usd !== null ? cost(r.usage.cost_usd) : ""}</td>
              <td class="number">{r.active_seconds > 0 ? duration(r.active_seconds * 1000) : ""}</td>
              <td class="number" title={exact(r.started)}>
                <Ago time={r.started} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
