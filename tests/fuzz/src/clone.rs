//! Values through the boundary, both ways.
//!
//! With an even first byte, the others are choices of `values`: the value must return unchanged, once as an argument
//! and once through a host call. With an odd one, the others are the nodes of a message that no writer made:
//! readers may refuse it, but must not fail otherwise.

use std::time::Duration;

use arbitrary::Unstructured;
use isolane::{ExecutionResult, Request, SourceText, Value, value::Writer};

use crate::{
    equal::{canonical, walk},
    run::{self, CEILING, PATIENCE},
    values,
};

/// Returns its arguments, directly and after one more crossing out and in.
const RETURN: &str =
    "export default (echo, value) => [value, echo(value)[0], structuredClone(value)]";

/// Reads a value in every way.
const LOOK: &str = "export default (...all) => {
    const seen = new Set();
    const look = (value) => {
        if (Object(value) !== value || seen.has(value)) return;
        seen.add(value);
        for (const key of Reflect.ownKeys(value).slice(0, 99)) look(value[key]);
        if (value instanceof Map || value instanceof Set) for (const member of value) look(member);
        if (value instanceof ArrayBuffer) value = new Uint8Array(value);
        if (ArrayBuffer.isView(value) && value.length > 0) value.fill(value[0]);
    };
    look(all);
    return all;
}";

/// Sends one message across.
///
/// # Panics
/// If the run has a forbidden result, or if a value arrives as another.
pub fn check(data: &[u8]) {
    let Some((&how, rest)) = data.split_first() else { return };
    if how % 2 == 0 {
        same(rest);
    } else {
        hostile(rest, how);
    }
    run::check_pristine_after(data);
}

fn same(bytes: &[u8]) {
    let mut inputs = Writer::new();
    inputs.array(1);
    inputs.array(2);
    inputs.host_function(0);
    inputs.string("echo");
    values::write(&mut Unstructured::new(bytes), &mut inputs);
    let result = given(RETURN, inputs.finish(), CEILING);
    let Some(found) = &result.result else { panic!("not returned: {:?}", result.error) };

    let mut expected = Writer::new();
    expected.array(3);
    for _ in 0..3 {
        values::write(&mut Unstructured::new(bytes), &mut expected);
    }
    let expected = canonical(&expected.finish()).expect("a message that can be read");
    let found = canonical(found).expect("a message that can be read");
    assert_eq!(found, expected, "the value has changed on its way");
}

fn hostile(bytes: &[u8], how: u8) {
    let blobs = vec![vec![7; usize::from(how >> 3)], Vec::new()];
    let message = Value::from_parts(bytes.to_vec(), blobs);
    // These first readers must not panic either.
    let _ = walk(&message);
    let _ = message.deserialize::<String>();
    let _ = message.deserialize::<Vec<(u8, Option<f64>)>>();
    let _ = message.deserialize::<std::collections::HashMap<String, Vec<u8>>>();
    given(LOOK, message, PATIENCE);
}

/// A run whose whole input is that message.
fn given(source: &str, inputs: Value, spin: Duration) -> ExecutionResult {
    let mut request = Request::new(SourceText::from(source.to_owned()));
    request.inputs = inputs;
    request.memory_limit_bytes = Some(16e6);
    run::run(request, spin).expect("valid options")
}
