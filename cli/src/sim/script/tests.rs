//! Tests of the plan: waits, acts and bytes of every script, without a clock.

use super::*;
use crate::sim::call::Ask;
use crate::sim::settings::Settings;

fn steps(target: &str, index: u64) -> Vec<Step> {
    match Ask::read(&Settings::default(), None, target, b"") {
        Ok(Ask::Generate(call)) => plan(call, index).collect(),
        other => panic!("{other:?}"),
    }
}

fn bytes(steps: &[Step]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for step in steps {
        if let Act::Send(chunk) = &step.act {
            bytes.extend_from_slice(chunk);
        }
    }
    bytes
}

#[test]
fn steady_waits_for_the_first_token_then_between_tokens() {
    let steps = steps("/events?ttft=3s&itl=10ms&tokens=3", 0);
    let waits: Vec<u128> = steps.iter().map(|step| step.after.as_millis()).collect();
    assert_eq!(waits, [3_000, 10, 10, 10]);
    assert!(steps.iter().all(|step| matches!(step.act, Act::Send(_))));
}

#[test]
fn the_number_of_a_request_moves_delays_but_never_bytes() {
    for script in ["steady", "torn", "disconnect-inside"] {
        let target = format!("/?script={script}&itl=exp:20ms&ttft=uniform:1s..2s");
        let (one, two) = (steps(&target, 1), steps(&target, 2));
        assert_ne!(one, two, "{script}");
        assert_eq!(bytes(&one), bytes(&two), "{script}");
        let own = format!("{target}&seed=5");
        assert_eq!(steps(&own, 1), steps(&own, 2), "{script}");
        assert_ne!(bytes(&steps(&own, 1)), bytes(&one), "{script}");
    }
}

#[test]
fn stall_is_silent_after_half_of_the_tokens() {
    let steps = steps("/events?script=stall&stall=9s&ttft=1s&itl=0&tokens=4", 0);
    let waits: Vec<u64> = steps.iter().map(|step| step.after.as_secs()).collect();
    assert_eq!(waits, [1, 0, 9, 0, 0]);
}

#[test]
fn cliff_takes_the_engine_for_its_prefill() {
    let steps = steps("/events?script=cliff&prefill=40ms&ttft=9s", 0);
    let prefill = Act::Prefill(Duration::from_millis(40));
    assert_eq!(steps[0], Step { after: Duration::ZERO, act: prefill });
    assert_eq!(steps[1].after, Duration::ZERO);
}

#[test]
fn a_disconnect_breaks_between_events_or_inside_one() {
    let between = steps("/events?script=disconnect&tokens=6", 0);
    assert_eq!(between.last().unwrap().act, Act::Abort);
    assert!(bytes(&between).ends_with(b"\n\n"));
    let inside = steps("/events?script=disconnect-inside&tokens=6", 0);
    assert_eq!(inside.last().unwrap().act, Act::Abort);
    assert!(inside.last().unwrap().after >= ABORT_AFTER);
    let (between, inside) = (bytes(&between), bytes(&inside));
    assert!(inside.starts_with(&between) && inside.len() > between.len());
    assert!(!inside.ends_with(b"\n\n"));
}

#[test]
fn hang_never_sends_and_never_ends() {
    let steps = steps("/?script=hang", 0);
    assert_eq!(steps, [Step { after: Duration::ZERO, act: Act::Hang }]);
}

#[test]
fn an_answer_without_tokens_still_ends() {
    for script in Script::ALL.iter().filter(|script| **script != Script::Hang) {
        let steps = steps(&format!("/?script={script}&tokens=0"), 0);
        assert!(!steps.is_empty() && steps.len() < 5_000, "{script}");
    }
}

#[test]
fn torn_has_the_bytes_of_steady_in_other_pieces() {
    for seed in 0..40 {
        let steady = bytes(&steps(&format!("/?seed={seed}&line_end=mixed&bom=on"), 0));
        let torn = steps(&format!("/?seed={seed}&line_end=mixed&bom=on&script=torn"), 0);
        assert_eq!(bytes(&torn), steady);
    }
}

#[test]
fn a_document_waits_for_all_of_its_tokens() {
    let steps = steps("/v1/messages?ttft=1s&itl=100ms&tokens=11", 0);
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].after, Duration::from_secs(2));
}
