// Package script implements models that use a file: a [Transcript] answers with
// the replies of a file instead of a provider, and a [Recorder] writes such a
// file while a real model answers. A Transcript needs no network and no key, so
// it is useful for examples, demonstrations and tests.
//
// # The file
//
// A transcript is a YAML list of replies.
//
//	# transcript.yaml
//	- match: [Classify, invoice]     # all of these occur in the request
//	  text: billing
//	- match: What is the weather     # a single string is also accepted
//	  turn: 1                        # the first request of a conversation
//	  reasoning: I should look it up.
//	  tool_calls:
//	    - name: get_weather
//	      args: {city: Oslo}
//	- match: What is the weather
//	  turn: 2
//	  text: It is 18 degrees in Oslo.
//	  usage: {input: 40, output: 9}
//	- match: unstable
//	  error: {class: rate_limited, status: 429, message: slow down}
//	- text: I do not know.           # without a condition: in order
//	  repeat: true
//
// The keys of a reply:
//
//	match       a string or a list of them; every one must occur, with the same
//	            case, in the system prompt, a line break and the text of the
//	            user's messages, in that order
//	turn        the number of the request in its conversation: the number of
//	            replies in its messages plus one
//	request     the digest of exactly one request; a Recorder writes it
//	after       a string or a list of them; every one must occur in the outcomes
//	            of the calls that the last reply has made
//	text        the text of the reply
//	reasoning   the reasoning before the text
//	tool_calls  a list of calls: name, args (a mapping), and optionally id
//	error       a failure instead of a reply: either a mapping with class, status,
//	            code, message and retry_after_ms, which makes an llm.Error, where
//	            class may be left out if there is a status; or a string, which is
//	            the whole text of an error without a class
//	delay_ms    how long the reply takes, in milliseconds
//	repeat      true: the reply can be used any number of times
//	usage       the token counts: input, output, cached, reasoning
//	stop        why the model stopped; if left out, "tools" if there are calls
//	            and otherwise "end"
//
// # Values of a run
//
// In text and in the values of args, {{outcome.N}} is replaced by the outcome
// of a call in the conversation: the first one if N is 1, the last one if N is
// -1. {{outcome.N.messages.0.from}} is replaced by a value in an outcome that
// is JSON, as text; if a text in it is JSON, the path may continue in that
// text. A transcript can use this to name an agent that it has spawned. A value
// that does not exist is an error.
//
// # Which reply is used
//
// A request gets the first unused reply that names conditions (match, turn,
// request, after) and whose conditions are all true. If there is none, it gets
// the next unused reply that names no condition, in the order of the file. If
// there is none of those either, the error is an [*UnmatchedError]. A reply is
// used as soon as a request gets it, also when the request is cancelled during
// its delay.
//
// # Parallel calls and resumed runs
//
// A Transcript knows only the replies that it has given itself, in this
// process. A journaled run that is resumed in another process does not repeat
// the requests whose replies it has, so a new Transcript would start again with
// the first reply. There are three solutions, the best one first:
//
//   - Let every request find its reply by its content: write what distinguishes
//     it in match, distinguish the turns of a tool loop with turn, and use
//     repeat if the same question may come again. Then nothing depends on which
//     replies were used before. Do this in examples; it is the only solution
//     that makes parallel calls deterministic.
//   - Pass the IDs of the replies that the run has recorded to
//     [Transcript.Skip]. This is exact for every transcript.
//   - For replies in order, set [Transcript.Position] if the engine knows the
//     position of a call.
package script
