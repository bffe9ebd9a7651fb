//! What `heartline load` leaves behind besides its summary: CSV, HdrHistogram log, page, settings, manual pages.
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

fn heartline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heartline"))
        .args(arguments)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

/// A folder for one test's files, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("heartline-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for files");
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn one_run_writes_every_form_of_its_report() {
    let folder = Folder::new("forms");
    let (csv, hdr, html) = (folder.path("run.csv"), folder.path("run.hlog"), folder.path("run.html"));
    let output = heartline(&[
        "load",
        "--streams",
        "8",
        "--interval",
        "300ms",
        "--hold",
        "1s",
        "--csv",
        &csv,
        "--hdr",
        &hdr,
        "--html",
        &html,
    ]);
    let summary = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(summary.starts_with("Success     8 of 8 streams opened (100 %)\n"), "{summary}");
    assert!(folder.text("run.csv").contains("\nstreams.opened,8\n"));
    let log = folder.text("run.hlog");
    assert!(log.starts_with("#[Histogram log format version 1.3]\n") && log.contains("\nTag=silence,"), "{log}");
    let page = folder.text("run.html");
    assert!(page.contains("\"requested\":8") && page.ends_with("</html>\n"));
}

#[test]
fn standard_output_takes_one_form_and_no_other() {
    let run = ["load", "--streams", "3", "--interval", "300ms", "--hold", "500ms"];
    let output = heartline(&[&run[..], &["--csv", "-"]].concat());
    assert!(output.stdout.starts_with(b"figure,value\n"));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("Verdict"));
    let output = heartline(&[&run[..], &["--csv", "-", "--json", "-"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("only one report goes to standard output"));
}

#[test]
fn settings_that_were_saved_run_again_and_arguments_override_them() {
    let folder = Folder::new("settings");
    let file = folder.path("run.toml");
    let first =
        heartline(&["load", "--streams", "4", "--interval", "300ms", "--hold", "500ms", "--save-config", &file]);
    assert!(String::from_utf8_lossy(&first.stdout).contains("4 of 4 streams opened"));
    assert!(folder.text("run.toml").contains("hold = \"500ms\"\n"));
    let again = heartline(&["load", "--config", &file, "--streams", "2"]);
    assert!(String::from_utf8_lossy(&again.stdout).contains("2 of 2 streams opened"), "{again:?}");

    fs::write(&file, "straems = 2\n").unwrap();
    let refused = heartline(&["load", "--config", &file]);
    let line = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!((refused.status.code(), line.lines().count()), (Some(2), 1), "{line}");
    assert!(line.contains("there is no setting 'straems'"), "{line}");
}

#[test]
fn without_a_terminal_the_live_screen_is_plain() {
    let output = heartline(&["load", "--streams", "2", "--interval", "300ms", "--hold", "500ms", "--tui"]);
    assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "no escape sequences");
    assert!(String::from_utf8_lossy(&output.stdout).contains("Verdict"));
}

#[test]
fn every_command_has_a_manual_page() {
    let page = heartline(&["man", "load"]);
    assert!(String::from_utf8_lossy(&page.stdout).contains("silence each one saw"));
    let folder = Folder::new("man");
    assert_eq!(heartline(&["man", "--to", &folder.path("")]).status.code(), Some(0));
    for name in ["heartline.1", "heartline-load.1", "heartline-load-merge.1", "heartline-man.1"] {
        assert!(folder.text(name).contains(".TH"), "{name}");
    }
    assert_eq!(heartline(&["man", "lode"]).status.code(), Some(2));
}
