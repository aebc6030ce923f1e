//! The calls of one run: their limit, and their records for an audit.
//!
//! In: each call of a capability as it begins, and its outcome. Out: the `CallLimit`, and the list of calls in their
//! order. The contents of the list count against the run's memory.

use std::{
    fmt,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use isolane::{Charge, NativeRun};

use crate::{error::KitError, fetch::Progress};

/// The most bytes of a summary.
const MOST_SUMMARY_BYTES: usize = 1 << 10;

/// The most bytes of a text that becomes a summary once it has no secret: the longest form of one goes beyond no end.
pub(super) const MOST_KEPT_BYTES: usize = 64 << 10;

/// A call of a capability.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    /// The function, `db.sql`.
    pub name: &'static str,
    /// When it began, in milliseconds since 1970.
    pub started: f64,
    /// The milliseconds until its answer.
    pub duration_ms: f64,
    /// Whether it succeeded.
    pub ok: bool,
    /// The bytes both ways.
    pub bytes: u64,
    /// `GET https://y.org/v1/items 200`, a key, SQL, a library. At most 1 KiB.
    pub summary: String,
    /// The name of its error; `Aborted` if the run ended first. A call that outlives its cell is among those of the
    /// cell during which it ends.
    pub error: Option<String>,
}

/// The part of a call that a record shows.
pub(super) enum Summary {
    Text(String),
    /// That of a request changes while it goes on, and it counts its bytes itself. Before it begins it is the text.
    Request(Progress, String),
}

impl Summary {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Request(progress, text) => {
                let summary = progress.summary();
                if summary.is_empty() { text.clone() } else { summary }
            }
        }
    }
}

/// The end of a call.
pub(super) struct Ended {
    pub(super) bytes: u64,
    pub(super) error: Option<String>,
}

struct Call {
    name: &'static str,
    began: SystemTime,
    clock: Instant,
    summary: Summary,
    /// The bytes of the arguments.
    bytes: u64,
    ended: Option<(Duration, Ended)>,
    /// The record counts against the run's memory for as long as it is kept.
    charge: Option<Charge>,
    /// Whether its record has been told.
    is_told: bool,
}

impl Call {
    /// The end of a call that the run's end cuts off. The code may have aborted its request before.
    fn aborted(&self) -> Ended {
        let error = if self.is_given_up() { "AbortError" } else { "Aborted" };
        Ended { bytes: 0, error: Some(error.to_owned()) }
    }

    fn is_given_up(&self) -> bool {
        matches!(&self.summary, Summary::Request(progress, _) if progress.is_given_up())
    }

    fn end(&mut self, ended: Ended) {
        self.ended.get_or_insert((self.clock.elapsed(), ended));
    }
}

/// The calls of one run.
#[derive(Default)]
pub(super) struct Calls {
    /// How many began.
    count: u64,
    list: Vec<Call>,
    dropped: u64,
}

impl Calls {
    /// Counts a call that begins, and records it. Its place in the list, if there is room.
    pub(super) fn begin(
        &mut self,
        (most_calls, most_records): (u64, u64),
        name: &'static str,
        (summary, bytes): (Summary, u64),
        run: &NativeRun,
    ) -> Result<Option<usize>, KitError> {
        if self.count >= most_calls {
            let message = format!("more than {most_calls} calls in one run");
            return Err(KitError::new("CallLimit", message));
        }
        self.count += 1;
        if self.list.len() as u64 >= most_records {
            self.dropped += 1;
            return Ok(None);
        }
        let text_bytes = match &summary {
            Summary::Text(text) => text.capacity(),
            Summary::Request(_, text) => 2 * text.capacity(),
        };
        // Lists grow by doubling. Without room the run ends as `memory`.
        let charge = run.charge(2 * size_of::<Call>() + text_bytes);
        let (began, clock) = (SystemTime::now(), Instant::now());
        let call = Call { name, began, clock, summary, bytes, ended: None, charge, is_told: false };
        self.list.push(call);
        Ok(Some(self.list.len() - 1))
    }

    /// A call has ended.
    pub(super) fn end(&mut self, place: usize, ended: Ended) {
        if let Some(call) = self.list.get_mut(place) {
            call.end(ended);
        }
    }

    /// Nobody waits any more for the calls without an answer.
    pub(super) fn abort(&mut self) {
        for call in &mut self.list {
            call.end(call.aborted());
        }
    }

    /// How many calls there are whose records have not been told.
    pub(super) fn untold(&self) -> u64 {
        self.list.iter().filter(|call| !call.is_told).count() as u64
    }

    /// Keeps no records of the calls that have ended.
    pub(super) fn drop_ended(&mut self) {
        let ended = self.list.iter_mut().filter(|call| !call.is_told).filter_map(take_record);
        self.dropped += ended.count() as u64;
    }

    /// The bytes of the texts that become summaries, about.
    pub(super) fn kept_bytes(&self) -> usize {
        let text = |call: &Call| match &call.summary {
            Summary::Text(text) | Summary::Request(_, text) => text.len(),
        };
        self.list.iter().map(text).sum()
    }

    /// The requests that have no answer: `fetch was not awaited: GET https://x.org`. The run itself knows of other calls,
    /// whose promises go to the code as they are.
    pub(super) fn unanswered(&self) -> Vec<String> {
        let is_request = |call: &&Call| call.name == "fetch";
        let open = self.list.iter().filter(|call| call.ended.is_none() && !call.is_given_up());
        let open = open.filter(is_request);
        open.map(|call| format!("fetch was not awaited: {}", call.summary.text())).collect()
    }

    /// The records of the calls that have ended, and how many have none, once.
    pub(super) fn take_records(&mut self) -> (Vec<CallRecord>, u64) {
        let ended = self.list.iter_mut().filter(|call| !call.is_told);
        (ended.filter_map(take_record).collect(), std::mem::take(&mut self.dropped))
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Calls").field("count", &self.count).finish_non_exhaustive()
    }
}

/// The record of a call that has ended. The memory of its texts is freed.
fn take_record(call: &mut Call) -> Option<CallRecord> {
    let (duration, Ended { bytes: answered, error }) = call.ended.take()?;
    call.is_told = true;
    call.charge = None;
    let summary = std::mem::replace(&mut call.summary, Summary::Text(String::new()));
    let bytes = match &summary {
        Summary::Text(_) => call.bytes + answered,
        Summary::Request(progress, _) => progress.total_bytes(),
    };
    let since = call.began.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(CallRecord {
        name: call.name,
        started: (since.as_secs_f64() * 1e3).floor(),
        duration_ms: duration.as_secs_f64() * 1e3,
        ok: error.is_none(),
        bytes,
        summary: summary.text(),
        error,
    })
}

/// The text, cut to the most bytes of a summary; the end of a request, its status, stays.
pub(super) fn summary(text: String) -> String {
    if text.len() <= MOST_SUMMARY_BYTES {
        return text;
    }
    let status = text.rfind(' ').map_or("", |space| &text[space..]);
    let status = if status.len() == " 200".len() { status } else { "" };
    let kept = text.floor_char_boundary(MOST_SUMMARY_BYTES - status.len());
    let mut text = format!("{}{status}", &text[..kept]);
    text.shrink_to_fit();
    text
}
