//! A value whose reading is counted.
//!
//! In: JSON. Out: the representation that the validator reads, each look at which is a step; a check that would take more
//! steps than it has ends at once. The validator has no limit of its own, so it is left by unwinding: its state is that of
//! one check, and is dropped. `equal` finds equal elements.

mod equal;

use std::{
    borrow::Cow,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use jsonschema::{
    JsonType,
    json::{Array, Json, NodeIdentity, Object, SerdeJson, cmp},
};
use serde_json::{Map, Number, Value};

use crate::pieces;

/// The work that a check may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) steps: u64,
    /// The mistakes that may be found.
    pub(crate) mistakes: u64,
}

thread_local! {
    /// The work that the check of this thread has left.
    static LEFT: Cell<Budget> = const { Cell::new(Budget { steps: 0, mistakes: 0 }) };
}

/// The mark of a check that has nothing left.
struct Spent;

/// Runs a check within a budget; `None` if it would do more.
pub(crate) fn within<T>(budget: Budget, check: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(budget);
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(checked) => Some(checked),
        Err(mark) if mark.is::<Spent>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

fn spent() -> ! {
    // Runs no panic hook.
    resume_unwind(Box::new(Spent))
}

fn step() {
    steps(1);
}

fn steps(count: u64) {
    let left = LEFT.get();
    match left.steps.checked_sub(count) {
        Some(steps) => LEFT.set(Budget { steps, ..left }),
        None => spent(),
    }
}

fn mistake() {
    let left = LEFT.get();
    match left.mistakes.checked_sub(1) {
        Some(mistakes) => LEFT.set(Budget { mistakes, ..left }),
        None => spent(),
    }
}

/// JSON whose reading is counted.
#[derive(Debug)]
pub(crate) struct Counted;

/// One value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a>(pub(crate) &'a Value);

/// The fields of an object.
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

/// The elements of an array.
pub(crate) struct Elements<'a>(&'a [Value]);

impl Json for Counted {
    type Node<'a> = Node<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        read: impl FnOnce(Node<'_>) -> T,
    ) -> T {
        SerdeJson::with_string_node(buffer, string, |value| read(Node(value)))
    }
}

impl<'a> jsonschema::json::Node<'a, Counted> for Node<'a> {
    type Object = Fields<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Fields<'a>> {
        step();
        self.0.as_object().map(Fields)
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        step();
        self.0.as_array().map(|list| Elements(list))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str();
        steps(1 + text.map_or(0, pieces));
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        step();
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        step();
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        step();
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        step();
        match self.0 {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        step();
        cmp::equal(self.0, expected)
    }

    /// Each error that is made asks for it, and nothing else does.
    fn to_value(&self) -> Cow<'a, Value> {
        mistake();
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        step();
        Some(NodeIdentity::new(std::ptr::from_ref(self.0) as usize))
    }
}

impl<'a> Object<'a, Counted> for Fields<'a> {
    type Node = Node<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Node<'a>> {
        step();
        self.0.get(key).map(Node)
    }

    fn members(&self) -> Members<'a> {
        Members(self.0.iter())
    }
}

/// Goes through fields.
pub(crate) struct Members<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        step();
        self.0.next().map(|(key, value)| (key.as_str(), Node(value)))
    }
}

impl<'a> Array<'a, Counted> for Elements<'a> {
    type Node = Node<'a>;
    type ElementsIter = Each<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Each<'a> {
        Each(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        equal::are_unique(self.0)
    }
}

/// Goes through elements.
pub(crate) struct Each<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for Each<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        step();
        self.0.next().map(Node)
    }
}
