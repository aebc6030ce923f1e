//! Tests of the check, rule by rule. `testing/fault_tests/messages.rs` has the messages of real programs, and broken
//! ones.

use super::{Malformed, Purpose, check};
use crate::value::{ErrorClass, Kinds, LARGE_COLLECTION, Value, ViewKind, Writer, tag};

/// More than any message of these tests weighs.
const ROOM: usize = 1 << 30;

/// A message on its way out, checked for a purpose.
fn written(purpose: Purpose, write: impl FnOnce(&mut Writer)) -> Result<Value, Malformed> {
    let mut writer = Writer::new();
    write(&mut writer);
    let message = writer.finish();
    let (nodes, blobs) = message.clone().into_parts();
    let checked = check(nodes, blobs, purpose, ROOM);
    if let Ok(checked) = &checked {
        assert_eq!((checked, checked.weight), (&message, message.weight));
        // Its writer may have recorded more kinds.
        assert_eq!(checked.kinds().with(message.kinds()), message.kinds());
    }
    checked
}

fn accepts(purpose: Purpose, write: impl FnOnce(&mut Writer)) -> bool {
    written(purpose, write).is_ok()
}

fn live(write: impl FnOnce(&mut Writer)) -> bool {
    accepts(Purpose::Live, write)
}

fn bytes(nodes: &[u8]) -> bool {
    check(nodes.to_vec(), Vec::new(), Purpose::Live, ROOM).is_ok()
}

#[test]
fn a_message_is_one_value_and_nothing_after_it() {
    assert!(live(Writer::null));
    assert!(!bytes(&[]));
    assert!(!bytes(&[tag::NULL, tag::NULL]));
    assert!(!bytes(&[0x09]));
}

#[test]
fn what_may_stand_in_a_message_depends_on_what_it_is_for() {
    use Purpose::{Arguments, Data, Final, Live, Log};
    type Write = fn(&mut Writer);
    let cases: [(Write, &[Purpose]); 6] = [
        (|w| w.array(0), &[Arguments, Live, Final, Log, Data]),
        (Writer::object_of_nothing, &[Live, Final, Data]),
        (|w| w.in_array(|w| w.function(Writer::host_function, "")), &[Arguments, Live, Final]),
        (|w| w.in_array(|w| w.function(Writer::sandbox_function, "f")), &[Arguments, Live]),
        (|w| w.in_array(|w| w.sandbox_promise(0)), &[Arguments, Live]),
        (|w| w.in_array(|w| w.host_promise(0)), &[]),
    ];
    for (at, (write, purposes)) in cases.into_iter().enumerate() {
        for purpose in [Arguments, Live, Final, Log, Data] {
            assert_eq!(accepts(purpose, write), purposes.contains(&purpose), "{at} {purpose:?}");
        }
    }
}

#[test]
fn no_object_has_a_function_as_its_then() {
    let function = |w: &mut Writer| w.function(Writer::sandbox_function, "f");
    let host_function = |w: &mut Writer| w.function(Writer::host_function, "");
    let object = |w: &mut Writer, key: &str, value: &dyn Fn(&mut Writer)| {
        w.object();
        w.new_key(key);
        value(w);
        w.end_object();
    };
    assert!(live(|w| object(w, "other", &function)));
    assert!(live(|w| object(w, "then", &Writer::null)));
    assert!(live(|w| object(w, "then", &|w| object(w, "f", &function))));
    assert!(!live(|w| object(w, "then", &function)));
    assert!(!live(|w| object(w, "then", &host_function)));
    // A key that occurs twice, and one that is known.
    for key in [0, 2] {
        assert!(!live(|w| {
            w.array(2);
            w.object();
            for text in ["then", "other", "then"] {
                w.new_key(text);
                w.null();
            }
            w.end_object();
            w.object();
            w.known_key(key);
            function(w);
            w.end_object();
        }));
    }
    // An object that occurred before.
    for (object, fine) in [(2, false), (1, true)] {
        assert_eq!(
            live(|w| {
                w.array(3);
                w.array(0);
                function(w);
                w.object();
                w.new_key("then");
                w.reference(object);
                w.end_object();
            }),
            fine
        );
    }
}

#[test]
fn functions_of_the_host_have_no_name_and_the_number_that_was_given_out() {
    assert!(!live(|w| w.function(Writer::host_function, "name")));
    let numbered = |number: u32| {
        live(|w| {
            w.host_function(number);
            w.string("");
        })
    };
    assert!(numbered(u32::MAX >> 1));
    assert!(!numbered(1 << 31) && !numbered(u32::MAX));
    assert!(!live(|w| {
        w.sandbox_function(0);
        w.string16(&[0xD800]);
    }));
}

#[test]
fn references_lead_to_earlier_objects() {
    assert!(live(|w| w.in_array(|w| w.reference(0))));
    assert!(!live(|w| w.in_array(|w| w.reference(1))));
    assert!(!live(|w| w.reference(0)));
}

#[test]
fn numbers_stand_in_their_only_form() {
    assert!(live(|w| w.number(-0.0)) && live(|w| w.number(1e300)) && live(|w| w.number(f64::NAN)));
    assert!(!live(|w| w.double(1.0)));
    assert!(bytes(&[tag::INT, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]));
    assert!(!bytes(&[tag::INT, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F]));
    assert!(!bytes(&[tag::INT, 0x80, 0x00]));
    assert!(!bytes(&[tag::ARRAY, 0x80, 0x80, 0x80, 0x80, 0x00]));
    // The tenth byte has room for one bit; its others must not fall off.
    assert!(!bytes(&[tag::ARRAY, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02]));
}

#[test]
fn bigints_are_as_large_as_the_engine_makes_them() {
    assert!(live(|w| w.bigint(true, &vec![1; 128 << 10])));
    assert!(!live(|w| w.bigint(true, &vec![1; (128 << 10) + 1])));
    assert!(bytes(&[tag::BIGINT, 0, 0]) && bytes(&[tag::BIGINT, 1, 1, 1]));
    assert!(!bytes(&[tag::BIGINT, 1, 0]) && !bytes(&[tag::BIGINT, 2, 1, 1]));
    assert!(!bytes(&[tag::BIGINT, 0, 2, 1, 0]));
}

#[test]
fn text_is_utf8_unless_a_surrogate_is_alone() {
    assert!(live(|w| w.string("ä😀")) && live(|w| w.string16(&[0x61, 0xDC00])));
    assert!(!bytes(&[tag::STRING, 1, 0xFF]) && !bytes(&[tag::STRING, 2, 0x61]));
    assert!(!bytes(&[tag::STRING16, 1, 0x61, 0]));
    assert!(!bytes(&[tag::STRING16, 0]));
    assert!(bytes(&[tag::OBJECT, 2, 1, 0, 0xD8, tag::NULL, 0]));
    assert!(!bytes(&[tag::OBJECT, 2, 1, 0x61, 0, tag::NULL, 0]));
    assert!(bytes(&[tag::OBJECT, 1, 0, tag::NULL, 3, tag::NULL, 0]));
    assert!(!bytes(&[tag::OBJECT, 1, 0, tag::NULL, 4, tag::NULL, 0]));
}

#[test]
fn counted_nodes_are_there() {
    for tag in [tag::ARRAY, tag::MAP, tag::SET] {
        assert!(bytes(&[tag, 0]));
        assert!(!bytes(&[tag, 1]) && !bytes(&[tag, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]));
    }
    assert!(bytes(&[tag::MAP, 1, tag::NULL, tag::NULL]));
    assert!(!bytes(&[tag::MAP, 1, tag::NULL]));
}

#[test]
fn holes_are_elements_of_arrays() {
    assert!(live(|w| w.in_array(Writer::hole)));
    assert!(!live(Writer::hole));
    assert!(!bytes(&[tag::SET, 1, tag::HOLE]) && !bytes(&[tag::MAP, 1, tag::NULL, tag::HOLE]));
    assert!(!bytes(&[tag::OBJECT, 1, 0, tag::HOLE, 0]));
    assert!(!bytes(&[tag::SPARSE_ARRAY, 2, 1, tag::HOLE, 0]));
}

#[test]
fn sparse_arrays_have_holes_and_their_indices_ascend() {
    let sparse = |length: u32, indices: &[u32]| {
        live(|w| {
            w.sparse_array(length);
            for &index in indices {
                w.sparse_index(index);
                w.null();
            }
            w.end_sparse_array();
        })
    };
    assert!(sparse(1, &[]) && sparse(3, &[0, 2]) && sparse(u32::MAX, &[u32::MAX - 1]));
    assert!(!sparse(0, &[]) && !sparse(2, &[0, 1]));
    assert!(!sparse(3, &[1, 0]) && !sparse(3, &[1, 1]) && !sparse(3, &[3]));
    assert!(!sparse(u32::MAX, &[u32::MAX]));
}

#[test]
fn dates_are_in_range_and_whole() {
    for time in [0.0, -8.64e15, 8.64e15, f64::NAN] {
        assert!(live(|w| w.date(time)), "{time}");
    }
    for time in [-0.0, 0.5, 8.64e15 + 2.0, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(!live(|w| w.date(time)), "{time}");
    }
}

#[test]
fn regexps_have_valid_flags() {
    let flagged = |flags: &str| {
        live(|w| {
            w.regexp();
            w.string("a");
            w.string(flags);
        })
    };
    assert!(flagged("") && flagged("dgimsuy") && flagged("vy"));
    assert!(!flagged("gg") && !flagged("mi") && !flagged("uv") && !flagged("x") && !flagged("ä"));
    assert!(!bytes(&[tag::REGEXP, tag::NULL, tag::STRING, 0]));
    assert!(!bytes(&[tag::REGEXP, tag::STRING, 0]));
}

#[test]
fn parts_of_errors_are_of_the_right_kinds() {
    type Write = fn(&mut Writer);
    let text: Write = |w| w.string("text");
    let lone: Write = |w| w.string16(&[0xD800]);
    let error = |parts: [Write; 4]| {
        live(|w| {
            w.error(ErrorClass::EvalError);
            for write in parts {
                write(w);
            }
        })
    };
    let undefined: Write = Writer::undefined;
    assert!(error([text, text, text, text]) && error([lone, lone, undefined, lone]));
    assert!(error([text, text, undefined, undefined]) && error([text, text, text, |w| w.int(1)]));
    assert!(error([text, text, undefined, |w| w.double(0.5)]));
    assert!(!error([undefined, text, text, text]) && !error([text, |w| w.int(1), text, text]));
    assert!(!error([text, text, Writer::null, text]) && !error([text, text, lone, text]));
    assert!(!error([text, text, text, Writer::null]) && !error([text, text, text, |w| w.array(0)]));
    let (name, class) = ([tag::STRING, 0, tag::STRING, 0, tag::UNDEFINED, tag::UNDEFINED], 6);
    assert!(bytes(&[&[tag::ERROR, class][..], &name].concat()));
    assert!(!bytes(&[&[tag::ERROR, class + 1][..], &name].concat()));
}

#[test]
fn views_lie_within_their_blob_and_aligned() {
    use ViewKind::{DataView, Float64Array, Int16Array};

    let view = |kind, offset, length| {
        live(|w| {
            let blob = w.blob(vec![0; 16]);
            w.view(kind, blob, offset, length);
        })
    };
    assert!(view(Float64Array, 8, 1) && view(Int16Array, 16, 0) && view(DataView, 15, 1));
    assert!(!view(Float64Array, 4, 1) && !view(Float64Array, 8, 2) && !view(DataView, 17, 0));
    assert!(!view(Float64Array, 0, u64::MAX / 8 + 1) && !view(DataView, u64::MAX, 2));
    assert!(!live(|w| {
        w.view(DataView, 0, 0, 0);
    }));
    let kind = |kind: u8| {
        let nodes = [&[tag::VIEW, kind][..], &[0; 20]].concat();
        check(nodes, vec![Vec::new()], Purpose::Live, ROOM).is_ok()
    };
    assert!(kind(12) && !kind(13));
}

#[test]
fn each_blob_has_one_buffer_and_a_use() {
    type Write = fn(&mut Writer);
    let named = |first: Write, second: Write| {
        live(|w| {
            w.blob(vec![0; 4]);
            w.array(2);
            first(w);
            second(w);
        })
    };
    let buffer: Write = |w| w.buffer(0);
    let view: Write = |w| {
        w.view(ViewKind::Uint8Array, 0, 0, 4);
    };
    assert!(named(buffer, view) && named(view, buffer) && named(view, view));
    assert!(!named(buffer, buffer));
    assert!(!named(Writer::null, Writer::null));
    assert!(!named(buffer, |w| w.buffer(1)));
    // Only a view that moved onto another blob leaves one behind.
    let empty = |blobs: usize, write: Write| {
        live(|w| {
            w.blob(vec![0; 4]);
            for _ in 0..blobs {
                w.blob(Vec::new());
            }
            w.array(1);
            write(w);
        })
    };
    assert!(empty(0, view) && empty(1, view) && !empty(2, view));
    assert!(!empty(1, buffer));
}

#[test]
fn no_message_weighs_more_than_its_run_may_hold() {
    let mut writer = Writer::new();
    writer.array(1000);
    (0..1000).for_each(|_| writer.array(0));
    let message = writer.finish();
    let (nodes, _) = message.clone().into_parts();
    let held = check(nodes.clone(), Vec::new(), Purpose::Live, ROOM).map(|it| it.held_bytes());
    let held = held.expect("a message");
    assert!(check(nodes.clone(), Vec::new(), Purpose::Live, held).is_ok());
    assert_eq!(check(nodes, Vec::new(), Purpose::Live, held - 1), Err(Malformed));
}

#[test]
fn no_message_lends_more_than_its_run_may_hold() {
    let mut writer = Writer::new();
    writer.array(1000);
    (0..1000).for_each(|number| writer.sandbox_promise(number));
    let (nodes, _) = writer.finish().into_parts();
    assert!(check(nodes.clone(), Vec::new(), Purpose::Live, 1 << 20).is_ok());
    assert_eq!(check(nodes, Vec::new(), Purpose::Live, 1 << 19), Err(Malformed));
}

#[test]
fn what_some_host_may_be_unable_to_hold_is_known() {
    let kinds = |write: fn(&mut Writer)| {
        let message = written(Purpose::Live, write).expect("a message");
        message.kinds()
    };
    assert_eq!(kinds(|w| w.in_array(Writer::object_of_nothing)), Kinds::NONE);
    assert_eq!(kinds(|w| w.in_array(|w| w.string16(&[0xD800]))), Kinds::NONE);
    assert_eq!(kinds(|w| w.function(Writer::sandbox_function, "f")), Kinds::NONE);
    let buffer = |w: &mut Writer| {
        let blob = w.blob(vec![0; 8]);
        w.buffer(blob);
    };
    assert_eq!(kinds(buffer), Kinds::NONE);
    assert_eq!(kinds(|w| w.in_array(Writer::hole)), Kinds::HOLES);
    assert_eq!(kinds(|w| w.date(0.0)), Kinds::DATES);
    assert_eq!(
        (kinds(|w| w.map(0)), kinds(|w| w.set(0))),
        (Kinds::COLLECTIONS, Kinds::COLLECTIONS)
    );
    let large = |w: &mut Writer| {
        w.set(LARGE_COLLECTION + 1);
        (0..=LARGE_COLLECTION.cast_signed()).for_each(|member| w.int(member));
    };
    assert_eq!(kinds(large), Kinds::COLLECTIONS | Kinds::LARGE_COLLECTIONS);
    let number_keys = |w: &mut Writer| {
        w.map(LARGE_COLLECTION + 1);
        (0..=LARGE_COLLECTION).for_each(|key| {
            w.bigint(false, &[1 + u8::from(key > 9)]);
            w.null();
        });
    };
    assert_eq!(kinds(number_keys), Kinds::COLLECTIONS | Kinds::LARGE_COLLECTIONS);
    let text_keys = |w: &mut Writer| {
        w.map(LARGE_COLLECTION + 1);
        (0..=LARGE_COLLECTION).for_each(|key| {
            w.string(&key.to_string());
            w.double(0.5);
        });
    };
    assert_eq!(kinds(text_keys), Kinds::COLLECTIONS);
    let long_text = |w: &mut Writer| {
        w.set(1);
        w.string(&"a".repeat(1 << 14));
    };
    assert_eq!(kinds(long_text), Kinds::COLLECTIONS | Kinds::LARGE_COLLECTIONS);
    let sparse = |w: &mut Writer| {
        w.sparse_array(1);
        w.end_sparse_array();
    };
    assert_eq!(kinds(sparse), Kinds::HOLES);
    let regexp = |w: &mut Writer| {
        w.regexp();
        w.string("a");
        w.string("");
    };
    assert_eq!(kinds(regexp), Kinds::REGEXPS);
    let half_floats = |w: &mut Writer| {
        let blob = w.blob(vec![0; 8]);
        w.view(ViewKind::Float16Array, blob, 0, 4);
    };
    assert_eq!(kinds(half_floats), Kinds::HALF_FLOATS);
    let shared = |w: &mut Writer| {
        let blob = w.blob(vec![0; 8]);
        w.array(2);
        w.buffer(blob);
        w.view(ViewKind::Uint8Array, blob, 0, 4);
    };
    assert_eq!(kinds(shared), Kinds::SHARED_BYTES);
    // A message that nobody has checked.
    assert_eq!(Value::from_parts(vec![tag::NULL], Vec::new()).kinds(), Kinds::ALL);
}

impl Writer {
    fn in_array(&mut self, write: impl FnOnce(&mut Self)) {
        self.array(1);
        write(self);
    }

    fn object_of_nothing(&mut self) {
        self.object();
        self.end_object();
    }

    fn function(&mut self, write: impl FnOnce(&mut Self, u32), name: &str) {
        write(self, 0);
        self.string(name);
    }
}
