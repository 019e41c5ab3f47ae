// Package agentfile reads agents of one Markdown file, such as roles, and writes them as the config.yaml that package
// flow loads. There is one form of agents that run; these are ways to write it.
package agentfile
