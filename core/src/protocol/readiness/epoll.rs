//! A list of sockets that the system keeps.

use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use rustix::{
    buffer::spare_capacity,
    event::{
        EventfdFlags, Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
        eventfd,
    },
    io::{Errno, read, write},
};

use super::BELL;

const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

#[derive(Debug)]
pub(crate) struct Readiness {
    epoll: OwnedFd,
    bell: OwnedFd,
}

impl Readiness {
    pub(crate) fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Self { epoll, bell })
    }

    /// Reports a socket from now on when it can be read or is at its end, and when it can be written.
    pub(crate) fn add(&self, socket: impl AsFd, who: u64, writing: bool) -> Result<(), Errno> {
        epoll::add(&self.epoll, socket, EventData::new_u64(who), flags(writing))
    }

    /// Does the same for a socket that may have been added before.
    pub(crate) fn modify(&self, socket: impl AsFd, who: u64, writing: bool) {
        // The socket may not be there yet, or not any more.
        let _ = epoll::modify(&self.epoll, socket, EventData::new_u64(who), flags(writing));
    }

    pub(crate) fn remove(&self, socket: impl AsFd) {
        // A socket that is not in the list needs no removal.
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Wakes the waiting thread.
    pub(crate) fn ring(&self) {
        // A full counter rings already.
        let _ = write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Stops the ringing.
    pub(crate) fn quiet(&self) {
        let _ = read(&self.bell, &mut [0_u8; 8]);
    }

    /// Waits for at most that time, or without a limit if there is none. Returns the number of events.
    pub(crate) fn wait(&self, events: &mut Events, most: Option<Duration>) -> Result<usize, Errno> {
        events.0.clear();
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        epoll::wait(&self.epoll, spare_capacity(&mut events.0), most.as_ref())
    }

    /// At most so many current events. An interrupted call counts as one without events.
    pub(crate) fn glance<const MOST: usize>(&self) -> [Option<Event>; MOST] {
        let mut room = [const { MaybeUninit::uninit() }; MOST];
        let mut told = [None; MOST];
        if let Ok((events, _)) = epoll::wait(&self.epoll, &mut room, Some(&NO_TIME)) {
            for (place, event) in told.iter_mut().zip(events) {
                *place = Some(Event(*event));
            }
        }
        told
    }
}

fn flags(writing: bool) -> EventFlags {
    let more = if writing { EventFlags::OUT } else { EventFlags::empty() };
    EventFlags::IN | EventFlags::RDHUP | more
}

/// The events of one wait.
#[derive(Default)]
pub(crate) struct Events(Vec<epoll::Event>);

impl Events {
    /// Room for at most so many events.
    pub(crate) fn of(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Event> {
        self.0.iter().map(|event| Event(*event))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Event(epoll::Event);

impl Event {
    pub(crate) fn who(self) -> u64 {
        self.0.data.u64()
    }

    /// Whether the socket can be written.
    pub(crate) fn has_room(self) -> bool {
        let flags = self.0.flags;
        flags.contains(EventFlags::OUT)
    }

    /// Whether the event says more than that.
    pub(crate) fn is_more_than_room(self) -> bool {
        let flags = self.0.flags;
        flags != EventFlags::OUT
    }
}
