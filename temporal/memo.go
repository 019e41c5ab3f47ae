package temporal

// These are the keys of the memo of a run's workflow, which lists and the user interface of Temporal show.
const (
	memoAgent   = "agent"
	memoHash    = "hash"    // of the graph
	memoStatus  = "status"  // of the last drive that did not end with the process of its worker
	memoWaiting = "waiting" // ids of open questions
)
