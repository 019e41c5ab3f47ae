// Package provider finds models by their ids, CLIENT:MODEL: the clients of config.yaml and
// those that the environment or the user's key store has keys for, the wires that call them, transcripts that
// replace them, and what models can do and cost. It opens no connection before a call, except to
// ask a server on this machine for its models.
package provider
