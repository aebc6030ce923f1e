//! Errors keep their causes: tests of `source()`, and of errors without a cause.

use std::{error::Error, fmt, num::ParseIntError, sync::Arc};

use isolane::{
    Cause, ExecutionOptions, ExecutionResult, HostError, HostFunction, HostPromise, Inputs,
    KEPT_THROWS, LARGE_THROW_BYTES, NativeAnswer, NativeCall, NativeFunction, Report, StatusError,
    Value, run_code,
    value::{Malformed, tag},
};

/// An error of a host, caused by another one.
#[derive(Debug)]
struct Broken(ParseIntError);

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the page is broken")
    }
}

impl Error for Broken {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// A native function, whose calls and errors the host does not see.
struct Refusing;

impl NativeFunction for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn call(&self, _: NativeCall) -> NativeAnswer {
        Err(HostError::new("Error", "refused").to_value()).into()
    }
}

fn panicking() {
    panic!("on purpose");
}

fn broken() -> Broken {
    Broken("x".parse::<i32>().expect_err("no number"))
}

fn globals() -> Inputs {
    let failed = || -> Result<(), Broken> { Err(broken()) };
    Inputs::new()
        .with("sync", HostFunction::new(failed))
        .with("big", HostFunction::new(|_: String| -> Result<(), Broken> { Err(broken()) }))
        .with("later", HostFunction::future(move || async move { failed() }))
        .with("laterBig", HostFunction::future(|_: String| async { Err::<(), _>(broken()) }))
        .with("promise", HostPromise::new(async move { failed() }))
        .with(
            "boxed",
            HostFunction::new(|| -> Result<(), Box<dyn Error + Send + Sync>> {
                Err(Box::new(broken()))
            }),
        )
        .with(
            "named",
            HostFunction::new(|| -> Result<(), HostError> {
                Err(HostError::new("NotFound", "no page").with_code("ENOENT").with_source(broken()))
            }),
        )
        .with("text", HostFunction::new(|| -> Result<(), String> { Err("as text".to_owned()) }))
        .with("panics", HostFunction::new(panicking))
        .with("takes", HostFunction::new(|_: u8| ()))
        .with("fine", HostFunction::new(|| ()))
        .with("native", HostFunction::native(Arc::new(Refusing)))
}

fn run(source: &str) -> ExecutionResult {
    let sink = HostFunction::new(|_: Value| -> Result<(), Broken> { Err(broken()) });
    let options =
        ExecutionOptions { globals: globals(), report: Report::To(sink), ..Default::default() };
    run_code(source, options).wait().expect("no misuse")
}

/// An error and its sources, outermost first.
fn chain(error: &dyn Error) -> Vec<String> {
    let (mut texts, mut next) = (Vec::new(), Some(error));
    while let Some(error) = next {
        texts.push(error.to_string());
        next = error.source();
    }
    texts
}

fn failed(source: &str) -> StatusError {
    run(source).into_value().expect_err(source)
}

const DIGIT: &str = "invalid digit found in string";

/// Sources that end with an error of the host, whose whole chain is kept.
const CAUSED: &[&str] = &[
    "sync()",
    "boxed()",
    "report(1)",
    "await later()",
    "await promise",
    "export default later()",
    "export default () => sync()",
    "await Promise.all([later(), later(), later()])",
    "await Promise.race([later()])",
    // The same object, whatever code did to it.
    "try { sync() } catch (e) { throw e }",
    "try { sync() } catch (e) { e.name = 'Other'; e.message = 'said otherwise'; throw e }",
    "try { sync() } catch (e) { fine(); await null; throw e }",
    "try { sync() } catch (e) { Object.setPrototypeOf(e, null); throw e }",
    "for (const f of [native, sync]) try { f() } catch {} try { native() } catch {} sync()",
    "big('x'.repeat(1 << 17))",
    "await laterBig('x'.repeat(1 << 17))",
    "try { big('x'.repeat(1 << 17)) } catch (e) { report.name; throw e }",
    "let kept; for (let i = 0; i < 8; i++) try { sync() } catch (e) { kept ??= e } throw kept",
];

/// Sources that end with another error.
const UNCAUSED: &[&str] = &[
    "throw new Error('the page is broken')",
    "try { sync() } catch (e) { throw new Error(e.message) }",
    "try { sync() } catch (e) { throw { ...e, name: e.name, message: e.message } }",
    "try { sync() } catch { throw new Error('the page is broken') }",
    "text()",
    "panics()",
    "takes('x')",
    "takes(300)",
    "import 'nowhere'",
    "native()",
    "try { sync() } catch {} native()",
    "try { sync() } catch {} await native()",
    // Forgotten: there were too many since, or the sandbox called again after a large one.
    "let kept; for (let i = 0; i < 9; i++) try { sync() } catch (e) { kept ??= e } throw kept",
    "try { big('x'.repeat(1 << 17)) } catch (e) { fine(); throw e }",
    "let kept; try { sync() } catch (e) { kept = e } try { big('x'.repeat(1 << 17)) } catch {} throw kept",
];

#[test]
fn the_error_of_a_host_is_the_source_of_what_it_ended() {
    assert_eq!((KEPT_THROWS, LARGE_THROW_BYTES < 1 << 17), (8, true));
    for source in CAUSED {
        let error = failed(source);
        assert_eq!(chain(&error)[1..], ["the page is broken", DIGIT], "{source}: {error:?}");
        assert!(error.source().is_some_and(<dyn Error>::is::<Broken>), "{source}");
    }
}

#[test]
fn nothing_else_has_a_source() {
    for source in UNCAUSED {
        let error = failed(source);
        assert_eq!(chain(&error).len(), 1, "{source}: {error:?}");
        assert_eq!(error.error().and_then(|error| error.cause.as_ref()), None, "{source}");
    }
}

#[test]
fn an_error_with_a_name_keeps_what_it_was_made_out_of() {
    let error = failed("named()");
    let chain = chain(&error);
    let texts = ["NotFound: no page", "NotFound: no page", "the page is broken", DIGIT];
    assert!(chain[0].starts_with(texts[0]), "{chain:?}");
    assert_eq!(chain[1..], texts[1..]);
    let cause = error.source().and_then(|cause| cause.downcast_ref::<HostError>());
    assert_eq!(cause, Some(&HostError::new("NotFound", "no page").with_code("ENOENT")));
    assert!(format!("{error:?}").contains("ParseIntError"), "{error:?}");
}

#[test]
fn nothing_of_a_source_reaches_the_sandbox() {
    let source = "try { named() } catch (e) {
        const own = Object.getOwnPropertyNames(e).filter((key) => key !== 'stack').sort();
        export_ = [own.join(), String(e.cause), Object.getOwnPropertySymbols(e).length];
    }
    var export_; export { export_ as default };";
    let shown: (String, String, u32) =
        run(source).into_value().expect("it is caught").deserialize().expect("its shape");
    assert_eq!(shown, ("code,message,name".to_owned(), "undefined".to_owned(), 0));
}

#[test]
fn a_message_that_cannot_be_read_is_a_source() {
    let malformed = Value::from_parts(vec![tag::STRING, 7], Vec::new());
    let error = malformed.deserialize::<String>().expect_err("it is cut off");
    assert_eq!(chain(&error), ["value: malformed message", "malformed message"]);
    assert!(error.source().is_some_and(<dyn Error>::is::<Malformed>));
}

/// Serde passes the errors of a type on as text alone.
#[test]
fn the_message_is_the_text_of_serde() {
    #[derive(Debug)]
    struct Even;

    impl<'de> serde::Deserialize<'de> for Even {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            Err(serde::de::Error::custom(broken()))
        }
    }

    let error = Value::serialize(&[1]).and_then(|value| value.deserialize::<Vec<Even>>());
    assert_eq!(chain(&error.expect_err("never even")), ["value[0]: the page is broken"]);
}

#[test]
fn causes_are_equal_when_they_are_the_same() {
    let cause = |source| run(source).error.and_then(|error| error.cause).expect(source);
    let (one, other) = (cause("sync()"), cause("sync()"));
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
    assert_eq!((Cause::Call(1), Cause::Promise(1)), (Cause::Call(1), Cause::Promise(1)));
    assert_ne!(Cause::Call(1), Cause::Promise(1));
}
