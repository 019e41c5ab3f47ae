// Package report holds what runs say and have said: progress while they work, questions, the story and the overview of
// past ones, the developer log.
package report
