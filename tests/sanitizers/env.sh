# The build that AddressSanitizer watches: sourced by `run` beside this file and by `tests/fuzz/run`,
# which use the same one, so that fuzzing needs no second build of the compiler.
#
# Stable Rust has the sanitizers behind a flag that it must be told to accept. Everything but build
# scripts and macros is instrumented, the engine's C (by clang, and with UndefinedBehaviorSanitizer)
# among it; std comes as it is.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target=x86_64-unknown-linux-gnu
profile=sanitize

if [ -z "${CLANG:-}" ]; then
  for version in 21 20 19 18 17 16 15 14; do
    if command -v "clang-$version" >/dev/null; then CLANG=clang-$version; break; fi
  done
fi
: "${CLANG:?no clang: apt-get install --no-install-recommends clang-19 libclang-rt-19-dev llvm-19}"

# What the fuzzer learns of coverage costs the tests little, and saves it a build of its own.
rust="--cfg isolane_sanitized -Zsanitizer=address -Cforce-frame-pointers
  -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares"
c="-fsanitize=undefined,fuzzer-no-link -fsanitize-recover=undefined"

export RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0
export CARGO_TARGET_DIR=$root/target/sanitize
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS=$(echo $rust)
export CC_x86_64_unknown_linux_gnu=$CLANG CFLAGS_x86_64_unknown_linux_gnu=$c
export CUSTOM_LIBFUZZER_PATH=$("$CLANG" -print-file-name=libclang_rt.fuzzer-x86_64.a)

# For the threads of the test runner, on which tests enter the engine.
export RUST_MIN_STACK=$((64 << 20))

symbolizer=$(command -v llvm-symbolizer || command -v "llvm-symbolizer-${CLANG##*-}" || true)
common=halt_on_error=1:external_symbolizer_path=$symbolizer
# A request for more than there is must fail, as it does elsewhere, and not end the process. The shadow
# stack that finds uses after return would hide from the engine how deep it is.
export ASAN_OPTIONS=$common:allocator_may_return_null=1:detect_leaks=1:detect_stack_use_after_return=0
export LSAN_OPTIONS=suppressions=$root/tests/sanitizers/leaks.txt:print_suppressions=0
export UBSAN_OPTIONS=$common:print_stacktrace=1:suppressions=$root/tests/sanitizers/undefined.txt
