//! Redaction, by tables of cases: every form of a value is found, whole or cut by chunks, and nothing else is.

use std::{borrow::Cow, sync::Arc};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use isolane_kit::redaction::{Redaction, Redactor};

/// A value with a space, quotes, a slash, a backslash, a plus, a percent sign, and characters of several bytes.
const VALUE: &str = "k\"ey /\\+%41é😀~";

fn redactor(values: &[(&str, &str)]) -> Arc<Redactor> {
    Arc::new(Redactor::new(values.iter().map(|(value, text)| (*value, (*text).to_owned()))))
}

/// The bytes with their values replaced, in chunks of that size.
fn streamed(redactor: &Arc<Redactor>, bytes: &[u8], chunk: usize) -> Vec<u8> {
    let mut redaction = Redaction::new(Arc::clone(redactor));
    let mut out = Vec::new();
    for chunk in bytes.chunks(chunk) {
        redaction.push(chunk, &mut out);
    }
    redaction.finish(&mut out);
    out
}

/// Checks a text as a whole and in chunks of each size.
#[track_caller]
fn check(redactor: &Arc<Redactor>, text: &str, expected: &str) {
    assert_eq!(redactor.text(text), expected, "{text}");
    for chunk in (1..=text.len().min(40)).chain([text.len().max(1)]) {
        let out = streamed(redactor, text.as_bytes(), chunk);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{text} in chunks of {chunk}");
    }
}

/// Numbers that look random, and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

/// The value percent-encoded: characters that may stay do at random, and digits are in either case.
fn percent_encoded(value: &str, numbers: &mut Numbers, space: &str) -> String {
    let mut text = String::new();
    for c in value.chars() {
        let may_stay = c != '%' && (space != "+" || c != '+');
        if c == ' ' && numbers.below(2) == 0 {
            text.push_str(space);
        } else if may_stay && numbers.below(2) == 0 {
            text.push(c);
        } else {
            for byte in c.to_string().bytes() {
                let digits = format!("{byte:02x}");
                let upper = numbers.below(2) == 0;
                text.push('%');
                text.push_str(&if upper { digits.to_uppercase() } else { digits });
            }
        }
    }
    text
}

/// The value as JSON may write it.
fn json_escaped(value: &str, numbers: &mut Numbers) -> String {
    let mut text = String::new();
    for c in value.chars() {
        match c {
            '"' | '\\' | '/' if numbers.below(2) == 0 => text.extend(['\\', c]),
            '"' | '\\' => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c if numbers.below(2) == 0 => text.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    text.push_str(&match numbers.below(2) {
                        0 => format!("\\u{unit:04x}"),
                        _ => format!("\\u{unit:04X}"),
                    });
                }
            }
        }
    }
    text
}

#[test]
fn values_are_replaced_in_every_form() {
    let redactor = redactor(&[(VALUE, "[secret K]")]);
    let mut numbers = Numbers(1);
    for _ in 0..200 {
        let forms = [
            percent_encoded(VALUE, &mut numbers, "%20"),
            percent_encoded(VALUE, &mut numbers, "+"),
            json_escaped(VALUE, &mut numbers),
        ];
        for form in forms {
            let (before, after) = (
                ["", "a", "%", "\\", "%4", "\\u00"][numbers.below(6)],
                ["", "b", "%2", "\\u"][numbers.below(4)],
            );
            // The text in front must be no part of an escape.
            let text = format!("{before}: {form}, {after}");
            let expected = format!("{before}: [secret K], {after}");
            assert_eq!(redactor.text(&text), expected, "{text}");
            let chunk = 1 + numbers.below(text.len());
            assert_eq!(
                String::from_utf8_lossy(&streamed(&redactor, text.as_bytes(), chunk)),
                expected,
                "{text}"
            );
        }
    }
    check(&redactor, &format!("a {VALUE} b{VALUE}{VALUE}c"), "a [secret K] b[secret K][secret K]c");
}

#[test]
fn usual_encoders_hide_nothing() {
    let redactor = redactor(&[("p&ss/w=rd <é> \"1\"", "#")]);
    let cases = [
        ("p&ss/w=rd <é> \"1\"", "#"),
        // encodeURIComponent, encodeURI, URLSearchParams, Python's quote.
        ("x?k=p%26ss%2Fw%3Drd%20%3C%C3%A9%3E%20%221%22&y", "x?k=#&y"),
        ("p&ss/w=rd%20%3C%C3%A9%3E%20%221%22", "#"),
        ("k=p%26ss%2Fw%3Drd+%3C%C3%A9%3E+%221%22", "k=#"),
        ("p%26ss/w%3Drd%20%3C%c3%a9%3E%20%221%22", "#"),
        // JSON.stringify, PHP's and Python's json, Go's, which escapes for HTML.
        (r#"{"k":"p&ss/w=rd <é> \"1\""}"#, r##"{"k":"#"}"##),
        (r#"{"k":"p&ss\/w=rd <\u00e9> \"1\""}"#, r##"{"k":"#"}"##),
        (r#"["p\u0026ss/w=rd \u003cé\u003e \"1\""]"#, r##"["#"]"##),
        (r"p\u0026ss\u002Fw\u003Drd \u003C\u00E9\u003E \u00221\u0022", "#"),
        // Not values.
        ("p&ss/w=rd", "p&ss/w=rd"),
        ("P&SS/W=RD <É> \"1\"", "P&SS/W=RD <É> \"1\""),
        ("p%26ss%2Fw%3Drd%20%3C%C3%A9%3E%20%221%2", "p%26ss%2Fw%3Drd%20%3C%C3%A9%3E%20%221%2"),
        ("%", "%"),
        ("\\u", "\\u"),
        ("", ""),
    ];
    for (text, expected) in cases {
        check(&redactor, text, expected);
    }
}

#[test]
fn base64_is_replaced_as_a_whole_at_any_alignment() {
    let value = "s3cr3t-värde>?";
    let redactor = redactor(&[(value, "#")]);
    for before in 0..7 {
        for after in 0..7 {
            let inside = format!("{}{value}{}", &"user:😀"[..before.min(5)], "z".repeat(after));
            for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
                let encoded = engine.encode(&inside);
                check(&redactor, &format!("Basic {encoded} ."), "Basic # .");
                check(&redactor, &format!("data:;base64,{encoded}"), "data:;base64,#");
                // In JSON of PHP, and in a URL.
                let escaped = encoded.replace('/', "\\/");
                check(&redactor, &format!("\"{escaped}\""), "\"#\"");
                let form = encoded.replace('+', "%2B").replace('/', "%2f").replace('=', "%3D");
                check(&redactor, &format!("a={form}&b=c"), "a=#&b=c");
            }
        }
    }
}

#[test]
fn long_base64_is_held_back_until_it_ends() {
    let redactor = redactor(&[("0123456789abcdef", "#")]);
    let inside = format!("{}0123456789abcdef{}", "x".repeat(10_000), "y".repeat(10_000));
    let text = format!("<{}>", STANDARD.encode(inside));
    for chunk in [1, 7, 1000] {
        assert_eq!(streamed(&redactor, text.as_bytes(), chunk), b"<#>");
    }
    // A run without a value comes out as it is.
    let text = format!("<{}>", STANDARD.encode("x".repeat(20_000)));
    assert_eq!(streamed(&redactor, text.as_bytes(), 1000), text.as_bytes());
}

#[test]
fn the_longest_value_counts() {
    let redactor = redactor(&[
        ("abcdefgh", "[A]"),
        ("abcdefghijkl", "[B]"),
        ("ghijklmnop", "[C]"),
        ("cdefghij", "[D]"),
    ]);
    let cases = [
        ("abcdefgh.", "[A]."),
        ("abcdefghijkl.", "[B]."),
        // The value in the middle overlaps; of two that are as long the last one counts.
        ("abcdefghijk.", "[D]k."),
        ("ghijklmnop", "[C]"),
        // Nothing of a value stays where they overlap.
        ("abcdefghijklmnop", "[B]"),
        ("abcdefghabcdefgh", "[A][A]"),
    ];
    for (text, expected) in cases {
        check(&redactor, text, expected);
    }
    let redactor = self::redactor(&[("aaaaaaaa", "#")]);
    check(&redactor, &"a".repeat(20), "#");
    check(&redactor, &"a".repeat(7), &"a".repeat(7));
    let twice = self::redactor(&[("same value", "[first]"), ("same value", "[second]")]);
    check(&twice, "same value", "[first]");
}

#[test]
fn texts_without_values_are_borrowed() {
    let redactor = redactor(&[("abcdefgh", "#")]);
    for text in ["", "abc", "abcdefg", "a%20b\\n+c", "abcdefg%", "%61bcdefg"] {
        assert!(matches!(redactor.text(text), Cow::Borrowed(same) if same == text), "{text}");
    }
    let none = self::redactor(&[]);
    assert!(matches!(none.text("abcdefgh"), Cow::Borrowed(_)));
    assert_eq!(streamed(&none, b"abcdefgh", 3), b"abcdefgh");
    // Short values would be found everywhere.
    assert_eq!(self::redactor(&[("abc", "#")]).text("abcabcabc"), "abcabcabc");
}

#[test]
fn bytes_that_are_no_text_pass() {
    let redactor = redactor(&[("abcdefgh", "#"), (VALUE, "K")]);
    let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let mut expected = bytes.clone();
    let mut input = bytes.clone();
    input.extend(b"\xFF%61bcdefgh\xC3");
    expected.extend(b"\xFF#\xC3");
    // The alphabet is among the bytes.
    let expected = String::from_utf8_lossy(&expected).replace("abcdefgh", "#");
    for chunk in [1, 3, 100, 6000] {
        assert_eq!(String::from_utf8_lossy(&streamed(&redactor, &input, chunk)), expected);
    }
}

#[test]
fn little_is_held_back() {
    let redactor = redactor(&[("abcdefgh", "#")]);
    let mut redaction = Redaction::new(Arc::clone(&redactor));
    let mut out = Vec::new();
    for _ in 0..100_000 {
        redaction.push(b"some words and%20more \\n ", &mut out);
    }
    assert!(out.len() > 24 * 100_000 - 100 && redaction.held_bytes() < 1000);
}

#[test]
fn many_values_in_a_long_text_are_replaced() {
    let redactor = redactor(&[("abcdefgh", "#"), (VALUE, "K")]);
    let text = "abcdefgh, %61bcdefgh; ".repeat(50_000);
    let expected = "#, #; ".repeat(50_000);
    assert_eq!(redactor.text(&text), expected);
    assert_eq!(streamed(&redactor, text.as_bytes(), text.len()), expected.as_bytes());
}

/// In chunks of one byte nothing is passed over.
#[test]
fn a_text_that_is_passed_over_is_read_as_if_it_were_not() {
    const PARTS: [&str; 12] =
        ["a", "b", "ab", "aab", "=", "+", "/", " ", ".", "abababab", "%61", "\\n"];
    let values = ["abababab", "aabaabaabaab", "baabab ab.ab", "bbbbbbbbaaaaaaaabbbbbbbb"];
    let redactor = redactor(&values.map(|value| (value, "#")));
    let mut numbers = Numbers(7);
    for _ in 0..300 {
        // Few kinds of parts make values likely, and many make them rare.
        let (kinds, count) = (1 + numbers.below(PARTS.len()), numbers.below(600));
        let mut text = String::new();
        for _ in 0..count {
            match numbers.below(40) {
                0 => text.push_str(values[numbers.below(values.len())]),
                1 => text.push_str(&STANDARD.encode(values[numbers.below(values.len())])),
                2 => text.push_str(&"x".repeat(numbers.below(200))),
                3 => text.push_str(&"some words. ".repeat(numbers.below(20))),
                _ => text.push_str(PARTS[numbers.below(kinds)]),
            }
        }
        let expected = streamed(&redactor, text.as_bytes(), 1);
        for chunk in [2, 61, 700, text.len().max(1)] {
            assert_eq!(streamed(&redactor, text.as_bytes(), chunk), expected, "{text} by {chunk}");
        }
        assert_eq!(redactor.text(&text).as_bytes(), expected, "{text}");
    }
}

/// Values that are ends of each other, and inputs in which each byte ends many of them or begins an escape.
#[test]
fn time_is_linear() {
    let values: Vec<String> = (8..400).map(|length| "a".repeat(length)).collect();
    let redactor = redactor(&values.iter().map(|value| (value.as_str(), "#")).collect::<Vec<_>>());
    let long = "a".repeat(4 << 20);
    assert_eq!(redactor.text(&long), "#");
    for escape in ["%", "\\", "%6", "\\u", "\\ud83d", "%61", "+"] {
        let text = escape.repeat(300_000);
        let expected = if escape == "%61" { "#" } else { text.as_str() };
        assert_eq!(redactor.text(&text), expected);
        assert_eq!(streamed(&redactor, text.as_bytes(), 1000), expected.as_bytes());
    }
}

#[test]
fn nothing_prints_a_value() {
    let redactor = redactor(&[("hunter2-hunter2", "[secret K]")]);
    let redaction = Redaction::new(Arc::clone(&redactor));
    assert!(!format!("{redactor:?} {redaction:?}").contains("hunter2"));
}
