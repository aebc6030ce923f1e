//! A list of sockets that is kept here, for systems that take the whole list with each question.
//!
//! A waiting thread holds a copy of the list and every socket in it, so no descriptor number is reused meanwhile. A
//! change rings the bell if a thread waits: the next wait uses the new list.

use std::{
    io::{Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
    io::Errno,
};

use super::BELL;
use crate::{
    os::sync::Mutex,
    protocol::sockets::{Stream, pair},
};

#[derive(Debug)]
pub(crate) struct Readiness {
    registry: Mutex<Registry>,
    /// The end that is read while the bell rings, and the end that is written to ring it.
    bell: Stream,
    rope: Stream,
    /// Whether the bell rings or is about to.
    rings: AtomicBool,
    /// The first socket of the next call: those that were not reported last time come first.
    first: AtomicUsize,
}

#[derive(Debug, Default)]
struct Registry {
    entries: Arc<Vec<Entry>>,
    /// Number of waiting threads.
    waiting: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    socket: Arc<OwnedFd>,
    who: u64,
    writing: bool,
}

impl Readiness {
    pub(crate) fn new() -> Result<Self, Errno> {
        let silent = || {
            let (bell, rope) = pair()?;
            bell.set_nonblocking(true)?;
            rope.set_nonblocking(true)?;
            Ok((bell, rope))
        };
        let (bell, rope) = silent().map_err(|error: std::io::Error| {
            Errno::from_io_error(&error).unwrap_or(Errno::MFILE)
        })?;
        let (rings, first) = (AtomicBool::new(false), AtomicUsize::new(0));
        Ok(Self { registry: Mutex::default(), bell, rope, rings, first })
    }

    /// Reports a socket from now on when it can be read or is at its end, and when it can be written.
    pub(crate) fn add(&self, socket: &Arc<OwnedFd>, who: u64, writing: bool) -> Result<(), Errno> {
        self.change(|entries| {
            if place(entries, socket).is_some() {
                return Err(Errno::ALREADY);
            }
            let socket = Arc::clone(socket);
            Arc::make_mut(entries).push(Entry { socket, who, writing });
            Ok(())
        })
    }

    /// Does the same for a socket that may have been added before.
    pub(crate) fn modify(&self, socket: &Arc<OwnedFd>, who: u64, writing: bool) {
        self.change(|entries| {
            if let Some(place) = place(entries, socket) {
                let entry = &mut Arc::make_mut(entries)[place];
                (entry.who, entry.writing) = (who, writing);
            }
        });
    }

    pub(crate) fn remove(&self, socket: &Arc<OwnedFd>) {
        self.change(|entries| {
            if let Some(place) = place(entries, socket) {
                Arc::make_mut(entries).remove(place);
            }
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut Arc<Vec<Entry>>) -> T) -> T {
        let mut registry = self.registry.lock();
        let changed = change(&mut registry.entries);
        if registry.waiting > 0 {
            self.ring();
        }
        changed
    }

    /// Wakes the waiting thread.
    pub(crate) fn ring(&self) {
        if !self.rings.swap(true, Ordering::AcqRel) {
            // The socket has room for one byte.
            let _ = (&self.rope).write(&[1]);
        }
    }

    /// Stops the ringing. A ring during this call is for work that the caller does after it.
    pub(crate) fn quiet(&self) {
        let mut bytes = [0; 64];
        while (&self.bell).read(&mut bytes).is_ok_and(|read| read == bytes.len()) {}
        // Last: a ring between the two would have its byte read here, and the bell would stay silent for ever.
        self.rings.swap(false, Ordering::AcqRel);
    }

    /// Waits for at most that time, or without a limit if there is none. Returns the number of events.
    pub(crate) fn wait(&self, events: &mut Events, most: Option<Duration>) -> Result<usize, Errno> {
        events.told.clear();
        let entries = {
            let mut registry = self.registry.lock();
            registry.waiting += 1;
            Arc::clone(&registry.entries)
        };
        let asked = self.ask(&entries, events, most);
        drop(entries);
        self.registry.lock().waiting -= 1;
        asked.map(|()| events.told.len())
    }

    /// At most so many current events. An interrupted call counts as one without events.
    pub(crate) fn glance<const MOST: usize>(&self) -> [Option<Event>; MOST] {
        let mut events = Events::of(MOST);
        let _ = self.wait(&mut events, Some(Duration::ZERO));
        let mut told = [None; MOST];
        for (place, event) in told.iter_mut().zip(events.iter()) {
            *place = Some(event);
        }
        told
    }

    fn ask(
        &self,
        entries: &[Entry],
        events: &mut Events,
        most: Option<Duration>,
    ) -> Result<(), Errno> {
        let first = self.first.load(Ordering::Relaxed).min(entries.len());
        let (last, turn) = entries.split_at(first);
        let mut asked = Vec::with_capacity(entries.len() + 1);
        asked.push(PollFd::new(&self.bell, PollFlags::IN));
        asked.extend(turn.iter().chain(last).map(|entry| {
            let more = if entry.writing { PollFlags::OUT } else { PollFlags::empty() };
            PollFd::new(&*entry.socket, PollFlags::IN | more)
        }));
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        if poll(&mut asked, most.as_ref())? == 0 {
            return Ok(());
        }
        let who = [BELL].into_iter().chain(turn.iter().chain(last).map(|entry| entry.who));
        for (place, (asked, who)) in asked.iter().zip(who).enumerate() {
            let flags = asked.revents();
            if flags.is_empty() {
                continue;
            }
            if events.told.len() == events.most {
                // The bell is always asked first.
                let next = (first + place).saturating_sub(1) % entries.len().max(1);
                self.first.store(next, Ordering::Relaxed);
                break;
            }
            events.told.push(Event { who, flags });
        }
        Ok(())
    }
}

fn place(entries: &[Entry], socket: &Arc<OwnedFd>) -> Option<usize> {
    entries.iter().position(|entry| Arc::ptr_eq(&entry.socket, socket))
}

/// The events of one wait.
#[derive(Debug, Default)]
pub(crate) struct Events {
    most: usize,
    told: Vec<Event>,
}

impl Events {
    /// Room for at most so many events.
    pub(crate) fn of(count: usize) -> Self {
        Self { most: count, told: Vec::with_capacity(count) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Event> {
        self.told.iter().copied()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    who: u64,
    flags: PollFlags,
}

impl Event {
    pub(crate) fn who(self) -> u64 {
        self.who
    }

    /// Whether the socket can be written.
    pub(crate) fn has_room(self) -> bool {
        self.flags.contains(PollFlags::OUT)
    }

    /// Whether the event says more than that.
    pub(crate) fn is_more_than_room(self) -> bool {
        self.flags != PollFlags::OUT
    }
}
