import { get } from "../api";
import { Ago, Failure, useLoaded } from "../parts/common";
import { Day } from "../parts/day";
import { AnswerForm } from "../parts/question";
import { RunTable } from "../parts/runs";
import { StartForm } from "../parts/start";
import { runPath, runsPath } from "../router";
import type { AgentInfo, OpenQuestion, Page, RunPage, Totals } from "../types";

// Home shows what needs a person, what the last day came to, and what ran last; it starts agents.
export function Home() {
  const questions = useLoaded((s) => get<Page<OpenQuestion>>("questions?limit=3", s), [], 2000);
  const runs = useLoaded((s) => get<RunPage>("runs?limit=10", s), [], 2000);
  const totals = useLoaded((s) => get<Totals>("overview?hours=24", s), [], 15_000);
  const agents = useLoaded((s) => get<Page<AgentInfo>>("agents?limit=200", s), []);
  const open = questions.value?.items ?? [];
  const isNew = runs.value?.items.length === 0;
  return (
    <div class="columns">
      <main id="main">
        {isNew && agents.value && <FirstUse agents={agents.value.items} />}
        {!isNew && (
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
        )}
        {!isNew && (
          <section aria-labelledby="day">
            <h2 id="day">Last 24 hours</h2>
            <Failure text={totals.error} />
            {totals.value && <Day totals={totals.value} />}
          </section>
        )}
        <section aria-labelledby="runs">
          <div class="bar">
            <h2 id="runs">Runs</h2>
            <a class="actions" href={runsPath({})}>
              All runs
            </a>
          </div>
          <Failure text={runs.error} />
          <RunTable runs={runs.value?.items} empty="Nothing has run yet. Start an agent here, or with: raddle run AGENT" />
        </section>
      </main>
      <aside aria-label="Start an agent">
        <StartForm agents={agents.value?.items ?? []} />
        <Failure text={agents.error} />
      </aside>
    </div>
  );
}

// FirstUse says what to do where nothing has run.
function FirstUse({ agents }: { agents: AgentInfo[] }) {
  const models = useLoaded((s) => get<Page<unknown>>("models?limit=1", s), []);
  const hasModel = (models.value?.items.length ?? 0) > 0;
  return (
    <section aria-labelledby="first">
      <h1 id="first">Welcome</h1>
      <p>Nothing has run here yet. Three steps lead to the first run:</p>
      <ol class="steps">
        <li>
          <strong>A model.</strong>{" "}
          {models.value && !hasModel ? (
            <>
              None is set up. Run <code>raddle init</code> in a terminal, which asks for one and its key. Without a key, <code>raddle try</code> shows an agent at work.
            </>
          ) : (
            <>
              There is one. <code>raddle models</code> lists what can be called.
            </>
          )}
        </li>
        <li>
          <strong>An agent.</strong>{" "}
          {agents.length > 0 ? (
            <>
              Choose one of {agents.length} in the form, or look at{" "}
              {agents.slice(0, 3).map((a, i) => (
                <>
                  {i > 0 && ", "}
                  <a href={"agents/" + encodeURIComponent(a.name)}>{a.name}</a>
                </>
              ))}
              .
            </>
          ) : (
            <>
              There is none. <code>raddle agents new NAME</code> creates one, and <code>raddle examples</code> lists some to copy.
            </>
          )}
        </li>
        <li>
          <strong>A run.</strong> Say what it shall do, and press <em>Run</em>. You see each step as it happens, and can go back to it.
        </li>
      </ol>
    </section>
  );
}
