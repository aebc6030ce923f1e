//! The run of a loop.
//!
//! In: contents. Out: events, and the result, or the error of the model. Turns follow one another until one has no code.

use std::sync::Arc;

use super::{
    LoopResult, Reason,
    builder::Settings,
    call::Call,
    event::LoopEvent,
    events::Events,
    files::Files,
    history,
    reply::{Reply, Speech, read},
};
use crate::{CancellationToken, Content, ModelError, ModelRequest};

/// The most programs of one reply that are run.
const MOST_PROGRAMS: usize = 100;

/// Runs the loop.
pub(super) async fn run(
    settings: Arc<Settings>,
    contents: Vec<Content>,
    cancellation: CancellationToken,
    events: Events,
) -> Result<LoopResult, ModelError> {
    let settings = &*settings;
    let id = uuid::Uuid::new_v4().to_string();
    let is_stateful = settings.executor.stateful();
    let execution_id =
        is_stateful.then(|| settings.execution_id.clone().unwrap_or_else(|| id.clone()));
    let mut run = Run {
        settings,
        cancellation,
        events,
        id,
        execution_id,
        contents,
        files: Files::new(&settings.files),
        turn: 0,
        text: String::new(),
    };
    let reason = run.turns().await?;
    let Run { events, contents, files, turn, text, .. } = run;
    events.push(LoopEvent::Finish { turn, reason, text: text.clone() });
    Ok(LoopResult { reason, text, contents, files: files.into_left(), turns: turn })
}

struct Run<'r> {
    settings: &'r Settings,
    cancellation: CancellationToken,
    events: Events,
    /// The name of the run.
    id: String,
    execution_id: Option<String>,
    contents: Vec<Content>,
    files: Files<'r>,
    /// The turn, from 1, and its text.
    turn: u32,
    text: String,
}

impl Run<'_> {
    async fn turns(&mut self) -> Result<Reason, ModelError> {
        while self.turn < self.settings.max_turns {
            if self.cancellation.is_cancelled() {
                return Ok(Reason::Cancelled);
            }
            self.turn += 1;
            self.events.push(LoopEvent::Turn { turn: self.turn });
            let Some(reply) = self.ask().await? else { return Ok(Reason::Cancelled) };
            self.text.clone_from(&reply.text);
            if !reply.parts.is_empty() {
                self.contents.push(history::reply(self.settings, &reply));
            }
            let programs = reply.programs();
            if programs.is_empty() {
                return Ok(Reason::Answered);
            }
            let mut results = Vec::new();
            for (index, program) in programs.iter().enumerate() {
                let call = Call {
                    settings: self.settings,
                    events: &self.events,
                    cancellation: &self.cancellation,
                    run_id: &self.id,
                    execution_id: self.execution_id.as_ref(),
                    turn: self.turn,
                    index,
                };
                let done = if index < MOST_PROGRAMS {
                    call.run(program, &mut self.files).await
                } else {
                    let why = format!("not run: a reply may have at most {MOST_PROGRAMS} programs");
                    Some(call.refuse(program, &why))
                };
                let Some(done) = done else { break };
                results.push((done.outcome, done.output));
            }
            if !results.is_empty() {
                self.contents.push(history::results(self.settings, &reply.code, &results));
            }
            if results.len() < programs.len() {
                return Ok(Reason::Cancelled);
            }
        }
        Ok(Reason::MaxTurns)
    }

    /// Asks the model. `None`: the run was cancelled.
    async fn ask(&mut self) -> Result<Option<Reply>, ModelError> {
        let Self { settings, cancellation, events, contents, turn, text, .. } = self;
        let request =
            ModelRequest { instruction: settings.instruction.clone(), contents: contents.clone() };
        let mut speech = Speech::new(*turn, events, &settings.code_blocks);
        let reply = async {
            let reply = settings.model.generate(request).await?;
            read(reply, &mut speech).await
        };
        let read = tokio::select! {
            biased;
            () = cancellation.cancelled() => None,
            read = reply => Some(read),
        };
        match read {
            Some(read) => read.map(|()| Some(speech.end())),
            None => {
                speech.text().clone_into(text);
                Ok(None)
            }
        }
    }
}
