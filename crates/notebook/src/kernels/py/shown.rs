//! The folders of a confined kernel: its own, and those of this machine that can be shown to it.
//!
//! In: paths as a caller wrote them. Out: paths as a kernel knows them, and whether a kernel can.

use std::{
    io,
    path::{Component, Path, PathBuf, absolute},
};

/// The home of a confined kernel, its folder for temporary files and, without another one, its working directory.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "kernels are confined on Linux"))]
pub(super) const HOME: &str = "/isolane";

/// Folders that a kernel has for itself, so that nothing of this machine can be in their place.
const OWN: &[&str] = &["/proc", "/dev", "/sys", "/isolane"];

/// A path as a kernel knows it: absolute, without `..`.
///
/// # Errors
/// It has a `..` that leads nowhere.
pub(super) fn plain(path: &Path) -> io::Result<PathBuf> {
    let path = absolute(path)?;
    if path.components().any(|part| part == Component::ParentDir) {
        return path.canonicalize();
    }
    Ok(path)
}

/// Whether a path may be in a kernel's root.
pub(crate) fn may_be_shown(path: &Path) -> bool {
    // A path that leads nowhere is the reason of a kernel that does not start.
    plain(path).is_ok_and(|path| {
        let is_around = path.parent().is_none() || path == Path::new("/tmp");
        !is_around && !OWN.iter().any(|own| path.starts_with(own))
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_kernel_itself_are_not_shown() {
        for path in ["/", "/proc", "/dev/shm", "/sys/class", "/isolane/a", "/tmp", "/usr/../proc"] {
            assert!(!may_be_shown(Path::new(path)), "{path}");
        }
        for path in ["/tmp/a", "/home/ada", "/work", "data", "/usr/../usr/share", "/nowhere"] {
            assert!(may_be_shown(Path::new(path)), "{path}");
        }
    }
}
