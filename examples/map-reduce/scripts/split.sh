# Prints the paragraphs of text.txt as a JSON list. The text has no quotes and no
# backslashes, so putting quotes around each paragraph is all the encoding needed.
set -eu
list=""
while IFS= read -r line || [ -n "$line" ]; do
  [ -n "$line" ] || continue
  list="$list${list:+, }\"$line\""
done <"$LLM_AGENT_DATA_DIR/text.txt"
printf '{"paragraphs": [%s], "log": "split"}\n' "$list"
