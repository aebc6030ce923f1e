//! The executor of host futures whose caller has no runtime, and of native functions that take long.

use std::thread;

use tokio::runtime::{Builder, Handle};

use crate::os::process::PerProcess;

/// The runtime of this library. Its one thread is started when it is first needed, and ends with the process. `None` if
/// the system refuses it.
pub(crate) fn own() -> Option<Handle> {
    static OWN: PerProcess<Option<Handle>> = PerProcess::new();
    OWN.get_or_init(|| {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let handle = runtime.handle().clone();
        let drive = move || runtime.block_on(std::future::pending::<()>());
        thread::Builder::new().name("isolane-futures".to_owned()).spawn(drive).ok()?;
        Some(handle)
    })
    .clone()
}
