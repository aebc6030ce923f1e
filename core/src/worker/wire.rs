//! A worker's end of its socket.
//!
//! In: frames to send, which may wait for the next ones. Out: frames that the host sent. All calls block, because a
//! worker has one thread and nothing else to do.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, poll},
};

use crate::protocol::{
    frame::{Frame, Inlet},
    sockets::{self, Stream},
};

/// Number of bytes that are read at once, and that may wait to be written.
const BUFFER_BYTES: usize = 64 << 10;

/// Number of bytes that are read at first. Each page that a worker writes to is copied for it.
const FIRST_BYTES: usize = 4 << 10;

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The time limit of waiting for a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Not at all.
    No,
    For(Duration),
    Ever,
}

/// The result of waiting for a frame.
#[derive(Debug)]
pub(crate) enum Heard {
    Frame(Frame),
    /// Nothing came in time.
    Nothing,
    /// The host has closed its side.
    Closed,
}

pub(crate) struct Wire {
    stream: Stream,
    inlet: Inlet,
    buffer: Box<[u8]>,
    /// Whether there was more to read than the buffer holds.
    is_full: bool,
    /// Bytes that were read and not taken yet.
    unread: std::ops::Range<usize>,
    unwritten: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            inlet: Inlet::trusting(),
            buffer: vec![0; FIRST_BYTES].into_boxed_slice(),
            is_full: false,
            unread: 0..0,
            unwritten: Vec::new(),
        }
    }

    /// Whether there is something to read.
    pub(crate) fn has_more(&self) -> bool {
        if !self.unread.is_empty() {
            return true;
        }
        let mut asked = [PollFd::new(&self.stream, PollFlags::IN)];
        matches!(poll(&mut asked, Some(&NOW)), Ok(ready) if ready > 0)
    }

    /// Whether the host will send nothing more: it wants the run to end, or is gone.
    pub(crate) fn is_closing(&self) -> bool {
        // Some systems report closing without the flag, and others refuse the flag.
        let mut asked = [PollFd::new(&self.stream, sockets::ASKS_CLOSING)];
        poll(&mut asked, Some(&NOW)).is_ok() && asked[0].revents().intersects(sockets::CLOSING)
    }

    /// Writes a frame with the next one, or before the next wait.
    pub(crate) fn tell_soon(&mut self, frame: Frame) -> io::Result<()> {
        for bytes in frame.into_bytes() {
            if bytes.len() + self.unwritten.len() > BUFFER_BYTES {
                self.flush()?;
            }
            if bytes.len() > BUFFER_BYTES {
                self.stream.write_all(&bytes)?;
            } else {
                self.unwritten.extend(bytes);
            }
        }
        Ok(())
    }

    /// Writes a frame, and all that wait.
    pub(crate) fn tell(&mut self, frame: Frame) -> io::Result<()> {
        self.tell_soon(frame)?;
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.unwritten)?;
        self.unwritten.clear();
        Ok(())
    }

    /// The next frame.
    pub(crate) fn hear(&mut self, wait: Wait) -> Heard {
        let deadline = match wait {
            Wait::For(time) => Some(Instant::now() + time),
            Wait::No | Wait::Ever => None,
        };
        loop {
            let mut bytes = &self.buffer[self.unread.clone()];
            let before = bytes.len();
            let fed = self.inlet.feed(&mut bytes);
            self.unread.start += before - bytes.len();
            match fed {
                Ok(Some(frame)) => return Heard::Frame(frame),
                Ok(None) => {}
                Err(_) => return Heard::Closed,
            }
            // A host that has begun a frame finishes it soon.
            let wait = if self.inlet.is_amid() { Wait::Ever } else { wait };
            match self.read(wait, deadline) {
                Ok(0) => return Heard::Closed,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Nothing,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Heard::Closed,
            }
        }
    }

    /// Reads into the chunk that is being filled, if much of it is missing, or else into the buffer, which must be
    /// empty.
    fn read(&mut self, wait: Wait, deadline: Option<Instant>) -> io::Result<usize> {
        if let (Wait::For(_), Some(deadline)) = (wait, deadline) {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&left))?;
        }
        let waits = matches!(wait, Wait::Ever);
        if let Some(chunk) = self.inlet.open(self.buffer.len()) {
            return Ok(sockets::read(&self.stream, spare_capacity(chunk), waits)?);
        }
        if self.is_full && self.buffer.len() < BUFFER_BYTES {
            self.buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        }
        let read = sockets::read(&self.stream, &mut *self.buffer, waits)?;
        self.unread = 0..read;
        self.is_full = read == self.buffer.len();
        Ok(read)
    }
}
