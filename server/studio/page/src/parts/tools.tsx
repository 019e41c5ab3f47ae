import { useState } from "preact/hooks";
import { get, post, words } from "../api";
import { visible } from "../format";
import type { Question, Tool, ToolList, Trial } from "../types";
import { Failure, useLoaded } from "./common";
import { PermissionForm } from "./question";

// Property is what the schema of a tool says about one argument.
interface Property {
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  default?: unknown;
}

// typeOf returns the JSON type of an argument; "json" if it has several or none.
function typeOf(p: Property): string {
  const types = [p.type ?? []].flat().filter((t) => t !== "null");
  return types.length === 1 && ["string", "number", "integer", "boolean"].includes(types[0]!) ? types[0]! : "json";
}

// toArgument returns the value that a person has typed. The error says why it is none.
function toArgument(name: string, p: Property, text: string): unknown {
  if (p.enum) return p.enum.find((v) => String(v) === text);
  switch (typeOf(p)) {
    case "string":
      return text;
    case "boolean":
      return text === "true";
    case "number":
    case "integer":
      if (text.trim() === "" || Number.isNaN(Number(text))) throw new Error(`${name} must be a number.`);
      return Number(text);
    default:
      try {
        return JSON.parse(text) as unknown;
      } catch {
        throw new Error(`${name} must be JSON.`);
      }
  }
}

const asks: Record<string, string> = { never: "never asks", always: "always asks", denied: "is denied", depends: "asks if its arguments need it" };

// Tools lists the tools that an agent may call, each with a form to try it.
export function Tools({ agent }: { agent: string }) {
  const list = useLoaded((s) => get<ToolList>("tools?agent=" + encodeURIComponent(agent), s), [agent]);
  const l = list.value;
  return (
    <section aria-labelledby="tools" class="panel">
      <h2 id="tools">Tools</h2>
      <Failure text={list.error} />
      {l?.problems?.map((p) => <Failure key={p} text={visible(p)} />)}
      {l && !l.tools?.length && !l.mcp_servers?.length && <p class="dim">This agent has no tools.</p>}
      {l?.tools?.map((t) => (
        <details class="call" key={t.name}>
          <summary>
            <code>{visible(t.name)}</code> <span class="dim">{asks[t.asks] ?? visible(t.asks)}</span>
          </summary>
          <TryTool agent={agent} tool={t} />
        </details>
      ))}
      {!!l?.mcp_servers?.length && <p class="dim">MCP servers, whose tools are known when they run: {visible(l.mcp_servers.join(", "))}.</p>}
    </section>
  );
}

// TryTool is a form for the arguments of a tool, and what a call gave. A call that asks is made only when the person allows exactly this one.
function TryTool({ agent, tool }: { agent: string; tool: Tool }) {
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [asked, setAsked] = useState<{ question: Question; args: unknown } | null>(null);
  const [trial, setTrial] = useState<Trial | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const properties = Object.entries((tool.schema.properties ?? {}) as Record<string, Property>);
  const required = (tool.schema.required ?? []) as string[];
  const call = async (args: unknown, allow: string) => {
    setBusy(true);
    setError("");
    setTrial(null);
    setAsked(null);
    try {
      const t = await post<Trial>(`tools/${encodeURIComponent(tool.name)}/call`, { agent, arguments: args, ...(allow ? { allow } : {}) });
      if (t.status === "asks" && t.question) setAsked({ question: t.question, args });
      else setTrial(t);
    } catch (e) {
      setError(words(e));
    }
    setBusy(false);
  };
  const start = () => {
    const args: Record<string, unknown> = {};
    try {
      for (const [name, p] of properties) {
        const text = texts[name] ?? "";
        if (text !== "" || (required.includes(name) && typeOf(p) === "string")) args[name] = toArgument(name, p, text);
      }
    } catch (e) {
      setError(words(e));
      return;
    }
    void call(args, "");
  };
  return (
    <>
      <p class="description">{visible(tool.description.trim())}</p>
      <form
        class="try"
        aria-label={"Try " + tool.name}
        onSubmit={(e) => {
          e.preventDefault();
          start();
        }}
      >
        {properties.map(([name, p]) => (
          <label key={name}>
            <span>
              {visible(name)} {required.includes(name) && <small>required</small>} {p.description && <small>{visible(p.description)}</small>}
            </span>
            <ArgumentInput p={p} text={texts[name] ?? ""} onText={(text) => setTexts({ ...texts, [name]: text })} />
          </label>
        ))}
        <div class="buttons">
          <button type="submit" disabled={busy || tool.asks === "denied"}>
            Try it
          </button>
        </div>
      </form>
      {asked && <PermissionForm q={asked.question} busy={busy} onAllow={() => void call(asked.args, asked.question.id)} onRefuse={() => setAsked(null)} />}
      <Failure text={error} />
      {trial && (
        <div role="status">
          <p class={trial.status === "failed" ? "failure" : "dim"}>{trial.status === "failed" ? "The call failed. A model would read:" : "A model would read:"}</p>
          <pre class="text">{visible(trial.output ?? "")}</pre>
        </div>
      )}
    </>
  );
}

function ArgumentInput({ p, text, onText }: { p: Property; text: string; onText(text: string): void }) {
  const type = typeOf(p);
  if (p.enum || type === "boolean")
    return (
      <select value={text} onChange={(e) => onText(e.currentTarget.value)}>
        <option value="">–</option>
        {(p.enum ?? [true, false]).map((v) => (
          <option key={String(v)}>{String(v)}</option>
        ))}
      </select>
    );
  if (type === "number" || type === "integer") return <input type="number" step="any" value={text} onInput={(e) => onText(e.currentTarget.value)} />;
  return <textarea rows={text.includes("\n") ? 4 : 1} placeholder={type === "json" ? "JSON" : ""} value={text} onInput={(e) => onText(e.currentTarget.value)} />;
}
