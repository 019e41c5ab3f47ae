# High severity follows the node's `next`, to a person; anything else is only
# answered.
set -eu
case "$GRAPH_STATE" in
*'"severity":"high"'*) echo '{}' ;;
*) echo '{"_next": "answered"}' ;;
esac
