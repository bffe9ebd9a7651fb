//! One plan run by several processes or machines: parts merged equal the whole, on real sockets and through the command.
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use heartline_cli::load::{self, Report, Settings, Shape, Shard, Target, Targets};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinSet;

/// A server of streams whose bytes follow from the number in their path, `/17`: an event, then `number % 4 + 2` more, each
/// after a heartbeat and `STEP` apart, then silence. Keeps which numbers were asked for, with their bodies.
struct Numbered {
    address: SocketAddr,
    asked: Arc<Mutex<BTreeMap<usize, String>>>,
    _task: JoinSet<()>,
}

const STEP: Duration = Duration::from_millis(30);

impl Numbered {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(BTreeMap::new()));
        let (seen, mut task) = (Arc::clone(&asked), JoinSet::new());
        task.spawn(async move {
            let mut streams = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let seen = Arc::clone(&seen);
                streams.spawn(async move { drop(answer(stream, &seen).await) });
            }
        });
        Self { address, asked, _task: task }
    }
}

async fn answer(mut stream: TcpStream, seen: &Mutex<BTreeMap<usize, String>>) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"end of body") {
        stream.read_buf(&mut request).await?;
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let number: usize = request.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
    let body = request.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned();
    assert_eq!(seen.lock().unwrap().insert(number, body), None, "stream {number} is begun once");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(b"9\r\ndata: a\n\n\r\n").await?;
    for _ in 0..number % 4 + 2 {
        tokio::time::sleep(STEP).await;
        stream.write_all(b"1\r\n\n\r\n").await?;
        tokio::time::sleep(STEP).await;
        stream.write_all(b"9\r\ndata: b\n\n\r\n").await?;
    }
    stream.write_all(b"0\r\n\r\n").await
}

/// Runs one part of a plan of forty streams, each with a path and a body of its own.
async fn part(shard: Shard, start_at: SystemTime) -> (Report, BTreeMap<usize, String>) {
    let server = Numbered::start().await;
    let mut settings = Settings::new(format!("http://{}/", server.address).parse().unwrap());
    settings.method = http::Method::POST;
    settings.streams = 40;
    settings.rate_per_second = 400;
    settings.shape = Shape::Complete(Duration::from_secs(20));
    settings.seed = 11;
    settings.shard = shard;
    settings.start_at = Some(start_at);
    settings.targets = Targets::Each(Arc::new(|number| {
        let mut target = Target::new(format!("{number}: end of body").into());
        target.path = Some(format!("/{number}").parse().unwrap());
        target
    }));
    let mut report = load::run(settings, |_| {}).await.unwrap();
    // Each part had a server of its own, so that nothing was asked of one by mistake.
    report.settings.url.clear();
    let asked = std::mem::take(&mut *server.asked.lock().unwrap());
    (report, asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_shards_merged_equal_one_run_of_the_same_plan() {
    let start_at = SystemTime::now() + Duration::from_millis(200);
    let whole = Shard { index: 0, of: 1 };
    let shards = (0..4).map(|index| Shard { index, of: 4 });
    let mut running = JoinSet::new();
    for shard in shards.chain([whole]) {
        running.spawn(part(shard, start_at));
    }
    let (mut files, mut asked, mut single) = (Vec::new(), BTreeMap::new(), None);
    while let Some(ended) = running.join_next().await {
        let (report, streams) = ended.unwrap();
        if report.shard == whole {
            single = Some((report, streams));
        } else {
            assert_eq!(streams.len(), 10);
            asked.extend(streams);
            // As it comes back from its file.
            let written = serde_json::to_string(&report).unwrap();
            files.push((format!("{}.json", report.shard.index), serde_json::from_str::<Report>(&written).unwrap()));
        }
    }
    let (single, all) = single.unwrap();
    assert_eq!(asked, all, "the same streams with the same bodies");
    assert_eq!(all.len(), 40);

    let merged = load::merge(files.clone(), &[]).unwrap();
    // What a server decides is the same to the last count; times differ by the machine's own.
    assert_eq!(plain(&merged), plain(&single));
    assert_eq!(merged.events.total, (0..40).map(|number| 1 + number % 4 + 2).sum::<u64>());
    let gap = |report: &Report| report.gap_ms.unwrap();
    assert!(gap(&merged).p50 >= 59.0 && gap(&single).p50 >= 59.0);
    assert!((gap(&merged).p50 - gap(&single).p50).abs() < 60.0, "{:?} {:?}", gap(&merged), gap(&single));
    let max = files.iter().map(|(_, report)| gap(report).max).fold(0.0, f64::max);
    assert_eq!(gap(&merged).max, max, "the largest of all, exactly");
    let parts = merged.merged.unwrap().parts;
    assert_eq!(parts.iter().map(|part| part.shard.index).collect::<Vec<_>>(), [0, 1, 2, 3]);

    files.swap_remove(0);
    assert!(load::merge(files, &[]).unwrap_err().to_string().contains("missing"));
}

/// The counts of a report.
fn plain(report: &Report) -> Value {
    serde_json::json!({
        "streams": [report.streams.requested, report.streams.opened, report.streams.completed],
        "failed": report.streams.failed,
        "events": report.events.total,
        "heartbeats": [serde_json::json!(report.heartbeats.total), serde_json::json!(report.heartbeats.kinds)],
        "bytes": report.bytes,
        "would_be_cut": report.would_be_cut,
    })
}

fn heartline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heartline"));
    command
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

fn report(stdout: &[u8]) -> Value {
    serde_json::from_slice(stdout).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(stdout)))
}

#[tokio::test]
async fn several_processes_hold_the_streams_of_one_plan() {
    let arguments = ["--procs", "2", "--streams", "30", "--interval", "300ms", "--hold", "2s", "--open-within", "1s"];
    let output = heartline().arg("load").args(arguments).args(["--json", "-"]).output().await.unwrap();
    let report = report(&output.stdout);
    assert_eq!(report["streams"]["requested"], 30);
    assert_eq!(report["streams"]["held_min"], 30, "{report}");
    assert_eq!(report["merged"]["parts"].as_array().map(Vec::len), Some(2));
    assert!(report["heartbeats"]["per_stream"].as_f64() >= Some(3.0), "{report}");
    // A machine that stood still makes the run invalid, and then the exit code says so.
    let valid = report["client"]["valid"] == true;
    assert_eq!(output.status.code(), Some(if valid { 0 } else { 4 }), "{report}");
}

/// The limit is one of each process, so more processes hold more; one alone refuses before it begins.
#[tokio::test]
async fn processes_hold_more_streams_than_one_may_open_files() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut streams = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").await.unwrap();
            streams.push(stream);
        }
    });
    let load = async |procs: &'static str| {
        // The shell lowers the limit for what takes its place.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 100; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_heartline"), "load", &url]);
        command.args(["--streams", "160", "--hold", "500ms", "--open-within", "2s", "--json", "-", "--procs", procs]);
        command.env_remove("RUST_LOG").stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap()
    };
    let alone = load("1").await;
    let line = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(alone.status.code() == Some(3) && line.contains("the limit here is 100"), "{line}");
    let shared = report(&load("4").await.stdout);
    assert_eq!((&shared["streams"]["opened"], &shared["streams"]["held_min"]), (&160.into(), &160.into()), "{shared}");
}

#[tokio::test]
async fn what_a_process_cannot_do_is_said_once() {
    let output = heartline().args(["load", "http://127.0.0.1:1/", "--procs", "2", "--streams", "2m"]).output().await;
    let output = output.unwrap();
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{line}");
    assert!(line.starts_with("heartline: process ") && line.trim_end().lines().count() == 1, "{line}");
}

#[tokio::test]
async fn ctrl_c_reaches_every_process_and_the_merged_report_is_written() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let arguments =
        ["load", &url, "--procs", "2", "--streams", "8", "--hold", "1h", "--open-within", "1s", "--json", "-"];
    let parent = heartline().args(arguments).spawn().unwrap();
    let id = parent.id().expect("it runs").to_string();
    // All streams of both processes are there before it is interrupted.
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(listener.accept().await.unwrap());
    }
    let killed = Command::new("kill").args(["-INT", &id]).status().await.expect("kill is there");
    assert!(killed.success());
    let output = parent.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
    let report = report(&output.stdout);
    assert_eq!((&report["interrupted"], &report["streams"]["requested"]), (&true.into(), &8.into()));
    // Both are gone: their sockets are closed.
    for (mut stream, _) in streams {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    }
}

/// The arguments of the manifest's container are ones that this build understands.
#[tokio::test]
async fn the_manifest_of_a_cluster_asks_for_what_there_is() {
    let manifest = include_str!("../../docs/deploy/load-job.yaml");
    let completions = manifest.lines().find_map(|line| line.trim().strip_prefix("completions: ")).unwrap();
    let arguments: Vec<_> = manifest
        .lines()
        .skip_while(|line| line.trim() != "args:")
        .skip(1)
        .map_while(|line| line.trim().strip_prefix("- "))
        .map(|argument| argument.replace("$(JOB_COMPLETION_INDEX)", "7").replace("START_AT", "2020-01-01T00:00:00Z"))
        .map(|argument| argument.replace("engine.default.svc.cluster.local", "127.0.0.1"))
        .collect();
    assert_eq!(arguments[0], "load");
    assert!(arguments.contains(&format!("--shard=7/{completions}")), "{arguments:?}");
    let output = heartline().args(&arguments).output().await.unwrap();
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    // Everything was understood, and the only fault is the time, which the user fills in.
    assert!(output.status.code() == Some(2) && line.contains("the start was "), "{line}");
}
