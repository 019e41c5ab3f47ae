# Counts the elements of the list of reviews: one more than the commas between
# them.
set -eu
reviews=$(sed -E 's/.*"reviews":\[([^]]*)\].*/\1/' <<<"$GRAPH_STATE")
between=$(grep -o '","' <<<"$reviews" | wc -l)
printf '{"total": %d, "log": "counted"}\n' "$((between + 1))"
