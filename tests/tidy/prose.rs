//! The README and docs/ stay true: metric names, named files and tests, links, measured figures, versions.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{ALL, File, ROOT, check, files, read};

#[test]
fn metrics_in_code_and_in_docs_are_the_same() {
    let code = metrics(&read("src/telemetry.rs"), '"');
    assert!(!code.is_empty(), "the code names its metrics");
    let docs = metrics(&read("docs/metrics.md"), '`');
    assert_eq!(code, docs, "src/telemetry.rs, then docs/metrics.md");
}

#[test]
fn label_values_in_docs_are_those_of_the_code() {
    let code = ["src/telemetry.rs", "src/core.rs", "src/ending.rs"].map(read).concat();
    let docs = read("docs/metrics.md");
    let values: Vec<_> = docs
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|value| value.chars().all(|c| c.is_ascii_lowercase() || c == '_') && !value.starts_with("heartline_"))
        .collect();
    assert!(values.contains(&"sent"), "the tables were understood");
    for value in values {
        assert!(code.contains(&format!("\"{value}\"")), "docs/metrics.md: the code has no {value}");
    }
}

#[test]
fn prose_points_at_what_exists() {
    let mut files = files(ALL, "rs");
    let code: String = files.iter().map(|file| file.code.as_str()).collect();
    check(&prose(), |file| pointers(file, &code));
    files.retain(|file| file.path != "tests/tidy/prose.rs"); // holds the samples below
    check(&files, paths);
}

#[test]
fn measured_figures_stand_beside_their_command() {
    check(&prose(), figures);
}

#[test]
fn the_minimum_rust_version_is_the_same_everywhere() {
    let manifest = read("Cargo.toml");
    let stated = manifest.split("rust-version = \"").nth(1);
    let stated = stated.and_then(|rest| rest.split('"').next());
    let stated = stated.expect("Cargo.toml states rust-version");
    let linted = format!("msrv = \"{stated}\"");
    assert!(read(".clippy.toml").contains(&linted), ".clippy.toml: not {linted}");
    let told = format!("Rust {stated}");
    assert!(read("README.md").contains(&told), "README.md: not {told}");
}

#[test]
fn the_changelog_keeps_unreleased_on_top() {
    let changelog = read("CHANGELOG.md");
    let first = changelog.lines().find(|line| line.starts_with("## "));
    assert_eq!(first, Some("## Unreleased"));
}

#[test]
fn rules_of_prose_refuse_what_breaks_them() {
    let found = metrics("`heartline_a`, `heartline_b_total{kind}`, heartline_c, `heartline::a`", '`');
    assert_eq!(found, BTreeSet::from(["heartline_a".to_owned(), "heartline_b_total".to_owned()]));

    let page = |text: &str| File::new("docs/page.md", text);
    let points = |text: &str| pointers(&page(text), "fn it_holds() {}").len();
    assert_eq!(points("[a](no-such-page.md)"), 1);
    assert_eq!(points("`src/no_such.rs`"), 1);
    assert_eq!(points("STREAMS_TABLE"), 1);
    assert_eq!(points("| I1 | … | `nothing_holds_here` |"), 1);
    assert_eq!(points("[a](../README.md#top) [b](https://a.example) `src/lib.rs`"), 0);
    assert_eq!(points("| I1 | … | `it_holds` |\n| a | `no_test_in_this_table` |"), 0);

    assert_eq!(figures(&page("# A\n12 µs\n## B\n`cargo bench`\n## C\n3 ns\n")).len(), 2);
    assert_eq!(figures(&page("# A\n12 µs, by `cargo bench`\n## B\n30 s\n")).len(), 0);
}

/// The README, the changelog and the pages under docs/.
fn prose() -> Vec<File> {
    let mut prose = files(&["docs"], "md");
    prose.extend(["README.md", "CHANGELOG.md"].map(|path| File::new(path, read(path))));
    prose
}

/// The metric names between two of `quote`, without their labels.
fn metrics(text: &str, quote: char) -> BTreeSet<String> {
    let quoted = text.split(quote).filter(|part| part.starts_with("heartline_"));
    let is_name = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '_';
    quoted.map(|part| part.chars().take_while(is_name).collect()).collect()
}

/// Relative links, and the tests named in a table row of an invariant, must exist.
fn pointers(file: &File, code: &str) -> Vec<String> {
    let mut complaints = paths(file);
    let folder = Path::new(ROOT).join(&file.path).with_file_name("");
    let is_left = |line: &&str| line.len() > 3 && line.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    complaints.extend(file.text.lines().filter(is_left).map(|line| format!("{line} is still to be written")));
    for link in file.text.split("](").skip(1) {
        let target = link.split([')', '#']).next().unwrap_or_default();
        if !target.contains("://") && !folder.join(target).exists() {
            complaints.push(format!("links to {target}, which does not exist"));
        }
    }
    let rows = file.text.lines().filter(|line| line.starts_with("| I"));
    for quoted in rows.flat_map(|row| row.split('`').skip(1).step_by(2)) {
        let plain = quoted.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
        if plain && quoted.contains('_') && !code.contains(&format!("fn {quoted}(")) {
            complaints.push(format!("names the test {quoted}, which does not exist"));
        }
    }
    complaints
}

/// Paths in backticks must exist, in prose and in comments alike.
fn paths(file: &File) -> Vec<String> {
    let quoted = file.text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let missing = quoted.filter(|quoted| is_path(quoted) && !Path::new(ROOT).join(quoted).exists());
    missing.map(|path| format!("names {path}, which does not exist")).collect()
}

fn is_path(quoted: &str) -> bool {
    let rooted = ["src/", "tests/", "benches/", "docs/", "cli/", ".ci/"].iter().any(|root| quoted.starts_with(root));
    rooted && !quoted.contains(['*', ' ', '{', '<', '…'])
}

/// A section that gives a time below a millisecond was measured, so it names the command that measures it again.
fn figures(file: &File) -> Vec<String> {
    let sections = file.text.split("\n## ");
    let measured = sections.filter(|section| UNITS.iter().any(|unit| section.contains(unit)));
    let bare = measured.filter(|section| !section.contains("cargo "));
    bare.map(|section| {
        let title = section.lines().next().unwrap_or_default();
        format!("figures without a command under “{}”", title.trim_start_matches('#').trim())
    })
    .collect()
}

/// Units that only a measurement gives; settings are in seconds and milliseconds.
const UNITS: [&str; 4] = [" µs", " ns", " B per stream", " instructions"];
