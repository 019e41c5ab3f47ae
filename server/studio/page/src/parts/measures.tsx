import { cost, duration, exact } from "../format";
import { runPath } from "../router";
import type { RunInfo } from "../types";
import { Heads } from "./common";

const width = 12;
const height = 48;

// Measures shows how long the last runs worked and what they cost, the oldest on the left. The table has the same in figures.
export function Measures({ runs }: { runs: RunInfo[] }) {
  const list = runs
    .map((r) => ({ ...r, seconds: r.active_seconds, cost: r.usage.cost_usd }))
    .sort((a, b) => a.started.localeCompare(b.started));
  if (list.length === 0) return null;
  const costs = list.map((r) => r.cost ?? 0);
  return (
    <div class="measures">
      <Bars label="Time worked" values={list.map((r) => r.seconds)} format={(s) => duration(s * 1000)} runs={list} />
      {costs.some((c) => c > 0) && <Bars label="Cost" values={costs} format={cost} runs={list} />}
      <details>
        <summary>As a table</summary>
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <Heads columns={[["Started"], ["Run"], ["Status"], ["Time worked", "number"], ["Cost", "number"]]} />
              </tr>
            </thead>
            <tbody>
              {list.toReversed().map((r) => (
                <tr key={r.run}>
                  <td>{exact(r.started)}</td>
                  <td>
                    <a href={runPath(r.run)}>
                      <code>{r.run}</code>
                    </a>
                  </td>
                  <td>{r.status}</td>
                  <td class="number">{duration(r.seconds * 1000)}</td>
                  <td class="number">{cost(r.cost)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </div>
  );
}

function Bars({ label, values, format, runs }: { label: string; values: number[]; format(v: number): string; runs: RunInfo[] }) {
  const most = Math.max(...values);
  const text = `${label} of the last ${runs.length} runs: ${format(values.at(-1)!)} for the newest, at most ${format(most)}`;
  return (
    <figure>
      <figcaption>
        {label} <span class="dim">newest {format(values.at(-1)!)}, at most {format(most)}</span>
      </figcaption>
      <svg role="img" aria-label={text} viewBox={`0 0 ${Math.max(30, values.length) * width} ${height}`} preserveAspectRatio="xMinYMax meet">
        {values.map((v, i) => {
          const h = most > 0 ? Math.max(1, (v / most) * height) : 1;
          return (
            <rect key={runs[i]!.run} class={"bar-" + runs[i]!.status} x={i * width} y={height - h} width={width - 3} height={h}>
              <title>{`${exact(runs[i]!.started)}, ${runs[i]!.status}: ${format(v)}`}</title>
            </rect>
          );
        })}
      </svg>
    </figure>
  );
}
