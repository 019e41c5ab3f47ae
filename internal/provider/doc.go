// Package provider finds models by their ids, CLIENT:MODEL: the clients of config.yaml and
// those that the environment has keys for, the wires that call them, transcripts that
// replace them, and what models can do and cost. It opens no connection before a call.
package provider
