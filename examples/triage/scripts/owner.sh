# Prints the team that owns the area. The state is one line of compact JSON in
# GRAPH_STATE, so a pattern is enough to read a field that holds no quotes.
set -eu
area=$(sed -E 's/.*"area":"([^"]*)".*/\1/' <<<"$GRAPH_STATE")
while IFS=: read -r name team; do
  if [ "$name" = "$area" ]; then
    printf '{"owner": "%s"}\n' "$team"
    exit 0
  fi
done <"$LLM_AGENT_DATA_DIR/data/owners.txt"
echo '{"owner": "the duty manager"}'
