// The status of a run or a node: a shape and a word, so that no meaning is in a colour alone.

const shapes: Record<string, string> = {
  running: "◐",
  queued: "◌",
  waiting: "◆",
  paused: "❚❚",
  done: "✓",
  halted: "✓",
  failed: "✕",
  "step-limit": "✕",
  "visit-limit": "✕",
  "timed-out": "✕",
  stuck: "✕",
  "cleaned-up": "✕",
  "given-up": "✕",
  damaged: "✕",
  crashed: "⚡",
  abandoned: "⊘",
  canceled: "⊘",
};

export function Status({ status }: { status: string }) {
  return (
    <span class={"status status-" + status}>
      <span class="shape" aria-hidden="true">
        {shapes[status] ?? "•"}
      </span>
      {status}
    </span>
  );
}
