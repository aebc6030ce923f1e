# The build that AddressSanitizer watches: sourced by `run` beside this file and by `tests/fuzz/run`, which use the same
# build.
#
# It is the build of the tests, except for the engine's C (by clang, with UndefinedBehaviorSanitizer too) and the
# project's own crates (`rustc-address`): other dependencies are not built again. `cargo` gets another optimization
# level for C code, so that it keeps both builds.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

if [ -z "${CLANG:-}" ]; then
  for version in 21 20 19 18 17 16 15 14; do
    if command -v "clang-$version" >/dev/null; then CLANG=clang-$version; break; fi
  done
fi
: "${CLANG:?no clang: apt-get install --no-install-recommends clang-19 libclang-rt-19-dev llvm-19}"

sanitized=(--locked -p isolane -p isolane-fuzz --features isolane-fuzz/libfuzzer)
for package in rquickjs-sys psm; do
  sanitized+=(--config "profile.dev.package.$package.opt-level=1")
done
export CARGO_INCREMENTAL=0
export RUSTC_WORKSPACE_WRAPPER=$root/tests/sanitizers/rustc-address
export CC_x86_64_unknown_linux_gnu=$CLANG
# Coverage for the fuzzer costs the tests little, and saves the fuzzer a build of its own.
export CFLAGS_x86_64_unknown_linux_gnu="-fsanitize=address,undefined,fuzzer-no-link \
  -fno-sanitize-recover=all -fsanitize-recover=undefined -fno-omit-frame-pointer"
export CUSTOM_LIBFUZZER_PATH=$("$CLANG" -print-file-name=libclang_rt.fuzzer-x86_64.a)

# For the threads of the test runner, on which tests enter the engine.
export RUST_MIN_STACK=$((64 << 20))

symbolizer=$(command -v llvm-symbolizer || command -v "llvm-symbolizer-${CLANG##*-}" || true)
common=halt_on_error=1:external_symbolizer_path=$symbolizer
# A request for more memory than there is must fail, as it does elsewhere, and not end the process. The shadow stack
# that detects uses after return would hide the depth of the stack from the engine.
export ASAN_OPTIONS=$common:allocator_may_return_null=1:detect_leaks=1:detect_stack_use_after_return=0
export LSAN_OPTIONS=suppressions=$root/tests/sanitizers/leaks.txt:print_suppressions=0
export UBSAN_OPTIONS=$common:print_stacktrace=1:suppressions=$root/tests/sanitizers/undefined.txt
