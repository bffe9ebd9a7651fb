//! The proxies that are compared, each as a process in front of an engine; started by `lane` and `soak`.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::Process;

/// The variable that names the command of [`Variant::Other`].
pub(crate) const OTHER: &str = "HEARTLINE_OTHER";

/// What is between the client and the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variant {
    /// Nothing.
    Direct,
    /// Debian's nginx with `proxy_buffering off`.
    Nginx,
    /// Debian's HAProxy with `option http-no-delay`.
    Haproxy,
    /// `heartline proxy` as it comes: boundary tracking and heartbeats every 30 s.
    Heartline,
    /// The same of another build, named by [`OTHER`]: before and after a change, in the same run.
    Other,
    /// `heartline proxy` with a heartbeat every second.
    Beating,
    /// `heartline proxy --heartbeat off`.
    Unbeating,
}

impl Variant {
    /// Those that are compared, in the order of the first round.
    pub(crate) const COMPARED: [Self; 5] = [Self::Direct, Self::Nginx, Self::Haproxy, Self::Heartline, Self::Other];

    /// The name used in flags, in the table and in the JSON file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Heartline => "heartline",
            Self::Other => "other",
            Self::Beating => "with_heartbeats",
            Self::Unbeating => "without_heartbeats",
        }
    }

    /// Whether it is installed; heartline is by nature.
    pub(crate) fn is_here(self) -> bool {
        match self {
            Self::Nginx => program("nginx").is_some(),
            Self::Haproxy => program("haproxy").is_some(),
            Self::Other => std::env::var_os(OTHER).is_some(),
            _ => true,
        }
    }
}

/// A running proxy, and the port clients connect to.
pub(crate) struct UnderTest {
    pub(crate) process: Option<Process>,
    pub(crate) port: u16,
    /// heartline's admin listener.
    pub(crate) admin: u16,
    variant: Variant,
}

impl UnderTest {
    /// Starts it in front of `engine`, for up to `streams` streams.
    pub(crate) fn start(variant: Variant, engine: u16, streams: usize) -> Result<Self, String> {
        let external = |process: Result<Process, String>, port| {
            let process = process?;
            wait_for(port)?;
            Ok(Self { process: Some(process), port, admin: 0, variant })
        };
        match variant {
            Variant::Direct => Ok(Self { process: None, port: engine, admin: 0, variant }),
            Variant::Nginx => {
                let port = free_port()?;
                external(nginx(engine, port), port)
            }
            Variant::Haproxy => {
                let port = free_port()?;
                external(haproxy(engine, port, streams), port)
            }
            Variant::Heartline | Variant::Other => Self::heartline(variant, engine, &["--interval", "30s"]),
            Variant::Beating => Self::heartline(variant, engine, &["--interval", "1s"]),
            Variant::Unbeating => Self::heartline(variant, engine, &["--heartbeat", "off"]),
        }
    }

    fn heartline(variant: Variant, engine: u16, flags: &[&str]) -> Result<Self, String> {
        let program = match variant {
            Variant::Other => std::env::var_os(OTHER).unwrap_or_default(),
            _ => env!("CARGO_BIN_EXE_heartline").into(),
        };
        let mut command = Command::new(program);
        command.args(["proxy", "--upstream", &format!("http://127.0.0.1:{engine}")]);
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--access-log", "off"]).args(flags);
        let mut process = Process::start(command.env("RUST_LOG", "error"))?;
        let port = process.hear_port("listening on")?;
        let admin = process.hear_port("admin on")?;
        Ok(Self { process: Some(process), port, admin, variant })
    }

    /// Processor time so far, in ns.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.process.as_ref().map_or(0, Process::cpu_ns)
    }

    /// Resident bytes.
    pub(crate) fn resident_bytes(&self) -> i64 {
        self.process.as_ref().map_or(0, Process::resident_bytes)
    }
}

impl Drop for UnderTest {
    fn drop(&mut self) {
        // nginx's workers outlive a master that is killed.
        if let (Variant::Nginx, Some(process)) = (self.variant, &mut self.process) {
            process.terminate();
        }
    }
}

fn nginx(engine: u16, port: u16) -> Result<Process, String> {
    let home = std::env::temp_dir().join(format!("heartline-bench-nginx-{port}"));
    std::fs::create_dir_all(&home).map_err(|problem| problem.to_string())?;
    let (cores, at) = (cores(), home.display());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {at}/{kind};\n"))
        .concat();
    let settings = format!(
        "daemon off;\nworker_processes {cores};\nworker_rlimit_nofile 20000;\npid {at}/pid;\nerror_log {at}/error.log;\n\
         events {{ worker_connections 20000; }}\n\
         http {{\naccess_log off;\n{temporary}\
         upstream engine {{ server 127.0.0.1:{engine}; keepalive 32; }}\n\
         server {{\nlisten 127.0.0.1:{port} reuseport backlog=4096;\n\
         location / {{\nproxy_pass http://engine;\nproxy_http_version 1.1;\nproxy_set_header Connection \"\";\n\
         proxy_buffering off;\nproxy_read_timeout 1h;\n}}\n}}\n}}\n"
    );
    let file = home.join("nginx.conf");
    std::fs::write(&file, settings).map_err(|problem| problem.to_string())?;
    let mut command = Command::new(program("nginx").ok_or("nginx is not installed")?);
    command.arg("-p").arg(&home).arg("-e").arg(home.join("error.log")).arg("-c").arg(&file);
    Process::start(command.stderr(Stdio::null()))
}

fn haproxy(engine: u16, port: u16, streams: usize) -> Result<Process, String> {
    let settings = format!(
        "global\n  maxconn {}\n  nbthread {}\ndefaults\n  mode http\n  option http-no-delay\n  timeout connect 5s\n  \
         timeout client 1h\n  timeout server 1h\nfrontend front\n  bind 127.0.0.1:{port} backlog 4096\n  \
         default_backend engines\nbackend engines\n  server engine 127.0.0.1:{engine}\n",
        streams + 100,
        cores()
    );
    let file = std::env::temp_dir().join(format!("heartline-bench-haproxy-{port}.cfg"));
    std::fs::write(&file, settings).map_err(|problem| problem.to_string())?;
    let mut command = Command::new(program("haproxy").ok_or("haproxy is not installed")?);
    Process::start(command.arg("-db").arg("-f").arg(&file).stderr(Stdio::null()))
}

/// Debian's daemons lie in `/usr/sbin`, which is not everyone's `PATH`.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

fn free_port() -> Result<u16, String> {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|problem| problem.to_string())
}

fn wait_for(port: u16) -> Result<(), String> {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if begun.elapsed() > Duration::from_secs(10) {
            return Err(format!("nothing listens on port {port}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
