//! Readiness of many sockets.
//!
//! In: sockets, each with a number, from any thread. Out: the numbers of those that can be read or written, for the
//! waiting thread, as often as there are any; and a bell that any thread may ring. Linux keeps the list itself
//! (`epoll`); elsewhere it is kept here (`poll`).

#[cfg(all(target_os = "linux", any(test, not(isolane_portable))))]
mod epoll;
#[cfg(any(test, isolane_portable, not(target_os = "linux")))]
mod poll;

#[cfg(all(target_os = "linux", not(isolane_portable)))]
pub(crate) use self::epoll::{Event, Events, Readiness};
#[cfg(any(isolane_portable, not(target_os = "linux")))]
pub(crate) use self::poll::{Event, Events, Readiness};

/// The number of the bell, which no socket has.
pub(crate) const BELL: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    /// The tests of each implementation.
    macro_rules! tests {
        ($implementation:ident) => {
            mod $implementation {
                use std::{
                    collections::BTreeSet,
                    sync::{Arc, mpsc},
                    thread,
                    time::{Duration, Instant},
                };

                use rustix::{
                    fd::OwnedFd,
                    net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown},
                };

                use super::super::{
                    BELL,
                    $implementation::{Events, Readiness},
                };
                use crate::protocol::sockets;

                const NOW: Option<Duration> = Some(Duration::ZERO);

                fn pair() -> (Arc<OwnedFd>, OwnedFd) {
                    let (mine, other) = sockets::pair().expect("a pair of sockets");
                    (Arc::new(mine.into()), other.into())
                }

                /// The numbers that it reports, with whether each can be read and written.
                fn told(readiness: &Readiness, most: Option<Duration>) -> Vec<(u64, bool, bool)> {
                    let mut events = Events::of(8);
                    let count = readiness.wait(&mut events, most).expect("it waits");
                    let mut told: Vec<_> = events
                        .iter()
                        .map(|event| (event.who(), event.is_more_than_room(), event.has_room()))
                        .collect();
                    assert_eq!(count, told.len());
                    told.sort_unstable();
                    told
                }

                #[test]
                fn what_can_be_read_is_told_until_it_was() {
                    let readiness = Readiness::new().expect("descriptors");
                    let ((one, ones), (two, twos)) = (pair(), pair());
                    readiness.add(&one, 1, false).expect("it is new");
                    readiness.add(&two, 2, false).expect("it is new");
                    assert!(readiness.add(&two, 2, false).is_err());
                    assert_eq!(told(&readiness, NOW), []);
                    send(&ones, b"a", SendFlags::empty()).expect("room");
                    send(&twos, b"b", SendFlags::empty()).expect("room");
                    for _ in 0..2 {
                        assert_eq!(told(&readiness, None), [(1, true, false), (2, true, false)]);
                    }
                    recv(&*one, &mut [0; 8], RecvFlags::empty()).expect("a byte");
                    assert_eq!(told(&readiness, None), [(2, true, false)]);
                    readiness.remove(&two);
                    readiness.remove(&two);
                    assert_eq!(told(&readiness, NOW), []);
                    readiness.add(&two, 3, false).expect("it is new again");
                    assert_eq!(told(&readiness, None), [(3, true, false)]);
                }

                #[test]
                fn an_end_is_told() {
                    let readiness = Readiness::new().expect("descriptors");
                    let ((one, ones), (two, twos)) = (pair(), pair());
                    readiness.add(&one, 1, false).expect("it is new");
                    readiness.add(&two, 2, false).expect("it is new");
                    shutdown(&ones, Shutdown::Write).expect("it is open");
                    assert_eq!(told(&readiness, None), [(1, true, false)]);
                    drop(twos);
                    assert_eq!(told(&readiness, None), [(1, true, false), (2, true, false)]);
                }

                #[test]
                fn room_is_told_to_who_asks() {
                    let readiness = Readiness::new().expect("descriptors");
                    let (one, ones) = pair();
                    readiness.modify(&one, 1, true);
                    assert_eq!(told(&readiness, NOW), []);
                    readiness.add(&one, 1, true).expect("it is new");
                    assert_eq!(told(&readiness, None), [(1, false, true)]);
                    send(&ones, b"a", SendFlags::empty()).expect("room");
                    assert_eq!(told(&readiness, None), [(1, true, true)]);
                    readiness.modify(&one, 1, false);
                    assert_eq!(told(&readiness, None), [(1, true, false)]);
                }

                #[test]
                fn nothing_is_told_in_no_time_and_after_some() {
                    let readiness = Readiness::new().expect("descriptors");
                    let started = Instant::now();
                    assert_eq!(told(&readiness, Some(Duration::from_millis(20))), []);
                    assert!(started.elapsed() >= Duration::from_millis(19));
                }

                #[test]
                fn a_bell_rings_until_it_is_quiet() {
                    let readiness = Readiness::new().expect("descriptors");
                    for _ in 0..1000 {
                        readiness.ring();
                    }
                    assert_eq!(told(&readiness, None), [(BELL, true, false)]);
                    assert_eq!(told(&readiness, NOW), [(BELL, true, false)]);
                    readiness.quiet();
                    assert_eq!(told(&readiness, NOW), []);
                }

                #[test]
                fn no_more_is_told_than_fits_and_everybody_in_turn() {
                    let readiness = Readiness::new().expect("descriptors");
                    let pairs: Vec<_> = (0..10_u64).map(|_| pair()).collect();
                    for (who, (mine, other)) in (0..).zip(&pairs) {
                        readiness.add(mine, who, false).expect("it is new");
                        send(other, b"a", SendFlags::empty()).expect("room");
                    }
                    let seen = readiness.glance::<4>().into_iter().flatten().count();
                    assert_eq!(seen, 4);
                    let mut seen = BTreeSet::new();
                    let mut events = Events::of(4);
                    for _ in 0..3 {
                        assert_eq!(readiness.wait(&mut events, NOW), Ok(4));
                        seen.extend(events.iter().map(|event| event.who()));
                    }
                    assert_eq!(seen.len(), pairs.len());
                }

                #[test]
                fn who_waits_hears_of_what_another_thread_changes() {
                    let readiness = Arc::new(Readiness::new().expect("descriptors"));
                    let (one, _ones) = pair();
                    let (tell, heard) = mpsc::sync_channel(0);
                    let waits = thread::spawn({
                        let readiness = Arc::clone(&readiness);
                        move || {
                            loop {
                                for event in told(&readiness, None) {
                                    match event.0 {
                                        BELL => readiness.quiet(),
                                        _ => tell.send(event).expect("the test listens"),
                                    }
                                    if event.0 == 9 {
                                        return;
                                    }
                                }
                            }
                        }
                    });
                    // Events from before the change come first.
                    let until = |wanted| {
                        let next = || heard.recv_timeout(Duration::from_mins(2));
                        while next().expect("it hears") != wanted {}
                    };
                    readiness.add(&one, 1, false).expect("it is new");
                    readiness.modify(&one, 7, true);
                    until((7, false, true));
                    readiness.remove(&one);
                    readiness.add(&one, 9, true).expect("it is new again");
                    until((9, false, true));
                    waits.join().expect("it ends");
                }
            }
        };
    }

    #[cfg(target_os = "linux")]
    tests!(epoll);
    tests!(poll);
}
