// Package sdkcheck decodes what raddle exports with the types that OpenTelemetry publishes. It
// is a module of its own, so that raddle does not depend on them.
package sdkcheck
