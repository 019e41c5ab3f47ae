package fold

// Status is a graph.Status, by its number in records. The fold must know these only.
type Status uint8

// The statuses, with the numbers of those of package graph.
const (
	Running   Status = 0
	Done      Status = 1
	Paused    Status = 3
	Failed    Status = 4
	Abandoned Status = 10
	Crashed   Status = 11
)

// Final reports whether the run has ended permanently: it cannot be resumed.
func (s Status) Final() bool { return s == Done || s == Abandoned }
