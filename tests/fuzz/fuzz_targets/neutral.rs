//! Any stream, cut anywhere, with heartbeats anywhere: is invariant I1 kept? The judge is the one of the property tests.

#![no_main]

#[path = "../../common/neutral.rs"]
mod neutral;
#[path = "../../common/oracle.rs"]
mod oracle;
#[path = "../../common/reference.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // What JSON readers make of a line of nothing but space differs: leave lines of such bytes to the properties.
    let is_lines = input.first().is_some_and(|format| format % 3 == 1);
    if is_lines && input.windows(2).any(|pair| is_space(pair[0]) && is_space(pair[1])) {
        return;
    }
    if let Some(scenario) = neutral::parse(input)
        && let Err(error) = neutral::check(&scenario)
    {
        panic!("{error}");
    }
});

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x1E | 0x1F)
}
