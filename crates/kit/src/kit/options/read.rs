//! A kit's options in a message, as a binding's caller wrote them.
//!
//! In: one message, a plain object. Out: [`KitOptions`], whose values are checked later. Names that there are not, and
//! values of the wrong type, are misuse.

use std::{path::PathBuf, sync::Arc};

use isolane::{Error, ErrorKind, OptionDeclaration, OptionKind, Spelling, Value, wrong_type};
use zeroize::Zeroizing;

use super::{
    AllowOption, BrowserSettings, DbOptions, FetchSettings, KitOptions, LibraryOptions, Limits,
    TimerLimits,
};
use crate::{
    browser::{Browser, BrowserLimits},
    fetch::allow::AllowEntry,
    kit::plain::{Plain, check_texts},
    secrets::SecretOptions,
    store::StateLimits,
};

const ALLOW: &str = "'public' or a list of patterns";

const PAGE: &str = "a page or a context of Playwright, or a function that gives one";

/// The name of an option as a language spells it.
pub(crate) fn spelled(name: &'static str, spelling: Spelling) -> String {
    OptionDeclaration { name, kind: OptionKind::Other }.spelled(spelling)
}

impl KitOptions {
    /// Reads options from a message: a plain object as the caller wrote it, or `undefined`. The face has taken out
    /// before what is no data: `runtime`, and the page. With a page `browser`, if it is given, is an object of further
    /// options.
    ///
    /// # Errors
    /// Misuse: a name that no option has, a value of the wrong type, or a text with a lone surrogate.
    /// [`Kit::new`](crate::Kit::new) finds all else.
    pub fn read(
        options: &Value,
        page: Option<Arc<dyn Browser>>,
        spelling: Spelling,
    ) -> Result<Self, Error> {
        let mut kit = Self { spelling, ..Self::default() };
        check_texts(options, "")?;
        let read = Plain::read(options)?;
        if matches!(read, Plain::Nothing) {
            return Ok(kit);
        }
        let mut group = Group::open(read, "options", "", spelling)?;
        group.text("agent", &mut kit.agent)?;
        group.path("file", &mut kit.file)?;
        kit.state = group.limits::<StateLimits>("state")?;
        kit.libraries = group.limits::<LibraryOptions>("libraries")?;
        kit.db = read_db(&mut group)?;
        kit.fetch = read_fetch(&mut group)?;
        if let Some(secrets) = group.take("secrets") {
            let secrets = Group::open(secrets, "secrets", "secrets.", spelling)?;
            let each = secrets.entries.into_iter();
            let read = each.map(|(name, secret)| Ok((name.clone(), read_secret(&name, secret)?)));
            kit.secrets = Some(read.collect::<Result<_, Error>>()?);
        }
        group.bool("web", &mut kit.web)?;
        if let Some(timers) = group.take("timers") {
            let mut limits = TimerLimits::default();
            let mut group = Group::open(timers, "timers", "timers.", spelling)?;
            group.numbers(&mut limits)?;
            group.close()?;
            kit.timers = limits;
        }
        group.numbers(&mut kit)?;
        if let Some(page) = page {
            kit.browser = read_browser(&mut group, page)?;
        }
        let of_host = [("runtime", "a Runtime"), ("browser", PAGE)];
        for (name, expected) in of_host {
            if let Some(other) = group.take(name) {
                return Err(wrong_type(name, expected, other.kind()));
            }
        }
        group.close()?;
        Ok(kit)
    }
}

fn read_browser(
    group: &mut Group,
    browser: Arc<dyn Browser>,
) -> Result<Option<BrowserSettings>, Error> {
    let place = group.name("browser");
    let mut group = match group.take("browser") {
        None | Some(Plain::Bool(false)) => return Ok(None),
        Some(given) => Group::of(given, &format!("{place}."), group.spelling)
            .map_err(|got| wrong_type(&place, PAGE, got))?,
    };
    let mut settings = BrowserSettings { browser, allow: None, limits: BrowserLimits::default() };
    if let Some(allow) = group.take("allow") {
        settings.allow = Some(read_allow(allow, "browser.allow", ALLOW)?);
    }
    group.numbers(&mut settings.limits)?;
    group.close()?;
    Ok(Some(settings))
}

fn read_db(group: &mut Group) -> Result<Option<DbOptions>, Error> {
    let Some(mut group) = group.group("db")? else { return Ok(None) };
    let mut db = DbOptions::default();
    group.path("file", &mut db.file)?;
    group.bool("read_only", &mut db.read_only)?;
    group.numbers(&mut db.limits)?;
    group.close()?;
    Ok(Some(db))
}

fn read_fetch(group: &mut Group) -> Result<Option<FetchSettings>, Error> {
    let Some(given) = group.take("fetch") else { return Ok(None) };
    let mut fetch = FetchSettings::default();
    if let Plain::Text(_) | Plain::List(_) = given {
        fetch.allow = read_allow(given, "fetch", ALLOW)?;
        return Ok(Some(fetch));
    }
    let expected = "'public', a list of patterns, or an object";
    let mut group = Group::of(given, "fetch.", group.spelling)
        .map_err(|got| wrong_type("fetch", expected, got))?;
    let allow = group.take("allow");
    fetch.allow = read_allow(allow.unwrap_or(Plain::Nothing), "fetch.allow", ALLOW)?;
    if let Some(networks) = group.take("allow_addresses") {
        fetch.allow_addresses =
            texts(networks, &group.name("allow_addresses"), "a list of networks")?;
    }
    if let Some(ca) = group.take("ca") {
        fetch.ca = Some(text(ca, "fetch.ca")?);
    }
    group.numbers(&mut fetch.limits)?;
    group.close()?;
    Ok(Some(fetch))
}

fn read_allow(allow: Plain, place: &str, expected: &str) -> Result<AllowOption, Error> {
    match allow {
        Plain::Text(text) if text == "public" => Ok(AllowOption::Public),
        Plain::List(entries) => {
            let entries = entries.into_iter().enumerate();
            let read =
                entries.map(|(index, entry)| read_entry(entry, &format!("{place}[{index}]")));
            read.collect::<Result<_, _>>().map(AllowOption::List)
        }
        Plain::Text(text) => {
            let shown: String = text.chars().take(100).collect();
            Err(wrong_type(place, expected, &format!("'{shown}'")))
        }
        other => Err(wrong_type(place, expected, other.kind())),
    }
}

fn read_entry(entry: Plain, place: &str) -> Result<AllowEntry, Error> {
    if let Plain::Text(url) = entry {
        if url == "public" {
            let message = format!("{place}: 'public' stands alone, in place of the list");
            return Err(Error::new(ErrorKind::Type, message));
        }
        return Ok(AllowEntry { url, methods: None });
    }
    let expected = "a pattern or { url, methods }";
    let mut group = Group::of(entry, &format!("{place}."), Spelling::Camel)
        .map_err(|got| wrong_type(place, expected, got))?;
    let url =
        group.take("url").ok_or_else(|| wrong_type(&group.name("url"), "a pattern", "nothing"))?;
    let url = text(url, &group.name("url"))?;
    let methods = match group.take("methods") {
        Some(methods) => Some(texts(methods, &group.name("methods"), "a list of methods")?),
        None => None,
    };
    group.close()?;
    Ok(AllowEntry { url, methods })
}

/// Reads a secret's options; no error has a part of its value.
pub(in crate::kit) fn read_secret(name: &str, secret: Plain) -> Result<SecretOptions, Error> {
    let shown: String = name.chars().take(100).collect();
    let place = format!("secrets.{shown}");
    let expected = "{ value, hosts or reveal }";
    let mut group = Group::of(secret, &format!("{place}."), Spelling::Camel)
        .map_err(|got| wrong_type(&place, expected, got))?;
    let value = group.take("value").unwrap_or(Plain::Nothing);
    let value = Zeroizing::new(text(value, &group.name("value"))?);
    let mut options = SecretOptions { value, ..SecretOptions::default() };
    if let Some(hosts) = group.take("hosts") {
        options.hosts = texts(hosts, &group.name("hosts"), "a list of patterns")?;
    }
    if let Some(parts) = group.take("in") {
        options.parts = Some(texts(parts, &group.name("in"), "a list of parts of a request")?);
    }
    group.bool("reveal", &mut options.reveal)?;
    group.close()?;
    Ok(options)
}

fn text(value: Plain, place: &str) -> Result<String, Error> {
    match value {
        Plain::Text(text) => Ok(text),
        other => Err(wrong_type(place, "a string", other.kind())),
    }
}

fn texts(value: Plain, place: &str, expected: &str) -> Result<Vec<String>, Error> {
    let Plain::List(values) = value else {
        return Err(wrong_type(place, expected, value.kind()));
    };
    let each = values.into_iter().enumerate();
    each.map(|(index, value)| text(value, &format!("{place}[{index}]"))).collect()
}

/// An object of options. The options that are taken out are known; those left when it is closed are not.
struct Group {
    entries: Vec<(String, Plain)>,
    /// The names that were asked for, as the language spells them.
    known: Vec<String>,
    prefix: String,
    spelling: Spelling,
}

impl Group {
    fn of(value: Plain, prefix: &str, spelling: Spelling) -> Result<Self, &'static str> {
        match value {
            Plain::Object(entries) => {
                Ok(Self { entries, known: Vec::new(), prefix: prefix.to_owned(), spelling })
            }
            other => Err(other.kind()),
        }
    }

    fn open(value: Plain, name: &str, prefix: &str, spelling: Spelling) -> Result<Self, Error> {
        Self::of(value, prefix, spelling).map_err(|got| wrong_type(name, "an object", got))
    }

    /// The whole name of an option.
    fn name(&self, name: &'static str) -> String {
        format!("{}{}", self.prefix, spelled(name, self.spelling))
    }

    /// Takes out an option, unless it is not given.
    fn take(&mut self, name: &'static str) -> Option<Plain> {
        let name = spelled(name, self.spelling);
        let place = self.entries.iter().position(|(other, _)| *other == name);
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        let (_, value) = self.entries.remove(place?);
        (!matches!(value, Plain::Nothing)).then_some(value)
    }

    fn text(&mut self, name: &'static str, option: &mut String) -> Result<(), Error> {
        if let Some(value) = self.take(name) {
            *option = text(value, &self.name(name))?;
        }
        Ok(())
    }

    fn path(&mut self, name: &'static str, option: &mut Option<PathBuf>) -> Result<(), Error> {
        if let Some(value) = self.take(name) {
            *option = Some(PathBuf::from(text(value, &self.name(name))?));
        }
        Ok(())
    }

    fn bool(&mut self, name: &'static str, option: &mut bool) -> Result<(), Error> {
        match self.take(name) {
            None => Ok(()),
            Some(Plain::Bool(value)) => {
                *option = value;
                Ok(())
            }
            Some(other) => Err(wrong_type(&self.name(name), "a boolean", other.kind())),
        }
    }

    /// A group of options, or `true` for those that are usual; `None` for `false`.
    fn group(&mut self, name: &'static str) -> Result<Option<Self>, Error> {
        let place = self.name(name);
        match self.take(name) {
            None | Some(Plain::Bool(false)) => Ok(None),
            Some(Plain::Bool(true)) => {
                let empty = Plain::Object(Vec::new());
                Self::open(empty, &place, &format!("{place}."), self.spelling).map(Some)
            }
            Some(given) => Self::of(given, &format!("{place}."), self.spelling)
                .map(Some)
                .map_err(|got| wrong_type(&place, "true or an object", got)),
        }
    }

    fn limits<T: Limits + Default>(&mut self, name: &'static str) -> Result<Option<T>, Error> {
        let Some(mut group) = self.group(name)? else { return Ok(None) };
        let mut limits = T::default();
        group.numbers(&mut limits)?;
        group.close()?;
        Ok(Some(limits))
    }

    fn numbers(&mut self, limits: &mut impl Limits) -> Result<(), Error> {
        for (name, limit) in limits.each() {
            let Some(value) = self.take(name) else { continue };
            let place = self.name(name);
            let Plain::Number(number) = value else {
                return Err(wrong_type(&place, "a number", value.kind()));
            };
            *limit = whole(number).ok_or_else(|| {
                let text = format!("{place} must be a safe integer of at least 1, got {number}");
                Error::new(ErrorKind::Range, text)
            })?;
        }
        Ok(())
    }

    /// Refuses what nobody has taken out.
    fn close(self) -> Result<(), Error> {
        match self.entries.first() {
            None => Ok(()),
            Some((key, _)) => Err(isolane::unknown_name(&self.prefix, key, &self.known)),
        }
    }
}

fn whole(number: f64) -> Option<u64> {
    let is_safe = number.fract() == 0.0 && (1.0..=9_007_199_254_740_991.0).contains(&number);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    is_safe.then_some(number as u64)
}
