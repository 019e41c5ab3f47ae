# Sends high severity to a person; anything else follows the node's `next`.
set -eu
case "$GRAPH_STATE" in
*'"severity":"high"'*) echo '{"_next": "page"}' ;;
*) echo '{}' ;;
esac
