//! `isolane repl`: a session at a terminal, or over pipes.
//!
//! In: lines. Out: what the code prints, its values, its errors. `input` reads lines, `unfinished` tells whether a text
//! needs more of them, `commands` has the words that begin with a dot.

mod commands;
mod input;
mod unfinished;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use isolane::{
    CallRequest, CellOptions, CellRequest, Error, ExecutionResult, Language, Report,
    RunInterceptor, Session, SessionInterceptor, SessionOptions, SessionState, Status,
};

use self::{
    commands::Command,
    input::{Ending, Input},
};
use crate::{
    arguments::ReplArguments,
    code::{Given, Installation},
    exit::{self, Ended},
    failure,
    signals::{INTERRUPTED, Signals},
    sources::{self, Sources},
    streams::{self, Streams},
};

pub(crate) async fn repl(
    arguments: ReplArguments,
    installation: &Installation,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    let runtime = installation.runtime(arguments.isolation)?;
    let (timeout_ms, memory_limit_bytes) = (arguments.timeout, arguments.given.memory);
    let given = signals.during(move || Given::read(&arguments.given)).await?;
    let streams = Arc::new(Streams::new(true));
    let options = SessionOptions {
        globals: given.globals,
        imports: given.imports,
        modules: given.modules,
        memory_limit_bytes,
        report: Report::On,
        ..SessionOptions::default()
    };
    let console = Arc::new(Console(Arc::clone(&streams)));
    let session = runtime.session_with(options, |request| {
        Ok(isolane::SessionRequest { interceptor: Some(console), ..request })
    })?;
    let names = Arc::default();
    let mut repl = Repl {
        session,
        timeout_ms,
        streams,
        names: Arc::clone(&names),
        cells: BTreeMap::new(),
        kept: Vec::new(),
        count: 0,
    };
    let input = Input::open(names)?;
    repl.read_all(input, signals).await
}

/// The console of all cells.
#[derive(Debug)]
struct Console(Arc<Streams>);

impl SessionInterceptor for Console {
    fn cell(&self, _: &mut CellRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        Ok(self.outside())
    }

    fn call(&self, _: &mut CallRequest) -> Result<Arc<dyn RunInterceptor>, Error> {
        Ok(self.outside())
    }

    fn outside(&self) -> Arc<dyn RunInterceptor> {
        Arc::clone(&self.0) as Arc<dyn RunInterceptor>
    }
}

/// The names that completion knows: those that cells have declared.
type Names = Arc<Mutex<Vec<String>>>;

struct Repl {
    session: Session,
    timeout_ms: Option<u64>,
    streams: Arc<Streams>,
    names: Names,
    /// The sources of cells, by the specifier that their names would have: functions of earlier cells may throw.
    cells: BTreeMap<String, String>,
    /// The cells that have succeeded since the session began, for `.save`.
    kept: Vec<String>,
    /// How many cells there were.
    count: u64,
}

/// What a cell leads to.
enum After {
    /// It is over.
    Done,
    /// It needs more lines; nothing has run.
    More,
    /// The program ends.
    Exit(u8),
}

impl Repl {
    async fn read_all(&mut self, mut input: Input, signals: &mut Signals) -> Result<u8, Ended> {
        let mut text = String::new();
        loop {
            let is_first = text.is_empty();
            let (line, next) = input.line(is_first, signals).await?;
            input = next;
            let is_over = match line {
                Ok(line) => {
                    if is_first && let Some(command) = Command::of(&line) {
                        match self.command(command, signals).await? {
                            Some(code) => return Ok(code),
                            None => continue,
                        }
                    }
                    text.push_str(&line);
                    text.push('\n');
                    false
                }
                Err(Ending::Cleared) => {
                    text.clear();
                    continue;
                }
                Err(Ending::Interrupted) => return Ok(INTERRUPTED),
                Err(Ending::Over) => true,
            };
            if !text.trim().is_empty() {
                let source = text.trim_end_matches('\n').to_owned();
                match self.cell(source, Language::TypeScript, !is_over, signals).await? {
                    After::More => continue,
                    After::Done => {}
                    After::Exit(code) => return Ok(code),
                }
            }
            text.clear();
            if is_over {
                return Ok(exit::SUCCESS);
            }
        }
    }

    /// Runs a cell, and shows how it ended. `may_go_on`: more lines may come.
    async fn cell(
        &mut self,
        source: String,
        language: Language,
        may_go_on: bool,
        signals: &mut Signals,
    ) -> Result<After, Ended> {
        let name = format!("<cell {}>", self.count + 1);
        let options = CellOptions {
            filename: Some(name.clone()),
            language: Some(language),
            timeout_ms: self.timeout_ms,
            ..CellOptions::default()
        };
        let mut execution = self.session.run(source.clone(), options);
        let mut exit = None;
        let result = tokio::select! {
            result = &mut execution => result,
            (code, name) = signals.next() => {
                exit = (code != INTERRUPTED).then_some(code);
                execution.terminate(Some(&format!("{name} ended the cell")));
                execution.await
            }
            () = self.streams.closed() => {
                execution.terminate(Some("nobody reads the output any more"));
                execution.await
            }
        }?;
        if let Some(error) = self.streams.failure() {
            return Err(Ended::unwritten(&error));
        }
        if let Some(code) = exit {
            return Ok(After::Exit(code));
        }
        if may_go_on
            && result.status == Status::LinkError
            && let Some(error) = &result.error
            && unfinished::needs_more(&source, error)
        {
            return Ok(After::More);
        }
        self.count += 1;
        self.show(&result, &name, &source)?;
        self.cells.insert(format!("./{name}"), source.clone());
        if result.status == Status::Success {
            self.kept.push(source);
        }
        self.learn_names().await;
        Ok(After::Done)
    }

    fn show(&self, result: &ExecutionResult, name: &str, source: &str) -> Result<(), Ended> {
        if let Some(error) = &result.error {
            let sources = Sources {
                entry: source.to_owned(),
                filename: name.to_owned(),
                modules: self.cells.clone(),
                ..Sources::default()
            };
            failure::show(result.status.as_str(), error, &sources);
        }
        let cell = result.cell.as_deref();
        match cell.map(|cell| cell.session) {
            Some(SessionState::RolledBack) => say("the session is as it was before this cell"),
            Some(SessionState::Reset) => say("the session was reset: its names are gone"),
            _ => {}
        }
        match cell.and_then(|cell| cell.text.as_deref()) {
            Some(text) => streams::out(text).map_err(|error| Ended::unwritten(&error)),
            None => Ok(()),
        }
    }

    async fn learn_names(&self) {
        // A session that is closed has none.
        let names = self.session.names().await.unwrap_or_default();
        let names = names.into_iter().map(|name| name.name).collect();
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// Does what a line with a dot says; gives the exit code if the program ends.
    async fn command(
        &mut self,
        command: Command,
        signals: &mut Signals,
    ) -> Result<Option<u8>, Ended> {
        let done = match command {
            Command::Exit => return Ok(Some(exit::SUCCESS)),
            Command::Help => print(commands::HELP),
            Command::Names => {
                let names = self.session.names().await?;
                let line = |name: &isolane::Name| {
                    format!("{} {}: {}", name.kind.as_str(), name.name, name.kind_of)
                };
                let lines: Vec<String> = names.iter().map(line).collect();
                if lines.is_empty() { Ok(()) } else { print(&lines.join("\n")) }
            }
            Command::Reset => {
                self.session.reset().await?;
                self.kept.clear();
                self.learn_names().await;
                Ok(())
            }
            Command::Save(file) => {
                let text =
                    self.kept.iter().flat_map(|cell| [cell.as_str(), "\n"]).collect::<String>();
                let written = signals.during(move || {
                    std::fs::write(&file, text).map_err(|error| {
                        Ended::misuse(format!("cannot write {}: {error}", file.display()))
                    })
                });
                tell(written.await)
            }
            Command::Load(file) => {
                let language = sources::language(&file);
                match signals.during(move || sources::read(&file)).await {
                    Ok(source) => match self.cell(source, language, false, signals).await? {
                        After::Exit(code) => return Ok(Some(code)),
                        After::Done | After::More => Ok(()),
                    },
                    Err(ended) => tell(Err(ended)),
                }
            }
            Command::Unknown(word) => {
                say(&format!("there is no command {word}; .help lists them"));
                Ok(())
            }
        };
        done.map(|()| None)
    }
}

/// Shows misuse, after which the session goes on. Any other end is one.
fn tell(done: Result<(), Ended>) -> Result<(), Ended> {
    match done {
        Err(ended) if ended.code() == exit::MISUSE => {
            say(ended.message().unwrap_or_default());
            Ok(())
        }
        done => done,
    }
}

fn print(text: &str) -> Result<(), Ended> {
    streams::out(text).map_err(|error| Ended::unwritten(&error))
}

/// A line for people, on stderr.
fn say(text: &str) {
    use std::io::Write;
    // A stderr that nobody reads is no failure.
    let _ = writeln!(anstream::stderr(), "{}", streams::harmless(text));
}
