//! The executor of confined programs, with real interpreters.
//!
//! This executable is the tests and, started by the executor, the launcher. The tests run as this user and, if that is
//! root, once more as nobody. The limits of a program are tested in `crates/confine/tests/interpreter`.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod support;

#[cfg(target_os = "linux")]
fn main() {
    if isolane_confine::interpreter::is_asked() {
        isolane_confine::interpreter::main();
    }
    if std::env::args().nth(1).is_some_and(|word| word == files::AT_HOME) {
        return files::at_home();
    }
    let filter = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    for (name, test) in calls::ALL.iter().chain(files::ALL).chain(machine::ALL) {
        if filter.as_ref().is_none_or(|filter| name.contains(filter.as_str())) {
            test();
            println!("test {name} ... ok");
        }
    }
    support::as_nobody_too(filter.as_deref());
}

#[cfg(not(target_os = "linux"))]
fn main() {
    use isolane_executors::{
        CodeExecutionInput, CodeExecutor, ConfinedCodeExecutor, ExecutorErrorKind,
    };
    let executor = ConfinedCodeExecutor::new();
    let context = isolane_executors::InvocationContext::default();
    let call = executor.execute_code(&context, CodeExecutionInput::new("1"));
    let error = futures::executor::block_on(call).expect_err("it is not supported here");
    assert_eq!(error.kind(), ExecutorErrorKind::Unsupported);
}
