// Package toolbox gives the agents of a process their tools: scripts, tools that come with the program, and MCP
// servers. It decides which of them the user has approved, which calls may be made, and which values are secrets.
//
// [Shared] holds what all runs of a process share, a [Toolbox] opens the tools of one run, and a [Gate] decides about
// their calls.
package toolbox
