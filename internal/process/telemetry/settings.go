package telemetry

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"raddle.dev/internal/base/plainfile"
)

// Settings are what the variables of OpenTelemetry ask for. The zero value asks for nothing.
type Settings struct {
	Traces  *Receiver // nil: traces are not sent
	Metrics *Receiver // nil: metrics are not sent

	Content  bool     // spans contain the texts of messages, calls and searches
	Warnings []string // values of variables that are ignored
}

// A Receiver is where one signal is sent.
type Receiver struct {
	URL      string
	Headers  map[string]string
	Timeout  time.Duration
	Compress bool // with gzip

	tls *tls.Config // nil: that of the system
}

// The variables that raddle reads itself. The SDK reads the others, such as OTEL_TRACES_SAMPLER.
const (
	varDisabled = "OTEL_SDK_DISABLED"
	varOTLP     = "OTEL_EXPORTER_OTLP_"
	varContent  = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

	protocolJSON   = "http/json"
	defaultBase    = "http://localhost:4318"
	defaultTimeout = 10 * time.Second
)

// IsConfigured reports whether the environment asks for traces or metrics. It is cheap.
func IsConfigured(lookup func(name string) string) bool {
	if strings.EqualFold(lookup(varDisabled), "true") {
		return false
	}
	for _, name := range []string{varOTLP + "ENDPOINT", varOTLP + "TRACES_ENDPOINT", varOTLP + "METRICS_ENDPOINT"} {
		if lookup(name) != "" {
			return true
		}
	}
	return lookup("OTEL_TRACES_EXPORTER") == "otlp" || lookup("OTEL_METRICS_EXPORTER") == "otlp"
}

// ReadSettings reads the variables of OpenTelemetry. lookup returns the value of a variable, or
// "".
func ReadSettings(lookup func(name string) string) Settings {
	r := settingsReader{lookup: lookup}
	r.settings.Content = strings.EqualFold(lookup(varContent), "true")
	if !IsConfigured(lookup) {
		return r.settings
	}
	r.settings.Traces = r.readReceiver("TRACES", "v1/traces")
	r.settings.Metrics = r.readReceiver("METRICS", "v1/metrics")
	return r.settings
}

// settingsReader reads the variables of one process.
type settingsReader struct {
	lookup   func(name string) string
	settings Settings
	warned   bool // about the protocol
}

func (r *settingsReader) warn(format string, args ...any) {
	r.settings.Warnings = append(r.settings.Warnings, fmt.Sprintf(format, args...))
}

// lookupFor returns the value of a variable for one signal, or else for all signals.
func (r *settingsReader) lookupFor(signal, name string) (from, value string) {
	from = varOTLP + signal + "_" + name
	if value = r.lookup(from); value != "" {
		return from, value
	}
	from = varOTLP + name
	return from, r.lookup(from)
}

// readReceiver returns where a signal is sent, or nil if it is not sent.
func (r *settingsReader) readReceiver(signal, path string) *Receiver {
	exporter := r.lookup("OTEL_" + signal + "_EXPORTER")
	own := r.lookup(varOTLP + signal + "_ENDPOINT")
	base := r.lookup(varOTLP + "ENDPOINT")
	switch {
	case exporter == "none":
		return nil
	case exporter != "" && exporter != "otlp":
		r.warn("OTEL_%s_EXPORTER=%s is ignored: raddle has only otlp and none", signal, exporter)
		return nil
	case own == "" && base == "" && exporter == "":
		return nil
	}
	address := cmp.Or(own, strings.TrimSuffix(cmp.Or(base, defaultBase), "/")+"/"+path)
	if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		r.warn("the address of the receiver of %s is not an http or https URL, so they are not sent", strings.ToLower(signal))
		return nil
	}
	to := &Receiver{URL: address, Timeout: defaultTimeout, Headers: map[string]string{}}
	if from, protocol := r.lookupFor(signal, "PROTOCOL"); protocol != "" && protocol != protocolJSON && !r.warned {
		r.warned = true
		r.warn("%s=%s is ignored: raddle sends %s only", from, protocol, protocolJSON)
	}
	r.readHeaders(signal, to)
	if from, text := r.lookupFor(signal, "TIMEOUT"); text != "" {
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			to.Timeout = time.Duration(n) * time.Millisecond
		} else {
			r.warn("%s=%s is ignored: it must be a number of milliseconds", from, text)
		}
	}
	if from, name := r.lookupFor(signal, "COMPRESSION"); name == "gzip" {
		to.Compress = true
	} else if name != "" && name != "none" {
		r.warn("%s=%s is ignored: raddle has only gzip and none", from, name)
	}
	if err := r.readCertificates(signal, to); err != nil {
		r.warn("%v, so %s are not sent", err, strings.ToLower(signal))
		return nil
	}
	return to
}

// readHeaders reads name=value pairs with commas between them, in the encoding of URLs.
func (r *settingsReader) readHeaders(signal string, to *Receiver) {
	from, list := r.lookupFor(signal, "HEADERS")
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil || strings.ContainsAny(name+value, "\r\n") {
			r.warn("%s: a header is ignored, because it is not name=value", from) // its value may be a secret
			continue
		}
		to.Headers[name] = value
	}
}

// readCertificates reads the certificate that signs the receiver's, and the client's own.
func (r *settingsReader) readCertificates(signal string, to *Receiver) error {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if from, file := r.lookupFor(signal, "CERTIFICATE"); file != "" {
		text, err := plainfile.Read(file, 1<<20)
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s: %s contains no certificate", from, file)
		}
		to.tls = c
	}
	_, certificate := r.lookupFor(signal, "CLIENT_CERTIFICATE")
	_, key := r.lookupFor(signal, "CLIENT_KEY")
	if (certificate == "") != (key == "") {
		return errors.New("the certificate of the client needs a key, and the key a certificate")
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return fmt.Errorf("the certificate of the client: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
		to.tls = c
	}
	return nil
}
