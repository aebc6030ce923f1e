//! The way to a kernel: frames of its host.
//!
//! In: messages, and answers to calls of the kernel's code. Out: bytes on the kernel's private descriptor. A frame is the
//! length of its message (4 bytes, big endian) and the message in JSON. The value of an answer follows it, as the message
//! says: its nodes, and then its blobs, in the format of [`isolane::value`].

use std::sync::Arc;

use serde_json::{Value as Json, json};
use tokio::{
    io::AsyncWriteExt as _,
    net::unix::OwnedWriteHalf,
    sync::{Mutex, OwnedSemaphorePermit, Semaphore},
};

use crate::HostAnswer;

/// The calls of host functions that a kernel may have left without reading their answers. One that makes more is killed.
const MOST_CALLS: usize = 10_000;

/// The way to the kernel. A kernel that reads nothing holds up all that write to it.
#[derive(Debug)]
pub(super) struct Writer {
    half: Mutex<OwnedWriteHalf>,
    /// The answers that may wait.
    answers: Arc<Semaphore>,
}

impl Writer {
    pub(super) fn new(half: OwnedWriteHalf) -> Self {
        Self { half: Mutex::new(half), answers: Arc::new(Semaphore::new(MOST_CALLS)) }
    }

    /// The place of an answer, until it is dropped; `None` if too many wait.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.answers).try_acquire_owned().ok()
    }

    /// Writes a message.
    pub(super) async fn send(&self, message: &Json) {
        self.write(message, &[], &[]).await;
    }

    /// Writes the answer to the call with that number.
    pub(super) async fn answer(&self, number: u64, answer: &HostAnswer) {
        match answer {
            Ok(value) => {
                let blobs: Vec<usize> = value.blobs().iter().map(Vec::len).collect();
                let nodes = value.nodes();
                let message =
                    json!({ "op": "answer", "id": number, "nodes": nodes.len(), "blobs": blobs });
                self.write(&message, nodes, value.blobs()).await;
            }
            Err(error) => {
                let error = json!({ "name": error.name, "message": error.message });
                self.send(&json!({ "op": "answer", "id": number, "error": error })).await;
            }
        }
    }

    async fn write(&self, message: &Json, nodes: &[u8], blobs: &[Vec<u8>]) {
        let text = message.to_string();
        let mut bytes = u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
        bytes.extend(text.as_bytes());
        let mut half = self.half.lock().await;
        let blobs = blobs.iter().map(Vec::as_slice);
        for part in [bytes.as_slice(), nodes].into_iter().chain(blobs) {
            if half.write_all(part).await.is_err() {
                // A kernel that is gone is seen by its end.
                return;
            }
        }
    }
}
