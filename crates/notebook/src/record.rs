//! The record of a cell that runs: its output, as it comes.
//!
//! In: bytes of streams and displays, from any thread. Out: the text and the typed parts within the limits of the call, and
//! a signal for each change.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value as Json, json};
use tokio::sync::Notify;

use crate::{
    CellError, Image, Limits, Output, Window,
    artifacts::{Artifacts, EVAL, Kept as KeptFile, Whole},
    text::{
        clean::cleaned,
        json::json_text,
        kept::Kept,
        screen::{Screen, Stream},
        words,
    },
};

/// The most parts of a cell's output that are kept one by one.
const MOST_PARTS: usize = 1000;

/// The most values and images of a call that are kept in files of their own.
const MOST_FILES: usize = 64;

/// The data that all cells of a call share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    /// Told of each change, for updates.
    pub(crate) changed: Notify,
    images: AtomicUsize,
    artifacts: Option<Arc<Artifacts>>,
    /// The files of values and images.
    files: AtomicUsize,
    /// The whole text, unless the call has ended or there are no artifacts.
    whole: Mutex<Option<Whole>>,
}

impl Shared {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            changed: Notify::new(),
            images: AtomicUsize::new(0),
            artifacts: None,
            files: AtomicUsize::new(0),
            whole: Mutex::default(),
        }
    }

    /// Texts, values and images that are too long for the result are kept in artifacts.
    pub(crate) fn with_artifacts(self, artifacts: Option<Arc<Artifacts>>) -> Self {
        let most_held = usize_of(self.limits.output_bytes);
        let whole = artifacts.clone().map(|artifacts| Whole::new(artifacts, most_held));
        Self { artifacts, whole: Mutex::new(whole), ..self }
    }

    /// Adds to the whole text of the call.
    pub(crate) fn whole(&self, add: impl FnOnce(&mut Whole)) {
        if let Some(whole) = self.lock_whole().as_mut() {
            add(whole);
        }
    }

    /// The call has ended: the file with the whole text, if the result was cut.
    pub(crate) fn end_whole(&self, is_cut: bool) -> Option<KeptFile> {
        self.lock_whole().take()?.finish(is_cut)
    }

    fn keep_image(&self, image: &Image) -> Option<KeptFile> {
        let bytes = STANDARD.decode(&image.data).ok()?;
        self.keep(image.extension()?, || bytes)
    }

    fn lock_whole(&self) -> MutexGuard<'_, Option<Whole>> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what is too large for the result in a file of its own, if there may be one more.
    fn keep(&self, extension: &str, bytes: impl FnOnce() -> Vec<u8>) -> Option<KeptFile> {
        let artifacts = self.artifacts.as_ref()?;
        let is_one_too_many = self.files.fetch_add(1, Ordering::Relaxed) >= MOST_FILES;
        (!is_one_too_many).then(|| artifacts.keep(EVAL, extension, &bytes()))
    }
}

/// Takes secrets out of a text; `None` if it has none.
pub(crate) type Redact = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The record of a cell. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    shared: Arc<Shared>,
    inside: Arc<Mutex<Inside>>,
}

struct Inside {
    screen: Screen,
    parts: Vec<Part>,
    /// The bytes of text among the parts.
    part_bytes: usize,
    json_bytes: usize,
    events: VecDeque<Json>,
    /// Whether the cell has ended: later output is not its own.
    is_closed: bool,
    /// That of a kit. It has seen the output before, with all that is taken out of it since: control characters may part a
    /// secret. It sees events for the first time.
    redact: Option<Redact>,
}

impl fmt::Debug for Inside {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Inside").field("screen", &self.screen).finish_non_exhaustive()
    }
}

/// A part of a cell's output.
#[derive(Debug)]
enum Part {
    /// Bytes of a stream: a chunk may end within a character.
    Stream {
        name: &'static str,
        bytes: Vec<u8>,
    },
    Other(Output),
}

/// The output of a cell.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) text: Kept,
    pub(crate) parts: Vec<Output>,
    pub(crate) events: Vec<Json>,
}

impl Record {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        // Some bytes more than are shown tell whether a cut is between lines.
        let limit = usize_of(shared.limits.output_bytes) + 4;
        let inside = Inside {
            screen: Screen::new(limit),
            parts: Vec::new(),
            part_bytes: 0,
            json_bytes: 0,
            events: VecDeque::new(),
            is_closed: false,
            redact: None,
        };
        Self { shared, inside: Arc::new(Mutex::new(inside)) }
    }

    /// Takes bytes of a stream; false if the cell has ended.
    pub(crate) fn stream(&self, stream: Stream, bytes: &[u8]) -> bool {
        self.change(|inside, shared| {
            inside.screen.stream(stream, bytes);
            shared.whole(|whole| whole.push(bytes));
            inside.part_of_stream(stream.as_str(), bytes, &shared.limits);
        })
    }

    /// Takes a displayed text.
    pub(crate) fn text(&self, text: &str) {
        self.change(|inside, shared| {
            inside.block(text, shared);
            inside.part_of_text(text, Output::Text, &shared.limits);
        });
    }

    /// Takes a displayed text in markdown.
    pub(crate) fn markdown(&self, text: &str) {
        self.change(|inside, shared| {
            inside.block(text, shared);
            inside.part_of_text(text, Output::Markdown, &shared.limits);
        });
    }

    /// Takes a displayed value.
    pub(crate) fn json(&self, value: Json) {
        self.change(|inside, shared| {
            inside.block(&json_text(&value, usize_of(shared.limits.display_bytes)), shared);
            inside.part_of_json(value, shared);
        });
    }

    /// Takes a displayed image in Base64. One that is none, that is too large, or one too many, is left out, and the text
    /// says so.
    pub(crate) fn displayed_image(&self, image: Image) {
        if let Err(text) = self.image(image) {
            self.change(|inside, shared| inside.block(&text, shared));
        }
    }

    /// Takes an image in Base64.
    ///
    /// # Errors
    /// The text about an image that is left out.
    pub(crate) fn image(&self, image: Image) -> Result<(), String> {
        let limits = &self.shared.limits;
        let bytes = image.data.len() as u64 / 4 * 3;
        if bytes > limits.image_bytes {
            return Err(words::left_out("image", bytes, self.shared.keep_image(&image).as_ref()));
        }
        if let Err(fault) = image.check() {
            return Err(format!("[image left out: {fault}]"));
        }
        let images = self.shared.images.fetch_add(1, Ordering::Relaxed) as u64;
        if images >= limits.images {
            return Err(format!("[image left out: more than {} in one call]", limits.images));
        }
        self.change(|inside, _| inside.parts.push(Part::Other(Output::Image(image))));
        Ok(())
    }

    /// Takes a status event. Of too many the newest stay.
    pub(crate) fn event(&self, event: Json) {
        self.change(|inside, shared| inside.add_event(event, &shared.limits));
    }

    /// Takes a status event in place of the one before with the same `id`, if that is kept.
    pub(crate) fn newest_event(&self, event: Json) {
        self.change(|inside, shared| {
            let is_it = |known: &&mut Json| known.get("id") == event.get("id");
            match inside.events.iter_mut().find(is_it) {
                Some(known) => *known = event,
                None => inside.add_event(event, &shared.limits),
            }
        });
    }

    /// The output of the cell so far.
    pub(crate) fn recorded(&self) -> Recorded {
        let inside = self.inside();
        let redact = inside.redact.as_ref();
        let parts = inside.parts.iter().map(|part| match part {
            Part::Stream { name, bytes } => {
                let text = cleaned(&String::from_utf8_lossy(bytes));
                let redacted = redact.and_then(|redact| redact(&text));
                Output::Stream { name, text: redacted.unwrap_or(text) }
            }
            Part::Other(output) => match redact {
                Some(redact) => without_parted(output, redact),
                None => output.clone(),
            },
        });
        let is_shown =
            |part: &Output| !matches!(part, Output::Stream { text, .. } if text.is_empty());
        let parts = parts.filter(is_shown);
        let (mut events, mut text) = (Vec::from(inside.events.clone()), inside.screen.text());
        if let Some(redact) = redact {
            text = text.changed(|text| redact(text));
            for event in &mut events {
                each_text(event, &|text| redact(text));
            }
        }
        Recorded { text, parts: parts.collect(), events }
    }

    /// From now on takes secrets out of what it gives.
    pub(crate) fn redact(&self, redact: Redact) {
        self.inside().redact = Some(redact);
    }

    /// Takes secrets that control characters part out of an error and its text.
    pub(crate) fn redact_error(&self, (error, text): &mut (CellError, String)) {
        let Some(redact) = self.inside().redact.clone() else { return };
        let texts = [&mut error.name, &mut error.message, text].into_iter();
        for text in texts.chain(&mut error.stack) {
            if let Some(redacted) = parted(text, &redact) {
                *text = redacted;
            }
        }
    }

    /// The cell has ended.
    pub(crate) fn close(&self) {
        self.inside().is_closed = true;
    }

    fn change(&self, change: impl FnOnce(&mut Inside, &Shared)) -> bool {
        {
            let mut inside = self.inside();
            if inside.is_closed {
                return false;
            }
            change(&mut inside, &self.shared);
        }
        self.shared.changed.notify_one();
        true
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn add_event(&mut self, event: Json, limits: &Limits) {
        self.events.push_back(event);
        if self.events.len() > usize_of(limits.status_events) {
            self.events.pop_front();
        }
    }

    fn part_of_stream(&mut self, stream: &'static str, more: &[u8], limits: &Limits) {
        let is_full = self.parts.len() >= MOST_PARTS;
        match self.parts.last_mut() {
            Some(Part::Stream { name, bytes }) if *name == stream => bytes.extend(more),
            _ if is_full => return,
            _ => self.parts.push(Part::Stream { name: stream, bytes: more.to_vec() }),
        }
        self.part_bytes += more.len();
        self.bound(limits);
    }

    fn part_of_text(&mut self, text: &str, part: fn(String) -> Output, limits: &Limits) {
        if self.parts.len() < MOST_PARTS {
            self.part_bytes += text.len();
            self.parts.push(Part::Other(part(text.to_owned())));
            self.bound(limits);
        }
    }

    fn part_of_json(&mut self, value: Json, shared: &Shared) {
        if self.parts.len() >= MOST_PARTS {
            return;
        }
        let text = value.to_string();
        let bytes = text.len();
        if self.json_bytes + bytes <= usize_of(shared.limits.json_bytes) {
            self.json_bytes += bytes;
            self.parts.push(Part::Other(Output::Json(value)));
            return;
        }
        let mut part = json!({ "truncated": true, "bytes": bytes });
        if let Some(kept) = shared.keep("json", || text.into_bytes()) {
            self.block(&words::left_out("JSON", bytes as u64, Some(&kept)), shared);
            if let Ok(artifact) = kept {
                part["artifact"] = artifact.uri.into();
            }
        }
        self.parts.push(Part::Other(Output::Json(part)));
    }

    /// Shows a text on lines of its own.
    fn block(&mut self, text: &str, shared: &Shared) {
        self.screen.block(text);
        shared.whole(|whole| whole.block(text));
    }

    /// Cuts the text of parts to the limit, with some slack so that not each chunk costs a cut.
    fn bound(&mut self, limits: &Limits) {
        let limit = usize_of(limits.output_bytes);
        if self.part_bytes <= 2 * limit {
            return;
        }
        let keeps_head = limits.window == Window::Head;
        let mut parts: Vec<&mut Part> = self.parts.iter_mut().collect();
        if keeps_head {
            parts.reverse();
        }
        let mut surplus = self.part_bytes - limit;
        for part in parts {
            let cut = part.cut(surplus, keeps_head);
            self.part_bytes -= cut;
            surplus = surplus.saturating_sub(cut);
            if surplus == 0 {
                break;
            }
        }
    }
}

impl Part {
    /// Cuts so many bytes of its text, or some more so that no character is cut; returns how many.
    fn cut(&mut self, surplus: usize, keeps_head: bool) -> usize {
        match self {
            Self::Stream { bytes, .. } => {
                let cut = surplus.min(bytes.len());
                if keeps_head {
                    bytes.truncate(bytes.len() - cut);
                } else {
                    bytes.drain(..cut);
                }
                cut
            }
            Self::Other(Output::Text(text) | Output::Markdown(text)) => {
                let before = text.len();
                let cut = surplus.min(before);
                if keeps_head {
                    text.truncate(text.floor_char_boundary(before - cut));
                } else {
                    text.drain(..text.ceil_char_boundary(cut));
                }
                before - text.len()
            }
            Self::Other(_) => 0,
        }
    }
}

/// A display without secrets that control characters part.
fn without_parted(output: &Output, redact: &Redact) -> Output {
    let plain = |text: &str| parted(text, redact);
    match output {
        Output::Text(text) => Output::Text(plain(text).unwrap_or_else(|| text.clone())),
        Output::Markdown(text) => Output::Markdown(plain(text).unwrap_or_else(|| text.clone())),
        Output::Json(value) => {
            let mut value = value.clone();
            each_text(&mut value, &plain);
            Output::Json(value)
        }
        other => other.clone(),
    }
}

/// The text that shows without control characters, redacted; `None` if there is nothing to redact.
fn parted(text: &str, redact: &Redact) -> Option<String> {
    let is_shown = |letter: char| !letter.is_control() || letter == '\n' || letter == '\t';
    if text.chars().all(is_shown) {
        return None;
    }
    redact(&cleaned(text))
}

/// Changes the texts of a value and of its keys.
fn each_text(value: &mut Json, change: &impl Fn(&str) -> Option<String>) {
    match value {
        Json::String(text) => *text = change(text).unwrap_or_else(|| std::mem::take(text)),
        Json::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Json::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(key, mut field)| {
                    each_text(&mut field, change);
                    (change(&key).unwrap_or(key), field)
                })
                .collect();
        }
        _ => {}
    }
}

/// A limit as a size.
pub(crate) fn usize_of(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
