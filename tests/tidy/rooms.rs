//! Imports go down only: the rooms of both packages, from the command to the bytes, and the check that nothing looks up.
//! That the command sees the library's public face only needs no check: it is a package of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::{File, SOURCES, check, files, read};

/// The rooms of `cli/src` from top to bottom.
const COMMAND: &[&[&str]] = &[
    &["demo"],
    &["sim", "load", "proxy"],
    // What people write: flags, settings files, the environment.
    &["values"],
];

/// The rooms of `src` from top to bottom. A room imports from the levels below its own; rooms of one level never import
/// each other. A new file is placed here first.
const LIBRARY: &[&[&str]] = &[
    // A door for benches and fuzzing, into everything below.
    &["private"],
    // What a user calls.
    &["layer"],
    &["channel"],
    &["builder"],
    &["stream"],
    &["body"],
    &["live"],
    &["drain"],
    &["broadcaster"],
    // The registry and the task that walks it.
    &["task"],
    &["sweep"],
    &["guard"],
    &["core"],
    &["registry"],
    &["cell", "lease", "totals"],
    &["sync"],
    // Pure bytes, and the settings they and the registry share.
    &["inject"],
    &["boundary", "ndjson"],
    &["config"],
    &["content"],
    &["choice", "head"],
    // What is known of each API: asked by the bytes above and by the command's rooms.
    &["api"],
    &["decode", "event", "heartbeat"],
    &["neutral"],
    &["telemetry"],
    &["error"],
    &["ending"],
    &["promises", "verdict"],
    &["format", "hops"],
];

#[test]
fn imports_go_down_only() {
    let exports = exports(&File::new("src/lib.rs", read("src/lib.rs")));
    assert!(exports.contains_key("Heartline"), "lib.rs was understood");
    check(&files(SOURCES, "rs"), |file| imports(file, &exports));
}

#[test]
fn rule_of_imports_refuses_what_breaks_it() {
    let lib = "pub use broadcaster::Heartline;\npub use self::error::{\n    Error, StreamError,\n};\n";
    let exports = exports(&File::new("src/lib.rs", lib));
    assert_eq!(exports["StreamError"], "error");
    let refused = |path: &str, text: &str| imports(&File::new(path, text), &exports).len();

    assert_eq!(refused("src/error.rs", "use crate::registry::Registry;"), 1);
    assert_eq!(refused("src/error.rs", "use crate::{body, guard::{self, A}};"), 2);
    assert_eq!(refused("src/error.rs", "fn run() { crate::sweep::run() }"), 1);
    assert_eq!(refused("src/error.rs", "use crate::Heartline;"), 1);
    assert_eq!(refused("src/error.rs", "use super::registry::Registry;"), 1);
    assert_eq!(refused("cli/src/sim/mod.rs", "use crate::load::run;"), 1);
    assert_eq!(refused("cli/src/load/plan.rs", "use crate::sim::Engine;"), 1);
    assert_eq!(refused("cli/src/load/plan.rs", "use crate::demo::Plan;"), 1);
    assert_eq!(refused("cli/src/load/plan.rs", "use crate::Heartline;"), 1);
    assert_eq!(refused("src/body.rs", "use crate::Unknown;"), 1);
    assert_eq!(refused("src/attic.rs", ""), 1);

    assert_eq!(refused("src/sweep.rs", "use crate::registry::Registry;"), 0);
    assert_eq!(refused("src/sweep.rs", "//! See [`crate::body`].\nuse crate::Error;"), 0);
    assert_eq!(refused("cli/src/sim/mod.rs", "use crate::sim::script; use super::load;"), 0);
    assert_eq!(refused("cli/src/demo/run.rs", "use crate::{load, sim}; use heartline::Heartline;"), 0);
}

/// The names that lib.rs re-exports, each with the room it comes from.
fn exports(lib: &File) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for statement in lib.code.split("pub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let path = statement.trim_start_matches("self::").trim_start_matches("crate::");
        if let Some((room, names)) = path.split_once("::") {
            let names = names.split(|c| !is_name(c)).filter(|name| !name.is_empty());
            exports.extend(names.map(|name| (name.to_owned(), room.to_owned())));
        }
    }
    exports
}

fn imports(file: &File, exports: &BTreeMap<String, String>) -> Vec<String> {
    let (rooms, inside) = match file.path.strip_prefix("cli/src/") {
        Some(inside) => (COMMAND, inside),
        None => (LIBRARY, file.path.trim_start_matches("src/")),
    };
    let room = inside.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    if room == "lib" || room == "bin" {
        return Vec::new(); // above everything; the binary is a crate of its own
    }
    let level = |room: &str| rooms.iter().position(|level| level.contains(&room));
    let Some(own) = level(room) else {
        return vec![format!("the room {room} has no place in tests/tidy/rooms.rs")];
    };
    let mut named = heads(&file.code, "crate::");
    if !inside.contains('/') {
        // At the top `super` is the crate; in a file's tests it is the file, whose items are not named like rooms.
        named.extend(heads(&file.code, "super::").into_iter().filter(|name| level(name).is_some()));
    }
    let mut complaints = Vec::new();
    for name in named {
        let from = exports.get(&name).filter(|_| rooms == LIBRARY).unwrap_or(&name);
        match level(from) {
            Some(below) if below > own || from == room => {}
            Some(_) => complaints.push(format!("imports {name} from {from}, which is not below {room}")),
            None => complaints.push(format!("crate::{name} is no room: name the room it lives in")),
        }
    }
    complaints
}

/// The names that follow `prefix`; of a `{…}` list, the first name of each item.
fn heads(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut heads = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with(|c| is_name(c) || c == ':' || c == '$') {
            continue; // inside a longer path, or a macro's `$crate`
        }
        let rest = &code[at + prefix.len()..];
        let (mut depth, mut head) = (0, Some(String::new()));
        for c in rest.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            match (c, &mut head) {
                ('{' | ',', _) if depth == 1 => heads.extend(head.replace(String::new())),
                (c, Some(head)) if is_name(c) => head.push(c),
                (c, Some(head)) if c.is_whitespace() && head.is_empty() => {}
                _ => heads.extend(head.take()),
            }
            if depth <= 0 && head.is_none() {
                break;
            }
        }
    }
    heads.remove("");
    heads
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
