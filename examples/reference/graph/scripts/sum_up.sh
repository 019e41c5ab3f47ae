echo '{"summary": "A bowline holds, and opens."}'
