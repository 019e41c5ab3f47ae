import { useState } from "preact/hooks";
import { get, getText } from "../api";
import { visible } from "../format";
import { Failure, useLoaded } from "../parts/common";
import { Bases } from "../parts/bases";
import { Measures } from "../parts/measures";
import { Picture } from "../parts/picture";
import { Tools } from "../parts/tools";
import type { AgentDetail, Page, RunInfo } from "../types";
import { chatPath } from "./chat";
import { RunTable } from "../parts/runs";
import { StartForm } from "../parts/start";
import { runsPath } from "../router";

// Agent shows one agent: its picture, findings beside its files, its tools and knowledge bases, and its runs.
export function Agent({ name }: { name: string }) {
  const path = "agents/" + encodeURIComponent(name);
  const detail = useLoaded((s) => get<AgentDetail>(path, s), [name]);
  const runs = useLoaded((s) => get<Page<RunInfo>>("runs?limit=30&agent=" + encodeURIComponent(name), s), [name], 3000);
  const [file, setFile] = useState("");
  const shown = file || detail.value?.files[0] || "";
  const text = useLoaded((s) => (shown ? getText(`${path}/files/${shown.split("/").map(encodeURIComponent).join("/")}`, s) : Promise.resolve("")), [name, shown]);
  const a = detail.value;
  return (
    <div class="columns">
      <main id="main">
        <div class="bar">
          <h1>{name}</h1>
          {a?.kind === "agent" && (
            <span class="actions">
              <a class="button" href={chatPath(name)}>
                Talk
              </a>
            </span>
          )}
        </div>
        <Failure text={detail.error} />
        {a && (
          <>
            <p class="dim">{visible(a.description)}</p>
            <section aria-label="Picture" class="panel">
              <Picture path={path + "/picture.svg"} title={"Graph of " + name} />
            </section>
            <section aria-labelledby="files" class="panel">
              <div class="bar">
                <h2 id="files">Files</h2>
                <select aria-label="File" value={shown} onChange={(e) => setFile(e.currentTarget.value)}>
                  {a.files.map((f) => (
                    <option key={f}>{f}</option>
                  ))}
                </select>
              </div>
              {a.findings.map((f) => (
                <p class={"finding finding-" + f.severity} key={`${f.code} ${f.pos.file} ${f.pos.line}`}>
                  <strong>{f.severity}</strong> {f.pos.line ? `line ${f.pos.line}: ` : ""}
                  {visible(f.message)}
                </p>
              ))}
              {a.findings.length === 0 && <p class="dim">raddle check finds nothing.</p>}
              <pre class="text file" tabIndex={0} aria-label={shown}>
                {visible(text.value ?? "")}
              </pre>
              <Failure text={text.error} />
            </section>
            <Tools agent={name} />
            <Bases agent={name} />
          </>
        )}
        <section aria-labelledby="agent-runs">
          <div class="bar">
            <h2 id="agent-runs">Runs</h2>
            <a class="actions" href={runsPath({ agent: name })}>
              All runs
            </a>
          </div>
          <Failure text={runs.error} />
          {runs.value && <Measures runs={runs.value.items} />}
          <RunTable runs={runs.value?.items} empty="This agent has not run yet." />
        </section>
      </main>
      <aside aria-label="Start this agent">{a && <StartForm agents={[a]} fixed={name} />}</aside>
    </div>
  );
}
