// Names of the page for what the API answers. api-types.ts has all of it, made from the document of the API: what has a name here is called
// otherwise in a page, or has parts that the document does not describe.
import type * as api from "./api-types";

export type { AgentDetail, Base, Break, Chart, Chunk, Comparison, Difference, Moment, NodeWork, PromptTemplate, Stop, Variable, Work } from "./api-types";
export type Branch = api.ApiBranch;
export type Given = api.RunsAnswer;
export type RunInfo = api.Item;
export type RunPage = api.RunPage;
export type Totals = api.Totals;
export type RunPart = api.OverviewBranch;
export type Sent = api.Request;
export type NodeFailure = api.Failure;
export type Span = api.Span;
export type Spent = api.Spent;
export type Moments = api.Timeline;
export type Usage = api.OverviewUsage;

// AgentInfo is an agent of the list, or the detail of one.
export type AgentInfo = Omit<api.AgentInfo, "dir">;

export type Tool = Omit<api.ToolInfo, "schema"> & { schema: { properties?: unknown; required?: unknown } };

export interface Page<T> {
  items: T[];
  next_cursor?: string;
}

// CallData is what the question about a call of a tool is about.
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

export type Question = Omit<api.Question, "data"> & { data?: CallData };

export type OpenQuestion = Omit<api.OverviewQuestion, "question"> & { question: Question };

export type Run = Omit<api.Run, "state" | "path" | "questions"> & {
  state: Record<string, unknown>;
  path: (string | string[])[] | null;
  questions: Question[] | null;
};

export type MomentDetail = Omit<api.MomentDetail, "question"> & { question?: Question };

export type ToolList = Omit<api.ToolList, "tools"> & { tools: Tool[] | null };

// Trial is the outcome of a call that a person tries.
export type Trial = Omit<api.Trial, "question"> & { question?: Question };

// Part is a part of a message.
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

export type Entry = Omit<api.Entry, "message"> & { message?: { role?: string; parts?: Part[] } };

// Session is a conversation in their list: the last run of it.
export type Session = api.Info & { session: string };

export type Conversation = Omit<api.Conversation, "messages"> & { messages: Entry[] };

// LastRun is the last run of a conversation, with what is asked.
export type LastRun = Omit<api.Info, "questions"> & Pick<Run, "questions">;

// Event is one event of a run, as the stream of events sends it.
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
