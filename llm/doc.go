// Package llm is the one shape in which raddle talks to language models: a
// request goes in, a stream of deltas comes out, and the last delta carries the
// whole reply. Unlike the packages below it, llm opens no connection and knows
// no vendor; it imports the standard library only.
//
//	reply, err := llm.Generate(ctx, model, llm.Request{
//		System:   "Answer in one word.",
//		Messages: []llm.Message{llm.User("What is the capital of Norway?")},
//	})
//
// A [Model] is what the packages openai, anthropic, gemini and script provide.
// Writing another one takes a single method.
//
// # Messages
//
// A [Message] is a role and a list of typed parts: [Text], [Image], [File],
// [Reasoning], [ToolCall] and [ToolResult]. Messages, requests and replies
// survive a round trip through encoding/json unchanged, each part with a "type"
// tag, so they can be kept in a journal. The system prompt is a field of
// [Request], not a message.
//
// # Failures
//
// A provider's failure is an [*Error] with a [Class], decided by the HTTP
// status, the provider's machine-readable code or the Go type of the cause,
// never by reading text. When the caller's own context ends, the error is that
// of the context and no *Error is in its chain.
//
// A reply without text and without tool calls is not an error here: whether
// silence is acceptable is for the caller to say.
package llm
