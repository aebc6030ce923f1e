//! Locales and options that calls give.
//!
//! In: arguments. Out: language tags, checked and in their usual spelling; and options, read one by one in the order of
//! the language. Reading may run code of the sandbox. A tag or an option that is not valid throws as in V8.

use super::{
    super::{
        engine::{Cx, Local, Outcome, Raw, c_string, is_object, is_string, sys, tag_of, undefined},
        state::State,
    },
    range_error, type_error,
};

/// The most locales of a list that are read.
const MOST_LOCALES: i64 = 1_000;

/// A locale that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::isolate) enum Locale {
    /// `en`.
    Plain,
    /// `en-US`.
    UnitedStates,
}

impl Locale {
    /// The locale of a tag in its usual spelling, if it is known.
    pub(in crate::isolate) fn of(tag: &str) -> Option<Self> {
        let base = tag.split("-u-").next().unwrap_or_default();
        match base {
            "en" | "en-Latn" => Some(Self::Plain),
            "en-US" | "en-Latn-US" => Some(Self::UnitedStates),
            _ => None,
        }
    }

    pub(super) fn is_plain(self) -> bool {
        self == Self::Plain
    }
}

/// The name of a locale.
pub(super) fn locale_name(is_plain: bool) -> &'static str {
    if is_plain { "en" } else { "en-US" }
}

/// The tags that a call asks for, in its first argument.
pub(in crate::isolate) fn locales(state: &State, cx: Cx, args: &[Raw]) -> Outcome<Vec<String>> {
    let asked = args.first().copied().unwrap_or(undefined());
    match tag_of(asked) {
        sys::JS_TAG_UNDEFINED => return Ok(Vec::new()),
        sys::JS_TAG_NULL => {
            return Err(type_error(state, "Cannot convert undefined or null to object"));
        }
        _ if is_string(asked) => return Ok(vec![tag(state, cx, asked)?]),
        _ if !is_object(asked) => return Ok(Vec::new()),
        _ => {}
    }
    let length = cx.length(asked)?.min(MOST_LOCALES);
    let mut tags = Vec::new();
    for index in 0..u32::try_from(length).unwrap_or(0) {
        let key = cx.index_atom(index)?;
        if !cx.has(asked, key.id)? {
            continue;
        }
        let element = cx.get(asked, key.id)?;
        if !is_string(element.raw()) && !is_object(element.raw()) {
            return Err(type_error(state, "Language ID should be string or object."));
        }
        let tag = tag(state, cx, element.raw())?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Ok(tags)
}

fn tag(state: &State, cx: Cx, value: Raw) -> Outcome<String> {
    // No tag that is known is longer.
    const LONGEST: usize = 256;
    let text = cx.to_string(value)?;
    let spelled = cx.with_bytes(text.raw(), |text| {
        let text = text.get(..LONGEST).map_or(text, |_| b"");
        str::from_utf8(text).ok().and_then(canonical_tag)
    })?;
    spelled.ok_or_else(|| range_error(state, "Incorrect locale information provided"))
}

/// A well-formed language tag in its usual spelling.
fn canonical_tag(text: &str) -> Option<String> {
    let mut parts = text.split('-').peekable();
    let is = |part: &str, lengths: &[usize], test: fn(&u8) -> bool| {
        lengths.contains(&part.len()) && part.bytes().all(|byte| test(&byte))
    };
    let [letter, digit, either]: [fn(&u8) -> bool; 3] =
        [u8::is_ascii_alphabetic, u8::is_ascii_digit, u8::is_ascii_alphanumeric];
    let language = parts.next().filter(|part| is(part, &[2, 3, 5, 6, 7, 8], letter))?;
    let mut tag = language.to_ascii_lowercase();
    if let Some(script) = parts.next_if(|part| is(part, &[4], letter)) {
        tag.push('-');
        tag.push_str(&script[..1].to_ascii_uppercase());
        tag.push_str(&script[1..].to_ascii_lowercase());
    }
    let is_region = |part: &str| is(part, &[2], letter) || is(part, &[3], digit);
    if let Some(region) = parts.next_if(|part| is_region(part)) {
        tag.push('-');
        tag.push_str(&region.to_ascii_uppercase());
    }
    let mut seen: Vec<String> = Vec::new();
    let is_variant = |part: &str| {
        is(part, &[5, 6, 7, 8], either)
            || (is(part, &[4], either) && part.starts_with(|first: char| first.is_ascii_digit()))
    };
    while let Some(variant) = parts.next_if(|part| is_variant(part)) {
        let variant = variant.to_ascii_lowercase();
        if seen.contains(&variant) {
            return None;
        }
        tag.push('-');
        tag.push_str(&variant);
        seen.push(variant);
    }
    seen.clear();
    while let Some(singleton) = parts.next_if(|part| is(part, &[1], either)) {
        let singleton = singleton.to_ascii_lowercase();
        let is_private = singleton == "x";
        if seen.contains(&singleton) {
            return None;
        }
        tag.push('-');
        tag.push_str(&singleton);
        let mut count = 0;
        let fits = |part: &str| {
            is(part, &[2, 3, 4, 5, 6, 7, 8], either) || (is_private && is(part, &[1], either))
        };
        while let Some(part) = parts.next_if(|part| fits(part)) {
            tag.push('-');
            tag.push_str(&part.to_ascii_lowercase());
            count += 1;
        }
        if count == 0 {
            return None;
        }
        seen.push(singleton);
    }
    parts.next().is_none().then_some(tag)
}

/// Options of a call.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct Options<'s> {
    state: &'s State,
    cx: Cx,
    /// The object, or `undefined`.
    object: Raw,
    /// The constructor that reads them, for errors.
    owner: &'s str,
}

impl<'s> Options<'s> {
    /// The second argument; `null` throws, and any other value has the properties that it has.
    pub(super) fn coerced(state: &'s State, cx: Cx, args: &[Raw], owner: &'s str) -> Outcome<Self> {
        let object = args.get(1).copied().unwrap_or(undefined());
        if tag_of(object) == sys::JS_TAG_NULL {
            return Err(type_error(state, &format!("{owner} called on null or undefined")));
        }
        Ok(Self { state, cx, object, owner })
    }

    /// The second argument, which must be an object if it is given.
    pub(super) fn of_object(
        state: &'s State,
        cx: Cx,
        args: &[Raw],
        owner: &'s str,
    ) -> Outcome<Self> {
        let object = args.get(1).copied().unwrap_or(undefined());
        if tag_of(object) != sys::JS_TAG_UNDEFINED && !is_object(object) {
            return Err(type_error(state, "invalid_argument"));
        }
        Ok(Self { state, cx, object, owner })
    }

    /// The same options, read for another owner.
    pub(super) fn owned_by(&self, owner: &'s str) -> Self {
        Self { owner, ..*self }
    }

    pub(super) fn get(&self, name: &str) -> Outcome<Local> {
        match tag_of(self.object) {
            sys::JS_TAG_UNDEFINED => Ok(self.cx.dup(undefined())),
            _ => self.cx.get_str(self.object, &c_string(name)),
        }
    }

    /// The value of an option, unless it is `undefined`.
    pub(super) fn given(&self, name: &str) -> Outcome<Option<Local>> {
        let value = self.get(name)?;
        Ok((tag_of(value.raw()) != sys::JS_TAG_UNDEFINED).then_some(value))
    }

    /// An option as a text.
    pub(super) fn text(&self, name: &str) -> Outcome<Option<String>> {
        match self.given(name)? {
            Some(value) => self.text_of(&value).map(Some),
            None => Ok(None),
        }
    }

    /// A value of an option that was read before, as a text.
    pub(super) fn text_of(&self, value: &Local) -> Outcome<String> {
        // No text that is valid is longer.
        const LONGEST: usize = 1_000;
        let text = self.cx.to_string(value.raw())?;
        self.cx.with_bytes(text.raw(), |text| {
            String::from_utf8_lossy(text.get(..LONGEST).unwrap_or(text)).into_owned()
        })
    }

    /// Whether a value of an option counts as true.
    pub(super) fn truthy(&self, value: &Local) -> Outcome<bool> {
        self.cx.truthy(value.raw())
    }

    /// An option that is one of a list of names.
    pub(super) fn one_of(&self, name: &str, names: &[&str]) -> Outcome<Option<String>> {
        let text = self.text(name)?;
        match text {
            Some(text) if !names.contains(&text.as_str()) => Err(self.out_of_range(&text, name)),
            text => Ok(text),
        }
    }

    /// An option that is a whole number between two others.
    pub(super) fn whole(&self, name: &str, least: u16, most: u16) -> Outcome<Option<u16>> {
        match self.given(name)? {
            Some(value) => self.whole_of(name, &value, least, most).map(Some),
            None => Ok(None),
        }
    }

    /// A value of an option that was read before, as a whole number between two others.
    pub(super) fn whole_of(
        &self,
        name: &str,
        value: &Local,
        least: u16,
        most: u16,
    ) -> Outcome<u16> {
        let number = self.cx.to_number(value.raw())?;
        if !(f64::from(least)..=f64::from(most)).contains(&number) {
            return Err(range_error(self.state, &format!("{name} value is out of range.")));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within the bounds"
        )]
        Ok(number.floor() as u16)
    }

    /// An option that counts as true or false.
    pub(super) fn flag(&self, name: &str) -> Outcome<Option<bool>> {
        match self.given(name)? {
            Some(value) => self.cx.truthy(value.raw()).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn out_of_range(&self, text: &str, name: &str) -> super::Thrown {
        let Self { state, owner, .. } = self;
        range_error(
            state,
            &format!("Value {text} out of range for {owner} options property {name}"),
        )
    }
}

/// Reads an option that is one of the names of an enumeration.
macro_rules! choose {
    ($options:expr, $name:literal, $kind:ident, $default:expr) => {
        match $options.one_of($name, $kind::NAMES)? {
            Some(text) => $kind::of(&text).unwrap_or($default),
            None => $default,
        }
    };
}
pub(super) use choose;

#[cfg(test)]
mod tests {
    use super::canonical_tag;

    #[test]
    fn tags_are_spelled_in_one_way() {
        let spelled = |text: &str| canonical_tag(text);
        assert_eq!(spelled("EN-us").as_deref(), Some("en-US"));
        assert_eq!(spelled("zh-hANT-tw").as_deref(), Some("zh-Hant-TW"));
        assert_eq!(spelled("de-1996-u-CO-phonebk").as_deref(), Some("de-1996-u-co-phonebk"));
        assert_eq!(spelled("es-419-x-a").as_deref(), Some("es-419-x-a"));
        for text in [
            "",
            "x",
            "en_US",
            "i-klingon",
            "en-",
            "en-u",
            "de-1996-1996",
            "root-",
            "en-a-bb-a-cc",
            "é",
        ] {
            assert_eq!(spelled(text), None, "{text}");
        }
    }
}
