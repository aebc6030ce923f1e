# The Node addon and the Python module in the build of `env.sh`, and the tests that go through them:
# sourced by `run`.
#
# Each gets a package of its own in target/sanitized, so that the one of other tests stays unchanged. Node and Python
# are not instrumented themselves: the sanitizer's runtime is loaded before them, and memory that they hold at exit is
# theirs, so leaks are not checked.

runtime=$("$CLANG" -print-file-name=libclang_rt.asan-x86_64.so)
packages=$PWD/${CARGO_TARGET_DIR:-target}/sanitized

# With one test of the core, which is not run, the crates that both depend on have the same features as in
# `run address`, and are not built again.
build_faces() {
  cargo build "${sanitized[@]}" -p isolane-node -p isolane-python --lib --test it
  rm -rf "${packages:?}/$1"
  mkdir -p "$packages/$1"
}

# Runs a program and its children under the sanitizer, once in each kind of instance.
watched() {
  for instances in ${ISOLANE_INSTANCES:-slots plain}; do
    printf '\n== AddressSanitizer, %s, %s\n' "$face" "$instances"
    ISOLANE_INSTANCES=$instances ISOLANE_TEST_PATIENCE=5 LD_PRELOAD=$runtime \
      ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 "$@"
  done
}

node_face() {
  local face=node home=$packages/node
  build_faces node
  npm run --silent setup
  cp -r package.json tests bindings-node "$home"
  find "$home" -name '*.node' -delete
  node node_modules/typescript/bin/tsc -p bindings-node/tsconfig.json --outDir "$home/bindings-node/dist"
  cp "$packages/../debug/libisolane_node.so" "$home/bindings-node/isolane.linux-x64-gnu.node"
  cd "$home"
  # Left out: the package that npm packs, which does not test the addon.
  local tests=("$@") test
  if [ $# -eq 0 ]; then
    for test in tests/node/*.test.mjs tests/crossings/*.test.mjs tests/contract/run.node.mjs; do
      [ "$test" = tests/node/package.test.mjs ] || tests+=("$test")
    done
  fi
  watched node --test --test-concurrency=1 "${tests[@]}"
}

python_face() {
  local face=python home=$packages/python
  build_faces python
  [ -n "${PYTHON:-}" ] || npm run --silent setup:python
  cp -r bindings-python/python/isolane "$home"
  cp "$packages/../debug/libisolane_python.so" "$home/isolane/_isolane.abi3.so"
  # Left out: tests that measure the memory of the process, and tests of the type checker alone.
  [ $# -gt 0 ] || set -- tests/contract tests/python \
    --ignore tests/python/test_leaks.py --ignore tests/python/test_types.py
  PYTHONPATH=$home watched "${PYTHON:-.venv/bin/python}" -m pytest --quiet --capture=sys \
    -p no:cacheprovider "$@"
}
