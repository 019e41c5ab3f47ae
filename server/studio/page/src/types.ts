// The parts of the API's answers that the studio reads. The whole is in /api/openapi.json.

export interface Page<T> {
  items: T[];
  next_cursor?: string;
}

export interface Question {
  id: string;
  node?: string;
  kind?: string;
  prompt: string;
  options?: string[];
  free?: boolean;
  type?: string;
  default?: string;
  secret?: boolean;
  data?: CallData;
}

export interface CallData {
  tool?: string;
  args?: unknown;
  agent?: string;
  detail?: {
    does?: string;
    command?: string;
    diff?: number;
    parts?: { text: string; why: string; detail?: string }[];
    risks?: string[];
    dir?: string;
  };
}

export interface OpenQuestion {
  run: string;
  agent: string;
  session?: string;
  status: string;
  since: string;
  question: Question;
}

export interface RunInfo {
  run: string;
  agent: string;
  session?: string;
  status: string;
  reason?: string;
  started: string;
  updated: string;
  questions: Question[];
}

export interface Usage {
  calls: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number | null;
  unpriced_calls: number;
  models: string[];
}

export interface Run extends RunInfo {
  output: string | null;
  exit_code: number | null;
  state: Record<string, unknown>;
  path: (string | string[])[];
  next: string[];
  usage: Usage;
  warnings: string[];
  active_seconds: number;
  error?: string;
  tree: RunPart;
  picture?: { from: string; note?: string };
  start?: { dir: string; prompt?: string; model?: string; templates?: Record<string, string> };
}

// Given is an answer that a question has.
export interface Given {
  id: string;
  by?: string;
  at: string;
  answer?: unknown;
  refused?: string;
}

// RunPart is a part of a run that worked: the run, an agent, or a node that called a model or ran a graph.
export interface RunPart {
  path: string;
  agent?: string;
  status: string;
  error?: string;
  purpose?: string;
  seconds: number;
  tool_calls: number;
  failed_tool_calls?: number;
  children: RunPart[];
  run?: string;
}

export interface Variable {
  name: string;
  description: string;
  default?: string;
}

export interface AgentInfo {
  name: string;
  kind: string;
  description: string;
  starters?: string[];
  variables?: Variable[];
}

export interface Finding {
  severity: string;
  code: string;
  message: string;
  file?: string;
  line?: number;
  column?: number;
  hint?: string;
}

export interface AgentDetail extends AgentInfo {
  variables: Variable[];
  starters: string[];
  findings: Finding[];
  files: string[];
}

export interface Moment {
  record: number;
  time: string;
  kind: string;
  text: string;
  place?: string;
  node?: string;
  from?: string[];
  next?: string[];
  tasks?: number;
  took_ms?: number;
  effect?: string;
  tokens?: number;
  status?: string;
  failed?: string[]; // places of what has failed with it
}

export interface MomentDetail extends Moment {
  keys?: string[];
  reply?: { text: string; model?: string; usage?: Record<string, number>; flaw?: string };
  asks?: { id: string; name: string; args: unknown }[];
  call?: { id: string; tool: string; args: unknown; status: string; outcome?: string };
  search?: { query: string; chunks: Chunk[] };
  question?: Question;
  answer?: unknown;
  refused?: string;
  reason?: string;
  reasoning?: string;
  output?: string;
  cost_usd?: number;
}

// Sent is what was asked of a model, as a replay of the run computes it.
export interface Sent {
  model: string;
  instructions?: string;
  prompt: string;
  tools?: string;
  settings?: string;
  notes: string[];
}

// Break is a place at which a run stops.
export interface Break {
  node: string;
  after?: boolean;
}

// Stop is a break as the server has it, with the place of its node in the picture.
export interface Stop extends Break {
  place: string;
}

export interface Session {
  agent: string;
  session: string;
  run: string;
  status: string;
  updated: string;
}

export interface Part {
  type: string;
  text?: string;
  id?: string;
  name?: string;
  args?: unknown;
  call_id?: string;
  mime?: string; // of an image or a file
  data?: string; // its bytes in base64
  content?: Part[];
}

export interface Entry {
  message?: { role?: string; parts?: Part[] };
  op?: string;
  by?: string; // the node that wrote it; missing: a person
  run?: string;
  said?: string;
}

// Branch is one branch of a conversation with the runs of its turns.
export interface Branch {
  session: string;
  name: string;
  from: number;
  current: boolean;
  updated: string;
  last: string;
  runs: string[];
}

export interface Conversation extends RunInfo {
  record: number; // the newest one that was read
  messages: Entry[];
}

export interface Event {
  seq: number;
  time: string;
  run: string;
  node?: string;
  task?: string;
  path?: string;
  kind: string;
  data: Record<string, unknown>;
}

export interface Tool {
  name: string;
  description: string;
  from: string;
  effect: string;
  asks: string;
  schema: Record<string, unknown>;
}

export interface ToolList {
  tools: Tool[];
  mcp_servers: string[];
  files: string[];
  problems: string[];
}

// Trial is the outcome of a call that a person tries.
export interface Trial {
  status: string;
  output?: string;
  question?: Question;
}

export interface Base {
  agent: string;
  id: string;
  documents: string[];
  built: boolean;
}

export interface Chunk {
  text?: string;
  source?: string;
  score?: number;
}

// PromptTemplate is the template of a node's prompt.
export interface PromptTemplate {
  node: string;
  text: string;
  changed?: boolean;
}
