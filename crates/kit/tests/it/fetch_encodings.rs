//! Bodies that are compressed: whole, cut, hostile.

use std::io::Write;

use flate2::{
    Compression,
    write::{DeflateEncoder, GzEncoder, ZlibEncoder},
};

use crate::fetch_support::{Answer, Client, Server, Step, answer, limited, options, raw, run};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn bare(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    let params = brotli::enc::BrotliEncoderParams { quality: 5, ..Default::default() };
    brotli::BrotliCompress(&mut &*bytes, &mut compressed, &params).expect("memory");
    compressed
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = vec![0; zstd_safe::compress_bound(bytes.len())];
    let length = zstd_safe::compress(&mut compressed[..], bytes, 3).expect("memory");
    compressed.truncate(length);
    compressed
}

type Encode = fn(&[u8]) -> Vec<u8>;

const ALL: [(&str, Encode); 5] =
    [("gzip", gzip), ("deflate", zlib), ("deflate", bare), ("br", brotli), ("zstd", zstd)];

const INVALID: &str = "FetchFailed: 'x.test' gave no valid answer";

fn encoded(encoding: &str, body: &[u8]) -> Answer {
    answer("200 OK", &format!("Content-Encoding: {encoding}\r\n"), body)
}

/// The text of the answer to a client, or the error.
async fn fetched(client: &Client, answer: Answer) -> String {
    let server = Server::start(move |_| answer.clone()).await;
    client.text(&server.url("x.test", "/")).await
}

/// Text that compresses, but not to nothing.
fn text(length: usize) -> String {
    let mut text = String::new();
    for number in 0_u64.. {
        text.push_str(&format!("{} ", number * 7919 % 10_007));
        if text.len() >= length {
            break;
        }
    }
    text.truncate(length);
    text
}

#[test]
fn each_encoding_is_undone() {
    run(async {
        let client = Client::new(limited(|limits| limits.max_calls = 1_000));
        for (name, encode) in ALL {
            for length in [0, 1, 100, 40_000, 3_000_000] {
                let text = text(length);
                let done = fetched(&client, encoded(name, &encode(text.as_bytes()))).await;
                assert!(done == text, "{name}, {length}: {}", &done[..done.len().min(80)]);
            }
        }
    });
}

#[test]
fn bodies_come_in_pieces_of_any_size() {
    run(async {
        let client = Client::new(options());
        let text = text(300);
        for (name, encode) in ALL {
            let mut bytes = format!(
                "HTTP/1.1 200 OK\r\nContent-Encoding: {name}\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            .into_bytes();
            for byte in encode(text.as_bytes()) {
                bytes.extend_from_slice(b"1\r\n");
                bytes.extend_from_slice(&[byte, b'\r', b'\n']);
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            assert_eq!(fetched(&client, raw(bytes)).await, text, "{name}");
        }
    });
}

#[test]
fn encodings_stand_on_top_of_each_other() {
    run(async {
        let client = Client::new(options());
        let text = text(10_000);
        let both = brotli(&gzip(text.as_bytes()));
        assert_eq!(fetched(&client, encoded("gzip, br", &both)).await, text);
        let two = answer("200 OK", "Content-Encoding: gzip\r\nContent-Encoding: br\r\n", &both);
        assert_eq!(fetched(&client, two).await, text);
        let four = encoded("gzip, gzip, gzip, gzip", &gzip(&gzip(&gzip(&gzip(b"x")))));
        assert_eq!(fetched(&client, four).await, INVALID);
        assert_eq!(fetched(&client, encoded("identity", b"x")).await, "x");
        assert_eq!(fetched(&client, encoded("unknown", b"x")).await, "x");
        let members = [gzip(b"a"), gzip(b"b")].concat();
        assert_eq!(fetched(&client, encoded("x-gzip", &members)).await, "ab");
        let skipped = [0x50, 0x2A, 0x4D, 0x18, 2, 0, 0, 0, b'?', b'?'].to_vec();
        let frames = [zstd(b"a"), skipped, zstd(b""), zstd(b"b")].concat();
        assert_eq!(fetched(&client, encoded("zstd", &frames)).await, "ab");
    });
}

#[test]
fn cut_and_broken_bodies_are_no_answers() {
    run(async {
        let client = Client::new(limited(|limits| limits.max_calls = 1_000));
        let text = text(5_000);
        for (name, encode) in ALL {
            let whole = encode(text.as_bytes());
            for length in [1, 4, whole.len() / 2, whole.len() - 1] {
                let done = fetched(&client, encoded(name, &whole[..length])).await;
                assert_eq!(done, INVALID, "{name}, {length}");
            }
            let noise: Vec<u8> = (1..=255).rev().collect();
            assert_eq!(fetched(&client, encoded(name, &noise)).await, INVALID, "{name}");
        }
        let mut wrong_sum = gzip(text.as_bytes());
        let sum = wrong_sum.len() - 8;
        wrong_sum[sum] ^= 1;
        assert_eq!(fetched(&client, encoded("gzip", &wrong_sum)).await, INVALID);
    });
}

#[test]
fn bombs_stop_at_the_limit() {
    run(async {
        let client = Client::new(limited(|limits| limits.max_response_bytes = 1 << 20));
        let too_large = "FetchLimit: the response is larger than 1048576 bytes";
        let zeros = vec![0; 64 << 20];
        for (name, encode) in ALL {
            let bomb = encode(&zeros);
            assert!(bomb.len() < 100_000, "{name}: {}", bomb.len());
            assert_eq!(fetched(&client, encoded(name, &bomb)).await, too_large, "{name}");
            let nested = encoded(&format!("{name}, gzip"), &gzip(&bomb));
            assert_eq!(fetched(&client, nested).await, too_large, "{name} in gzip");
        }
        // Bytes that stand for nothing count as they come.
        let nothing = [[0x50, 0x2A, 0x4D, 0x18, 8, 0, 0, 0].to_vec(), vec![0; 8]].concat();
        assert_eq!(fetched(&client, encoded("zstd", &nothing.repeat(100_000))).await, too_large);
        assert_eq!(fetched(&client, encoded("gzip", &gzip(b"").repeat(60_000))).await, too_large);
    });
}

#[test]
fn decoders_hold_what_the_run_has_room_for() {
    run(async {
        let client = |room_bytes| Client { room_bytes, ..Client::new(options()) };
        let no_room = "RangeError: the request is too large for the run";
        // A short body needs a short window.
        for (name, encode) in ALL {
            let short = encoded(name, &encode(b"short"));
            assert_eq!(fetched(&client(1 << 20), short).await, "short", "{name}");
        }
        // A window of 8 MiB, in which one block stands, and one of 16 MiB, which is more than HTTP has.
        let frame = |window: u8| [0x28, 0xB5, 0x2F, 0xFD, 0, window, 9, 0, 0, b'x'].to_vec();
        let of_8_mib = encoded("zstd", &frame((23 - 10) << 3));
        assert_eq!(fetched(&client(32 << 20), of_8_mib.clone()).await, "x");
        assert_eq!(fetched(&client(4 << 20), of_8_mib).await, no_room);
        let of_16_mib = encoded("zstd", &frame((24 - 10) << 3));
        assert_eq!(fetched(&client(64 << 20), of_16_mib).await, INVALID);
        // Brotli of a window of 16 MiB: its first block is not the last.
        let text = text(100_000);
        let mut compressed = Vec::new();
        let params =
            brotli::enc::BrotliEncoderParams { quality: 5, lgwin: 24, ..Default::default() };
        let mut writer = brotli::CompressorWriter::with_params(&mut compressed, 4_096, &params);
        for part in text.as_bytes().chunks(10_000) {
            writer.write_all(part).expect("memory");
            writer.flush().expect("memory");
        }
        drop(writer);
        let wide = encoded("br", &compressed);
        assert_eq!(fetched(&client(40 << 20), wide.clone()).await, text);
        assert_eq!(fetched(&client(8 << 20), wide).await, no_room);
    });
}

#[test]
fn an_answer_without_a_body_has_no_encoding() {
    run(async {
        let client = Client::new(options());
        for status in ["204 No", "304 Same"] {
            let head = format!("HTTP/1.1 {status}\r\nContent-Encoding: gzip\r\n\r\n");
            assert_eq!(fetched(&client, raw(head)).await, "");
        }
        let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n".to_vec();
        assert_eq!(fetched(&client, vec![Step::Write(head), Step::Close]).await, "");
    });
}
