//! Events: what a reader sees, from which id on, and when it is cut off.

use isolane_environment::{
    ExecutionExitState::Success, ExecutionState::Running, Lagged, ProcessEvent, ProcessEvents,
    ProcessService, RunQuery,
};
use serde_json::{Value, json};

use crate::support::{Driven, create, narrow, settle};

async fn reader(service: &ProcessService, after: u64) -> ProcessEvents {
    service.events(1, after).await.expect("known").expect("events can follow")
}

async fn next(reader: &mut ProcessEvents) -> (u64, &'static str, Value) {
    shown(&reader.next().await.expect("not behind").expect("not over"))
}

fn shown(event: &ProcessEvent) -> (u64, &'static str, Value) {
    (event.id, event.kind.as_str(), serde_json::from_str(&event.data).expect("JSON"))
}

fn patch(driven: &Driven, value: &Value) {
    let fields = value.as_object().cloned().unwrap_or_default();
    driven.bindings(1).output(1, fields).expect("small");
}

#[tokio::test(start_paused = true)]
async fn events_come_live_and_all_again() {
    let (service, driven) = narrow();
    create(&service, "").await;
    let mut live = reader(&service, 0).await;
    assert_eq!(next(&mut live).await, (1, "state", json!({ "state": "queued" })));
    let bindings = driven.bindings(1);
    bindings.set_state(1, Running).expect("its number");
    assert_eq!(next(&mut live).await, (2, "state", json!({ "state": "running" })));
    bindings.stdout(1, b"a\xc3").expect("small");
    assert_eq!(next(&mut live).await, (3, "stdout", json!({ "text": "a" })));
    bindings.stdout(1, b"\xa4").expect("small");
    assert_eq!(next(&mut live).await, (4, "stdout", json!({ "text": "\u{e4}" })));
    bindings.stderr(1, "b").expect("small");
    patch(&driven, &json!({ "n": 1 }));
    bindings.stdout(1, "c").expect("small");
    bindings.stdout(1, "d").expect("small");
    driven.end(1, Ok(Success));
    settle().await;
    assert_eq!(next(&mut live).await, (5, "stderr", json!({ "text": "b" })));
    assert_eq!(next(&mut live).await, (6, "output", json!({ "n": 1 })));
    // Nobody had seen the first write when the second one came.
    assert_eq!(next(&mut live).await, (7, "stdout", json!({ "text": "cd" })));
    assert_eq!(next(&mut live).await, (8, "state", json!({ "state": "idle" })));
    let (id, kind, record) = next(&mut live).await;
    assert_eq!((id, kind), (9, "exit"));
    assert_eq!((&record["exitState"], record.get("output")), (&json!("success"), None));
    assert_eq!(live.next().await, Ok(None));

    let mut again = reader(&service, 7).await;
    assert_eq!(next(&mut again).await.0, 8);
    assert_eq!(next(&mut again).await.0, 9);
    assert_eq!(again.next().await, Ok(None));
    assert!(service.events(1, 9).await.expect("known").is_none(), "none can follow");

    // The ids go on through a run.
    service.run(1, RunQuery { force: true }).await.expect("queued");
    let mut second = reader(&service, 9).await;
    assert_eq!(next(&mut second).await, (10, "state", json!({ "state": "queued" })));
    service.kill(1).await.expect("killed");
}

#[tokio::test(start_paused = true)]
async fn a_reader_waits_and_loses_nothing() {
    let (service, driven) = narrow();
    create(&service, "").await;
    let mut live = reader(&service, 1).await;
    {
        let mut waits = std::pin::pin!(live.next());
        assert!(futures_poll(&mut waits).await.is_none(), "there is no event yet");
        // The future is dropped here.
    }
    driven.bindings(1).stdout(1, "x").expect("small");
    assert_eq!(next(&mut live).await, (2, "stdout", json!({ "text": "x" })));
    driven.end(1, Ok(Success));
    settle().await;
    service.delete(1).await.expect("idle");
    assert_eq!(live.next().await, Ok(None), "the process is gone");
}

/// Polls once.
async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_behind_is_cut_off_and_resumes() {
    let (service, driven) = narrow();
    create(&service, "").await;
    let bindings = driven.bindings(1);
    let mut slow = reader(&service, 1).await;
    for _ in 0..20 {
        bindings.stdout(1, vec![b'x'; 100_000]).expect("small");
    }
    assert_eq!(slow.next().await, Err(Lagged));
    assert_eq!(slow.next().await, Err(Lagged));
    // A new reader gets all, at its own pace.
    let mut resumed = reader(&service, 1).await;
    let mut bytes = 0;
    while bytes < 2_000_000 {
        let (_, kind, data) = next(&mut resumed).await;
        assert_eq!(kind, "stdout");
        bytes += data["text"].as_str().map_or(0, str::len);
    }
    // One large event is no delay of an attentive reader.
    bindings.stdout(1, vec![b'y'; 3_000_000]).expect("small");
    assert_eq!(next(&mut resumed).await.2["text"].as_str().map(str::len), Some(3_000_000));
    driven.end(1, Ok(Success));
}

#[tokio::test(start_paused = true)]
async fn changes_of_all_processes_are_one_stream() {
    let (service, driven) = narrow();
    let mut all = service.all_events(None);
    create(&service, "").await;
    driven.bindings(1).set_state(1, Running).expect("its number");
    driven.end(1, Ok(Success));
    settle().await;
    create(&service, "").await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let (id, kind, record) = shown(&all.next().await.expect("not behind").expect("not over"));
        assert_eq!((kind, record.get("output")), ("process", None));
        seen.push((id, record["pid"].clone(), record["state"].clone()));
    }
    let expected = [(1, 1, "queued"), (2, 1, "running"), (3, 1, "idle"), (4, 2, "queued")];
    assert_eq!(seen, expected.map(|(id, pid, state)| (id, json!(pid), json!(state))));
    let mut resumed = service.all_events(Some(2));
    assert_eq!(shown(&resumed.next().await.expect("not behind").expect("not over")).0, 3);
    service.kill(2).await.expect("killed");
    settle().await;
    driven.end(2, Ok(Success));
    service.shutdown().await;
    let mut last = 4;
    while let Some(event) = all.next().await.expect("not behind") {
        last = event.id;
    }
    assert_eq!(last, 6);
    assert_eq!(service.all_events(None).next().await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_all_that_is_behind_is_cut_off() {
    let (service, driven) = narrow();
    let mut all = service.all_events(None);
    for pid in 1..=2500 {
        create(&service, "").await;
        driven.end(pid, Ok(Success));
        settle().await;
    }
    assert_eq!(all.next().await, Err(Lagged));
}
