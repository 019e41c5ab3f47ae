package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	cases := []struct {
		name, in, want string
		count          count
	}{
		{
			name: "all pass", count: count{passed: 1},
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- PASS: TestA (0.00s)\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}
{"Action":"skip","Package":"q"}
`,
			want: "ok  \tp\t0.1s\n?   \tq\t[no test files]\n",
		},
		{
			name: "failure", count: count{failed: 1, broken: true},
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: wrong\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`,
			want: "    a_test.go:3: wrong\n--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tp\t0.1s\n",
		},
		{
			name: "skip", count: count{skipped: 1},
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: no python3\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`,
			want: "ok  \tp\t0.1s\nskipped: p TestA\n    a_test.go:3: no python3\n--- SKIP: TestA (0.00s)\n",
		},
		{
			name: "none selected",
			in: `{"Action":"output","Package":"p","Output":"testing: warning: no tests to run\n"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s [no tests to run]\n"}
{"Action":"pass","Package":"p"}
`,
		},
		{
			name: "says more after its end", count: count{passed: 1},
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"--- PASS: TestA (0.00s)\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"late\n"}
{"Action":"pass","Package":"p"}
`,
		},
		{
			name: "does not build", count: count{broken: true},
			in: `{"ImportPath":"p","Action":"build-output","Output":"p/a.go:1:1: expected 'package'\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p"}
`,
			want: "p/a.go:1:1: expected 'package'\nFAIL\tp [build failed]\n",
		},
		{
			name: "ended in the middle", count: count{failed: 1},
			in: `go: a warning
{"Action":"output","Package":"p","Test":"TestA","Output":"fatal error\n"}
`,
			want: "go: a warning\nunfinished: p TestA\nfatal error\n",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			got, _, err := report(strings.NewReader(c.in), &out)
			if got != c.count || err != nil {
				t.Errorf("report = %+v, %v, want %+v", got, err, c.count)
			}
			if out.String() != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", out.String(), c.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		count count
		skips bool
		ok    bool
	}{
		{count{passed: 2}, false, true},
		{count{passed: 2, skipped: 1}, false, false},
		{count{passed: 2, skipped: 1}, true, true},
		{count{skipped: 1}, true, true},
		{count{passed: 2, failed: 1}, true, false},
		{count{passed: 2, broken: true}, true, false},
		{count{}, true, false},
	} {
		if err := c.count.check(c.skips); (err == nil) != c.ok {
			t.Errorf("%+v, skips %t: %v", c.count, c.skips, err)
		}
	}
}
