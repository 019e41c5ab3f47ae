// Package telemetry exports what runs do as OpenTelemetry traces and metrics, in the JSON
// encoding of OTLP: over HTTP to a receiver, and as lines to a file. It is off unless a
// variable of OpenTelemetry or a file asks for it, and then costs nothing.
//
// A [Recording] makes the spans of runs, steps, tasks and questions from the events of a
// drive. The wrappers of models, tools and searches make the others where the work happens,
// inside its effect: nothing that the journal remembers is exported again.
//
// One run is one trace. Its id comes from the id of the run, or from the trace that the
// caller of the run belongs to, so that every process that works on the run uses the same.
package telemetry
