//! Secrets, by tables of cases: where a placeholder becomes its value, and where it is refused.

use isolane::ErrorKind;
use isolane_kit::{
    error::KitError,
    fetch::target,
    secrets::{SecretOptions, Secrets},
};

/// A value that is different in each place of a request.
const VALUE: &str = "v/a l+u\"e\\%é~";

fn options(value: &str, hosts: &[&str]) -> SecretOptions {
    let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
    SecretOptions { value: value.to_owned().into(), hosts, ..SecretOptions::default() }
}

fn parts(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn url(text: &str) -> url::Url {
    target::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn seen(secrets: &Secrets, name: &str) -> String {
    let seen = secrets.seen().into_iter().find(|(known, _)| known == name);
    seen.unwrap_or_else(|| panic!("no secret {name}")).1.to_string()
}

/// A kit's secrets with one of that value for x.org, and its placeholder.
fn sealed() -> (Secrets, String) {
    let secrets = Secrets::new();
    secrets.set("KEY", options(VALUE, &["x.org"])).expect("a secret");
    let placeholder = seen(&secrets, "KEY");
    (secrets, placeholder)
}

type FilledText = Result<Option<String>, KitError>;

fn text(filled: Result<Option<zeroize::Zeroizing<Vec<u8>>>, KitError>) -> FilledText {
    filled.map(|filled| filled.map(|bytes| String::from_utf8(bytes.to_vec()).expect("UTF-8")))
}

fn fill_url(secrets: &Secrets, target: &str) -> FilledText {
    text(secrets.snapshot().request.fill_url(&url(target), 1 << 20))
}

fn fill_header(secrets: &Secrets, target: &str, header: &str) -> FilledText {
    text(secrets.snapshot().request.fill_header(&url(target), header.as_bytes(), 1 << 20))
}

fn fill_body(secrets: &Secrets, target: &str, media: Option<&str>, body: &str) -> FilledText {
    text(secrets.snapshot().request.fill_body(&url(target), media, body.as_bytes(), 1 << 20))
}

fn blocked(message: &str) -> FilledText {
    Err(KitError::fetch_blocked(message))
}

#[test]
fn a_placeholder_names_its_secret_and_stays_the_same() {
    let (secrets, placeholder) = sealed();
    let digits = placeholder.strip_prefix("sealed_KEY_").expect("a placeholder");
    assert!(
        digits.len() == 32
            && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    );
    secrets.set("KEY", options("another value", &["x.org"])).expect("a secret");
    assert_eq!(seen(&secrets, "KEY"), placeholder);
    assert!(secrets.delete("KEY") && !secrets.delete("KEY"));
    assert!(secrets.seen().is_empty());
    secrets.set("KEY", options("another value", &["x.org"])).expect("a secret");
    assert_eq!(seen(&secrets, "KEY"), placeholder);
    let (_, other) = sealed();
    assert_ne!(other, placeholder);
}

#[test]
fn each_part_of_a_request_has_its_escape() {
    let (secrets, key) = sealed();
    let encoded = "v%2Fa%20l%2Bu%22e%5C%25%C3%A9~";
    let some = |text: &str| Ok(Some(text.to_owned()));
    let target = format!("https://x.org/{key}/a?k={key}&l=1#{key}");
    assert_eq!(fill_url(&secrets, &target), some(&format!("/{encoded}/a?k={encoded}&l=1")));
    assert_eq!(fill_url(&secrets, "https://x.org/a?b"), Ok(None));
    let header = format!("Bearer {key}");
    assert_eq!(fill_header(&secrets, "https://x.org", &header), some(&format!("Bearer {VALUE}")));
    assert_eq!(fill_header(&secrets, "https://x.org", "Bearer a"), Ok(None));
    let json = "v/a l+u\\\"e\\\\%é~";
    let form = "v%2Fa+l%2Bu%22e%5C%25%C3%A9%7E";
    let bodies = [
        (None, VALUE),
        (Some("text/plain"), VALUE),
        (Some("multipart/form-data; boundary=a"), VALUE),
        (Some("application/json"), json),
        (Some("Application/JSON ; charset=utf-8"), json),
        (Some("application/problem+json"), json),
        (Some("application/jsonx"), VALUE),
        (Some("application/x-www-form-urlencoded;charset=UTF-8"), form),
    ];
    for (media, value) in bodies {
        let body = format!("{key}:{key}");
        assert_eq!(
            fill_body(&secrets, "https://x.org", media, &body),
            some(&format!("{value}:{value}")),
            "{media:?}"
        );
    }
    secrets.set("KEY", options("tab\tand \u{1} more", &["x.org"])).expect("a secret");
    let filled = fill_body(&secrets, "https://x.org", Some("application/json"), &key);
    assert_eq!(filled, some("tab\\u0009and \\u0001 more"));
}

#[test]
fn basic_credentials_are_filled_inside() {
    use base64::{
        Engine,
        engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
    };
    let (secrets, key) = sealed();
    let expected = format!("Basic {}", STANDARD.encode(format!("user:{VALUE}")));
    let given = format!("user:{key}");
    for header in [
        format!("Basic {}", STANDARD.encode(&given)),
        format!("basic   {} ", STANDARD_NO_PAD.encode(&given)),
    ] {
        assert_eq!(fill_header(&secrets, "https://x.org", &header), Ok(Some(expected.clone())));
        let refused = blocked("secret 'KEY' is not for 'y.org'");
        assert_eq!(fill_header(&secrets, "https://y.org", &header), refused);
    }
    let without = format!("Basic {}", STANDARD.encode("user:password"));
    for header in [without.as_str(), "Basic", "Basic ", "Basic ä", "Basic a b c", ""] {
        assert_eq!(fill_header(&secrets, "https://x.org", header), Ok(None), "{header}");
    }
    // A value that has the encoded credentials.
    let header = format!("Basic {key}");
    assert_eq!(fill_header(&secrets, "https://x.org", &header), Ok(Some(format!("Basic {VALUE}"))));
}

#[test]
fn a_secret_goes_to_its_hosts_alone() {
    let secrets = Secrets::new();
    secrets
        .set("A", options("value of a", &["x.org", "*.y.org", "http://z.org:8080/api/*"]))
        .expect("a secret");
    let key = seen(&secrets, "A");
    for target in ["https://x.org", "https://a.y.org/b", "http://z.org:8080/api/a"] {
        let body = fill_body(&secrets, target, None, &key);
        assert_eq!(body, Ok(Some("value of a".into())), "{target}");
    }
    let others = [
        ("http://x.org", "x.org"),
        ("https://x.org:8443", "x.org"),
        ("https://x.org.evil.net", "x.org.evil.net"),
        ("https://y.org", "y.org"),
        ("http://a.y.org", "a.y.org"),
        ("https://evil.net/x.org", "evil.net"),
        ("http://z.org:8080/", "z.org"),
        ("http://z.org:8080/api/../b", "z.org"),
        ("http://z.org:8080/api/%2f", "z.org"),
    ];
    for (target, host) in others {
        let refused = blocked(&format!("secret 'A' is not for '{host}'"));
        assert_eq!(fill_body(&secrets, target, None, &key), refused, "{target}");
        assert_eq!(fill_header(&secrets, target, &key), refused, "{target}");
        assert_eq!(fill_url(&secrets, &format!("{target}?{key}")), refused, "{target}");
    }
}

#[test]
fn a_secret_stands_where_its_rules_let_it() {
    let secrets = Secrets::new();
    let only =
        SecretOptions { parts: Some(parts(&["header"])), ..options("value of a", &["x.org"]) };
    secrets.set("A", only).expect("a secret");
    let key = seen(&secrets, "A");
    let target = format!("https://x.org/?{key}");
    assert_eq!(fill_header(&secrets, &target, &key), Ok(Some("value of a".into())));
    assert_eq!(fill_url(&secrets, &target), blocked("secret 'A' may not stand in the URL"));
    assert_eq!(
        fill_body(&secrets, &target, None, &key),
        blocked("secret 'A' may not stand in the body")
    );
    let only =
        SecretOptions { parts: Some(parts(&["url", "body"])), ..options("value of a", &["x.org"]) };
    secrets.set("A", only).expect("a secret");
    assert_eq!(
        fill_header(&secrets, &target, &key),
        blocked("secret 'A' may not stand in a header")
    );
    assert_eq!(fill_url(&secrets, &target), Ok(Some("/?value%20of%20a".into())));
    // Another host is the graver mistake.
    assert_eq!(
        fill_header(&secrets, "https://y.org", &key),
        blocked("secret 'A' is not for 'y.org'")
    );
}

#[test]
fn deleted_and_revealed_secrets_have_no_placeholder_any_more() {
    let (secrets, key) = sealed();
    let before = secrets.snapshot();
    secrets.delete("KEY");
    assert_eq!(
        fill_header(&secrets, "https://x.org", &key),
        blocked("secret 'KEY' is no longer given")
    );
    // A request that began before keeps what it has.
    let filled = before.request.fill_header(&url("https://x.org"), key.as_bytes(), 1000);
    assert_eq!(text(filled), Ok(Some(VALUE.into())));
    secrets.set("KEY", SecretOptions { reveal: true, ..options(VALUE, &[]) }).expect("a secret");
    assert_eq!(seen(&secrets, "KEY"), VALUE);
    assert_eq!(
        fill_header(&secrets, "https://x.org", &key),
        blocked("secret 'KEY' is no longer given")
    );
    assert_eq!(fill_header(&secrets, "https://evil.net", VALUE), Ok(None));
}

#[test]
fn names_that_begin_alike_are_told_apart() {
    let secrets = Secrets::new();
    for name in ["A", "AB", "A_"] {
        secrets.set(name, options(&format!("value of {name}"), &["x.org"])).expect("a secret");
    }
    let keys = ["A", "AB", "A_"].map(|name| seen(&secrets, name));
    let filled = fill_body(&secrets, "https://x.org", None, &keys.concat());
    assert_eq!(filled, Ok(Some("value of Avalue of ABvalue of A_".into())));
    assert_eq!(
        secrets.snapshot().request.named_in(format!("a{}b", keys[1]).as_bytes()),
        Some("AB")
    );
    assert_eq!(secrets.snapshot().request.named_in(b"sealed_AB_"), None);
}

#[test]
fn a_request_has_its_bound_with_the_values_in_it() {
    let secrets = Secrets::new();
    secrets.set("LONG", options(&"x".repeat(8192), &["x.org"])).expect("a secret");
    let key = seen(&secrets, "LONG");
    let request = |copies: usize, most: usize| {
        let body = key.repeat(copies);
        let filled = secrets.snapshot().request.fill_body(
            &url("https://x.org"),
            None,
            body.as_bytes(),
            most,
        );
        filled.map(|filled| filled.map(|bytes| bytes.len()))
    };
    assert_eq!(request(2, 16_384), Ok(Some(16_384)));
    let error = KitError::new("FetchLimit", "the request is larger than 16383 bytes");
    assert_eq!(request(2, 16_383), Err(error));
    // Two gigabytes that are never made.
    let error = KitError::new("FetchLimit", "the request is larger than 10485760 bytes");
    assert_eq!(request(250_000, 10 << 20), Err(error));
}

#[test]
fn values_come_back_as_placeholders_and_leave_as_names() {
    let secrets = Secrets::new();
    secrets.set("KEY", options("first value", &["x.org"])).expect("a secret");
    secrets.set("KEY", options("second value", &["x.org"])).expect("a secret");
    secrets
        .set("OPEN", SecretOptions { reveal: true, ..options("open value", &[]) })
        .expect("a secret");
    secrets.set("GONE", options("third value", &["x.org"])).expect("a secret");
    let (key, gone) = (seen(&secrets, "KEY"), seen(&secrets, "GONE"));
    secrets.delete("GONE");
    let snapshot = secrets.snapshot();
    let text = "first value|second%20value|open value|third+value";
    assert_eq!(snapshot.responses.text(text), format!("{key}|{key}|open value|{gone}"));
    assert_eq!(
        snapshot.outputs.text(text),
        "[secret KEY]|[secret KEY]|[secret OPEN]|[secret GONE]"
    );
}

#[test]
fn bad_secrets_are_misuse() {
    let long = "x".repeat(8193);
    let names = "a name has 1 to 64 letters, digits and '_', and begins with no digit";
    let good = || options("value of it", &["x.org"]);
    let of = |value: &str| options(value, &["x.org"]);
    let cases: Vec<(&str, SecretOptions, String)> = vec![
        ("", good(), format!("secrets: '' is not a valid name: {names}")),
        ("1A", good(), format!("secrets: '1A' is not a valid name: {names}")),
        ("A-B", good(), format!("secrets: 'A-B' is not a valid name: {names}")),
        ("Ä", good(), format!("secrets: 'Ä' is not a valid name: {names}")),
        ("A", of("1234567"), "secrets.A.value: it has 7 bytes; a value has 8 to 8192".into()),
        ("A", of(&long), "secrets.A.value: it has 8193 bytes; a value has 8 to 8192".into()),
        ("A", of("value\rvalue"), "secrets.A.value: it has a line end or a NUL".into()),
        ("A", of("value\nvalue"), "secrets.A.value: it has a line end or a NUL".into()),
        ("A", of("value\0value"), "secrets.A.value: it has a line end or a NUL".into()),
        ("A", options("value of it", &[]), "secrets.A: it needs hosts, or reveal".into()),
        (
            "A",
            options("value of it", &["x.org", "ftp://x.org"]),
            "secrets.A.hosts[1]: 'ftp://x.org' is not a valid pattern: the scheme is 'https://' or 'http://'".into(),
        ),
        ("A", SecretOptions { parts: Some(parts(&[])), ..good() }, "secrets.A.in: it names no part of a request".into()),
        (
            "A",
            SecretOptions { parts: Some(parts(&["header", "cookie"])), ..good() },
            "secrets.A.in: a part of a request is 'url', 'header' or 'body'".into(),
        ),
    ];
    let secrets = Secrets::new();
    for (name, options, message) in cases {
        let error = secrets.set(name, options).expect_err(&message);
        assert_eq!((error.kind(), error.message()), (ErrorKind::Type, message.as_str()));
    }
    assert!(secrets.names().is_empty());
    for value in ["12345678", &long[1..]] {
        secrets.set("A", of(value)).expect("a value of that length");
    }
    secrets.set(&"A".repeat(64), good()).expect("a name of that length");
    assert!(secrets.set(&"A".repeat(65), good()).is_err());
}

#[test]
fn nothing_prints_a_value() {
    let secrets = Secrets::new();
    let options = options("hunter2-hunter2", &["x.org"]);
    let shown = format!("{options:?}");
    secrets.set("KEY", options).expect("a secret");
    let snapshot = secrets.snapshot();
    let shown = format!("{shown} {secrets:?} {snapshot:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}
