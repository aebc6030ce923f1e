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
    run::{flush, time_limit},
    signals::{INTERRUPTED, Signals},
    sources::{self, Sources},
    streams::{Streams, harmless},
};

pub(crate) async fn repl(
    arguments: ReplArguments,
    installation: &Installation,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    let runtime = installation.runtime(arguments.isolation)?;
    let (timeout_ms, memory_limit_bytes) = (arguments.timeout, arguments.given.memory);
    let given = signals.during(move || Given::read(&arguments.given)).await?;
    let streams = Streams::new(true).map_err(|error| Ended::failure(&error))?;
    let streams = Arc::new(streams);
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
    // A thread may still read a line when a signal ends the program.
    let _restored = input::Restored::new();
    let input = Input::open(names)?;
    let code = repl.read_all(input, signals).await?;
    repl.written(signals).await?;
    Ok(code)
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

/// The state after a cell.
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
            self.written(signals).await?;
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
        self.streams.begin();
        let mut execution = self.session.run(source.clone(), options);
        let mut exit = None;
        let time_limit = time_limit(self.timeout_ms, &self.streams);
        let result = tokio::select! {
            result = &mut execution => result,
            never = time_limit => match never {},
            (code, name) = signals.next() => {
                self.streams.end();
                exit = (code != INTERRUPTED).then_some(code);
                execution.terminate(Some(&format!("{name} ended the cell")));
                execution.await
            }
            () = self.streams.closed() => {
                execution.terminate(Some("nobody reads the output any more"));
                execution.await
            }
        }?;
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
        self.show(&result, &name, &source);
        self.cells.insert(format!("./{name}"), source.clone());
        if result.status == Status::Success {
            self.kept.push(source);
        }
        self.learn_names().await;
        Ok(After::Done)
    }

    fn show(&self, result: &ExecutionResult, name: &str, source: &str) {
        if let Some(error) = &result.error {
            let sources = Sources {
                entry: source.to_owned(),
                filename: name.to_owned(),
                modules: self.cells.clone(),
                ..Sources::default()
            };
            self.streams.styled(failure::text(result.status.as_str(), error, &sources));
        }
        let cell = result.cell.as_deref();
        match cell.map(|cell| cell.session) {
            Some(SessionState::RolledBack) => self.say("the session is as it was before this cell"),
            Some(SessionState::Reset) => self.say("the session was reset: its names are gone"),
            _ => {}
        }
        if let Some(text) = cell.and_then(|cell| cell.text.as_deref()) {
            self.streams.out(text.to_owned());
        }
    }

    /// A line for people, on stderr.
    fn say(&self, text: &str) {
        self.streams.styled(harmless(text) + "\n");
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// A signal; an output that nobody reads any more.
    async fn written(&self, signals: &mut Signals) -> Result<(), Ended> {
        flush(&self.streams, false, signals).await?;
        self.streams.failure().map_or(Ok(()), |error| Err(Ended::unwritten(&error)))
    }

    async fn learn_names(&self) {
        // A session that is closed has none.
        let names = self.session.names().await.unwrap_or_default();
        let names = names.into_iter().map(|name| name.name).collect();
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// Obeys a line with a dot; gives the exit code if the program ends.
    async fn command(
        &mut self,
        command: Command,
        signals: &mut Signals,
    ) -> Result<Option<u8>, Ended> {
        match command {
            Command::Exit => return Ok(Some(exit::SUCCESS)),
            Command::Help => self.streams.out(commands::HELP.to_owned()),
            Command::Names => {
                let names = self.session.names().await?;
                let line = |name: &isolane::Name| {
                    format!("{} {}: {}", name.kind.as_str(), name.name, name.kind_of)
                };
                let lines: Vec<String> = names.iter().map(line).collect();
                if !lines.is_empty() {
                    self.streams.out(lines.join("\n"));
                }
            }
            Command::Reset => {
                self.session.reset().await?;
                self.kept.clear();
                self.learn_names().await;
            }
            Command::Save(file) => {
                let text =
                    self.kept.iter().flat_map(|cell| [cell.as_str(), "\n"]).collect::<String>();
                let written = signals.during(move || {
                    std::fs::write(&file, text).map_err(|error| {
                        Ended::misuse(format!("cannot write {}: {error}", file.display()))
                    })
                });
                self.tell(written.await)?;
            }
            Command::Load(file) => {
                let language = sources::language(&file);
                match signals.during(move || sources::read(&file)).await {
                    Ok(source) => match self.cell(source, language, false, signals).await? {
                        After::Exit(code) => return Ok(Some(code)),
                        After::Done | After::More => {}
                    },
                    Err(ended) => self.tell(Err(ended))?,
                }
            }
            Command::Unknown(word) => {
                self.say(&format!("there is no command {word}; .help lists them"));
            }
        }
        Ok(None)
    }

    /// Shows misuse, after which the session goes on. Any other end is one.
    fn tell(&self, done: Result<(), Ended>) -> Result<(), Ended> {
        match done {
            Err(ended) if ended.code() == exit::MISUSE => {
                self.say(ended.message().unwrap_or_default());
                Ok(())
            }
            done => done,
        }
    }
}
