#!/bin/sh
# Times raddle and the floor, and with PEERS=1 the other engines too, in ROUNDS rounds, into out/*.txt, and cold starts into out/cold.txt.
# The engines of Python are timed where python/requirements.txt is installed for PYTHON.
set -eu
cd "$(dirname "$0")"
mkdir -p out bin
go test -c -o bin/raddle.test ./bench
sets=raddle
if [ "${PEERS:-}" ]; then
	go test -c -tags peers -o bin/peers.test ./bench
	sets="raddle peers"
fi
for s in $sets; do : >"out/$s.txt"; done
for _ in $(seq "${ROUNDS:-4}"); do
	for s in $sets; do
		"./bin/$s.test" -test.run '^$' -test.bench "${BENCH:-.}" -test.benchtime "${BENCHTIME:-100ms}" >>"out/$s.txt"
	done
done
if [ "${PEERS:-}" ] && "${PYTHON:-python3}" -c 'import langgraph, burr, pydantic_graph' 2>/dev/null; then
	: >out/others.txt
	for _ in $(seq "${ROUNDS:-4}"); do
		./bin/raddle.test -test.run '^$' -test.bench "${BENCH:-.}" -test.benchtime "${BENCHTIME:-100ms}" | grep '/peer=floor' >>out/others.txt
		BENCH=${BENCH:-.} "${PYTHON:-python3}" python/bench.py >>out/others.txt
	done
fi
go build -o bin/coldtime ./cmd/coldtime
for c in floor raddle; do go build -o "bin/cold-$c" "./cmd/cold-$c"; done
./bin/coldtime floor=bin/cold-floor raddle=bin/cold-raddle >out/cold.txt
