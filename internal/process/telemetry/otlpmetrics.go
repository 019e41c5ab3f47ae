package telemetry

import (
	"encoding/json"
	"fmt"
	"strconv"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// The types below are the messages of OTLP for metrics, as those for spans in this package.
type (
	otlpMetrics struct {
		ResourceMetrics []otlpResourceMetrics `json:"resourceMetrics"`
	}
	otlpResourceMetrics struct {
		Resource     otlpResource       `json:"resource"`
		ScopeMetrics []otlpScopeMetrics `json:"scopeMetrics"`
		SchemaURL    string             `json:"schemaUrl,omitempty"`
	}
	otlpScopeMetrics struct {
		Scope   otlpScope    `json:"scope"`
		Metrics []otlpMetric `json:"metrics"`
	}
	otlpMetric struct {
		Name        string         `json:"name"`
		Description string         `json:"description,omitempty"`
		Unit        string         `json:"unit,omitempty"`
		Sum         *otlpSum       `json:"sum,omitempty"`
		Histogram   *otlpHistogram `json:"histogram,omitempty"`
	}
	otlpSum struct {
		Points      []otlpNumber `json:"dataPoints"`
		Temporality int          `json:"aggregationTemporality"`
		Monotonic   bool         `json:"isMonotonic,omitempty"`
	}
	otlpNumber struct {
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Start      string          `json:"startTimeUnixNano"`
		Time       string          `json:"timeUnixNano"`
		Double     *otlpDouble     `json:"asDouble,omitempty"`
		Int        *string         `json:"asInt,omitempty"`
	}
	otlpHistogram struct {
		Points      []otlpBuckets `json:"dataPoints"`
		Temporality int           `json:"aggregationTemporality"`
	}
	otlpBuckets struct {
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Start      string          `json:"startTimeUnixNano"`
		Time       string          `json:"timeUnixNano"`
		Count      string          `json:"count"`
		Sum        otlpDouble      `json:"sum"`
		Counts     []string        `json:"bucketCounts"`
		Bounds     []otlpDouble    `json:"explicitBounds"`
		Min        *otlpDouble     `json:"min,omitempty"`
		Max        *otlpDouble     `json:"max,omitempty"`
	}
)

// encodeMetrics returns metrics as an export request.
func encodeMetrics(rm *metricdata.ResourceMetrics, redact redactFunc) ([]byte, error) {
	out := otlpResourceMetrics{Resource: encodeResource(rm.Resource, redact), SchemaURL: rm.Resource.SchemaURL()}
	for _, s := range rm.ScopeMetrics {
		scope := otlpScopeMetrics{Scope: otlpScope{Name: s.Scope.Name, Version: s.Scope.Version}}
		for _, m := range s.Metrics {
			encoded, err := encodeMetric(m, redact)
			if err != nil {
				return nil, err
			}
			scope.Metrics = append(scope.Metrics, encoded)
		}
		out.ScopeMetrics = append(out.ScopeMetrics, scope)
	}
	return json.Marshal(otlpMetrics{[]otlpResourceMetrics{out}})
}

func encodeMetric(m metricdata.Metrics, redact redactFunc) (otlpMetric, error) {
	out := otlpMetric{Name: m.Name, Description: m.Description, Unit: m.Unit}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		out.Sum = encodeSum(d, redact, func(n int64, p *otlpNumber) { p.Int = new(strconv.FormatInt(n, 10)) })
	case metricdata.Sum[float64]:
		out.Sum = encodeSum(d, redact, func(f float64, p *otlpNumber) { p.Double = (*otlpDouble)(&f) })
	case metricdata.Histogram[int64]:
		out.Histogram = encodeHistogram(d, redact)
	case metricdata.Histogram[float64]:
		out.Histogram = encodeHistogram(d, redact)
	default:
		return out, fmt.Errorf("the metric %s has data of the type %T, which this version cannot encode", m.Name, m.Data)
	}
	return out, nil
}

func encodeSum[N int64 | float64](d metricdata.Sum[N], redact redactFunc, set func(n N, p *otlpNumber)) *otlpSum {
	out := &otlpSum{Temporality: encodeTemporality(d.Temporality), Monotonic: d.IsMonotonic}
	for _, p := range d.DataPoints {
		n := otlpNumber{
			Attributes: encodeAttributes(p.Attributes.ToSlice(), redact),
			Start:      encodeTime(p.StartTime),
			Time:       encodeTime(p.Time),
		}
		set(p.Value, &n)
		out.Points = append(out.Points, n)
	}
	return out
}

func encodeHistogram[N int64 | float64](d metricdata.Histogram[N], redact redactFunc) *otlpHistogram {
	out := &otlpHistogram{Temporality: encodeTemporality(d.Temporality)}
	for _, p := range d.DataPoints {
		b := otlpBuckets{
			Attributes: encodeAttributes(p.Attributes.ToSlice(), redact),
			Start:      encodeTime(p.StartTime),
			Time:       encodeTime(p.Time),
			Count:      strconv.FormatUint(p.Count, 10),
			Sum:        otlpDouble(p.Sum),
			Counts:     []string{},
			Bounds:     []otlpDouble{},
		}
		for _, n := range p.BucketCounts {
			b.Counts = append(b.Counts, strconv.FormatUint(n, 10))
		}
		for _, f := range p.Bounds {
			b.Bounds = append(b.Bounds, otlpDouble(f))
		}
		b.Min, b.Max = encodeExtrema(p.Min), encodeExtrema(p.Max)
		out.Points = append(out.Points, b)
	}
	return out
}

func encodeExtrema[N int64 | float64](e metricdata.Extrema[N]) *otlpDouble {
	n, ok := e.Value()
	if !ok {
		return nil
	}
	return new(otlpDouble(n))
}

// encodeTemporality returns the number of OTLP: 1 for changes since the last export, 2 for totals.
func encodeTemporality(t metricdata.Temporality) int {
	if t == metricdata.DeltaTemporality {
		return 1
	}
	return 2
}
