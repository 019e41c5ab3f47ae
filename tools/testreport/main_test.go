package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	cases := []struct {
		name, in, want string
		ok             bool
	}{
		{
			name: "all pass", ok: true,
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
			name: "failure",
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
			name: "skip",
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: no python3\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`,
			want: "ok  \tp\t0.1s\nskipped: p TestA\n    a_test.go:3: no python3\n--- SKIP: TestA (0.00s)\n" +
				"1 skipped, and here every test must run: install what they miss\n",
		},
		{
			name: "does not build",
			in: `{"ImportPath":"p","Action":"build-output","Output":"p/a.go:1:1: expected 'package'\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p"}
`,
			want: "p/a.go:1:1: expected 'package'\nFAIL\tp [build failed]\n",
		},
		{
			name: "ended in the middle", ok: true, // go test itself fails
			in: `go: a warning
{"Action":"output","Package":"p","Test":"TestA","Output":"fatal error\n"}
`,
			want: "go: a warning\nunfinished: p TestA\nfatal error\n",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			ok, err := report(strings.NewReader(c.in), &out)
			if ok != c.ok || err != nil {
				t.Errorf("report = %v, %v, want %v", ok, err, c.ok)
			}
			if out.String() != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", out.String(), c.want)
			}
		})
	}
}
