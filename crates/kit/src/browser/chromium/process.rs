//! The processes of Chromium, and their folder.
//!
//! In: options. Out: a running Chromium in a fresh folder, with the two ends of its pipe; on drop nothing of it is left.
//! The pipe is that of `--remote-debugging-pipe`: descriptors 3 and 4 of Chromium. There is no port that another process
//! of the machine could reach.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use command_fds::{CommandFdExt, FdMapping};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::options::{ChromiumOptions, Network};
use crate::proxy::chromium_switches;

/// The time after which the end of killed processes is not waited for any more.
const END: Duration = Duration::from_secs(5);

/// Variables that Chromium sees: those that say where things are, and how they are shown. The others may be secrets.
const VARIABLES: [&str; 16] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "LD_LIBRARY_PATH",
    "FONTCONFIG_FILE",
    "FONTCONFIG_PATH",
    "XDG_DATA_DIRS",
    "DISPLAY",
    "XAUTHORITY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Switches for a browser that a program drives: no first run, no traffic of its own, nothing that waits for a person.
const SWITCHES: [&str; 29] = [
    "--remote-debugging-pipe",
    "--no-startup-window",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-service-autorun",
    "--no-pings",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-field-trial-config",
    "--disable-search-engine-choice-screen",
    "--disable-prompt-on-repost",
    "--disable-hang-monitor",
    "--disable-back-forward-cache",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // Containers often have little of it.
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
];

/// Features that would change requests or make some.
const DISABLED_FEATURES: &str = "HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,Translate,OptimizationHints,MediaRouter,\
DialMediaRouteProvider,AutofillServerCommunication,CertificateTransparencyComponentUpdater,NetworkTimeServiceQuerying,\
AcceptCHFrame,PaintHolding,DestroyProfileOnBrowserClose,GlobalMediaControls,Prerender2";

/// A running Chromium. On drop all its processes are killed, and its folder is removed.
pub(super) struct Process {
    child: Child,
    /// The profile, the home and the temporary files. Taken on drop.
    folder: Option<TempDir>,
}

/// The ends of the pipe that are ours.
pub(super) struct Ends {
    pub(super) commands: OwnedFd,
    pub(super) answers: OwnedFd,
}

impl Process {
    /// Starts Chromium. It blocks for some milliseconds.
    pub(super) fn start(options: &ChromiumOptions) -> io::Result<(Self, Ends)> {
        let folder = tempfile::Builder::new().prefix("isolane-chromium-").tempdir()?;
        let (commands_out, commands) = io::pipe()?;
        let (answers, answers_in) = io::pipe()?;
        let executable = options.executable.as_deref().unwrap_or(Path::new("chromium"));
        let mut command = Command::new(executable);
        command.args(switches(options, folder.path()));
        set_environment(&mut command, folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(if options.log { Stdio::inherit() } else { Stdio::null() });
        // One signal reaches all of them.
        command.process_group(0);
        let mappings = vec![
            FdMapping { parent_fd: commands_out.into(), child_fd: 3 },
            FdMapping { parent_fd: answers_in.into(), child_fd: 4 },
        ];
        command.fd_mappings(mappings).map_err(io::Error::other)?;
        let child = command.spawn()?;
        // The command has the ends that are Chromium's: once it is dropped, the pipe ends with Chromium.
        drop(command);
        let ends = Ends { commands: commands.into(), answers: answers.into() };
        Ok((Self { child, folder: Some(folder) }, ends))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = Pid::from_raw(i32::try_from(self.child.id()).unwrap_or_default()) {
            // It fails only if all of them have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        // A process that was killed ends at once, unless the system itself is stuck.
        let until = Instant::now() + END;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(2));
        }
        let Some(folder) = self.folder.take() else { return };
        let path = folder.keep();
        // One of the processes may still write while it is being killed.
        while fs::remove_dir_all(&path).is_err() && path.exists() && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn switches(options: &ChromiumOptions, folder: &Path) -> Vec<OsString> {
    let mut switches: Vec<OsString> = SWITCHES.iter().map(Into::into).collect();
    let mut profile = OsString::from("--user-data-dir=");
    profile.push(folder.join("profile"));
    switches.push(profile);
    if options.headless {
        switches.extend(["--headless", "--hide-scrollbars"].map(Into::into));
    }
    if !options.sandbox.is_on() {
        switches.push("--no-sandbox".into());
    }
    if let Network::Proxy(proxy) = &options.network {
        switches.push(format!("--proxy-server={}", proxy.server).into());
        switches.extend(chromium_switches(&proxy.server).map(OsString::from));
    }
    let mut disabled = DISABLED_FEATURES.to_owned();
    for arg in &options.args {
        match arg.strip_prefix("--disable-features=") {
            // Chromium takes the last one alone.
            Some(more) => disabled.extend([",", more]),
            None => switches.push(arg.into()),
        }
    }
    switches.push(format!("--disable-features={disabled}").into());
    switches
}

/// The environment: few variables of the host, and its folder as the home, so that all that it writes is in there.
fn set_environment(command: &mut Command, folder: &Path) {
    command.env_clear();
    for name in VARIABLES {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    if env::var_os("XAUTHORITY").is_none()
        && let Some(home) = env::var_os("HOME")
    {
        command.env("XAUTHORITY", Path::new(&home).join(".Xauthority"));
    }
    command.env("HOME", folder).env("TMPDIR", folder);
    command.env("XDG_CONFIG_HOME", folder.join("config"));
    command.env("XDG_CACHE_HOME", folder.join("cache"));
    command.current_dir(folder);
}
