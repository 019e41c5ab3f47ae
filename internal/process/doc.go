// Package process holds what runs agents: the process with its agents by name, models of providers, tools and their
// permissions, logins, conversations, and the telemetry of all of it.
package process
