//! The look at chosen bodies; `property` has arbitrary ones.

mod property;

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;

const LIMIT: usize = 1024 * 1024;

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

fn look(fields: &[(&'static str, &str)], limit: usize, body: &[u8], chunk: usize) -> Finding {
    let mut look = Look::new(&headers(fields), limit);
    for bytes in body.chunks(chunk.max(1)) {
        look.push(bytes);
    }
    let before = look.finding().clone();
    look.finish();
    if before.is_over {
        assert_eq!(&before, look.finding(), "an end changes nothing that is over");
    }
    look.finding().clone()
}

/// The look at a plain body, whole and byte by byte.
fn plain(body: impl AsRef<[u8]>) -> Finding {
    let whole = look(&[], LIMIT, body.as_ref(), LIMIT);
    assert_eq!(whole, look(&[], LIMIT, body.as_ref(), 1), "torn");
    whole
}

fn read(stream: Option<bool>, model: Option<&str>) -> Finding {
    Finding { stream, model: model.map(str::to_owned), is_over: true, is_unread: false }
}

fn unread() -> Finding {
    Finding { is_over: true, is_unread: true, ..Finding::default() }
}

#[test]
fn the_keys_are_found_wherever_they_stand() {
    for body in [
        r#"{"model":"m","stream":true}"#,
        r#" { "stream" : true , "model" : "m" } "#,
        r#"{"messages":[{"role":"user","content":"\"stream\":false}"}],"model":"m","stream":true}"#,
        r#"{"stream":true,"tools":{"stream":false,"model":"x","a":[[{}]]},"model":"m"}"#,
        "\u{FEFF}{\"model\":\"m\",\"stream\":true}",
        r#"{"str\u0065am":true,"\u006dodel":"\u006D"}"#,
        r#"{"a":-1.5e+3,"b":null,"c":"\\","d":[],"model":"m","stream":true}"#,
    ] {
        assert_eq!(plain(body), read(Some(true), Some("m")), "{body}");
    }
    assert_eq!(plain(r#"{"stream":null,"model":7}"#), read(None, None));
    assert_eq!(plain("{}"), read(None, None));
}

#[test]
fn keys_that_only_look_alike_are_none() {
    for body in [
        r#"{"Stream":true,"streams":true,"strea":true,"":true,"stream ":true}"#,
        r#"{"a":{"stream":true}}"#,
        r#"{"a":[{"stream":true}],"b":"stream","c":"\"stream\":true"}"#,
        r#"{"x\"stream":true,"stream\\":true,"stream\u0000":true}"#,
        r#"{"stream_options":{"include_usage":true}}"#,
    ] {
        assert_eq!(plain(body), read(None, None), "{body}");
    }
}

#[test]
fn the_last_of_several_counts() {
    assert_eq!(plain(r#"{"stream":true,"model":"a","stream":false,"model":"b"}"#), read(Some(false), Some("b")));
    assert_eq!(plain(r#"{"stream":true,"model":"a","stream":null,"model":null}"#), read(None, None));
    assert_eq!(plain(r#"{"stream":"odd","stream":true}"#), read(Some(true), None));
}

#[test]
fn a_stream_that_is_no_boolean_leaves_the_body_unread_but_its_model_known() {
    for odd in ["\"true\"", "1", "{}", "[true]", "True", "truely"] {
        let finding = plain(format!(r#"{{"model":"m","stream":{odd}}}"#));
        assert_eq!(finding, Finding { model: Some("m".into()), ..unread() }, "{odd}");
    }
}

#[test]
fn what_is_no_json_object_is_unread() {
    for body in [
        "",
        " ",
        "[]",
        "[{\"stream\":true}]",
        "true",
        "stream=true",
        "{stream:true}",
        "{\"stream\" true}",
        "{\"stream\":true \"model\":1}",
        "{\"stream\":true,}",
        "{,\"stream\":true}",
        "{'stream':true}",
        "{\"stream\":,\"model\":\"m\"}",
        "{\"str\neam\":true}",
        "{\"str\\xeam\":true}",
        "{\"str\\u00zzeam\":true}",
        "\u{FEFF}\u{FEFF}{}",
        "\0{\0}",
        "{\"stream\":true",
        "{\"stream\":true,\"a\":\"",
    ] {
        assert_eq!(plain(body), unread(), "{body:?}");
    }
    assert_eq!(plain(b"\xEF\xBB{}"), unread());
    assert_eq!(plain(b"{\0\"\0"), unread());
}

#[test]
fn a_name_too_long_or_no_text_is_no_model() {
    let longest = "x".repeat(scan::MODEL_MAX);
    assert_eq!(plain(format!(r#"{{"model":"{longest}"}}"#)), read(None, Some(&longest)));
    assert_eq!(plain(format!(r#"{{"model":"{longest}x"}}"#)), read(None, None));
    for half in [r"\ud83d", r"\ude00", r"\ud83dx", r"\ud83d\n", r"\ud83d\ud83d"] {
        assert_eq!(plain(format!(r#"{{"model":"{half}"}}"#)), read(None, None), "{half}");
    }
    assert_eq!(plain(r#"{"model":"\ud83d\ude00"}"#), read(None, Some("😀")));
    assert_eq!(plain(b"{\"model\":\"\xFF\"}"), read(None, None));
}

#[test]
fn over_the_limit_a_body_is_unread_and_keeps_the_model_seen() {
    let body = format!(r#"{{"model":"m","stream":true,"prompt":"{}"}}"#, "x".repeat(100));
    for chunk in [1, 7, body.len()] {
        assert_eq!(look(&[], body.len(), body.as_bytes(), chunk), read(Some(true), Some("m")));
        let over = look(&[], body.len() - 1, body.as_bytes(), chunk);
        assert_eq!(over, Finding { model: Some("m".into()), ..unread() });
    }
    assert_eq!(look(&[], 0, body.as_bytes(), 1), unread());
}

#[test]
fn a_type_that_is_not_json_is_unread_and_a_form_of_curl_is_tried() {
    let body = br#"{"stream":true}"#;
    for (value, expected) in [
        ("application/json", read(Some(true), None)),
        ("Application/JSON; charset=utf-8", read(Some(true), None)),
        ("application/vnd.api+json", read(Some(true), None)),
        ("application/x-www-form-urlencoded", read(Some(true), None)),
        ("multipart/form-data; boundary=x", unread()),
        ("audio/wav", unread()),
        ("application/octet-stream", unread()),
    ] {
        assert_eq!(look(&[("content-type", value)], LIMIT, body, 4), expected, "{value}");
    }
}

fn encode(coding: &str, body: &[u8]) -> Vec<u8> {
    let level = Compression::default();
    match coding {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), level);
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        }
        "deflate" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        }
        "raw" => {
            let mut encoder = DeflateEncoder::new(Vec::new(), level);
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        }
        "zstd" => compress_to_vec(body, CompressionLevel::Fastest),
        _ => body.to_vec(),
    }
}

/// The look at a body in a coding; `raw` is deflate without its zlib header.
fn coded(coding: &'static str, encoded: &[u8], chunk: usize) -> Finding {
    let name = if coding == "raw" { "deflate" } else { coding };
    look(&[("content-encoding", name)], LIMIT, encoded, chunk)
}

const CODED: [&str; 4] = ["gzip", "deflate", "raw", "zstd"];

#[test]
fn compressed_bodies_are_decoded_for_the_look() {
    let words: String = (0..40_000_u32).map(|i| format!("{} ", i.wrapping_mul(2_654_435_761))).collect();
    let body = format!(r#"{{"prompt":"{words}","model":"m","stream":true}}"#);
    for coding in CODED {
        let encoded = encode(coding, body.as_bytes());
        for chunk in [777, encoded.len()] {
            assert_eq!(coded(coding, &encoded, chunk), read(Some(true), Some("m")), "{coding} by {chunk}");
        }
        let small = encode(coding, br#"{"stream":true,"model":"m"}"#);
        assert_eq!(coded(coding, &small, 1), read(Some(true), Some("m")), "{coding}");
        assert_eq!(coded(coding, &small[..small.len() / 2], 3), unread(), "{coding} torn");
    }
}

#[test]
fn a_broken_or_unknown_coding_is_unread() {
    let body = br#"{"stream":true}"#;
    for coding in ["gzip", "zstd", "deflate", "br", "gzip, zstd", "x-unknown"] {
        assert_eq!(look(&[("content-encoding", coding)], LIMIT, body, 5), unread(), "{coding}");
    }
    let twice = [("content-encoding", "gzip"), ("content-encoding", "gzip")];
    assert_eq!(look(&twice, LIMIT, &encode("gzip", body), 5), unread());
    let none = [("content-encoding", "identity"), ("content-encoding", "")];
    assert_eq!(look(&none, LIMIT, body, 5), read(Some(true), None));
}

#[test]
fn a_bomb_is_unread_and_costs_no_more_than_the_limit() {
    let bomb = [br#"{"stream":true,"a":""#.as_slice(), &vec![b' '; 2 * LIMIT]].concat();
    for coding in CODED {
        let finding = coded(coding, &encode(coding, &bomb), LIMIT);
        assert!(finding.is_unread && finding.stream.is_none(), "{coding}");
    }
    let below_the_limit = [br#"{"a":""#.as_slice(), &vec![b' '; LIMIT / 2], br#"","stream":true}"#].concat();
    assert_eq!(plain(&below_the_limit), read(Some(true), None));
    for coding in CODED {
        assert_eq!(coded(coding, &encode(coding, &below_the_limit), LIMIT), unread(), "{coding}: only the ratio tells");
    }
}

#[test]
fn a_window_of_gigabytes_is_refused_before_it_is_allocated() {
    // A frame that asks for the largest window and holds one empty last block.
    let frame = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xFF, 0x01, 0x00, 0x00];
    assert_eq!(coded("zstd", &frame, 2), unread());
    // A block that claims to be larger than the format allows.
    let frame = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58, 0xFF, 0xFF, 0xFF];
    assert_eq!(coded("zstd", &frame, 2), unread());
}
