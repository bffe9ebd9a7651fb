//! Reports of real runs are what docs/load-report.schema.json says, and the schema leaves no member of them out.
use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Runs `heartline` and returns the JSON it prints.
fn printed(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_heartline"))
        .args(arguments)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .output()
        .expect("the command starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn schema() -> Value {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/load-report.schema.json")).unwrap();
    serde_json::from_str(&text).expect("the schema is JSON")
}

/// Every complaint about `value`; members that the schema does not name are complained of too.
fn complaints(schema: &Value, rules: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, rule) in rules.as_object().expect("a schema is an object") {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let pointer = rule.as_str().unwrap().trim_start_matches('#');
                let target = schema.pointer(pointer).unwrap_or_else(|| panic!("{place}: nothing at {pointer}"));
                found.extend(complaints(schema, target, value, place));
            }
            "anyOf" => {
                let tried = rule.as_array().unwrap().iter().map(|one| complaints(schema, one, value, place));
                let tried: Vec<_> = tried.collect();
                if tried.iter().all(|complaints| !complaints.is_empty()) {
                    found.extend(tried.into_iter().flatten());
                }
            }
            "type" => {
                let listed = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                if !listed.iter().any(|name| is_of(value, name.as_str().unwrap())) {
                    found.push(format!("{place}: {value} is not {rule}"));
                }
            }
            "enum" if !rule.as_array().unwrap().contains(value) => {
                found.push(format!("{place}: {value} not in {rule}"))
            }
            "minimum" if value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()) => {
                found.push(format!("{place}: {value} is below {rule}"));
            }
            "enum" | "minimum" => {}
            "required" => {
                for name in rule.as_array().unwrap().iter().filter(|_| value.is_object()) {
                    if value.get(name.as_str().unwrap()).is_none() {
                        found.push(format!("{place}: {name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    match rule.get(name) {
                        Some(rules) => found.extend(complaints(schema, rules, member, &format!("{place}.{name}"))),
                        None => found.push(format!("{place}: the schema has no {name}")),
                    }
                }
            }
            "additionalProperties" => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    found.extend(complaints(schema, rule, member, &format!("{place}.{name}")));
                }
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(complaints(schema, rule, item, &format!("{place}.{number}")));
                }
            }
            other => panic!("{place}: this test does not know {other}"),
        }
    }
    found
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("{other} is no type of JSON Schema"),
    }
}

fn assert_as_published(report: &Value) {
    let schema = schema();
    let complaints = complaints(&schema, &schema, report, "report");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_held_run_is_as_published_and_so_is_one_of_several_processes() {
    let run = ["load", "--streams", "12", "--interval", "400ms", "--hold", "1s", "--json", "-"];
    assert_as_published(&printed(&run));
    let several = printed(&[&run[..], &["--procs", "2", "--threshold", "silence.max<30s", "ttft.p99<5s"]].concat());
    assert_as_published(&several);
    assert_eq!(several["merged"]["parts"].as_array().map(Vec::len), Some(2));
    assert_eq!(several["thresholds"].as_array().map(Vec::len), Some(2));
}

#[test]
fn one_shard_with_events_is_as_published() {
    let report = printed(&[
        "load",
        "--api",
        "openai-chat",
        "--arrivals",
        "poisson",
        "--rate",
        "20/s",
        "--hold",
        "1s",
        "--drain",
        "5s",
        "--interval",
        "500ms",
        "--shard",
        "0/2",
        "--json",
        "-",
    ]);
    assert_as_published(&report);
    assert!(report["slices"].is_object() && report["ttft_ms"].is_object(), "{report}");
}

#[test]
fn a_run_that_reached_nobody_is_as_published() {
    assert_as_published(&printed(&["load", "http://127.0.0.1:9/", "--streams", "3", "--hold", "1h", "--json", "-"]));
}

#[test]
fn what_is_not_as_published_is_refused() {
    let report = printed(&["load", "http://127.0.0.1:9/", "--streams", "3", "--hold", "1h", "--json", "-"]);
    let schema = schema();
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut changed = report.clone();
        change(&mut changed);
        complaints(&schema, &schema, &changed, "report").len()
    };
    assert_eq!(refused(&|_| {}), 0);
    assert_eq!(refused(&|report| report["bytes"] = json!("many")), 1);
    assert_eq!(refused(&|report| report["streams"]["opened"] = json!(-1)), 1);
    assert_eq!(refused(&|report| report["settings"]["shape"] = json!("round")), 1);
    assert_eq!(refused(&|report| report["surprise"] = json!(1)), 1);
    assert_eq!(refused(&|report| drop(report["client"].as_object_mut().unwrap().remove("valid"))), 1);
    assert!(refused(&|report| report["gap_ms"] = json!({ "p50": 1 })) > 0);
}
