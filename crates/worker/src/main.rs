//! The program that a runtime starts for isolation by process, and an executor for a program in confinement. It has no
//! other purpose.

/// Makes a worker that gets no memory end so that its host can tell.
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
#[global_allocator]
static ALLOCATOR: isolane::WorkerAllocator = isolane::WorkerAllocator;

#[cfg(any(target_os = "linux", target_os = "macos", windows))]
fn main() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    if isolane_confine::interpreter::is_asked() {
        isolane_confine::interpreter::main();
    }
    if let Err(error) = isolane::install_extension(&isolane_kit_realm::EXTENSION) {
        eprintln!("{error}");
        return std::process::ExitCode::FAILURE;
    }
    isolane::worker_main()
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
fn main() {
    eprintln!("isolane isolates by process on Linux, macOS and Windows");
}
