// Package updates turns the events of a run into what the run says: replies and their text as it comes, calls of tools,
// steps and questions. A [Tracker] knows what was passed on of each reply, so that a receiver gets each text once: also
// after a request that is sent again, after a crash, and if the receiver came in the middle. The protocols of the
// server are mappings of its updates.
package updates
