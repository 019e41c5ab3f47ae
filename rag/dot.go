package rag

// dotProduct returns the inner product of two vectors of the same length. It uses eight sums, so that the processor
// need not wait for each addition.
func dotProduct(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		x := (*[8]float32)(a)
		y := (*[8]float32)(b) // without a check for each index
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		s4 += x[4] * y[4]
		s5 += x[5] * y[5]
		s6 += x[6] * y[6]
		s7 += x[7] * y[7]
		a = a[8:]
		b = b[8:]
	}
	for i := range min(len(a), len(b)) {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3) + (s4 + s5) + (s6 + s7)
}

// dotPlain returns the inner product of codes, in plain Go.
func dotPlain(a []int16, b []int8) int32 {
	var s0, s1, s2, s3 int32
	for len(a) >= 4 && len(b) >= 4 {
		x := (*[4]int16)(a)
		y := (*[4]int8)(b)
		s0 += int32(x[0]) * int32(y[0])
		s1 += int32(x[1]) * int32(y[1])
		s2 += int32(x[2]) * int32(y[2])
		s3 += int32(x[3]) * int32(y[3])
		a = a[4:]
		b = b[4:]
	}
	return s0 + s1 + s2 + s3
}
