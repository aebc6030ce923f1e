//! The loop within bounds: of time, of memory, and of what a model is told, whatever models and programs do.

use std::{
    fmt::Debug,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt as _, stream};
use isolane_executors::{
    CodeExecutionInput, CodeExecutionResult, CodeExecutor, CodeLoop, ConfinedCodeExecutor,
    ContainerCodeExecutor, ExecFile, ExecutorError, InvocationContext, IsolateCodeExecutor,
    LocalCodeExecutor, LoopEvent, Model, ModelError, ModelReply, ModelRequest, Outcome, Part,
    Reason, ScriptedModel,
};

const CEILING: Duration = Duration::from_mins(2);

const BLOCK: &str = "```python\nprint(1)\n```";

/// An executor that does what a function says.
struct Own<F>(F, bool);

impl<F> Debug for Own<F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Own")
    }
}

#[async_trait::async_trait]
impl<F: Fn(&CodeExecutionInput) -> CodeExecutionResult + Send + Sync + 'static> CodeExecutor
    for Own<F>
{
    async fn execute_code(
        &self,
        _context: &InvocationContext,
        input: CodeExecutionInput,
    ) -> Result<CodeExecutionResult, ExecutorError> {
        if self.1 {
            tokio::time::sleep(Duration::from_millis(5500)).await;
        }
        Ok((self.0)(&input))
    }

    fn timeout(&self) -> Option<Duration> {
        Some(Duration::from_millis(10))
    }

    fn keeps_time(&self) -> bool {
        self.1
    }
}

fn own(
    execute: impl Fn(&CodeExecutionInput) -> CodeExecutionResult + Send + Sync + 'static,
) -> Arc<dyn CodeExecutor> {
    Arc::new(Own(execute, false))
}

fn printed(stdout: &str) -> CodeExecutionResult {
    CodeExecutionResult {
        stdout: stdout.to_owned(),
        exit_code: Some(0),
        ..CodeExecutionResult::default()
    }
}

fn code_loop(model: Arc<dyn Model>, executor: Arc<dyn CodeExecutor>) -> CodeLoop {
    CodeLoop::builder().model(model).executor(executor).build().expect("a loop")
}

/// The outputs that a model was shown in its second turn.
fn shown(model: &ScriptedModel) -> Vec<String> {
    let last = model.requests().pop().and_then(|request| request.contents.last().cloned());
    let parts = last.expect("results").parts.into_iter();
    let output = |part: Part| match part {
        Part::CodeExecutionResult(result) => result.output().to_owned(),
        part => panic!("{part:?}"),
    };
    parts.map(output).collect()
}

/// A model that says a beginning, and then goes on without an end. It answers in its second turn.
#[derive(Debug)]
struct Endless(Vec<Part>, Arc<AtomicUsize>);

#[async_trait::async_trait]
impl Model for Endless {
    async fn generate(&self, request: ModelRequest) -> Result<ModelReply, ModelError> {
        if request.contents.len() > 1 {
            return Ok(ModelReply::Parts(vec![Part::text("done")]));
        }
        let count = Arc::clone(&self.1);
        let more = stream::repeat_with(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Part::text("999\n")
        });
        let parts = stream::iter(self.0.clone()).chain(more).map(Ok);
        Ok(ModelReply::Stream(Box::pin(parts)))
    }
}

#[tokio::test]
async fn a_stream_that_goes_on_behind_a_block_is_given_up() {
    let count = Arc::new(AtomicUsize::new(0));
    let model = Endless(vec![Part::text("See:\n"), Part::text(BLOCK)], Arc::clone(&count));
    let executor = own(|input| printed(&input.code));
    let code_loop = code_loop(Arc::new(model), executor);
    let result = tokio::time::timeout(CEILING, code_loop.run("go"))
        .await
        .expect("an end")
        .expect("a result");
    assert_eq!((result.reason, result.text.as_str()), (Reason::Answered, "done"));
    assert_eq!(result.contents[1].parts, [Part::text(format!("See:\n{BLOCK}"))]);
    let count = count.load(Ordering::Relaxed);
    assert!((16_000..20_000).contains(&count), "64 KiB of pieces: {count}");
}

#[tokio::test]
async fn code_as_a_part_takes_the_place_of_a_block_before_it() {
    let model = Arc::new(ScriptedModel::new());
    let text = "x".repeat(60_000);
    let parts = vec![Part::text(BLOCK), Part::text(text.clone()), Part::code("python", "b")];
    model.push_stream(parts);
    model.push_text("done");
    let executor = own(|input| printed(&input.code));
    let result = code_loop(model.clone(), executor).run("go").await.expect("a result");
    assert_eq!(shown(&model), ["b"]);
    assert_eq!(result.contents[1].parts[0], Part::text(format!("{BLOCK}{text}")));
}

#[tokio::test]
async fn a_call_of_an_executor_that_keeps_its_time_is_waited_for() {
    let model = Arc::new(ScriptedModel::new());
    model.push_code("python", "1");
    model.push_text("done");
    let late = |_: &CodeExecutionInput| CodeExecutionResult {
        stdout: "so far\n".to_owned(),
        stderr: "python3 execution timed out after 10ms\n".to_owned(),
        ..CodeExecutionResult::default()
    };
    let mut events = code_loop(model.clone(), Arc::new(Own(late, true))).stream("go");
    let mut outcomes = Vec::new();
    while let Some(event) = events.next().await {
        if let LoopEvent::Result { outcome, attempts, .. } = event.expect("an event") {
            outcomes.push((outcome, attempts));
        }
    }
    assert_eq!(outcomes, [(Outcome::OutcomeDeadlineExceeded, 1)]);
    assert_eq!(
        shown(&model),
        ["so far\n\n--- stderr ---\npython3 execution timed out after 10ms\n"]
    );
}

#[test]
fn the_executors_of_the_library_keep_their_time() {
    let executors: [Arc<dyn CodeExecutor>; 4] = [
        Arc::new(LocalCodeExecutor::new()),
        Arc::new(ContainerCodeExecutor::new("image")),
        Arc::new(IsolateCodeExecutor::new()),
        Arc::new(ConfinedCodeExecutor::new()),
    ];
    for executor in executors {
        assert!(executor.keeps_time(), "{executor:?}");
    }
}

/// The shorter of two times in which a text in so many pieces is read.
async fn time(count: usize) -> Duration {
    let mut least = CEILING;
    for _ in 0..2 {
        let model = Arc::new(ScriptedModel::new());
        model.push_stream(vec![Part::text("abc\n"); count]);
        let code_loop = code_loop(model, own(|_| printed("")));
        let started = Instant::now();
        let result = code_loop.run("go").await.expect("a result");
        least = least.min(started.elapsed());
        assert_eq!(result.text.len(), 4 * count);
    }
    least
}

#[tokio::test]
#[ignore = "measures the process: .ci/campaign measured"]
async fn the_time_for_a_stream_is_proportional_to_its_pieces() {
    let (short, long) = (time(50_000).await, time(200_000).await);
    // Four times the pieces; where each copies the text it takes 16 times as long.
    assert!(long <= short * 10 + Duration::from_millis(200), "{short:?}, then {long:?}");
}

/// How often another task of the thread has its turn while a reply is read.
async fn turns_of_others(parts: Vec<Part>) -> usize {
    let model = Arc::new(ScriptedModel::new());
    model.push_stream(parts);
    let code_loop = code_loop(model, own(|_| printed("")));
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    code_loop.run("go").await.expect("a result");
    other.abort();
    turns.load(Ordering::Relaxed)
}

#[tokio::test]
async fn a_long_reply_leaves_turns_to_others() {
    let turns = turns_of_others(vec![Part::text("é\n".repeat(3 << 20))]).await;
    assert!(turns >= 30, "{turns} turns in 9 MiB");
    let turns = turns_of_others(vec![Part::text("a"); 20_000]).await;
    assert!(turns >= 15, "{turns} turns in 20,000 pieces");
}

#[tokio::test]
async fn the_files_of_a_run_are_bounded() {
    let model = Arc::new(ScriptedModel::new());
    model.push_parts((0..10).map(|index| Part::code("python", index.to_string())).collect());
    model.push_text("done");
    let inputs = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&inputs);
    let executor = own(move |input| {
        seen.lock().expect("no panic").push(input.input_files.len());
        let file =
            ExecFile { name: input.code.clone(), content: vec![b'x'; 8 << 20], mime_type: None };
        CodeExecutionResult { output_files: vec![file], ..CodeExecutionResult::default() }
    });
    let mut events = code_loop(model.clone(), executor).stream("go");
    let mut outcomes = Vec::new();
    while let Some(event) = events.next().await {
        if let LoopEvent::Result { outcome, result, .. } = event.expect("an event") {
            assert_eq!(result.output_files.len(), 1);
            outcomes.push(outcome);
        }
    }
    let result = events.into_result().expect("a result");
    assert_eq!(result.files.len(), 8);
    assert_eq!(*inputs.lock().expect("no panic"), [0, 1, 2, 3, 4, 5, 6, 7, 8, 8]);
    // A line about a file does not make a failure of a program.
    assert_eq!(outcomes, [Outcome::OutcomeOk; 10]);
    let shown = shown(&model);
    assert_eq!(shown[7], "");
    assert_eq!(shown[8], "isolane: output file '8' left out (8388608 bytes)\n");
}

#[tokio::test]
async fn a_model_is_told_nothing_about_the_machine() {
    let secret = "/nonexistent/customer-x";
    let local = LocalCodeExecutor::new().with_interpreter(format!("{secret}/python"));
    let misused = LocalCodeExecutor::new().with_env(format!("{secret}="), "1");
    let large = "x".repeat((16 << 20) + 1);
    let cases = [
        (local, "1", "the program could not be started", true),
        (misused, "1", "the executor is not set up as it must be", true),
        (LocalCodeExecutor::new(), large.as_str(), "the code is larger than 16777216 bytes", false),
    ];
    for (executor, code, expected, has_secret) in cases {
        let model = Arc::new(ScriptedModel::new());
        model.push_code("", code);
        model.push_text("done");
        let mut events = code_loop(model.clone(), Arc::new(executor)).stream("go");
        let mut errors = Vec::new();
        while let Some(event) = events.next().await {
            if let LoopEvent::Result { result, .. } = event.expect("an event") {
                errors.push(result.stderr);
            }
        }
        assert_eq!(shown(&model), [expected]);
        // The host is told all of it.
        assert!(errors.len() == 1 && errors[0].contains(secret) == has_secret, "{errors:?}");
    }
}
