//! The rules of the house that no compiler checks: the reading order of the rooms, module docs, file size, plain
//! signatures, patient tests, and prose that still tells the truth about the code. Run by `cargo test`.
//!
//! Each rule is a function from a file's text to complaints, and has a test that sees it refuse what breaks it.

#[path = "tidy/prose.rs"]
mod prose;
#[path = "tidy/rooms.rs"]
mod rooms;

use std::fs;
use std::path::Path;

/// Above about 300 lines a file holds a second noun; beyond this it is not a matter of taste any more.
const LINES_MAX: usize = 350;

#[test]
fn rust_files_begin_with_module_docs_and_stay_short() {
    check(&files(ALL, "rs"), shape);
}

#[test]
fn signatures_speak_plainly() {
    check(&files(SOURCES, "rs"), signatures);
}

#[test]
fn tests_never_sleep_and_none_is_ignored() {
    let mut files = files(&["src", "tests", "cli/src", "cli/tests"], "rs");
    files.retain(|file| file.path != "tests/tidy.rs"); // holds the samples below
    check(&files, patience);
}

#[test]
fn unsafe_code_is_forbidden_in_the_library_and_the_command() {
    for root in ["src/lib.rs", "cli/src/lib.rs", "cli/src/bin/heartline/main.rs"] {
        assert!(read(root).contains("#![forbid(unsafe_code)]"), "{root} does not forbid unsafe code");
    }
}

#[test]
fn rules_of_shape_refuse_what_breaks_them() {
    assert_eq!(refused(shape, "// no module docs\n"), 1);
    assert_eq!(refused(shape, &"//! Docs.\n".repeat(LINES_MAX + 1)), 1);
    assert_eq!(refused(shape, "//! Docs.\n"), 0);

    assert_eq!(refused(signatures, "pub fn get_all(&self) {}"), 1);
    assert_eq!(refused(signatures, "pub(crate) async fn end(\n    firm: bool,\n) {}"), 1);
    assert_eq!(refused(signatures, "fn of(word: &str) -> bool { true }"), 0);

    assert_eq!(refused(patience, "std::thread::sleep(WAIT);"), 1);
    assert_eq!(refused(patience, "#[test]\n#[ignore]\nfn slow() {}"), 1);
    assert_eq!(refused(patience, "tokio::time::advance(WAIT).await;"), 0);
}

fn shape(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    if !file.text.starts_with("//! ") {
        complaints.push("the first line says what this is and who calls it (//!)".to_owned());
    }
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        complaints.push(format!("{lines} lines, more than {LINES_MAX}: move a noun out"));
    }
    complaints
}

fn signatures(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (at, _) in file.code.match_indices("fn ") {
        let whole = file.code[at..].split(['{', ';']).next().unwrap_or_default();
        let taken = whole.split("->").next().unwrap_or_default();
        let name = taken["fn ".len()..].split(['(', '<']).next();
        let name = name.unwrap_or_default();
        if name.starts_with("get_") {
            complaints.push(format!("fn {name}: say what it is, without get_"));
        }
        // A private function is called beside its definition; a visible one must read well from afar.
        let line = file.code[..at].rsplit('\n').next().unwrap_or_default();
        if line.contains("pub") && taken.contains(": bool") {
            complaints.push(format!("fn {name}: a bool parameter says nothing where it is called"));
        }
    }
    complaints
}

fn patience(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    if file.code.contains("thread::sleep") {
        complaints.push("thread::sleep: pause tokio's clock, or wait for the event".to_owned());
    }
    if file.code.contains("#[ignore") {
        complaints.push("an ignored test: mend it or remove it".to_owned());
    }
    complaints
}

/// One file of the two packages.
struct File {
    /// From the repository's root, with `/`.
    path: String,
    text: String,
    /// The text without `//` comments, so that prose about a rule does not break it.
    code: String,
}

impl File {
    fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
        Self { path, text, code }
    }
}

/// Every file with `extension` under `folders`, in a fixed order. A folder that does not exist holds none.
fn files(folders: &[&str], extension: &str) -> Vec<File> {
    let mut files = Vec::new();
    let mut pending: Vec<String> = folders.iter().rev().map(ToString::to_string).collect();
    while let Some(path) = pending.pop() {
        if path == "tests/fuzz/target" {
            continue; // the fuzz package's build output
        }
        if let Ok(entries) = fs::read_dir(Path::new(ROOT).join(&path)) {
            let names = entries.map(|entry| entry.expect("a readable folder").file_name());
            let mut names: Vec<_> = names.map(|name| format!("{path}/{}", name.to_string_lossy())).collect();
            names.sort_unstable_by(|a, b| b.cmp(a));
            pending.extend(names);
        } else if Path::new(&path).extension().is_some_and(|e| e == extension) {
            files.push(File::new(path.as_str(), read(&path)));
        }
    }
    assert!(!files.is_empty(), "nothing found under {folders:?}");
    files
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Fails with every complaint that `rule` has about `files`.
fn check(files: &[File], rule: impl Fn(&File) -> Vec<String>) {
    let complaints: Vec<String> = files
        .iter()
        .flat_map(|file| {
            let complaints = rule(file);
            complaints.into_iter().map(move |complaint| format!("{}: {complaint}", file.path))
        })
        .collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// How many complaints `rule` has about `text`.
fn refused(rule: impl Fn(&File) -> Vec<String>, text: &str) -> usize {
    rule(&File::new("src/sample.rs", text)).len()
}

/// Where the code of both packages lies: the library's, then the command's.
const SOURCES: &[&str] = &["src", "cli/src"];

/// Every folder with Rust in it.
const ALL: &[&str] = &["src", "tests", "benches", "docs", "cli"];

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
