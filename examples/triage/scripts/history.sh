# Counts the earlier incidents of the area.
set -eu
area=$(sed -E 's/.*"area":"([^"]*)".*/\1/' <<<"$GRAPH_STATE")
earlier=$(grep -c "^$area:" "$LLM_AGENT_DATA_DIR/data/incidents.txt" || true)
printf '{"earlier": %d}\n' "$earlier"
