//! The program that a runtime starts for isolation by process. It does nothing for anybody else.

/// Has a worker that gets no memory end so that its host can tell.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: isolane::WorkerAllocator = isolane::WorkerAllocator;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    isolane::worker_main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("isolane isolates by process on Linux alone");
}
