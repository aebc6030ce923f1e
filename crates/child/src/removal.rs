//! The removal of a folder that hostile code has filled.
//!
//! In: its path. Out: nothing is left of it. Folders may be nested as deeply as the file system permits, so each is moved
//! to the top before it is emptied: neither the stack nor the number of open files grows with the depth. Permissions that
//! the code took away are given back first. Links are removed, never followed.

#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, renameat, statat, unlinkat},
    io::Errno,
    path::Arg,
};

/// Removes a folder and everything in it, or whatever the code has put in its place. It blocks.
///
/// # Errors
/// Something in it belongs to another user.
pub fn remove(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(status) if !status.is_dir() => return std::fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(_) | Err(_) => {}
    }
    let top = open(CWD, path)?;
    let mut moved: u64 = 0;
    loop {
        let mut folders = empty(&top, &top, &mut moved)?;
        if folders.is_empty() {
            break;
        }
        while let Some(name) = folders.pop() {
            let folder = open(&top, Path::new(&name))?;
            folders.extend(empty(&top, &folder, &mut moved)?);
            unlinkat(&top, &name, AtFlags::REMOVEDIR)?;
        }
    }
    std::fs::remove_dir(path)
}

/// Opens a folder so that it can be emptied.
fn open(parent: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    permit(&parent, path);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(&parent, path, flags, Mode::empty())?)
}

/// Gives a folder its permissions back, if that can be done. A container that its engine could not kill may put a link in
/// its place, which is not followed.
#[cfg(target_os = "linux")]
fn permit(parent: impl AsFd, path: impl Arg) {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(folder) = openat(parent, path, flags, Mode::empty()) {
        // A descriptor that was opened without a right to read takes permissions by this name alone.
        let name = format!("/proc/self/fd/{}", folder.as_raw_fd());
        let _ = chmodat(CWD, name, Mode::RWXU, AtFlags::empty());
    }
}

/// The same.
#[cfg(not(target_os = "linux"))]
fn permit(parent: impl AsFd, path: impl Arg) {
    let _ = chmodat(parent, path, Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW);
}

/// Removes what is in a folder, but moves folders to the top, under the names that it returns.
fn empty(top: &OwnedFd, folder: &OwnedFd, moved: &mut u64) -> io::Result<Vec<String>> {
    // First all of them: those of the top itself would come again under their new names.
    let mut inside = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let is_folder = match entry.file_type() {
            FileType::Unknown => {
                let status = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(status.st_mode) == FileType::Directory
            }
            other => other == FileType::Directory,
        };
        if is_folder {
            inside.push(name.to_owned());
        } else {
            unlinkat(folder, name, AtFlags::empty())?;
        }
    }
    let mut folders = Vec::with_capacity(inside.len());
    for name in inside {
        let name = name.as_c_str();
        // To move a folder is to write to it.
        permit(folder, name);
        loop {
            *moved += 1;
            let new = format!(".isolane-{moved}");
            match renameat(folder, name, top, &new) {
                Ok(()) => {
                    folders.push(new);
                    break;
                }
                // The program has left something of that name.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::remove;
    use std::{env, fs, os::unix::fs::symlink};

    #[test]
    fn nothing_is_left_and_no_link_is_followed() {
        let outside = tempfile::tempdir().expect("a folder");
        fs::write(outside.path().join("kept"), "x").expect("a file");
        let folder = tempfile::tempdir().expect("a folder").keep();
        symlink(outside.path(), folder.join("link")).expect("a link");
        fs::create_dir_all(folder.join("a/b/c")).expect("folders");
        symlink(outside.path(), folder.join("a/b/link")).expect("a link");
        fs::write(folder.join(".isolane-1"), "x").expect("a file");
        fs::create_dir_all(folder.join(".isolane-2/.isolane-3")).expect("folders");
        let mut none = fs::metadata(folder.join("a")).expect("its state").permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut none, 0);
        fs::set_permissions(folder.join("a"), none).expect("no permissions");
        remove(&folder).expect("removed");
        assert!(!folder.exists());
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn many_folders_are_removed() {
        let folder = tempfile::tempdir().expect("a folder").keep();
        for number in 0..1500 {
            fs::create_dir_all(folder.join(format!("d{number}/e"))).expect("folders");
        }
        remove(&folder).expect("removed");
        assert!(!folder.exists());
    }

    #[test]
    fn a_link_in_its_place_is_removed_itself() {
        let top = tempfile::tempdir().expect("a folder");
        let [target, folder] = ["target", "folder"].map(|name| top.path().join(name));
        fs::create_dir_all(target.join("kept")).expect("folders");
        symlink(&target, &folder).expect("a link");
        remove(&folder).expect("removed");
        assert!(fs::symlink_metadata(&folder).is_err());
        assert!(target.join("kept").exists());
        remove(&folder).expect("nothing is there to be removed");
    }

    #[test]
    fn permissions_of_a_links_target_stay() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("target");
        fs::create_dir(&target).expect("a folder");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o511)).expect("its mode");
        symlink(&target, folder.path().join("link")).expect("a link");
        super::permit(super::CWD, folder.path().join("link"));
        let mode = || fs::metadata(&target).expect("its state").permissions().mode() & 0o777;
        assert_eq!(mode(), 0o511);
        super::permit(super::CWD, target.as_path());
        assert_eq!(mode(), 0o700);
    }

    #[test]
    fn depth_costs_neither_stack_nor_files() {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let home = env::current_dir().expect("a folder");
        // Relative paths, as no path is as long as this one. In a child, as the folder is the process's.
        let script = "import os\nos.chdir(os.environ['TOP'])\nfor _ in range(6000):\n os.mkdir('d')\n os.chdir('d')";
        let status = std::process::Command::new("python3")
            .args(["-c", script])
            .env("TOP", &folder)
            .current_dir(home)
            .status()
            .expect("python3");
        assert!(status.success());
        remove(&folder).expect("removed");
        assert!(!folder.exists());
    }
}
