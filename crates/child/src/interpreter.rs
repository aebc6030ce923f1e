//! The files that an interpreter needs.
//!
//! In: its name. Out: its path, and the paths that it must be able to read in confinement. Interpreters that can be asked are
//! asked, which follows the shims that stand for them on `PATH`, and finds the installation behind a virtual environment.

use std::{
    collections::HashMap,
    env,
    ffi::OsString,
    fs, future, io,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::process::Command;

use crate::run::{Bounds, Ending, run_fed};

/// How long an interpreter may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most bytes of an answer.
const MOST_ANSWER_BYTES: usize = 64 << 10;

/// The most links from one path to its file, as the system has it.
const MOST_LINKS: usize = 40;

/// Prints the path of the executable, then prefixes, each in a line.
const PYTHON: [&str; 2] = [
    "-Ic",
    "import sys\nfor name in ('executable', 'prefix', 'exec_prefix', 'base_prefix', 'base_exec_prefix', \
     'real_prefix'): print(getattr(sys, name, ''))",
];
const NODE: [&str; 2] = ["-p", "process.execPath"];
const RUBY: [&str; 2] = ["-e", "puts RbConfig.ruby, RbConfig::CONFIG['prefix']"];
const PERL: [&str; 2] = ["-e", "use Config; print \"$Config{perlpath}\\n$Config{prefix}\\n\""];

/// An interpreter and all that it reads beside the system's folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// Its path.
    pub path: PathBuf,
    /// Folders and files, each by all paths that it is known by.
    pub readable: Vec<PathBuf>,
}

/// Folders of the system that every program has for itself, so that no others can be shown there.
const OWN: [&str; 3] = ["/proc", "/dev", "/sys"];

/// Answers by name and `PATH`, and the working folder that is left out of them.
type Answers = HashMap<(PathBuf, Option<OsString>, &'static str), Interpreter>;

/// Finds an interpreter by its path or on `PATH`. The folder `work`, which the program has for itself, is not readable, but
/// a folder in it may be. The first time it is asked, in a process that takes as long as the interpreter does to start.
///
/// # Errors
/// There is none, or it does not answer.
pub async fn find(name: &Path, work: &'static str) -> io::Result<Interpreter> {
    let file = name.file_name().unwrap_or_default().to_string_lossy();
    let question = match &*file {
        file if file.starts_with("python") || file.starts_with("pypy") => Some(PYTHON),
        file if file.starts_with("node") => Some(NODE),
        file if file.starts_with("ruby") => Some(RUBY),
        file if file.starts_with("perl") => Some(PERL),
        _ => None,
    };
    find_by(name, question, work).await
}

/// As [`find`], for an interpreter of Python under any name.
///
/// # Errors
/// There is none, or it does not answer.
pub async fn find_python(name: &Path, work: &'static str) -> io::Result<Interpreter> {
    find_by(name, Some(PYTHON), work).await
}

async fn find_by(
    name: &Path,
    question: Option<[&str; 2]>,
    work: &'static str,
) -> io::Result<Interpreter> {
    static KNOWN: Mutex<Option<Answers>> = Mutex::new(None);
    let key = (name.to_owned(), env::var_os("PATH"), work);
    let known = {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().and_then(|known| known.get(&key).cloned())
    };
    if let Some(known) = known.filter(|known| known.path.exists()) {
        return Ok(known);
    }
    let program = on_path(name)?;
    let found = match question {
        Some(question) => ask(&program, question, work).await?,
        None => described(program, Vec::new(), work),
    };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.get_or_insert_default().insert(key, found.clone());
    Ok(found)
}

/// The file that a shell would start.
fn on_path(name: &Path) -> io::Result<PathBuf> {
    if name.as_os_str().as_bytes().contains(&b'/') {
        let path = std::path::absolute(name)?;
        return match is_program(&path) {
            true => Ok(path),
            false if path.is_file() => Err(io::ErrorKind::PermissionDenied.into()),
            false => Err(not_found()),
        };
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let found =
        env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_program(path));
    std::path::absolute(found.ok_or_else(not_found)?)
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

/// Asks a program. It is killed, with all that it has started, if this is dropped.
async fn ask(program: &Path, question: [&str; 2], work: &str) -> io::Result<Interpreter> {
    let mut command = Command::new(program);
    command.args(question).stdin(Stdio::null());
    let bounds = Bounds { timeout: Some(PATIENCE), output_limit_bytes: MOST_ANSWER_BYTES };
    let ended = run_fed(command, |_| future::ready(()), bounds, &(), future::pending()).await?;
    let answer = ended.stdout.into_head();
    let mut lines = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let path = lines.next().map(|line| PathBuf::from(OsString::from_vec(line.to_vec())));
    let Some(path) =
        path.filter(|path| ended.ending == Ending::Exited(Some(0)) && is_program(path))
    else {
        return Err(io::Error::other("it does not say where its files are"));
    };
    let prefixes = lines.map(|line| PathBuf::from(OsString::from_vec(line.to_vec()))).collect();
    Ok(described(path, prefixes, work))
}

/// An interpreter with those prefixes. One without any has that of its own file, if that lies in a `bin`.
fn described(path: PathBuf, mut prefixes: Vec<PathBuf>, work: &str) -> Interpreter {
    if prefixes.is_empty()
        && let Ok(file) = path.canonicalize()
        && let Some(folder) = file.parent().filter(|folder| folder.ends_with("bin"))
    {
        prefixes.extend(folder.parent().map(Path::to_owned));
    }
    let mut readable = Vec::new();
    for prefix in prefixes.into_iter().filter(|prefix| prefix.is_absolute() && prefix.is_dir()) {
        // A prefix may be a link, and its files know either path.
        for path in [prefix.canonicalize().ok(), Some(prefix)].into_iter().flatten() {
            if !is_private(&path, work) && !readable.contains(&path) {
                readable.push(path);
            }
        }
    }
    readable.extend(chain(&path));
    Interpreter { path, readable }
}

/// A path and those that it is a link to, one after another.
fn chain(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    while found.len() < MOST_LINKS
        && let Some(last) = found.last()
        && let Ok(target) = fs::read_link(last)
    {
        let folder = last.parent().unwrap_or(last).canonicalize().unwrap_or_default();
        found.push(folder.join(target));
    }
    found.extend(path.canonicalize());
    found.retain(|path| plain(path));
    found
}

fn plain(path: &Path) -> bool {
    use std::path::Component;
    path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

/// Whether a folder holds more than an interpreter: the root, a home folder, one for temporary files or settings, and
/// everything around these; or is one that the program has for itself.
fn is_private(folder: &Path, work: &str) -> bool {
    let whole = ["/root", "/home", "/tmp", "/etc", "/var", work].map(PathBuf::from);
    let is_around = whole.into_iter().chain(env::home_dir()).any(|whole| {
        whole.starts_with(folder)
            || whole.canonicalize().is_ok_and(|whole| whole.starts_with(folder))
    });
    let is_home = folder.parent() == Some(Path::new("/home"));
    is_around || is_home || OWN.iter().any(|own| folder.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORK: &str = "/work";

    #[test]
    fn no_home_folder_and_nothing_around_one_is_a_prefix() {
        for folder in
            ["/", "/home", "/home/ada", "/root", "/tmp", "/var", "/proc/self/root", "/work"]
        {
            assert!(is_private(Path::new(folder), WORK), "{folder}");
        }
        for folder in [
            "/home/ada/venv",
            "/root/.pyenv/versions/3.12.1",
            "/tmp/venv",
            "/opt/python",
            "/var/lib/app/venv",
            "/work/venv",
        ] {
            assert!(!is_private(Path::new(folder), WORK), "{folder}");
        }
    }

    #[test]
    fn a_program_that_cannot_be_asked_has_the_prefix_of_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let prefix = folder.path().canonicalize().expect("its path").join("lua");
        let program = prefix.join("bin/lua");
        fs::create_dir_all(prefix.join("bin")).expect("a folder");
        fs::write(&program, "").expect("a file");
        let link = folder.path().join("lua5");
        std::os::unix::fs::symlink(&program, &link).expect("a link");
        let found = described(link.clone(), Vec::new(), WORK);
        assert_eq!(found.path, link);
        assert_eq!(found.readable[0], prefix);
        assert!(found.readable.contains(&link) && found.readable.contains(&program));
    }
}
