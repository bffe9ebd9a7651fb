//! What `tests/interop/run --write` measured, kept true: the page is made from the results, and `auto` spares its clients.
//!
//! `HEARTLINE_WRITE=1 cargo test --test compat` writes `docs/compat.md` anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

const RESULTS: &str = "docs/compat/results.json";
const PAGE: &str = "docs/compat.md";
const AUTO: &str = "auto";
/// The columns, and how the page calls them.
const FORMS: [(&str, &str); 7] = [
    ("newline", "newline"),
    ("newline-between", "newline-between"),
    ("comment", "comment"),
    ("block:ping", "block"),
    ("event:heartbeat", "event"),
    ("ping", "ping"),
    (AUTO, "auto"),
];
/// Those that are neutral to a conformant decoder.
const NEUTRAL: [&str; 4] = ["newline", "newline-between", "comment", "block:ping"];

#[test]
fn the_page_is_made_from_the_results() {
    let page = page(&results());
    if std::env::var_os("HEARTLINE_WRITE").is_some() {
        fs::write(path(PAGE), &page).unwrap();
    }
    let written = fs::read_to_string(path(PAGE)).unwrap();
    assert!(written == page, "{PAGE} is not what {RESULTS} says: HEARTLINE_WRITE=1 cargo test --test compat");
}

#[test]
fn under_auto_no_client_sees_a_difference_that_a_form_would_spare() {
    for (name, client) in clients(&results()) {
        assert!(runs(client, AUTO) > 0, "{name} was not run under auto");
        let is_known = client["not"].get(AUTO).is_some();
        assert!(differ(client, AUTO) == 0 || is_known || safe(client).is_empty(), "{name}");
    }
}

#[test]
fn the_results_are_those_of_the_clients_in_the_table() {
    let table: Value = serde_json::from_str(&read("tests/interop/clients.json")).unwrap();
    let results = results();
    let named: Vec<_> = table.as_array().unwrap().iter().map(|client| client["name"].as_str().unwrap()).collect();
    let measured: Vec<_> = clients(&results).map(|(name, _)| name).collect();
    assert_eq!(named, measured);
    for (name, client) in clients(&results) {
        assert!(client["version"].as_str().is_some_and(|version| !version.is_empty()), "{name} has no version");
    }
}

/// The whole page.
fn page(results: &Value) -> String {
    let mut page = String::from(HEAD);
    let text = |name: &str| results[name].as_str().unwrap();
    let _ = writeln!(page, "Measured {} with heartline {}.\n", text("measured"), text("heartline"));
    for runtime in ["Python", "Node", "Rust", "browser", "agent"] {
        let of_runtime = |client: &Value| client["runtime"].as_str().unwrap().starts_with(runtime);
        let clients: Vec<_> = clients(results).filter(|(_, client)| of_runtime(client)).collect();
        if clients.is_empty() {
            continue;
        }
        let title = match runtime {
            "browser" => "Browsers",
            "agent" => "Coding agents",
            language => language,
        };
        let _ = writeln!(page, "## {title}\n\n| client | {} |", FORMS.map(|(_, short)| short).join(" | "));
        let _ = writeln!(page, "|---|{}", "---|".repeat(FORMS.len()));
        for (name, client) in &clients {
            let cells = FORMS.map(|(form, _)| cell(client, form)).join(" | ");
            let _ = writeln!(page, "| {name} {} | {cells} |", client["version"].as_str().unwrap());
        }
        let _ = writeln!(page);
    }
    let _ = writeln!(page, "## What happens where a form fails\n\n{WHERE}");
    let _ = writeln!(page, "| client | form | what happens | where | use instead |\n|---|---|---|---|---|");
    for (name, client) in clients(results) {
        for form in NEUTRAL.iter().chain([&AUTO]).filter(|form| differ(client, form) > 0) {
            let cell = &client["forms"][form];
            let what = cell["what"].as_str().unwrap().replace('|', "\\|").replace('\n', "\\n");
            let at: Vec<_> = cell["at"].as_object().unwrap().iter().map(|(position, _)| position.as_str()).collect();
            let _ = writeln!(page, "| {name} | {form} | `` {what} `` | {} | {} |", at.join(", "), instead(client));
        }
    }
    let _ = writeln!(page, "\n## What was not compared\n\n{UNREAD}");
    for (name, client) in clients(results) {
        let mut notes: Vec<_> = client["not"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(what, why)| format!("{what}: {}", why.as_str().unwrap()))
            .collect();
        let unread = client["unread"].as_object().unwrap().iter();
        notes.extend(unread.map(|(fixture, at)| {
            let at: Vec<_> = at.as_array().unwrap().iter().map(|position| position.as_str().unwrap()).collect();
            format!("unread: {fixture} ({})", at.join(", "))
        }));
        for (fixture, at) in client["rare"].as_object().unwrap() {
            let at: Vec<_> = at.as_object().unwrap().iter().map(|(position, _)| position.as_str()).collect();
            notes.push(format!("**differs** with heartbeats: {fixture} ({})", at.join(", ")));
        }
        if !notes.is_empty() {
            let _ = writeln!(page, "- {name}: {}.", notes.join("; "));
        }
    }
    page
}

fn cell(client: &Value, form: &str) -> String {
    match (runs(client, form), differ(client, form)) {
        (0, _) => "–".to_owned(),
        (_, 0) => "✓".to_owned(),
        (runs, differ) => format!("✗ {differ}/{runs}"),
    }
}

/// What to set where a form fails.
fn instead(client: &Value) -> String {
    let safe = safe(client);
    match (safe.first(), differ(client, AUTO)) {
        (Some(_), 0) => format!("auto, {}", safe.join(", ")),
        (Some(_), _) => safe.join(", "),
        (None, _) => "no form is safe: `off`".to_owned(),
    }
}

/// The neutral forms under which nothing differs.
fn safe(client: &Value) -> Vec<&'static str> {
    NEUTRAL.into_iter().filter(|form| runs(client, form) > 0 && differ(client, form) == 0).collect()
}

fn runs(client: &Value, form: &str) -> u64 {
    client["forms"][form]["runs"].as_u64().unwrap_or_default()
}

fn differ(client: &Value, form: &str) -> u64 {
    client["forms"][form]["differ"].as_u64().unwrap_or_default()
}

fn clients(results: &Value) -> impl Iterator<Item = (&str, &Value)> {
    results["clients"].as_array().unwrap().iter().map(|client| (client["name"].as_str().unwrap(), client))
}

fn results() -> Value {
    serde_json::from_str(&read(RESULTS)).unwrap()
}

fn read(name: &str) -> String {
    fs::read_to_string(path(name)).unwrap()
}

fn path(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

const HEAD: &str = "\
# Clients and forms, measured

<!-- Made from docs/compat/results.json: HEARTLINE_WRITE=1 cargo test --test compat -->

Each client was shown the same streams without heartbeats and with them, and what it decoded was compared. The streams come
from a scripted engine behind `heartline proxy`, which pauses before the first event, between two, for ten intervals in a row,
between each two, inside an event, inside a line, between CR and LF, after the end, and at random places; and from
`heartline sim`, which embeds the library. `tests/interop/run` measures it all again, `tests/interop/run --quick` the part that
each CI run looks at. What each form is: [forms.md](forms.md).

✓: the same in every run. ✗ n/m: something else in n of m runs. –: no stream of this kind. NDJSON and JSON have one heartbeat
whatever the form. `event` and `ping` are events, which clients see unless their API defines them.
";
const WHERE: &str = "\
For the neutral forms and `auto`. “Where” names the places of the pause: `start` is before the first event, `row` ten
heartbeats in a row, `every` between each two events, `end` after the last one; `stall` and `torn` are scripts of `heartline sim`.
";
const UNREAD: &str = "\
A stream that a client reads wrongly without any heartbeat (`unread`) says nothing about heartbeats: a line end or a byte order
mark that it does not know, chunks cut where it does not expect it. Streams whose lines end with CR alone (`events-cr`) are legal,
but no engine known writes them and several clients cannot read them; where one that can sees a difference, it stands here and not
in the tables: turn heartbeats off for such an engine.
";
