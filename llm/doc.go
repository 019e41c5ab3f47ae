// Package llm defines the interface between raddle and language models: a
// request goes in, a stream of deltas comes out, and the last delta carries the
// complete reply. llm itself opens no connection and contains no code for a
// provider; it imports only the standard library.
//
//	reply, err := llm.Generate(ctx, model, llm.Request{
//		System:   "Answer in one word.",
//		Messages: []llm.Message{llm.User("What is the capital of Norway?")},
//	})
//
// The packages openai, anthropic, gemini, bedrock, ollama and script provide a
// [Model]. Those that reach a provider take an [Endpoint]: its address, key and
// limits. To write your own model, implement its single method.
//
// # Messages
//
// A [Message] is a role and a list of typed parts: [Text], [Image], [File],
// [Reasoning], [ToolCall] and [ToolResult]. Messages, requests and replies
// survive a round trip through encoding/json unchanged, each part with a "type"
// tag, so they can be stored in a journal. The system prompt is a field of
// [Request], not a message.
//
// # Failures
//
// A provider's failure is an [*Error] with a [Class]. The class depends on the
// HTTP status, the provider's machine-readable code or the Go type of the
// cause, never on the text of a message. When the caller's own context ends,
// the error is that of the context and no *Error is in its chain.
//
// A reply without text and without tool calls is not an error here: the caller
// decides whether it accepts an empty reply.
package llm
