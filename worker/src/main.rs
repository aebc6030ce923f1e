//! The program that a runtime starts for isolation by process. It does nothing for anybody else.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    isolane::worker_main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("isolane isolates by process on Linux alone");
}
