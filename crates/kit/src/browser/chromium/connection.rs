//! The connection to Chromium: the DevTools protocol over its pipe.
//!
//! In: calls. Out: their answers; and what the events say of the pages, in [`Pages`]. Messages are JSON, each with a NUL
//! behind it. A page chooses much of what is in them: one that is too large is dropped as it comes, and its call fails.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;
use serde_json::{Value as Json, json, value::RawValue};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::unix::pipe,
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};

use super::{
    Fault,
    pages::{Outgoing, Pages},
    process::Ends,
};

/// The bytes of a dropped message in which its number is.
const HEAD_BYTES: usize = 64;

/// A connection. On drop it ends.
pub(super) struct Connection {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

struct Shared {
    desk: Mutex<Desk>,
    /// Told of each change of the pages, and of the end.
    changes: watch::Sender<()>,
}

struct Desk {
    last: u64,
    waiting: HashMap<u64, Waiting>,
    /// Messages to Chromium. `None` once the connection has ended.
    outgoing: Option<mpsc::UnboundedSender<Vec<u8>>>,
    pages: Pages,
}

struct Waiting {
    session: Option<String>,
    sender: oneshot::Sender<Result<Box<RawValue>, Fault>>,
}

/// A message of Chromium, of which only what is used is read.
#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    method: Option<String>,
    #[serde(rename = "sessionId")]
    session: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ProtocolError>,
}

#[derive(Deserialize)]
struct ProtocolError {
    message: String,
}

enum Frame {
    Message(Vec<u8>),
    /// The head of a message that was too large.
    TooLarge(Vec<u8>),
    End,
}

impl Connection {
    /// Speaks over these ends, in tokio.
    pub(super) fn open(ends: Ends, pages: Pages, most_bytes: usize) -> io::Result<Self> {
        let sender = pipe::Sender::from_owned_fd(ends.commands)?;
        let receiver = pipe::Receiver::from_owned_fd(ends.answers)?;
        let (outgoing, messages) = mpsc::unbounded_channel();
        let desk = Desk { last: 0, waiting: HashMap::new(), outgoing: Some(outgoing), pages };
        let shared = Arc::new(Shared { desk: Mutex::new(desk), changes: watch::Sender::default() });
        let write = tokio::spawn(write(sender, messages));
        let read = tokio::spawn(read(receiver, Arc::clone(&shared), most_bytes));
        Ok(Self { shared, tasks: [write, read] })
    }

    /// Calls a method of a session, or of the browser.
    pub(super) async fn call(
        &self,
        session: Option<&str>,
        method: &str,
        params: Json,
    ) -> Result<Box<RawValue>, Fault> {
        self.begin(session, method, &params)?.answer().await
    }

    /// Begins a call, so that several can be under way.
    pub(super) fn begin(
        &self,
        session: Option<&str>,
        method: &str,
        params: &Json,
    ) -> Result<Call<'_>, Fault> {
        let (sender, answer) = oneshot::channel();
        let waiting = Waiting { session: session.map(str::to_owned), sender };
        let number = self.shared.locked().send(session, method, params, Some(waiting))?;
        Ok(Call { shared: &self.shared, number, answer })
    }

    /// Calls a method of the browser whose answer does not matter.
    pub(super) fn tell(&self, method: &str, params: &Json) {
        // If the connection has ended, so has the matter.
        let _ = self.shared.locked().send(None, method, params, None);
    }

    pub(super) fn is_gone(&self) -> bool {
        self.shared.locked().outgoing.is_none()
    }

    /// Reads or changes what is known of the pages.
    pub(super) fn pages<T>(&self, act: impl FnOnce(&mut Pages) -> T) -> T {
        act(&mut self.shared.locked().pages)
    }

    /// Waits until the pages are so.
    pub(super) async fn until<T>(
        &self,
        mut seen: impl FnMut(&mut Pages) -> Option<T>,
    ) -> Result<T, Fault> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(found) = self.pages(&mut seen) {
                return Ok(found);
            }
            if self.is_gone() {
                return Err(Fault::GONE);
            }
            changes.changed().await.map_err(|_| Fault::GONE)?;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.shared.end();
    }
}

/// A call that is under way. On drop its answer is not waited for any more.
pub(super) struct Call<'a> {
    shared: &'a Shared,
    number: u64,
    answer: oneshot::Receiver<Result<Box<RawValue>, Fault>>,
}

impl Call<'_> {
    pub(super) async fn answer(mut self) -> Result<Box<RawValue>, Fault> {
        (&mut self.answer).await.unwrap_or(Err(Fault::GONE))
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.shared.locked().waiting.remove(&self.number);
    }
}

impl Desk {
    fn send(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: &Json,
        waiting: Option<Waiting>,
    ) -> Result<u64, Fault> {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let outgoing = self.outgoing.as_ref().ok_or(Fault::GONE)?;
        outgoing.send(bytes).map_err(|_| Fault::GONE)?;
        if let Some(waiting) = waiting {
            self.waiting.insert(self.last, waiting);
        }
        Ok(self.last)
    }

    fn answer(&mut self, number: u64, answer: Result<Box<RawValue>, Fault>) {
        if let Some(waiting) = self.waiting.remove(&number) {
            // The caller may have given it up in this moment.
            let _ = waiting.sender.send(answer);
        }
    }
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, bytes: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Message>(bytes) else {
            // Half a surrogate pair is no text of Rust's.
            self.fail(bytes, Fault::Refused("the page gave no text".to_owned()));
            return;
        };
        let mut desk = self.locked();
        if let Some(number) = message.id {
            let answer = match (message.error, message.result) {
                (None, Some(result)) => Ok(result.to_owned()),
                (Some(error), _) => Err(Fault::Refused(error.message)),
                (None, None) => Err(Fault::Refused("the browser gave no answer".to_owned())),
            };
            desk.answer(number, answer);
            return;
        }
        let (Some(method), Some(params)) = (message.method, message.params) else { return };
        let heard = desk.pages.hear(message.session.as_deref(), &method, params.get());
        for Outgoing { session, method, params } in heard.replies {
            // If the connection has ended, so has the matter.
            let _ = desk.send(session.as_deref(), method, &params, None);
        }
        if let Some((session, fault)) = heard.lost {
            let of_it = |waiting: &Waiting| waiting.session.as_ref() == Some(&session);
            let of_it: Vec<_> = desk.waiting.extract_if(|_, waiting| of_it(waiting)).collect();
            for (_, waiting) in of_it {
                let _ = waiting.sender.send(Err(fault.clone()));
            }
        }
        drop(desk);
        if heard.has_changed {
            self.changes.send_replace(());
        }
    }

    /// Fails the call to which the message with this head is the answer, if it is one.
    fn fail(&self, bytes: &[u8], fault: Fault) {
        let digits = bytes.strip_prefix(b"{\"id\":").unwrap_or_default();
        let digits = digits.split(|byte| !byte.is_ascii_digit()).next().unwrap_or_default();
        let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        if let Some(number) = number {
            self.locked().answer(number, Err(fault));
        }
    }

    fn end(&self) {
        let mut desk = self.locked();
        desk.outgoing = None;
        desk.waiting.clear();
        drop(desk);
        self.changes.send_replace(());
    }
}

async fn write(mut pipe: pipe::Sender, mut messages: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(message) = messages.recv().await {
        // Its reader has ended, too: Chromium is gone.
        if pipe.write_all(&message).await.is_err() {
            return;
        }
    }
}

async fn read(pipe: pipe::Receiver, shared: Arc<Shared>, most_bytes: usize) {
    let mut pipe = BufReader::with_capacity(1 << 16, pipe);
    loop {
        match frame(&mut pipe, most_bytes).await {
            Ok(Frame::Message(bytes)) => shared.hear(&bytes),
            Ok(Frame::TooLarge(head)) => shared.fail(&head, Fault::TooLarge),
            Ok(Frame::End) | Err(_) => break,
        }
    }
    shared.end();
}

/// The next message.
async fn frame(pipe: &mut BufReader<pipe::Receiver>, most_bytes: usize) -> io::Result<Frame> {
    let mut message = Vec::new();
    let mut is_too_large = false;
    loop {
        let bytes = pipe.fill_buf().await?;
        if bytes.is_empty() {
            return Ok(Frame::End);
        }
        let end = memchr::memchr(0, bytes);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        if !is_too_large && message.len() + part.len() > most_bytes {
            is_too_large = true;
            let missing = HEAD_BYTES.saturating_sub(message.len()).min(part.len());
            message.extend_from_slice(&part[..missing]);
            message.truncate(HEAD_BYTES);
            message.shrink_to_fit();
        } else if !is_too_large {
            message.extend_from_slice(part);
        }
        let used = end.map_or(bytes.len(), |end| end + 1);
        pipe.consume(used);
        if end.is_some() {
            let frame = if is_too_large { Frame::TooLarge } else { Frame::Message };
            return Ok(frame(message));
        }
    }
}
