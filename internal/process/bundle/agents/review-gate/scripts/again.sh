# A remark was made in place of a decision: the report is made again.
echo '{"_next": "merge"}'
