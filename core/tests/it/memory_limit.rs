//! The memory limit of a run, by the bytes that the run counts. `core/tests/bombs` measures the process.

use isolane::{ExecutionOptions, ExecutionResult, Runtime, RuntimeOptions, Status, run_code};

const MIB: usize = 1 << 20;

/// The result of a source under a limit in bytes.
fn run(runtime: &Runtime, source: &str, limit: usize) -> ExecutionResult {
    let options =
        ExecutionOptions { memory_limit_bytes: Some(limit as u64), ..ExecutionOptions::default() };
    runtime.run_code(source, options).wait().expect("no misuse")
}

/// The code that one run may compile does not depend on code that another has compiled before.
#[test]
fn what_compiling_takes_counts_cached_or_not() {
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid options");
    let source = format!("export default [{}].length", "1,".repeat(20_000));
    for limit in [2, 64, 2] {
        let result = run(&runtime, &source, limit * MIB);
        let expected = if limit == 2 { Status::Memory } else { Status::Success };
        assert_eq!(result.status, expected, "{limit} MiB");
    }
}

/// A module without room to be compiled is named, also where it is imported while the program runs.
#[test]
fn an_import_that_is_too_large_to_compile_is_named() {
    let long = format!("export default [{}].length", "1,".repeat(40_000));
    let options = |memory_limit_bytes| ExecutionOptions {
        modules: [("./long.js".to_owned(), long.clone())].into(),
        memory_limit_bytes: Some(memory_limit_bytes),
        ..ExecutionOptions::default()
    };
    let source = "const long = 'long'; export default (await import(`./${long}.js`)).default";
    let run = |limit| run_code(source, options(limit)).wait().expect("a run");
    assert_eq!(run(64 << 20).status, Status::Success);
    let result = run(4 << 20);
    assert_eq!(result.status, Status::Memory);
    let message = result.error.expect("an error").message;
    assert!(message.starts_with("compiling long.js takes up to "), "{message}");
    assert_eq!(result.memory_used_bytes, Some(4 << 20));
}

/// A program that takes nine tenths of its limit is no bomb.
#[test]
fn nine_tenths_of_a_limit_can_be_held() {
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid options");
    for limit in [8 * MIB, 64 * MIB] {
        for held in [
            "for (let n = 0; n < LIMIT * 0.9 - 4e5; n += 1e4) keep.push(new Uint8Array(9950).fill(1))",
            "for (let n = 0; n < LIMIT * 0.9 - 4e5; n += 150) keep.push({})",
            "let a = []; while (a.length < (LIMIT * 0.8 - 4e5) / 16) a.push(0.5); keep.push(a)",
        ] {
            let source =
                format!("const LIMIT = {limit}, keep = []; {held}; export default keep.length");
            let result = run(&runtime, &source, limit);
            let used = result.memory_used_bytes.unwrap_or(0);
            assert_eq!(result.status, Status::Success, "{held} at {limit} used {used}");
            assert!(used > (limit / 10 * 7) as u64, "{held} at {limit} used only {used}");
        }
    }
}

/// The path of an error has only its shown part, for any depth and any length of keys.
#[test]
fn a_long_path_is_cut() {
    let runtime = Runtime::new(&RuntimeOptions::default()).expect("valid options");
    let source = "const k = 'k'.repeat(1 << 20); let o = Symbol();
        for (let i = 0; i < 1e5; i++) o = { [k]: o }; export default o";
    let result = run(&runtime, source, 128 * MIB);
    let error = result.error.expect("no symbol crosses");
    assert_eq!(error.name, "SerializationError");
    assert!(error.message.len() < 4_000, "{}", error.message.len());
}
