//! Hazards that could end the process and not only the run. Each of these once did.

use std::{
    sync::{Arc, mpsc},
    time::Duration,
};

use isolane::{
    Completion, ExecutionResult, Host, HostCall, Request, Runtime, Status,
    value::{Value, Writer},
};

/// The time limit of a test that does not hang.
const CEILING: Duration = Duration::from_mins(2);

struct Told(mpsc::Sender<()>);

impl Host for Told {
    fn call(&self, _function: u32, _args: Value, _call: HostCall) {}

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn settled(&self) {
        let _ = self.0.send(());
    }
}

fn run(source: String, memory_limit_bytes: f64) -> ExecutionResult {
    let mut inputs = Writer::new();
    inputs.array(1);
    inputs.array(0);
    let request = Request {
        inputs: inputs.finish(),
        memory_limit_bytes: Some(memory_limit_bytes),
        ..Request::new(source.into())
    };
    let (sender, receiver) = mpsc::channel();
    let run = Runtime::shared().start(request, Arc::new(Told(sender))).expect("no misuse");
    receiver.recv_timeout(CEILING).expect("the run settles");
    run.take_result().expect("settled")
}

/// One builtin allocates so many small pieces that almost nothing is left of the limit, and keeps them. Ending the run
/// must not need memory.
#[test]
fn a_limit_used_up_to_the_last_byte_ends_the_run_alone() {
    for filler in (56_100..62_000).step_by(16) {
        let source = format!(
            "const N = 11200, fine = {filler};
const unit = '[' + '[],'.repeat(99) + '[]]';
const t = '[' + (unit + ',').repeat(100) + '\"' + 'x'.repeat(fine) + '\"' + ']';
let x; const keep = [];
async function f() {{ x = JSON.parse(t); g(); }}
function g() {{}}
try {{ f(); }} catch {{ }}
export default 1;
"
        );
        assert_eq!(run(source, 600_000.0).status, Status::Memory, "with {filler}");
    }
}

/// The engine's parser does not survive a failed request for memory: it asserts, or follows a null pointer. With limits
/// a little apart, each of its tables hits one of them.
#[test]
fn the_limit_can_be_hit_while_the_engine_parses() {
    for shape in ["a?.b;", "if (a) b;"] {
        let source = format!("function f() {{ {} }}", shape.repeat(9_000));
        for kib in (600..1_400).step_by(16) {
            let status = run(source.clone(), f64::from(kib * 1024)).status;
            assert_eq!(status, Status::Memory, "{shape} at {kib} KiB");
        }
    }
}
