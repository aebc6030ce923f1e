//! Types: the sources before TypeScript's own compiler.
//!
//! In: sources that link, declarations of all that they are handed, the compiler. Out: the mistakes that it names. The
//! compiler works in a folder of its own, and writes nothing.

use std::{
    fs, io,
    path::{Component, Path},
    time::Duration,
};

use isolane::ExecutionError;
use isolane_child::{Bounds, DEFAULT_LIMIT_BYTES, Ending, run};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    exit::{self, Ended},
    signals::Signals,
    sources::Sources,
};

/// The folder of the sources, in which the compiler runs.
const SOURCES: &str = "sources";

const DECLARATIONS: &str = "declarations.d.ts";

const OPTIONS: &str = "tsconfig.json";

/// The endings of sources that the compiler knows.
const ENDINGS: [&str; 5] = [".ts", ".mts", ".js", ".mjs", ".cjs"];

/// The most characters of the compiler's own failure.
const MOST_SHOWN: usize = 1000;

/// Checks the types of sources.
///
/// # Errors
/// A compiler that does not start, fails by itself, or takes too long; a signal.
pub(super) async fn check(
    tsc: &Path,
    sources: &Sources,
    declarations: String,
    timeout_ms: Option<u64>,
    signals: &mut Signals,
) -> Result<Vec<ExecutionError>, Ended> {
    let entry = entry(&sources.filename);
    let mut files: Vec<(String, String)> = sources
        .modules
        .iter()
        .filter_map(|(specifier, source)| Some((specifier.strip_prefix("./")?.to_owned(), source)))
        .filter(|(name, _)| name != &entry)
        .map(|(name, source)| (name, source.clone()))
        .collect();
    files.push((entry.clone(), sources.entry.clone()));
    let named = entry.clone();
    let folder = signals
        .during(move || {
            write(&files, &named, &declarations).map_err(|error| Ended::failure(&error))
        })
        .await?;
    // A relative path would begin at that folder.
    let is_path = tsc.components().count() > 1;
    let program = if is_path { std::path::absolute(tsc) } else { Ok(tsc.to_owned()) };
    let mut command = Command::new(program.map_err(|error| Ended::failure(&error))?);
    command.args(["--project", &format!("../{OPTIONS}"), "--pretty", "false"]);
    command.current_dir(folder.path().join(SOURCES));
    let timeout = timeout_ms.map(Duration::from_millis);
    let bounds = Bounds { timeout, output_limit_bytes: DEFAULT_LIMIT_BYTES };
    let mut signal = None;
    let stop = async {
        signal = Some(signals.next().await.0);
        Ending::Cancelled
    };
    let ended = run(command, Vec::new(), bounds, &(), stop).await.map_err(|error| {
        Ended::misuse(format!("--tsc {}: it cannot be started: {error}", tsc.display()))
    })?;
    if let Some(code) = signal {
        return Err(Ended::signal(code));
    }
    let text = ended.stdout.into_text();
    let (mistakes, others) = read(&text, &entry, &sources.filename);
    match ended.ending {
        Ending::TimedOut => Err(Ended::timeout("--tsc: the time limit is over")),
        Ending::Exited(Some(0)) if others.is_empty() => Ok(mistakes),
        Ending::Exited(_) if others.is_empty() && !mistakes.is_empty() => Ok(mistakes),
        _ => {
            let text = if others.is_empty() { ended.stderr.into_text() } else { others };
            let shown: String = text.trim().chars().take(MOST_SHOWN).collect();
            Err(Ended::failure(&format_args!("--tsc: it failed: {shown}")))
        }
    }
}

/// The name of the entry for the compiler, which tells languages by endings.
fn entry(filename: &str) -> String {
    let is_plain =
        Path::new(filename).components().all(|part| matches!(part, Component::Normal(_)));
    let name = if is_plain && !filename.starts_with('<') { filename } else { "stdin" };
    if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        name.to_owned()
    } else {
        format!("{name}.ts")
    }
}

/// Writes all files of a project, which go with the folder.
fn write(files: &[(String, String)], entry: &str, declarations: &str) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("isolane-check-").tempdir()?;
    let sources = folder.path().join(SOURCES);
    fs::create_dir(&sources)?;
    for (name, text) in files {
        let file = sources.join(name);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(file, text)?;
    }
    fs::write(folder.path().join(DECLARATIONS), declarations)?;
    let options = json!({
        "compilerOptions": {
            "target": "esnext", "lib": ["esnext"], "types": [], "module": "preserve", "moduleResolution": "bundler",
            "moduleDetection": "force", "allowImportingTsExtensions": true, "allowJs": true, "noEmit": true,
            "skipLibCheck": true, "strict": true,
            // Code of models has few annotations, and runs all the same.
            "noImplicitAny": false, "useUnknownInCatchVariables": false,
        },
        "files": [DECLARATIONS, format!("{SOURCES}/{entry}")],
    });
    fs::write(folder.path().join(OPTIONS), options.to_string())?;
    Ok(folder)
}

/// The mistakes in sources, and what the compiler says besides. A mistake is a line `file.ts(1,2): error TS2322: …`, and the
/// lines below that begin with blanks.
fn read(text: &str, entry: &str, filename: &str) -> (Vec<ExecutionError>, String) {
    let (mut mistakes, mut others): (Vec<ExecutionError>, String) = Default::default();
    for line in text.lines() {
        if let Some(mut mistake) = mistake(line) {
            if mistake.filename.as_deref() == Some(entry) {
                mistake.filename = Some(filename.to_owned());
            }
            mistakes.push(mistake);
        } else if let (Some(last), true, true) =
            (mistakes.last_mut(), line.starts_with(' '), others.is_empty())
        {
            last.message.push('\n');
            last.message.push_str(line);
        } else if !line.trim().is_empty() {
            others.push_str(line);
            others.push('\n');
        }
    }
    (mistakes, others)
}

fn mistake(line: &str) -> Option<ExecutionError> {
    let (place, rest) = line.split_once("): error TS")?;
    let (filename, position) = place.rsplit_once('(')?;
    let (at_line, column) = position.split_once(',')?;
    let (number, message) = rest.split_once(": ")?;
    if filename.starts_with("..") || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(ExecutionError {
        name: format!("TS{number}"),
        message: message.to_owned(),
        filename: Some(filename.to_owned()),
        line: Some(at_line.parse().ok()?),
        column: Some(column.parse().ok()?),
        ..ExecutionError::default()
    })
}

/// The exit code for mistakes in types.
pub(super) const MISTAKEN: u8 = exit::ERROR;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_compiler_are_mistakes() {
        let text = "stdin.ts(1,7): error TS2322: Type 'number' is not assignable.\n  Types differ: (a): b\n\
                    lib/(a).ts(20,3): error TS1: x\n../tsconfig.json(1,2): error TS6046: no such module\n";
        let (mistakes, others) = read(text, "stdin.ts", "<stdin>");
        let shown: Vec<_> = mistakes
            .iter()
            .map(|mistake| (mistake.filename.as_deref(), mistake.line, mistake.column))
            .collect();
        let expected =
            [(Some("<stdin>"), Some(1), Some(7)), (Some("lib/(a).ts"), Some(20), Some(3))];
        assert_eq!(shown, expected);
        assert_eq!(mistakes[0].message, "Type 'number' is not assignable.\n  Types differ: (a): b");
        assert_eq!(others, "../tsconfig.json(1,2): error TS6046: no such module\n");
    }

    #[test]
    fn the_compiler_has_names_with_endings() {
        for (given, expected) in
            [("<stdin>", "stdin.ts"), ("a.mjs", "a.mjs"), ("lib/code", "lib/code.ts")]
        {
            assert_eq!(entry(given), expected);
        }
    }
}
