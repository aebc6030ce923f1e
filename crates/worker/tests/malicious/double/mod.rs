//! A double of the zygote and its workers, which sends what it is told to send.
//!
//! In: the host's commands, and the source of each run, which names an act. Out: bytes.

#[path = "cells.rs"]
mod cells;
#[cfg_attr(unix, path = "zygote.rs")]
#[cfg_attr(windows, path = "worker.rs")]
mod played;

use std::{
    io::{Read, Write},
    net::Shutdown,
    thread,
    time::Duration,
};

use played::Stream;
pub(crate) use played::play;

/// Kinds of a worker's frames, by number, as in `core/src/protocol/messages/mod.rs`.
const CALL: u8 = 1;
const START: u8 = 2;
const REPORT: u8 = 3;
const ASK: u8 = 4;
const LOG: u8 = 5;
const FUNCTION_SETTLED: u8 = 6;
const PROMISE_SETTLED: u8 = 7;
const PARKED: u8 = 8;
const ENDED: u8 = 9;

/// Nodes of messages, as `isolane::value` describes them.
const UNDEFINED: &[u8] = &[0x00];
const NO_ARGS: &[u8] = &[0x12, 0];
const ONE: &[u8] = &[0x04, 2];

/// Set in the number of a promise that the sandbox has given out.
const ASYNC: u32 = 1 << 31;

/// The act that the source of a run names.
fn act(mut host: Stream) {
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    let name = loop {
        let Ok(read @ 1..) = host.read(&mut buffer) else { return };
        heard.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&heard);
        if let Some((_, rest)) = text.split_once("/*act:")
            && let Some((name, _)) = rest.split_once("*/")
        {
            break name.to_owned();
        }
    };
    perform(&mut host, &name);
    // Sends nothing more, and waits until the host has read everything.
    let _ = host.shutdown(Shutdown::Write);
    let _ = host.read_to_end(&mut heard);
}

#[expect(clippy::too_many_lines, reason = "a list")]
fn perform(host: &mut Stream, act: &str) {
    if let Some(act) = act.strip_prefix("cell-") {
        return cells::perform(host, act);
    }
    let error = |name: &str| ended(&[1]).text(name).text("").raw(&[0, 0, 0, 0, 0, 0]);
    let error_because = |kind: u8, number: u64| {
        ended(&[1]).text("Error").text("").raw(&[0, 0, 0, 0, 0, 1, kind]).u64(number)
    };
    let endless = |host: &mut Stream, next: &dyn Fn(u32) -> Frame| {
        let mut number = 0;
        while say(host, &[next(number)]) {
            number += 1;
        }
    };
    let frames = match act {
        "honest" => vec![success(ONE)],
        "kind-0" => vec![Frame::new(0)],
        "kind-99" => vec![Frame::new(99)],
        "empty-head" => return drop(host.write_all(&[0; 8])),
        "long-head" => return drop(host.write_all(&[0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0])),
        "many-chunks" => {
            let frame = Frame { head: vec![CALL], chunks: vec![Vec::new(); 20_000] };
            vec![frame]
        }
        "call-empty-blobs" => vec![Frame::new(CALL).u32(1).with_blobs(NO_ARGS, 100_000)],
        "call-sink" => vec![Frame::new(CALL).u32(u32::MAX).message(UNDEFINED)],
        "call-async" => vec![Frame::new(CALL).u32(ASYNC).message(NO_ARGS)],
        "call-twice" => vec![
            Frame::new(CALL).u32(1).message(NO_ARGS),
            Frame::new(CALL).u32(1).message(NO_ARGS),
            Frame::new(CALL).u32(1).message(NO_ARGS),
        ],
        "call-malformed" => vec![Frame::new(CALL).u32(0).message(&[0x12, 9])],
        "call-unknown" => vec![Frame::new(CALL).u32(12_345).message(NO_ARGS), success(ONE)],
        "start-taken" => vec![Frame::new(START).u32(1).u32(1).message(NO_ARGS)],
        "settle-function" => vec![Frame::new(FUNCTION_SETTLED).u32(3).raw(&[0]).message(ONE)],
        "settle-promise" => vec![Frame::new(PROMISE_SETTLED).u32(3).raw(&[0]).message(ONE)],
        "settle-promise-twice" => vec![
            start(0, &[0x12, 1, 0x1E, 5, 0, 0, 0]),
            Frame::new(PROMISE_SETTLED).u32(5).raw(&[0]).message(ONE),
            Frame::new(PROMISE_SETTLED).u32(5).raw(&[0]).message(ONE),
        ],
        "log-level" => vec![Frame::new(LOG).raw(&[9]).u64(0).message(NO_ARGS)],
        "log-timestamp" => vec![Frame::new(LOG).raw(&[0]).u64(u64::MAX).message(NO_ARGS)],
        "log-object" => vec![Frame::new(LOG).raw(&[0]).u64(0).message(&[0x11, 0])],
        "result-promise" => vec![success(&[0x1E, 0, 0, 0, 0])],
        "result-malformed" => vec![success(&[0x07, 5, b'a'])],
        "result-depth" => vec![success(&vec![0x14; 1 << 20])],
        "result-blob" => vec![success(&[0x19, 7, 0, 0, 0])],
        "error-cause-kind" => vec![error_because(9, 1)],
        "error-cause-promise" => vec![error_because(1, 1 << 32)],
        "error-cause-unknown" => vec![error_because(0, 999)],
        "error-utf8" => vec![ended(&[1]).u64(2).raw(&[0xff, 0xfe])],
        "after-end" => vec![success(ONE), success(ONE)],
        "report-waits" => vec![Frame::new(REPORT).raw(&[1]).message(ONE)],
        "asks" => vec![Frame::new(ASK).message(ONE)],
        "parks-again" => vec![Frame::new(PARKED).u64(0), Frame::new(PARKED).u64(0)],
        "trailing" => vec![success(ONE).raw(&[0])],
        "quit" => vec![],
        "half" => return drop(host.write_all(&success(ONE).bytes()[..9])),
        "large-frame" => {
            let claims =
                [&[1, 0, 0, 0, 1, 0, 0, 0][..], &(1_u64 << 40).to_le_bytes(), &[CALL]].concat();
            return drop(host.write_all(&claims));
        }
        "large-result" => vec![success(&long_text(32 << 20))],
        "logs" => {
            return endless(host, &|_| Frame::new(LOG).raw(&[0]).u64(0).message(NO_ARGS));
        }
        "reports" => return endless(host, &|_| Frame::new(REPORT).raw(&[0]).message(ONE)),
        "starts" => {
            return endless(host, &|number| {
                Frame::new(START).u32(12_345).u32(number | ASYNC).message(NO_ARGS)
            });
        }
        "promises" => {
            return endless(host, &|number| {
                start(number, &[&[0x12, 1, 0x1E][..], &number.to_le_bytes()].concat())
            });
        }
        "functions" => {
            return endless(host, &|number| {
                start(0, &[&[0x12, 1, 0x1C][..], &number.to_le_bytes(), &[7, 1, b'f']].concat())
            });
        }
        "parked-lies" => vec![Frame::new(PARKED).u64(0), success(ONE)],
        "parks-too-far" => vec![Frame::new(PARKED).u64(u64::MAX)],
        "status-made-up" => vec![ended(&[6])],
        "huge-peak" => vec![Frame::new(ENDED).raw(&[1]).u64(u64::MAX).raw(&[0]).message(ONE)],
        "long-error" => vec![error(&"x".repeat(100 << 10))],
        "slow" => {
            for byte in success(ONE).bytes() {
                let _ = host.write_all(&[byte]);
                thread::sleep(Duration::from_millis(1));
            }
            return;
        }
        "silent" => {
            let _ = host.read_to_end(&mut Vec::new());
            return;
        }
        _ => {
            let (kind, seed) = act.split_once('-').expect("an act with a number");
            let mut random = Random(seed.parse::<u64>().expect("a number") + 1);
            let mut bytes = if kind == "random" {
                (0..random.below(4096)).map(|_| random.byte()).collect()
            } else {
                corpus(&mut random)
            };
            if kind == "broken" {
                for _ in 0..=random.below(4) {
                    let at = random.below(bytes.len());
                    bytes[at] = random.byte();
                }
            }
            return drop(host.write_all(&bytes));
        }
    };
    say(host, &frames);
}

/// Some correct frames, in an arbitrary order.
fn corpus(random: &mut Random) -> Vec<u8> {
    let of = |kind: usize, number: u32| match kind {
        0 => Frame::new(CALL).u32(number % 3).message(NO_ARGS),
        1 => start(number, &[0x12, 2, 0x1E, 1, 0, 0, 0, 0x1C, 2, 0, 0, 0, 7, 1, b'f']),
        2 => Frame::new(REPORT).raw(&[0]).message(&[0x11, 1, 1, b'a', 4, 2, 0]),
        3 => Frame::new(LOG).raw(&[1]).u64(0).message(&[0x12, 1, 7, 2, b'h', b'i']),
        4 => Frame::new(PROMISE_SETTLED).u32(1).raw(&[0]).message(ONE),
        5 => Frame::new(PARKED).u64(0),
        _ => success(&[0x13, 9, 1, 4, 2, 5, 0x16, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    };
    let count = 1 + random.below(12);
    let frames = (0..count).map(|_| of(random.below(7), u32::from(random.byte())).bytes());
    frames.chain([success(ONE).bytes()]).flatten().collect()
}

fn long_text(bytes: u32) -> Vec<u8> {
    let mut nodes = vec![0x07];
    let mut left = bytes;
    while left >= 0x80 {
        nodes.push((left & 0x7f) as u8 | 0x80);
        left >>= 7;
    }
    nodes.push((left & 0x7f) as u8);
    nodes.extend(std::iter::repeat_n(b'a', bytes as usize));
    nodes
}

fn start(number: u32, args: &[u8]) -> Frame {
    Frame::new(START).u32(1).u32(number | ASYNC).message(args)
}

fn ended(end: &[u8]) -> Frame {
    Frame::new(ENDED).raw(&[0]).raw(end)
}

fn success(nodes: &[u8]) -> Frame {
    ended(&[0]).message(nodes)
}

/// Sends the frames; false if the host does not listen any more.
fn say(host: &mut Stream, frames: &[Frame]) -> bool {
    let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
    host.write_all(&bytes).is_ok()
}

/// A frame, as `core/src/protocol/frame.rs` describes it.
struct Frame {
    head: Vec<u8>,
    chunks: Vec<Vec<u8>>,
}

impl Frame {
    fn new(kind: u8) -> Self {
        Self { head: vec![kind], chunks: Vec::new() }
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.head.extend(bytes);
        self
    }

    fn u32(self, number: u32) -> Self {
        self.raw(&number.to_le_bytes())
    }

    fn u64(self, number: u64) -> Self {
        self.raw(&number.to_le_bytes())
    }

    fn text(self, text: &str) -> Self {
        self.u64(text.len() as u64).raw(text.as_bytes())
    }

    /// A message with blobs, all empty, that no node of it uses.
    fn with_blobs(mut self, nodes: &[u8], blobs: u32) -> Self {
        self.chunks.push(nodes.to_vec());
        self.chunks.extend((0..blobs).map(|_| Vec::new()));
        self.u32(blobs)
    }

    /// Bytes beside the head.
    fn chunk(mut self, bytes: Vec<u8>) -> Self {
        self.chunks.push(bytes);
        self
    }

    /// A message without blobs.
    fn message(mut self, nodes: &[u8]) -> Self {
        self.chunks.push(nodes.to_vec());
        self.u32(0)
    }

    fn bytes(&self) -> Vec<u8> {
        let count = |length: usize| u32::try_from(length).expect("short").to_le_bytes();
        let mut bytes = [count(self.head.len()), count(self.chunks.len())].concat();
        for chunk in &self.chunks {
            bytes.extend((chunk.len() as u64).to_le_bytes());
        }
        bytes.extend(&self.head);
        bytes.extend(self.chunks.iter().flatten());
        bytes
    }
}

/// Marsaglia's generator: the same numbers each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[1]
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next()).unwrap_or(0) % bound.max(1)
    }
}
