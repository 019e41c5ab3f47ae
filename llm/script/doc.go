// Package script answers from a file instead of a provider: a [Transcript]
// replays written replies, and a [Recorder] writes them while a real model
// answers. It needs no network and no key, which makes it the model of examples,
// demonstrations and tests.
//
// # The file
//
// A transcript is a YAML list of replies.
//
//	# transcript.yaml
//	- match: [Classify, invoice]     # all of these occur in the request
//	  text: billing
//	- match: What is the weather     # a single string will do
//	  turn: 1                        # nothing has been answered in this conversation yet
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
//	match       a string or a list of them; every one must occur in the system
//	            prompt, a line break and the text of the user's messages, in that
//	            order and to the letter
//	turn        the number of the request within its conversation: one more than
//	            the replies that its messages hold
//	request     the digest of exactly one request; a Recorder writes it
//	after       a string or a list of them; every one must occur in the outcomes
//	            of the calls that the last reply has made
//	text        what the model says
//	reasoning   what it thinks first
//	tool_calls  a list of calls: name, args (a mapping), and id if it matters
//	error       a failure instead of a reply: either a mapping with class, status,
//	            code, message and retry_after_ms, which makes an llm.Error, where
//	            class may be left out if there is a status; or a string, which is
//	            the whole text of an error without a class
//	delay_ms    how long the reply takes, in milliseconds
//	repeat      true: the reply may be given any number of times
//	usage       the token counts: input, output, cached, reasoning
//	stop        why the model stopped; if left out, "tools" where there are calls
//	            and else "end"
//
// # What only a run knows
//
// In text and in the values of args, {{outcome.N}} stands for the outcome of a
// call in the conversation: of the first where N is 1, of the last where it is
// -1. {{outcome.N.messages.0.from}} is a value in it, if it is JSON, as text; a
// text in it that is JSON is looked into as well. That is how a transcript names
// an agent that it has spawned. A value that is not there is an error.
//
// # Which reply is given
//
// A request gets the first unused reply that names conditions (match, turn,
// request, after) and whose conditions all hold. If there is none, it gets the next
// unused reply that names no condition: those are given in the order of the
// file. If there is none of those either, the error is an [*UnmatchedError]. A
// reply is used as soon as a request has got it, also when the request is
// cancelled during its delay.
//
// # Parallel calls and resumed runs
//
// Which replies are used up is known to one Transcript in one process. A
// journaled run that is resumed elsewhere does not repeat the requests whose
// replies it has, so a fresh Transcript would start again with the first one.
// From the best remedy to the last:
//
//   - Let every request find its reply by its content: name what distinguishes it
//     in match, tell the turns of a tool loop apart by turn, and use repeat where
//     the same question may come again. Then nothing depends on what was used
//     before. This is what examples should do, and the only thing that makes
//     parallel calls deterministic.
//   - Pass the IDs of the replies that the run has recorded to [Transcript.Skip].
//     This is exact for every transcript.
//   - For replies in order, let the engine that knows the place of a call say it:
//     [Transcript.Position].
package script
