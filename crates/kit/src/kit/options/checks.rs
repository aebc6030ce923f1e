//! The checks of a kit's options, before anything opens.
//!
//! In: options. Out: what the kit is opened with, or the first misuse.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use isolane::{Error, ErrorKind};

use super::{AllowOption, KitOptions, Limits, read::spelled};
use crate::{
    browser::BrowserOptions,
    fetch::{FetchOptions, SystemResolver, address::Addresses, allow::Allow},
    secrets::Secrets,
};

/// The largest number that every language can write.
const MOST: u64 = (1 << 53) - 1;

/// Options that were checked, as far as they have a form of their own.
pub(in crate::kit) struct Checked {
    /// Without patterns, networks and secrets, which are below.
    pub(in crate::kit) options: KitOptions,
    pub(in crate::kit) fetch: Option<FetchOptions>,
    /// The rules of `browser` and of the proxy.
    pub(in crate::kit) browser: BrowserOptions,
    pub(in crate::kit) secrets: Arc<Secrets>,
}

impl KitOptions {
    /// Checks everything that can be known before anything opens.
    pub(in crate::kit) fn check(mut self) -> Result<Checked, Error> {
        self.check_numbers()?;
        if self.agent.is_empty() {
            return Err(misuse("agent must not be empty"));
        }
        self.check_files()?;
        let fetch = self.checked_fetch()?;
        let browser = self.checked_browser(fetch.as_ref())?;
        let secrets = Secrets::new();
        let given = self.secrets.iter_mut().flatten();
        secrets.set_all(given.map(|(name, secret)| (name.as_str(), std::mem::take(secret))))?;
        Ok(Checked { options: self, fetch, browser, secrets: Arc::new(secrets) })
    }

    fn check_numbers(&mut self) -> Result<(), Error> {
        let spelling = self.spelling;
        let check = |group: &str, limits: &mut dyn Limits| {
            for (name, limit) in limits.each() {
                if !(1..=MOST).contains(limit) {
                    let name = format!("{group}{}", spelled(name, spelling));
                    let text = format!("{name} must be a safe integer of at least 1, got {limit}");
                    return Err(Error::new(ErrorKind::Range, text));
                }
            }
            Ok(())
        };
        check("", self)?;
        check("timers.", &mut self.timers)?;
        self.state.as_mut().map_or(Ok(()), |limits| check("state.", limits))?;
        self.libraries.as_mut().map_or(Ok(()), |limits| check("libraries.", limits))?;
        self.db.as_mut().map_or(Ok(()), |db| check("db.", &mut db.limits))?;
        let browser = self.browser.as_mut();
        browser.map_or(Ok(()), |browser| check("browser.", &mut browser.limits))?;
        self.fetch.as_mut().map_or(Ok(()), |fetch| check("fetch.", &mut fetch.limits))
    }

    fn check_files(&self) -> Result<(), Error> {
        let db_file = self.db.as_ref().and_then(|db| db.file.as_deref());
        for (name, file) in [("file", self.file.as_deref()), ("db.file", db_file)] {
            if file.is_some_and(|file| file.as_os_str().is_empty()) {
                return Err(misuse(format!("{name} must not be empty")));
            }
        }
        if let (Some(file), Some(db_file)) = (&self.file, db_file)
            && (place(file) == place(db_file) || is_same_file(file, db_file))
        {
            return Err(same_file());
        }
        if self.db.as_ref().is_some_and(|db| db.read_only && db.file.is_none()) {
            let name = spelled("read_only", self.spelling);
            return Err(misuse(format!("db.{name} needs db.file")));
        }
        Ok(())
    }

    /// Checks that the two files are not one by another name: a link, which led to nothing before they were made.
    pub(in crate::kit) fn check_opened_files(&self) -> Result<(), Error> {
        let db_file = self.db.as_ref().and_then(|db| db.file.as_deref());
        match (self.file.as_deref(), db_file) {
            (Some(file), Some(db_file)) if is_same_file(file, db_file) => Err(same_file()),
            _ => Ok(()),
        }
    }

    fn checked_fetch(&mut self) -> Result<Option<FetchOptions>, Error> {
        let Some(fetch) = self.fetch.clone() else { return Ok(None) };
        let allow = allowed(fetch.allow, "fetch.allow")?;
        let place = format!("fetch.{}", spelled("allow_addresses", self.spelling));
        let networks = fetch.allow_addresses.iter().map(String::as_str);
        let resolver = fetch.resolver.unwrap_or_else(|| Arc::new(SystemResolver::default()));
        Ok(Some(FetchOptions {
            addresses: Addresses::new(networks, &place)?,
            ca: fetch.ca,
            limits: fetch.limits,
            resolver,
            ..FetchOptions::new(allow)
        }))
    }

    fn checked_browser(&self, fetch: Option<&FetchOptions>) -> Result<BrowserOptions, Error> {
        let browser = self.browser.as_ref();
        let allow = match (browser.and_then(|browser| browser.allow.clone()), fetch) {
            (Some(allow), _) => allowed(allow, "browser.allow")?,
            (None, Some(fetch)) => fetch.allow.clone(),
            (None, None) => Allow::public(),
        };
        let limits = browser.map(|browser| browser.limits).unwrap_or_default();
        let mut options = BrowserOptions { limits, ..BrowserOptions::new(allow) };
        if let Some(fetch) = fetch {
            options.addresses = fetch.addresses.clone();
            options.resolver = Arc::clone(&fetch.resolver);
        }
        Ok(options)
    }
}

fn same_file() -> Error {
    misuse("file and db.file must not be the same file")
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let identity =
            |file: &Path| fs::metadata(file).map(|found| (found.dev(), found.ino())).ok();
        identity(one).is_some_and(|found| identity(other) == Some(found))
    }
    #[cfg(not(unix))]
    {
        place(one) == place(other)
    }
}

fn allowed(allow: AllowOption, place: &str) -> Result<Allow, Error> {
    match allow {
        AllowOption::Public => Ok(Allow::public()),
        AllowOption::List(entries) => Allow::list(entries, place),
    }
}

/// Where a file is or will be, by one name.
fn place(file: &Path) -> PathBuf {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    if let Ok(known) = fs::canonicalize(&absolute) {
        return known;
    }
    let folder = absolute.parent().and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, absolute.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => absolute,
    }
}

fn misuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Type, message)
}
