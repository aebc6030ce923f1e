//! Allocations of every program of the corpus, each refused once.
//!
//! As in SQLite's tests, the n-th request for memory fails, for every n until the program succeeds. A refused run ends
//! as `memory`, at any point of its work; its instance is pristine afterwards or gone; and everything that it held is
//! freed. A crash is found by the last line of the output with `ISOLANE_TEST_SAY=1`, and reproduced with the printed
//! seed in `ISOLANE_TEST_SEED`.

use std::{
    io::Write as _,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use super::{
    Random,
    corpus::{CORPUS, Program, SELF_CHECK},
    stage::{Stage, request},
};
use crate::{
    Completion, LogLevel, Refusal, Value,
    data::outcome::{ExecutionError, Status},
    isolate::{
        Embedder, End, Isolate, Pool, PoolOptions, Realm, STACK_LIMIT_BYTES, Started, Task,
        Termination, Turn,
        faults::{self, Plan, Seen},
    },
    modules::{
        cache::Cache,
        program::{self, Unlinked},
    },
    os::sync::Mutex,
};

const LIMIT: usize = 64 << 20;

/// The time limit of a run. No run of the corpus takes this long; one that does is ended and fails the test.
const CEILING: Duration = Duration::from_mins(2);

/// The embedder of an isolate, without a run around it.
#[derive(Default)]
struct Stand {
    stage: Stage,
    reports: Mutex<Vec<Value>>,
    logs: Mutex<Vec<Value>>,
}

impl Embedder for Stand {
    fn call(&self, function: u32, args: Value) -> Option<Completion> {
        Some(self.stage.call(function, args))
    }

    fn start(&self, function: u32, args: Value, promise: u32) -> Started {
        self.stage.start(function, args, promise);
        Started::GoesOn
    }

    fn report(&self, value: Value) -> Option<Completion> {
        self.reports.lock().push(value);
        Some(Ok(Value::undefined()))
    }

    fn refusal(&self, _message: &Value) -> Option<Refusal> {
        None
    }

    fn log(&self, _level: LogLevel, args: Value) {
        self.logs.lock().push(args);
    }

    fn function_settled(&self, call: u32, completion: Completion) {
        self.stage.function_settled(call, completion);
    }

    fn promise_settled(&self, promise: u32, completion: Completion) {
        self.stage.promise_settled(promise, completion);
    }

    fn poll(&self, _now: Instant) {}
}

/// The result of a run, in a form that can be compared.
#[derive(Clone, Debug, PartialEq)]
enum Came {
    To(Value, Vec<Value>),
    Failed(Status, ExecutionError, Vec<Value>),
    Memory,
    Wrong(String),
}

fn pool(slots: usize) -> Pool<Realm> {
    let ready = slots;
    Pool::new(
        Realm::build,
        PoolOptions { ready, spare: 0, max_slots: slots, kept_slots: 0, runs_per_slot: u32::MAX },
    )
}

/// The number of free small blocks that the engine has of each size.
type Spare<'a> = Option<&'a mut dyn FnMut() -> usize>;

/// One run of a program under a plan, with every check that holds for any run.
fn run(pool: &Pool<Realm>, program: &Program, plan: Plan, spare: Spare<'_>) -> (Came, Seen) {
    let request = request(program);
    let stand = Arc::new(Stand::default());
    let task = Task {
        export: "default".to_owned(),
        globals: request.globals.clone(),
        inputs: request.inputs.clone(),
        report: true,
        ..Task::default()
    };
    // Nothing is cached, so that requests of the engine's parser are refused too.
    let linker = match program::link(&Arc::new(Cache::new(0)), request) {
        Ok(linker) => linker,
        Err(unlinked) => {
            let nothing = Seen { requests: 0, refused: 0 };
            let came = match unlinked {
                Unlinked::Memory(_) => Came::Memory,
                Unlinked::Error(error) => Came::Failed(Status::LinkError, *error, Vec::new()),
            };
            return (came, nothing);
        }
    };
    let termination = Arc::<Termination>::default();
    end_in_time(&termination);
    let lease = pool.take(LIMIT, false).expect("a home");
    let embedder: Arc<dyn Embedder> = Arc::<Stand>::clone(&stand);
    let mut isolate = Isolate::new(lease, embedder, linker, task, LIMIT, Arc::clone(&termination));
    if let Some(spare) = spare {
        isolate.crowd(spare);
    }
    let (end, seen) = faults::with(plan, || {
        let mut turn = isolate.start();
        loop {
            match turn {
                Turn::Ended(end) => break Some(end),
                Turn::Idle { .. } => {
                    let inbox = stand.stage.outbox();
                    if inbox.is_empty() {
                        break None;
                    }
                    turn = isolate.turn(inbox);
                }
            }
        }
    });
    let charged = isolate.charged_bytes();
    let lease = isolate.finish();
    let mut wrong = lease.unbalanced().err();
    if lease.is_poisoned() {
        wrong = Some("the home is odd".to_owned());
    }
    pool.give_back(lease);
    if let Err(difference) = pool.check_pristine() {
        wrong = Some(difference);
    }
    let Ok(stand) = Arc::try_unwrap(stand).map_err(drop) else {
        return (Came::Wrong("the run is still held".to_owned()), seen);
    };
    let (reports, logs) = (stand.reports.into_inner(), stand.logs.into_inner());
    let held: usize = reports.iter().chain(&logs).map(Value::held_bytes).sum();
    let result = if let Some(End::Success(value)) = &end { value.held_bytes() } else { 0 };
    if charged < held + result || (result > 0 && charged > held + result) {
        wrong = Some(format!("{charged} bytes charged, {held} and {result} held"));
    }
    let came = match (wrong, end) {
        (Some(wrong), _) => Came::Wrong(wrong),
        (None, Some(End::Success(value))) => Came::To(value, reports),
        (None, Some(End::Failed(status, error))) => Came::Failed(status, *error, reports),
        (None, Some(End::Memory | End::Oversized(_))) => Came::Memory,
        (None, Some(End::Stopped(stopped))) if stopped.is_memory => Came::Memory,
        (None, end) => Came::Wrong(format!("{end:?}")),
    };
    (came, seen)
}

/// Ends that run if it takes too long.
fn end_in_time(termination: &Arc<Termination>) {
    static CURRENT: Mutex<Option<(Instant, Arc<Termination>)>> = Mutex::new(None);
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(CEILING / 20);
                if let Some((since, termination)) = &*CURRENT.lock()
                    && since.elapsed() > CEILING
                {
                    termination.raise();
                }
            }
        });
    });
    *CURRENT.lock() = Some((Instant::now(), Arc::clone(termination)));
}

/// Refuses every `step`-th request of every program, in slots or in plain instances. The seed determines how crowded
/// the heap is.
fn refuse(slots: usize, step: u64, seed: u64) {
    let pool = pool(slots);
    let pristine = self_check(&pool);
    let mut random = Random::new(seed);
    for program in CORPUS {
        let (expected, _) = run(&pool, program, Plan::Count, None);
        assert!(
            !matches!(expected, Came::Memory | Came::Wrong(_)),
            "{}: {expected:?}",
            program.name
        );
        let crowded = random.next();
        let mut request = 1 + random.next() % step;
        loop {
            let mut blocks = Random::new(crowded.wrapping_add(request));
            let spare: Spare<'_> = Some(&mut || blocks.below(6));
            let at = format!("{}, request {request}, seed {seed}, {slots} slots", program.name);
            if std::env::var_os("ISOLANE_TEST_SAY").is_some() {
                // Not through the test's own output, which is lost in a crash.
                writeln!(std::io::stdout(), "{at}").expect("to write");
            }
            let (came, seen) = run(&pool, program, Plan::Once(request), spare);
            if seen.refused == 0 {
                assert_eq!(came, expected, "{at}: nothing was refused");
                break;
            }
            assert_eq!(came, Came::Memory, "{at}");
            request += step;
        }
        let (again, _) = run(&pool, program, Plan::Count, None);
        assert_eq!(again, expected, "{}, seed {seed}: after all that", program.name);
        assert_eq!(self_check(&pool), pristine, "{}, seed {seed}: another realm", program.name);
    }
}

/// Describes the builtins that a run finds in the realm, and checks that they work.
fn self_check(pool: &Pool<Realm>) -> Value {
    match run(pool, &SELF_CHECK, Plan::Count, None) {
        (Came::To(description, _), _) => description,
        (other, _) => panic!("{other:?}"),
    }
}

/// Runs `body` on a thread with the stack size of computing threads.
fn on_a_thread(body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(2 * STACK_LIMIT_BYTES * crate::os::sanitized::FRAMES);
    thread.spawn(body).expect("a thread").join().expect("no panic");
}

#[test]
fn some_requests_refused_in_slots() {
    on_a_thread(|| refuse(1, 7, Random::seed()));
}

#[test]
fn some_requests_refused_in_plain_instances() {
    on_a_thread(|| refuse(0, 11, Random::seed()));
}

/// Every request, several times, each in a heap that is crowded differently.
#[test]
#[ignore = "takes minutes"]
fn every_request_refused() {
    for seed in 0..4 {
        on_a_thread(move || refuse(1, 1, seed));
        on_a_thread(move || refuse(0, 1, seed));
    }
}

/// Refusals while an instance is made: there is none, or one of another kind, or it is like any other.
#[test]
fn every_request_refused_while_a_home_is_made() {
    on_a_thread(|| {
        let pristine = self_check(&pool(1));
        for slots in [1, 0] {
            for plan in [Plan::Once, Plan::On] {
                for request in 1.. {
                    let pool = pool(slots);
                    let (lease, seen) = faults::with(plan(request), || pool.take(LIMIT, false));
                    if plan(request) == Plan::On(request) && seen.refused > 0 {
                        assert!(lease.is_none(), "request {request}: made of nothing");
                    }
                    let made = lease.map(|lease| pool.give_back(lease));
                    if made.is_some() {
                        assert_eq!(self_check(&pool), pristine, "request {request}");
                    }
                    assert_eq!(pool.stats().slots, pool.stats().ready, "a slot that nobody has");
                    if seen.refused == 0 {
                        break;
                    }
                }
            }
        }
    });
}
