//! The options of Chromium.
//!
//! In: what the host chooses. Out: the same, or the reason why it is misuse.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use isolane::{Error, ErrorKind};

use crate::kit::ProxySettings;

/// The names under which systems install it, the free ones first.
const NAMES: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/// Switches that [`Chromium`](super::Chromium) sets itself. Another value would open a port, or leave a profile behind.
const RESERVED: [&str; 8] = [
    "--remote-debugging-pipe",
    "--remote-debugging-port",
    "--remote-debugging-address",
    "--user-data-dir",
    "--disk-cache-dir",
    "--headless",
    "--no-sandbox",
    "--single-process",
];

/// Switches that would pass by the proxy.
const RESERVED_BY_PROXY: [&str; 8] = [
    "--no-proxy-server",
    "--proxy-auto-detect",
    "--proxy-bypass-list",
    "--proxy-pac-url",
    "--proxy-server",
    "--host-resolver-rules",
    "--webrtc-ip-handling-policy",
    "--force-webrtc-ip-handling-policy",
];

/// The options of a [`Chromium`](super::Chromium).
#[derive(Clone, Debug)]
pub struct ChromiumOptions {
    /// The executable. `None` stands for the first of `chromium`, `chromium-browser`, `google-chrome`,
    /// `google-chrome-stable` and `chrome` that is on `PATH`.
    pub executable: Option<PathBuf>,
    /// The way to the network.
    pub network: Network,
    /// Whether it runs without a window. True.
    pub headless: bool,
    /// Whether Chromium confines its own processes.
    pub sandbox: Sandbox,
    /// More switches, such as `--lang=de`. Those of the profile, of the debugging pipe and, with a proxy, of the network
    /// are refused.
    pub args: Vec<String>,
    /// The most bytes of one message of Chromium; larger ones are read and dropped, and their call fails. 128 MiB.
    pub max_message_bytes: usize,
    /// Whether Chromium writes its own log to the standard error of this process. False.
    pub log: bool,
}

impl Default for ChromiumOptions {
    fn default() -> Self {
        Self {
            executable: None,
            network: Network::default(),
            headless: true,
            sandbox: Sandbox::default(),
            args: Vec::new(),
            max_message_bytes: 128 << 20,
            log: false,
        }
    }
}

/// The way of Chromium to the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// Through the proxy that [`Chromium::set_proxy`](super::Chromium::set_proxy) gives. Until then all commands fail.
    #[default]
    AwaitProxy,
    /// Through this proxy alone.
    Proxy(ProxySettings),
    /// Straight. Its pages reach all that the host reaches, whatever `allow` says.
    Direct,
}

/// Whether Chromium confines its own processes. As root it cannot, and does not start unless it is told not to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// Unless this process runs as root.
    #[default]
    UnlessRoot,
    /// Always. As root it does not start.
    Always,
    /// Never: a page that takes over its renderer has the rights of this process's user.
    Never,
}

impl Sandbox {
    pub(super) fn is_on(self) -> bool {
        match self {
            Self::UnlessRoot => !rustix::process::geteuid().is_root(),
            Self::Always => true,
            Self::Never => false,
        }
    }
}

impl ChromiumOptions {
    /// The options, with an executable that exists.
    pub(super) fn checked(mut self) -> Result<Self, Error> {
        let has_proxy = self.network != Network::Direct;
        for arg in &self.args {
            let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
            let is_reserved =
                RESERVED.contains(&name) || (has_proxy && RESERVED_BY_PROXY.contains(&name));
            if is_reserved || !name.starts_with("--") || name == "--" {
                let text = format!(
                    "args must be switches that Chromium is not given already, got {name:?}"
                );
                return Err(Error::new(ErrorKind::Type, text));
            }
        }
        if self.max_message_bytes == 0 {
            return Err(Error::new(ErrorKind::Range, "max_message_bytes must be at least 1"));
        }
        let found = match &self.executable {
            Some(path) => is_executable(path).then(|| path.clone()),
            None => on_path(),
        };
        self.executable = Some(found.ok_or_else(|| {
            let text = match &self.executable {
                Some(path) => {
                    format!("executable must be a file that can be run, got {}", path.display())
                }
                None => format!("none of {} is on PATH", NAMES.join(", ")),
            };
            Error::new(ErrorKind::Internal, text)
        })?);
        Ok(self)
    }
}

fn on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<_> = env::split_paths(&path).collect();
    let named = |name| folders.iter().map(move |folder| folder.join(name));
    NAMES.into_iter().flat_map(named).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
