import { useState } from "preact/hooks";
import { get, post, words } from "../api";
import { visible } from "../format";
import type { Base, Chunk, Page } from "../types";
import { Failure, useLoaded } from "./common";

// Bases lists the knowledge bases of an agent, each with a form to search it. An agent without one shows nothing.
export function Bases({ agent }: { agent: string }) {
  const list = useLoaded((s) => get<Page<Base>>("bases?limit=200&agent=" + encodeURIComponent(agent), s), [agent]);
  if (!list.error && !list.value?.items.length) return null;
  return (
    <section aria-labelledby="bases" class="panel">
      <h2 id="bases">Knowledge bases</h2>
      <Failure text={list.error} />
      {list.value?.items.map((b) => <SearchBase key={b.id} agent={agent} base={b} />)}
    </section>
  );
}

function SearchBase({ agent, base }: { agent: string; base: Base }) {
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<Chunk[] | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const search = async () => {
    setBusy(true);
    setError("");
    try {
      setFound(await post<Chunk[]>(`bases/${encodeURIComponent(base.id)}/search`, { agent, query }));
    } catch (e) {
      setError(words(e));
    }
    setBusy(false);
  };
  return (
    <div class="base">
      <h3>
        <code>{visible(base.id)}</code> <span class="dim">{base.built ? "built" : "not built: the first run builds it, or raddle rag build"}</span>
      </h3>
      <p class="dim">From {visible(base.documents.join(", "))}</p>
      {base.built && (
        <form
          class="search"
          onSubmit={(e) => {
            e.preventDefault();
            void search();
          }}
        >
          <input type="search" aria-label={"Search " + base.id} placeholder="Search it" value={query} onInput={(e) => setQuery(e.currentTarget.value)} />
          <button type="submit" disabled={busy || !query.trim()}>
            Search
          </button>
        </form>
      )}
      <Failure text={error} />
      {found && found.length === 0 && <p class="dim">Nothing was found.</p>}
      {found && found.length > 0 && (
        <ol class="chunks">
          {found.map((c, i) => (
            <li key={i}>
              <span class="dim">{visible(c.source ?? "")}</span>
              <pre class="text">{visible(c.text ?? "")}</pre>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
