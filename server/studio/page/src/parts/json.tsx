import { useState } from "preact/hooks";
import { visible } from "../format";

const mostMembers = 200;

// Json shows a value as a tree that can be folded.
export function Json({ value, depth = 0 }: { value: unknown; depth?: number }) {
  if (value === null || typeof value !== "object") return <Leaf value={value} />;
  const entries = Object.entries(value as Record<string, unknown>);
  if (entries.length === 0) return <span class="json-empty">{Array.isArray(value) ? "[]" : "{}"}</span>;
  return (
    <details class="json" open={depth < 2 && entries.length <= 20}>
      <summary>
        {Array.isArray(value) ? `list of ${entries.length}` : `${entries.length} ${entries.length === 1 ? "member" : "members"}`}
      </summary>
      <Members entries={entries} depth={depth} />
    </details>
  );
}

function Members({ entries, depth }: { entries: [string, unknown][]; depth: number }) {
  const [most, setMost] = useState(mostMembers);
  return (
    <ul>
      {entries.slice(0, most).map(([k, v]) => (
        <li key={k}>
          <span class="json-key">{visible(k)}</span> <Json value={v} depth={depth + 1} />
        </li>
      ))}
      {entries.length > most && (
        <li>
          <button type="button" onClick={() => setMost(most + mostMembers)}>
            {entries.length - most} more
          </button>
        </li>
      )}
    </ul>
  );
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value !== "string") return <span class="json-other">{String(value)}</span>;
  if (value.includes("\n") || value.length > 100) return <pre class="text">{visible(value)}</pre>;
  return <span class="json-text">{visible(value)}</span>;
}
