// Package mcpsetup changes and lists the files in which MCP servers are listed, and tries their servers.
package mcpsetup
