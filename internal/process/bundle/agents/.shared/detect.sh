#!/usr/bin/env bash
# What kind of project a directory holds, told by the files that lie in it, and the commands that build, test and check it. To check is to
# find what does not compile as fast as possible.

# project_detect: sets PROJECT_KIND, PROJECT_BUILD, PROJECT_TEST and PROJECT_CHECK; an unknown command is empty.
project_detect() {
	PROJECT_KIND=unknown PROJECT_BUILD='' PROJECT_TEST='' PROJECT_CHECK=''
	if [[ -f Cargo.toml ]]; then
		project_is rust 'cargo build' 'cargo test' 'cargo check --all-targets'
	elif [[ -f go.mod ]]; then
		project_is go 'go build ./...' 'go test ./...' 'go vet ./...'
	elif [[ -f deno.json || -f deno.jsonc ]]; then
		project_is deno '' 'deno test' 'deno check .'
	elif [[ -f package.json ]]; then
		project_detect_node
	elif [[ -f pyproject.toml || -f setup.py || -f setup.cfg || -f requirements.txt ]]; then
		project_detect_python
	elif [[ -f pom.xml ]]; then
		project_detect_wrapped maven ./mvnw mvn '-q -B compile' '-q -B test' '-q -B test-compile'
	elif [[ -f build.gradle || -f build.gradle.kts ]]; then
		project_detect_wrapped gradle ./gradlew gradle assemble test testClasses
	elif project_has '*.sln' '*.slnx' '*.csproj' '*.fsproj'; then
		project_is dotnet 'dotnet build' 'dotnet test' ''
	elif [[ -f CMakeLists.txt ]]; then
		project_is cmake 'cmake -S . -B build && cmake --build build' 'ctest --test-dir build --output-on-failure' ''
	elif [[ -f Gemfile ]]; then
		project_detect_ruby
	elif [[ -f mix.exs ]]; then
		project_is elixir 'mix compile' 'mix test' 'mix compile --warnings-as-errors'
	elif [[ -f composer.json ]]; then
		project_is php '' 'vendor/bin/phpunit' ''
	elif [[ -f Package.swift ]]; then
		project_is swift 'swift build' 'swift test' ''
	elif [[ -f build.zig ]]; then
		project_is zig 'zig build' 'zig build test' ''
	elif project_has justfile Justfile .justfile; then
		project_detect_targets just
	elif project_has Makefile makefile GNUmakefile; then
		project_detect_targets make
	fi
}

# project_is KIND BUILD TEST CHECK
project_is() {
	PROJECT_KIND=$1 PROJECT_BUILD=$2 PROJECT_TEST=$3 PROJECT_CHECK=$4
}

# project_has PATTERN...: a file fits one of the patterns.
project_has() {
	local pattern
	for pattern in "$@"; do
		if compgen -G "$pattern" >/dev/null; then return 0; fi
	done
	return 1
}

# project_detect_wrapped KIND WRAPPER PROGRAM BUILD TEST CHECK: the wrapper in the project counts before the installed program.
project_detect_wrapped() {
	local program=$3
	if [[ -f $2 ]]; then program="sh $2"; fi
	project_is "$1" "$program $4" "$program $5" "$program $6"
}

project_detect_node() {
	local manager=npm script
	if [[ -f pnpm-lock.yaml ]]; then
		manager=pnpm
	elif [[ -f yarn.lock ]]; then
		manager=yarn
	elif [[ -f bun.lock || -f bun.lockb ]]; then
		manager=bun
	fi
	project_is "node ($manager)" '' '' ''
	if project_node_script build; then PROJECT_BUILD="$manager run build"; fi
	if project_node_script test; then PROJECT_TEST="$manager run test"; fi
	for script in check typecheck type-check; do
		if project_node_script "$script"; then
			PROJECT_CHECK="$manager run $script"
			return 0
		fi
	done
	if [[ -f tsconfig.json ]]; then PROJECT_CHECK='npx --no-install tsc --noEmit'; fi
}

# project_node_script NAME: package.json has a script of that name.
project_node_script() {
	tr -d '\n' <package.json | grep -Eq "\"scripts\"[[:space:]]*:[[:space:]]*\\{[^}]*\"$1\"[[:space:]]*:"
}

project_detect_python() {
	local run='' python=python3 runner=unittest
	if [[ -f uv.lock ]]; then
		run='uv run '
	elif [[ -f poetry.lock ]]; then
		run='poetry run '
	elif [[ -x .venv/bin/python ]]; then
		python=.venv/bin/python
	fi
	if [[ -f pytest.ini || -f conftest.py || -f tests/conftest.py ]] || grep -qs pytest pyproject.toml setup.cfg tox.ini requirements*.txt; then
		runner=pytest
	fi
	project_is python '' "$run$python -m $runner" "find . -name '*.py' ! -path '*/.*' ! -path '*/node_modules/*' -exec $run$python -c '$PROJECT_PARSE' {} +"
	if [[ -f ruff.toml || -f .ruff.toml ]] || grep -qs '^\[tool\.ruff' pyproject.toml; then PROJECT_CHECK="${run}ruff check ."; fi
}

# PROJECT_PARSE is a Python program that parses files, and leaves nothing behind as a compiler would.
PROJECT_PARSE='import ast, sys; [ast.parse(open(name, "rb").read(), name) for name in sys.argv[1:]]'

project_detect_ruby() {
	local tests='bundle exec rake test'
	if [[ -d spec ]]; then tests='bundle exec rspec'; fi
	project_is ruby '' "$tests" ''
	if [[ -f .rubocop.yml ]]; then PROJECT_CHECK='bundle exec rubocop'; fi
}

# project_detect_targets PROGRAM: the targets of a Makefile or the recipes of a justfile.
project_detect_targets() {
	local target
	project_is "$1" '' '' ''
	for target in build all; do
		if project_target "$target"; then
			PROJECT_BUILD="$1 $target"
			break
		fi
	done
	if project_target test; then PROJECT_TEST="$1 test"; fi
	for target in check lint vet; do
		if project_target "$target"; then
			PROJECT_CHECK="$1 $target"
			break
		fi
	done
}

# project_target NAME: there is a rule for it, which is no assignment.
project_target() {
	grep -Eqs "^$1([[:space:]][^:=]*)?:([^=]|\$)" Makefile makefile GNUmakefile || grep -Eqs "^@?$1([[:space:]][^:]*)?:([^=]|\$)" justfile Justfile .justfile
}
