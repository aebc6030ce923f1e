//! The acts of a worker that has a session.
//!
//! In: the act, as the source of the first cell names it. Out: bytes: the end of that cell and what comes before it, or
//! an honest end, and then an answer to the question that the host asks next.

use std::io::{Read, Write};

use super::{
    ENDED, FUNCTION_SETTLED, Frame, LOG, NO_ARGS, ONE, PARKED, PROMISE_SETTLED, Stream, say,
    success,
};

/// Kinds of a worker's frames, by number, as in `core/src/protocol/messages/mod.rs`.
const CELL_ENDED: u8 = 10;
const NAMES: u8 = 11;
const COPIED: u8 = 12;
const TURN: u8 = 13;
const PLACED: u8 = 14;

const KEPT: u8 = 0;
const ROLLED_BACK: u8 = 1;
const RESET: u8 = 2;

/// The end of a cell that came to its end, without a value.
const NO_VALUE: &[u8] = &[9, 0, 0, 0, 0];

/// The end of a cell that was ended, and of one that was undone with another one.
const ASKED: &[u8] = &[4];
const UNDONE: &[u8] = &[10];

pub(super) fn perform(host: &mut Stream, act: &str) {
    if let Some(act) = act.strip_prefix("flight-") {
        return perform_flight(host, act);
    }
    let question = act.strip_prefix("names-").or_else(|| act.strip_prefix("copy-"));
    if let Some(lie) = question {
        say(host, &[ended(KEPT, 0, NO_VALUE)]);
        // The question.
        if matches!(host.read(&mut [0; 64]), Ok(1..)) {
            answer(host, lie);
        }
        return;
    }
    let frames = match act {
        "honest" => return honest(host),
        "undone" => vec![ended(ROLLED_BACK, 0, UNDONE)],
        "undoes" => vec![flight_ended(0, ROLLED_BACK, &[1], ASKED)],
        "numbered" => vec![flight_ended(1, KEPT, &[], NO_VALUE)],
        "turn" => vec![Frame::new(TURN).u32(0)],
        "placed" => vec![Frame::new(PLACED).u32(1).u32(0)],
        "state" => vec![ended(3, 0, NO_VALUE)],
        "success" => vec![ended(KEPT, 0, &[0]).message(ONE)],
        "of-a-run" => vec![success(ONE)],
        "end-undone" => vec![ended(ROLLED_BACK, 0, NO_VALUE)],
        "handed" => vec![ended(KEPT, u64::MAX, NO_VALUE)],
        "handed-one" => vec![ended(KEPT, 1, NO_VALUE)],
        "made-up" => vec![ended(KEPT, 0, &[77])],
        "value-from" => vec![ended(KEPT, 0, &[9, 0, 0, 1, 4, 0])],
        "value" => vec![ended(KEPT, 0, &[9, 0, 0, 0, 1]).message(&[0x12, 9])],
        "value-promise" => vec![ended(KEPT, 0, &[9, 0, 0, 0, 1]).message(&[0x1E, 0, 0, 0, 0])],
        "no-value" => vec![ended(KEPT, 0, &[9, 0, 0, 0, 1])],
        "trailing" => vec![ended(KEPT, 0, NO_VALUE).raw(&[0])],
        "names" => vec![names(true).u64(0)],
        "copied" => vec![Frame::new(COPIED).raw(&[2])],
        "settle-call" => vec![Frame::new(FUNCTION_SETTLED).u32(3).raw(&[0]).message(ONE)],
        "settle-promise" => vec![Frame::new(PROMISE_SETTLED).u32(3).raw(&[0]).message(ONE)],
        "parks-again" => vec![Frame::new(PARKED).u64(0), Frame::new(PARKED).u64(0)],
        "half" => return drop(host.write_all(&ended(KEPT, 0, NO_VALUE).bytes()[..9])),
        "quit" => vec![],
        "logs" => {
            while say(host, &[Frame::new(LOG).raw(&[0]).u64(0).message(NO_ARGS)]) {}
            return;
        }
        "silent" => return drop(host.read_to_end(&mut Vec::new())),
        // The second one comes when the session rests.
        "twice" => vec![ended(KEPT, 0, NO_VALUE), ended(KEPT, 0, NO_VALUE)],
        "peak" => {
            say(host, &[cell_ended(0, u64::MAX, 0, &[]).raw(&[KEPT]).raw(NO_VALUE)]);
            return honest(host);
        }
        "long-text" => {
            let text = ended(KEPT, 0, &[9, 1]).text(&"x".repeat(100 << 10)).raw(&[0, 0, 0]);
            say(host, &[text]);
            return honest(host);
        }
        _ => panic!("an unknown act: {act}"),
    };
    say(host, &frames);
}

/// Acts of a worker whose cells interleave, of which the first one has the number 1.
fn perform_flight(host: &mut Stream, act: &str) {
    let is_asked = |state, undone: &[u32]| vec![flight_ended(1, state, undone, ASKED)];
    let frames = match act {
        "honest" => return honest_flights(host),
        "turn-unknown" => vec![Frame::new(TURN).u32(2)],
        "turn-zero" => vec![Frame::new(TURN).u32(0)],
        "placed" => vec![Frame::new(PLACED).u32(1).u32(0)],
        "placed-in-it" => vec![Frame::new(PLACED).u32(1).u32(1)],
        "unknown" => vec![flight_ended(2, KEPT, &[], NO_VALUE)],
        "of-a-queue" => vec![ended(KEPT, 0, NO_VALUE)],
        "handed" => vec![cell_ended(1, 5, 99, &[]).raw(&[KEPT]).raw(NO_VALUE)],
        "undoes-unknown" => is_asked(ROLLED_BACK, &[2]),
        "undoes-itself" => is_asked(ROLLED_BACK, &[1]),
        "undoes-kept" => vec![flight_ended(1, KEPT, &[1], NO_VALUE)],
        "undoes-many" => vec![cell_ended(1, 5, 0, &[]).raw(&[ROLLED_BACK]).u64(u64::MAX)],
        "end-undone" => vec![flight_ended(1, ROLLED_BACK, &[], NO_VALUE)],
        "parks-again" => vec![Frame::new(PARKED).u64(0), Frame::new(PARKED).u64(0)],
        "parks-too-far" => vec![Frame::new(PARKED).u64(2)],
        "names" => vec![names(true).u64(0)],
        "copied" => vec![Frame::new(COPIED).raw(&[2])],
        "of-a-run" => vec![success(ONE)],
        "quit" => vec![],
        // Something that comes when no cell is in flight.
        "log-at-rest" => {
            let log = Frame::new(LOG).raw(&[0]).u64(0).message(NO_ARGS);
            vec![flight_ended(1, KEPT, &[], NO_VALUE), log]
        }
        "turn-at-rest" => {
            vec![flight_ended(1, KEPT, &[], NO_VALUE), Frame::new(TURN).u32(1)]
        }
        "reset" => is_asked(RESET, &[]),
        "with-another" => vec![flight_ended(1, ROLLED_BACK, &[], UNDONE)],
        "silent" => return drop(host.read_to_end(&mut Vec::new())),
        _ => panic!("an unknown act: {act}"),
    };
    say(host, &frames);
}

/// Ends cells that interleave without a value, for as long as the host has any.
fn honest_flights(host: &mut Stream) {
    for number in 1.. {
        let is_said = say(host, &[flight_ended(number, KEPT, &[], NO_VALUE)]);
        if !is_said || !matches!(host.read(&mut [0; 4096]), Ok(1..)) {
            return;
        }
    }
}

/// Ends cells without a value, for as long as the host has any.
fn honest(host: &mut Stream) {
    let end = ended(KEPT, 0, NO_VALUE);
    while say(host, std::slice::from_ref(&end)) && matches!(host.read(&mut [0; 4096]), Ok(1..)) {}
}

/// Answers a question.
fn answer(host: &mut Stream, lie: &str) {
    let name =
        |frame: Frame, kind: u8| frame.raw(&[0]).text("a").raw(&[kind]).text("Map").raw(&[0]);
    let frames = match lie {
        "count" => vec![names(true).u64(u64::MAX)],
        "kind" => vec![name(names(true).u64(1), 99)],
        "fewer" => vec![name(names(true).u64(2), 0)],
        "no-chunk" => vec![names(true).u64(1).raw(&[1, 0]).text("Map").raw(&[0])],
        "utf8" => vec![
            names(true).u64(1).raw(&[1]).chunk(vec![0xff; 20_000]).raw(&[0]).text("M").raw(&[0]),
        ],
        "large" => vec![
            names(true).u64(1).raw(&[1]).chunk(vec![b'a'; 32 << 20]).raw(&[0]).text("M").raw(&[0]),
        ],
        "endless" => {
            while say(host, &[name(names(false).u64(1), 0)]) {}
            return;
        }
        "ended" => vec![ended(KEPT, 0, NO_VALUE)],
        "run-ended" => vec![Frame::new(ENDED).raw(&[0, 4])],
        "names" => vec![names(true).u64(0)],
        "copied" => vec![Frame::new(COPIED).raw(&[2])],
        "answer" => vec![Frame::new(COPIED).raw(&[9])],
        "no-state" => vec![Frame::new(COPIED).raw(&[0])],
        "two-states" => vec![Frame::new(COPIED).raw(&[0]).chunk(vec![1; 100]).chunk(vec![2; 100])],
        "state" => vec![Frame::new(COPIED).raw(&[0]).chunk(vec![7; 100_000])],
        "state-large" => vec![Frame::new(COPIED).raw(&[0]).chunk(vec![7; 40 << 20])],
        "state-claims" => {
            let claims =
                [&[2, 0, 0, 0, 1, 0, 0, 0][..], &(1_u64 << 40).to_le_bytes(), &[COPIED, 0]];
            return drop(host.write_all(&claims.concat()));
        }
        "unanswered" => {
            say(host, &[Frame::new(COPIED).raw(&[1]).u32(u32::MAX)]);
            return drop(host.read(&mut [0; 64]));
        }
        "log" => vec![Frame::new(LOG).raw(&[0]).u64(0).message(NO_ARGS)],
        "quit" => vec![],
        "silent" => return drop(host.read_to_end(&mut Vec::new())),
        _ => panic!("an unknown lie: {lie}"),
    };
    say(host, &frames);
}

fn ended(state: u8, handed: u64, end: &[u8]) -> Frame {
    cell_ended(0, 5, handed, &[]).raw(&[state]).raw(end)
}

/// The end of a cell that interleaves with others.
fn flight_ended(number: u32, state: u8, undone: &[u32], end: &[u8]) -> Frame {
    cell_ended(number, 5, 0, undone).raw(&[state]).raw(end)
}

fn cell_ended(number: u32, peak_bytes: u64, handed: u64, undone: &[u32]) -> Frame {
    let frame = Frame::new(CELL_ENDED).u32(number).raw(&[0]).u64(peak_bytes).u64(handed);
    undone.iter().fold(frame.u64(undone.len() as u64), |frame, number| frame.u32(*number))
}

fn names(are_last: bool) -> Frame {
    Frame::new(NAMES).raw(&[u8::from(are_last)])
}
