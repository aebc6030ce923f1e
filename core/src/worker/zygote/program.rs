//! The program that is one worker.
//!
//! In: its arguments, a socket and a job object. Out: its isolate, made while it may still read files, and then runs;
//! or its confinement, if it is started to find that out.

use std::{
    io::{Read, Write},
    net::Shutdown,
    process::ExitCode,
};

use isolane_confine::{self as confine, Confinement, Inherited};

use super::{STACK_BYTES, cache_for, pristine};
use crate::{
    protocol::{
        arguments::{Arguments, Received, hello},
        frame::VERSION,
    },
    worker::{serve::serve, warm_up},
};

/// The main function of the program `isolane-worker`, which a host starts with one end of a socket and a job object.
/// Returns when the host is gone.
#[must_use]
pub fn worker_main() -> ExitCode {
    // The confinement takes the environment and the files that tell the time zone.
    crate::intl::zone::Zone::remember();
    let mut words = std::env::args().skip(1);
    let version = words.next().and_then(|word| word.parse::<u32>().ok());
    let inherited = words.next().and_then(|word| Inherited::from_word(&word));
    let Some(inherited) = inherited else { return ExitCode::from(2) };
    let received = Received::from_words(words).filter(|_| version == Some(VERSION));
    let Some(Received { arguments, host }) = received else {
        // The host has another version. It learns ours and gives up.
        let _ = inherited.into_socket().write_all(&hello(Confinement::default()));
        return ExitCode::from(2);
    };
    stacker::grow(STACK_BYTES, || work(inherited, arguments, host))
}

fn work(inherited: Inherited, arguments: Arguments, host: u32) -> ExitCode {
    let (pool, cache) = (pristine(), cache_for(arguments.runs));
    // Libraries that are loaded on first use have to be loaded before confinement forbids it.
    warm_up::warm_up(&pool, &cache);
    let Some(announced) = arguments.announced else {
        let Some((confinement, mut socket)) = confine::tried(inherited, host) else {
            return ExitCode::FAILURE;
        };
        let told = socket.write_all(&hello(confinement));
        return if told.is_ok() { linger(socket) } else { ExitCode::FAILURE };
    };
    let Some((worker, socket)) = confine::worker(inherited, announced) else {
        return ExitCode::FAILURE;
    };
    let Ok(last) = socket.try_clone() else { return ExitCode::FAILURE };
    serve(socket, &worker, &pool, &cache, arguments.runs);
    linger(last)
}

/// Stays until the host has read everything. A socket that is closed with unread input discards its written output.
fn linger(mut socket: std::net::TcpStream) -> ExitCode {
    let _ = socket.shutdown(Shutdown::Write);
    let mut unread = [0; 1024];
    while socket.read(&mut unread).is_ok_and(|read| read > 0) {}
    ExitCode::SUCCESS
}
