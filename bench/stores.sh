#!/bin/sh
# Times raddle on SQLite, Postgres and Redis, on servers that it starts in a temporary directory: W4, W5 and W9. With langgraph and
# langgraph-checkpoint-postgres installed for PYTHON, also W9 of LangGraph on the same Postgres.
set -eu
cd "$(dirname "$0")"
bin=$(dirname "$(command -v initdb || ls /usr/lib/postgresql/*/bin/initdb | tail -n 1)")
dir=$(mktemp -d)
port=${PORT:-54329}
as=
if [ "$(id -u)" = 0 ]; then # Postgres refuses root
	as="setpriv --reuid=nobody --regid=nogroup --clear-groups"
	chown nobody:nogroup "$dir"
fi
end() {
	$as "$bin/pg_ctl" -D "$dir/pg" -m immediate -w stop >/dev/null 2>&1 || true
	kill "$redis" 2>/dev/null || true
	wait || true
	rm -rf "$dir"
}
redis=
trap end EXIT
$as "$bin/initdb" -D "$dir/pg" -U raddle -A trust -N >/dev/null
$as "$bin/pg_ctl" -D "$dir/pg" -w -l "$dir/pg.log" -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$dir" start >/dev/null
mkdir "$dir/redis"
redis-server --port "$((port + 1))" --bind 127.0.0.1 --dir "$dir/redis" --appendonly yes --appendfsync everysec --save '' >/dev/null &
redis=$!
export RADDLE_BENCH_POSTGRES="postgres://raddle@127.0.0.1:$port/postgres?pool_max_conns=16" RADDLE_BENCH_REDIS="redis://127.0.0.1:$((port + 1))/0"
go test -run '^$' -bench "${BENCH:-Store|W9}" -benchtime "${BENCHTIME:-1s}" ./bench
if "${PYTHON:-python3}" -c 'import langgraph.checkpoint.postgres' 2>/dev/null; then
	"${PYTHON:-python3}" python/workers.py "postgres://raddle@127.0.0.1:$port/postgres"
fi
