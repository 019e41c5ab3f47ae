#!/usr/bin/env bash
# What has changed in a git repository. Source project.sh first. The repository and its index stay as they are.

# changes_since [BASE]: sets CHANGES_BASE, the commit to compare with, and CHANGES_WHAT, its name for people. Without a base that is the
# last commit if there are changes since; else the place where the branch left the main one; else the commit before.
changes_since() {
	local base=${1:-} name
	project_uses_git || project_fail "'$PROJECT' is no git repository: there is nothing to compare with."
	if [[ -n $base ]]; then
		CHANGES_BASE=$(project_git rev-parse --verify --quiet --end-of-options "$base^{commit}") ||
			project_fail "git knows no commit '$base': name a branch, a tag or a commit."
		CHANGES_BASE=$(project_git merge-base "$CHANGES_BASE" HEAD 2>/dev/null || echo "$CHANGES_BASE")
		CHANGES_WHAT=$base
		return 0
	fi
	if ! project_git rev-parse --verify --quiet HEAD >/dev/null; then
		CHANGES_BASE=$(project_git hash-object -t tree /dev/null) CHANGES_WHAT='the beginning'
		return 0
	fi
	CHANGES_BASE=$(project_git rev-parse HEAD) CHANGES_WHAT='the last commit'
	if [[ -n $(project_git status --porcelain -- .) ]]; then return 0; fi
	for name in origin/HEAD origin/main origin/master main master; do
		base=$(project_git merge-base "$name" HEAD 2>/dev/null) || continue
		if [[ $base != "$CHANGES_BASE" ]]; then
			CHANGES_BASE=$base CHANGES_WHAT="where the branch left $name"
			return 0
		fi
	done
	if project_git rev-parse --verify --quiet HEAD~1 >/dev/null; then
		CHANGES_BASE=$(project_git rev-parse HEAD~1) CHANGES_WHAT='the commit before the last'
	else
		CHANGES_BASE=$(project_git hash-object -t tree /dev/null) CHANGES_WHAT='the beginning'
	fi
}

# changes_new: files that git does not know yet and does not ignore, one a line.
changes_new() {
	project_git ls-files --others --exclude-standard
}

# changes_diff: the difference since CHANGES_BASE, new files included.
changes_diff() {
	local file
	project_git diff --no-ext-diff --no-textconv --relative -M "$CHANGES_BASE" -- .
	changes_new | while IFS= read -r file; do
		project_git diff --no-ext-diff --no-textconv --no-index -- /dev/null "$file" || true # it differs, of course
	done
}

# changes_files: a line for each changed file: what happened to it, lines added and removed, its path.
changes_files() {
	local file
	{
		project_git diff --no-ext-diff --relative --no-renames --name-status "$CHANGES_BASE" -- . | awk -F'\t' '{ print "s\t" $2 "\t" $1 }'
		project_git diff --no-ext-diff --relative --no-renames --numstat "$CHANGES_BASE" -- . | awk -F'\t' '{ print "n\t" $3 "\t" $1 "\t" $2 }'
		changes_new | while IFS= read -r file; do printf 'u\t%s\t%s\n' "$file" "$(awk 'END { print NR }' "$file")"; done
	} | awk -F'\t' '
		$1 == "s" { order[++n] = $2; what[$2] = $3 == "A" ? "added" : $3 == "D" ? "deleted" : "modified" }
		$1 == "n" { lines[$2] = $3 == "-" ? "binary" : "+" $3 " -" $4 }
		$1 == "u" { order[++n] = $2; what[$2] = "added"; lines[$2] = "+" $3 " -0" }
		END {
			for (i = 1; i <= n; i++) print what[order[i]] "\t" lines[order[i]] "\t" order[i]
			if (n == 0) print "Nothing has changed."
		}'
}
