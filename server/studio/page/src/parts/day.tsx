import { cost, count, duration, exact, short, visible } from "../format";
import { failedStatuses } from "../pages/runs";
import { runsPath } from "../router";
import type { Totals } from "../types";
import { Heads } from "./common";

const last = "24h";

// Day shows what the runs of the last day came to. Each number leads to its runs.
export function Day({ totals: t }: { totals: Totals }) {
  return (
    <>
      <ul class="figures">
        <Figure name={t.runs === 1 ? "run" : "runs"} value={short(t.runs) + (t.partial ? "+" : "")} href={runsPath({ last })} />
        <Figure name="failed" value={short(t.failed)} href={runsPath({ last, status: failedStatuses })} bad={t.failed > 0} />
        <Figure name="work now" value={short(t.working)} href={runsPath({ status: "running,queued" })} />
        <Figure name={t.waiting > 0 && t.longest_wait_seconds >= 60 ? `wait, longest ${duration(t.longest_wait_seconds * 1000)}` : "wait"} value={short(t.waiting)} href={runsPath({ status: "waiting" })} />
        <Figure name="cost" value={cost(t.usage.cost_usd)} href={runsPath({ last, cost: "0.0001" })} />
        <Figure name="tokens" value={short(t.usage.input_tokens + t.usage.output_tokens)} />
      </ul>
      {t.runs > 0 && <Hours totals={t} />}
      {t.partial && <p class="dim">There are more runs: these are the newest {short(t.runs)}.</p>}
      {t.agents.length > 0 && (
        <div class="scroll" tabIndex={0} role="group" aria-label="By agent">
          <table class="day">
            <thead>
              <tr>
                <Heads columns={[["Agent"], ["Runs", "number"], ["Failed", "number"], ["Median", "number"], ["p95", "number"], ["Tokens", "number"], ["Cost", "number"]]} />
              </tr>
            </thead>
            <tbody>
              {t.agents.slice(0, 8).map((a) => (
                <tr key={a.agent}>
                  <td>
                    <a href={runsPath({ last, agent: a.agent })}>{a.agent}</a>
                  </td>
                  <td class="number">{short(a.runs)}</td>
                  <td class="number">{a.failed > 0 ? <a href={runsPath({ last, agent: a.agent, status: failedStatuses })}>{short(a.failed)}</a> : 0}</td>
                  <td class="number">{a.p50_seconds > 0 ? duration(a.p50_seconds * 1000) : "–"}</td>
                  <td class="number">{a.p95_seconds > 0 ? <a href={runsPath({ last, agent: a.agent, seconds: String(floor(a.p95_seconds)) })}>{duration(a.p95_seconds * 1000)}</a> : "–"}</td>
                  <td class="number">{short(a.usage.input_tokens + a.usage.output_tokens)}</td>
                  <td class="number">{a.usage.calls > 0 ? cost(a.usage.cost_usd) : "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {t.models.length > 0 && (
        <p class="dim">
          {t.models.slice(0, 5).map((m, i) => (
            <>
              {i > 0 && "; "}
              <a href={runsPath({ last, model: m.model })}>{visible(m.model) || "a model without a name"}</a>: {count(m.usage.calls, "call")}
              {m.usage.cost_usd !== null && `, ${cost(m.usage.cost_usd)}`}
            </>
          ))}
        </p>
      )}
    </>
  );
}

// floor returns a number of seconds with three digits that is not larger, so that the runs from it on have the one that it comes from.
const floor = (s: number) => Math.floor(s * 1000) / 1000;

function Figure({ name, value, href, bad }: { name: string; value: string; href?: string; bad?: boolean }) {
  const inside = (
    <>
      <strong>{value}</strong> <span class="dim">{name}</span>
    </>
  );
  return <li class={bad ? "bad" : ""}>{href ? <a href={href}>{inside}</a> : inside}</li>;
}

const width = 12;
const height = 40;

// Hours shows how many runs started in each hour, and how many of them failed. The table below has the figures.
function Hours({ totals: t }: { totals: Totals }) {
  const most = Math.max(1, ...t.hours.map((h) => h.runs));
  const busiest = t.hours.reduce((a, b) => (b.runs > a.runs ? b : a));
  return (
    <figure class="hours">
      <svg role="img" aria-label={`Runs by hour: at most ${busiest.runs}, in the hour from ${exact(busiest.start)}`} viewBox={`0 0 ${t.hours.length * width} ${height}`} preserveAspectRatio="none">
        {t.hours.map((h, i) => {
          const all = (h.runs / most) * height;
          const failed = (h.failed / most) * height;
          return (
            <g key={h.start}>
              <title>{`${exact(h.start)}: ${count(h.runs, "run")}, ${h.failed} failed, ${cost(h.cost_usd)}`}</title>
              <rect x={i * width} y={0} width={width - 2} height={height} class="ground" />
              <rect x={i * width} y={height - all} width={width - 2} height={all} />
              <rect x={i * width} y={height - failed} width={width - 2} height={failed} class="failed" />
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
