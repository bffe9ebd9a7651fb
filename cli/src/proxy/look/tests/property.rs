//! The look against serde_json: any document, any chunking, any coding, broken ones too.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Text of a JSON value with arbitrary whitespace, escapes and repeated keys, which `Value` cannot hold.
fn document() -> impl Strategy<Value = String> {
    let space = prop::sample::select(vec!["", "", " ", "\n", "\t\r\n "]);
    let text = prop_oneof![
        prop::sample::select(vec!["stream", "model", "strea", "streams", "a", "\\", "\"", "}", "é", "\u{1F600}"])
            .prop_map(str::to_owned),
        any::<String>(),
    ];
    let string = (text, any::<u64>()).prop_map(|(text, dice)| quote(&text, dice)).boxed();
    let scalar = prop_oneof![
        prop::sample::select(vec!["true", "false", "null", "0", "-1", "1.5e3"]).prop_map(str::to_owned),
        string.clone(),
    ];
    let (inner_string, inner_space) = (string.clone(), space.clone());
    let value = scalar.prop_recursive(4, 24, 4, move |value| {
        let member = (inner_string.clone(), inner_space.clone(), value.clone(), inner_space.clone())
            .prop_map(|(key, before, value, after)| format!("{before}{key}{after}:{before}{value}{after}"));
        prop_oneof![
            prop::collection::vec(value, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    });
    let key = prop_oneof![3 => any::<u64>().prop_map(|dice| quote(["stream", "model"][dice as usize % 2], dice)), 2 => string];
    let member = (key, space.clone(), value, space.clone())
        .prop_map(|(key, before, value, after)| format!("{after}{key}{before}:{after}{value}{before}"));
    (prop::collection::vec(member, 0..8), space)
        .prop_map(|(members, space)| format!("{space}{{{space}{}}}{space}", members.join(",")))
}

/// A JSON string of `text` with some of its letters escaped, as `dice` falls.
fn quote(text: &str, mut dice: u64) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        dice = dice.rotate_left(7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if dice.is_multiple_of(3) || letter < ' ' || letter == '"' || letter == '\\' {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                quoted.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            quoted.push(letter);
        }
    }
    quoted + "\""
}

fn expected(document: &str) -> Finding {
    let value: Value = serde_json::from_str(document).expect("the strategy makes valid JSON");
    let model = value.get("model").and_then(Value::as_str);
    match value.get("stream") {
        None | Some(Value::Null) => read(None, model),
        Some(Value::Bool(stream)) => read(Some(*stream), model),
        Some(_) => Finding { model: model.map(str::to_owned), ..unread() },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_reads_as_serde_json_reads_it(document in document(), chunk in 1_usize..40, coding in 0_usize..5) {
        let expected = expected(&document);
        prop_assert_eq!(&look(&[], LIMIT, document.as_bytes(), chunk), &expected);
        if let Some(coding) = CODED.get(coding) {
            prop_assert_eq!(&coded(coding, &encode(coding, document.as_bytes()), chunk), &expected);
        }
    }

    #[test]
    fn a_torn_document_is_unread(document in document(), cut in any::<prop::sample::Index>()) {
        let document = document.trim();
        let cut = cut.index(document.len());
        prop_assert!(look(&[], LIMIT, &document.as_bytes()[..cut], 5).is_unread);
    }

    #[test]
    fn any_bytes_read_the_same_in_any_chunking(
        body in prop::collection::vec(prop::sample::select(br#"{}[]":,\ustream model0true"#.to_vec()), 0..60),
        noise in prop::collection::vec(any::<u8>(), 0..60),
        chunk in 1_usize..9,
    ) {
        for coding in ["identity", "gzip", "deflate", "zstd"] {
            let fields = [("content-encoding", coding)];
            for body in [&body, &noise] {
                let whole = look(&fields, LIMIT, body, LIMIT);
                prop_assert!(whole.is_over);
                prop_assert_eq!(&whole, &look(&fields, LIMIT, body, chunk));
            }
        }
    }

    #[test]
    fn a_broken_coding_costs_its_body_the_look_and_nothing_else(
        document in document(),
        coding in 0_usize..4,
        at in any::<prop::sample::Index>(),
        flip in 1_u8..=255,
        chunk in 1_usize..40,
    ) {
        let mut encoded = encode(CODED[coding], document.as_bytes());
        let at = at.index(encoded.len());
        encoded[at] ^= flip;
        prop_assert!(coded(CODED[coding], &encoded, chunk).is_over);
    }
}
