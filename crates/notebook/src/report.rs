//! The result of a call, made of what its cells did.
//!
//! In: cells that ended, run or wait. Out: one text within the limits, images, and the details of each cell.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    CallResult, CellInput, CellResult, CellStatus, Image, Limits, Output, Truncation,
    artifacts::Kept as KeptFile,
    clock::Clock,
    kernels::{Cause, Ended},
    record::{Record, Recorded, Shared, usize_of},
    text::{
        clean::trimmed,
        kept::Kept,
        window::{Shown, cut, share},
        words,
    },
};

/// A cell of a call.
#[derive(Debug)]
pub(crate) struct CellState {
    pub(crate) input: CellInput,
    pub(crate) name: Option<String>,
    pub(crate) status: CellStatus,
    pub(crate) record: Record,
    /// When its turn came, and its clock from then on.
    pub(crate) began: Option<Instant>,
    pub(crate) clock: Option<Clock>,
    /// Wall time and work, once it has ended.
    pub(crate) took: Option<(Duration, Duration)>,
    pub(crate) ended: Option<Ended>,
}

impl CellState {
    pub(crate) fn new(input: CellInput, record: Record) -> Self {
        Self {
            input,
            name: None,
            status: CellStatus::Pending,
            record,
            began: None,
            clock: None,
            took: None,
            ended: None,
        }
    }

    /// The cell has ended.
    pub(crate) fn end(&mut self, ended: Ended) {
        let worked = self.clock.as_ref().map(Clock::worked).unwrap_or_default();
        self.took = Some((self.began.map(|began| began.elapsed()).unwrap_or_default(), worked));
        let is_error = ended.cause.is_some() || ended.error.is_some();
        self.status = if is_error { CellStatus::Error } else { CellStatus::Complete };
        self.ended = Some(ended);
        self.record.close();
    }

    fn times(&self) -> (f64, f64) {
        let (wall, work) = self.took.unwrap_or_else(|| {
            let wall = self.began.map(|began| began.elapsed()).unwrap_or_default();
            (wall, self.clock.as_ref().map(Clock::worked).unwrap_or_default())
        });
        (wall.as_secs_f64() * 1e3, work.as_secs_f64() * 1e3)
    }
}

/// The result of a call. `live` makes that of an update: its text is the end of the whole. Otherwise the call has ended.
pub(crate) fn report(
    cells: &[CellState],
    notice: Option<&str>,
    shared: &Shared,
    live: bool,
) -> CallResult {
    let limits = &shared.limits;
    let recorded: Vec<Recorded> = cells.iter().map(|cell| cell.record.recorded()).collect();
    let (shown, truncation) = shown(&recorded, limits);
    let kept = if live { None } else { shared.end_whole(truncation.is_some()) };
    let mut images: Vec<Image> = recorded
        .iter()
        .flat_map(|recorded| &recorded.parts)
        .filter_map(|part| if let Output::Image(image) = part { Some(image.clone()) } else { None })
        .collect();
    let displayed = images.len();
    images.retain(Image::is_for_models);
    let mut blocks: Vec<String> = notice.map(str::to_owned).into_iter().collect();
    let mut is_anything_shown = notice.is_some();
    for (index, cell) in cells.iter().enumerate() {
        if cell.status == CellStatus::Pending {
            continue;
        }
        let body = body(index, cells, &shown[index], kept.as_ref());
        is_anything_shown |= !body.is_empty();
        let mut block = body;
        if cells.len() > 1 {
            let head = words::head(index, cells.len(), cell.input.title.as_deref());
            block = if block.is_empty() { head } else { format!("{head}\n{block}") };
        }
        if !block.is_empty() {
            blocks.push(block);
        }
    }
    let mut text = blocks.join("\n\n");
    if !is_anything_shown && !live {
        text = words::nothing(displayed);
    }
    if live {
        let start = text.len().saturating_sub(usize_of(limits.live_bytes));
        text.drain(..text.ceil_char_boundary(start));
    }
    let is_error = cells.iter().any(|cell| cell.status == CellStatus::Error);
    let cells = cells.iter().zip(recorded).zip(shown).enumerate();
    CallResult {
        text,
        images,
        cells: cells
            .map(|(index, ((cell, recorded), shown))| detail(index, cell, recorded, shown))
            .collect(),
        notice: notice.map(str::to_owned),
        truncation,
        artifact: kept.and_then(Result::ok),
        is_error,
    }
}

/// The part of each cell's text that is shown.
fn shown(recorded: &[Recorded], limits: &Limits) -> (Vec<Shown>, Option<Truncation>) {
    let sizes =
        |size: fn(&Kept) -> u64| recorded.iter().map(|cell| size(&cell.text)).collect::<Vec<_>>();
    let (bytes, lines) = (sizes(Kept::bytes), sizes(Kept::lines));
    let (most_bytes, most_lines) =
        (share(&bytes, limits.output_bytes), share(&lines, limits.output_lines));
    let cut = |cell: &Recorded| {
        let (most_bytes, most_lines) =
            (most_bytes.min(limits.output_bytes), most_lines.min(limits.output_lines));
        cut(&cell.text, limits.window, most_bytes, most_lines)
    };
    let shown: Vec<Shown> = recorded.iter().map(cut).collect();
    if shown.iter().all(|shown| shown.missing.is_none()) {
        return (shown, None);
    }
    let shown_lines = |shown: &Shown| {
        if shown.text.is_empty() { 0 } else { shown.text.matches('\n').count() as u64 + 1 }
    };
    let truncation = Truncation {
        window: limits.window,
        total_bytes: bytes.iter().sum(),
        total_lines: lines.iter().sum(),
        shown_bytes: shown.iter().map(|shown| shown.text.len() as u64).sum(),
        shown_lines: shown.iter().map(shown_lines).sum(),
    };
    (shown, Some(truncation))
}

/// The text of a cell below its head.
fn body(index: usize, cells: &[CellState], shown: &Shown, kept: Option<&KeptFile>) -> String {
    let cell = &cells[index];
    let mut lines: Vec<String> = Vec::new();
    lines.push(trimmed(&shown.text).to_owned());
    lines.extend(shown.missing.as_deref().map(|missing| words::truncated(missing, kept)));
    if let Some(ended) = &cell.ended {
        lines.extend(ended.error.as_ref().map(|(_, text)| text.trim_end().to_owned()));
        lines.extend(ended.cause.as_ref().map(cause_text));
        if cell.status == CellStatus::Error {
            lines.push(words::failed(index, cells.len(), ended.cause.is_some()));
            let pending = cells.iter().enumerate();
            let pending = pending.filter(|(_, cell)| cell.status == CellStatus::Pending);
            lines.extend(words::did_not_run(&pending.map(|(index, _)| index).collect::<Vec<_>>()));
            lines.extend(ended.state_text.clone());
        }
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

fn cause_text(cause: &Cause) -> String {
    match cause {
        Cause::Expired(expired) => words::timed_out(expired.limit, expired.waited),
        Cause::Caller(reason) => words::aborted(reason.as_deref()),
        Cause::Reset => words::aborted(Some("the session was reset")),
        Cause::RolledBack => words::aborted(Some("the session was rolled back")),
        Cause::Closed => words::aborted(Some("the notebook was closed")),
    }
}

fn detail(index: usize, cell: &CellState, recorded: Recorded, shown: Shown) -> CellResult {
    let (duration_ms, work_ms) = cell.times();
    let (mut outputs, status_events) = (recorded.parts, recorded.events);
    let markdown = outputs.iter().any(|part| matches!(part, Output::Markdown(_)));
    let mut error =
        cell.ended.as_ref().and_then(|ended| ended.error.clone()).map(|(error, _)| error);
    let cause = cell.ended.as_ref().and_then(|ended| ended.cause.as_ref());
    if let Some(cause) = cause {
        let name = if matches!(cause, Cause::Expired(_)) { "Timeout" } else { "Terminated" };
        error = Some(crate::CellError {
            name: name.to_owned(),
            message: cause_text(cause),
            ..crate::CellError::default()
        });
    }
    if let Some(error) = &error {
        let (name, message) = (error.name.clone(), error.message.clone());
        outputs.push(Output::Error { name, message });
    }
    let exit_code = match (&cell.ended, cause) {
        (None, _) | (_, Some(_)) => None,
        (Some(ended), None) => Some(u8::from(ended.error.is_some())),
    };
    CellResult {
        index,
        title: cell.input.title.clone(),
        language: cell.input.language,
        code: cell.input.code.clone(),
        name: cell.name.clone(),
        status: cell.status,
        output: shown.text,
        outputs,
        duration_ms,
        work_ms,
        exit_code,
        status_events,
        markdown,
        error,
        state: cell.ended.as_ref().map(|ended| ended.state),
    }
}
