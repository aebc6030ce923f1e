//! The program that a runtime starts for isolation by process. It has no other purpose.

/// Makes a worker that gets no memory end so that its host can tell.
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
#[global_allocator]
static ALLOCATOR: isolane::WorkerAllocator = isolane::WorkerAllocator;

#[cfg(any(target_os = "linux", target_os = "macos", windows))]
fn main() -> std::process::ExitCode {
    isolane::worker_main()
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
fn main() {
    eprintln!("isolane isolates by process on Linux, macOS and Windows");
}
