//! Which engine a request reaches, on sockets: by path, by the model in its body, and where a model is unknown. The choice
//! itself is tested where it is made (`cli/src/proxy/route.rs`).

use heartline_cli::proxy::{Config, Fallback, Upstream};

use super::support::{Engine, Running, config, plain, start};

async fn engines() -> (Engine, Engine, Config) {
    let echo = |name: &'static str| {
        Engine::start(move |mut peer, head| async move {
            let length = head.to_ascii_lowercase().split("content-length: ").nth(1).map_or(0, |rest| {
                rest.split("\r\n").next().and_then(|length| length.parse::<usize>().ok()).expect("a length")
            });
            let mut body = head.split_once("\r\n\r\n").map(|(_, body)| body.len()).expect("a head");
            let mut buffer = vec![0; 65_536];
            while body < length {
                body += tokio::io::AsyncReadExt::read(&mut peer.socket, &mut buffer).await.expect("the body");
            }
            peer.send(plain("text/plain", &format!("{name} {body}"))).await;
            Some(peer)
        })
    };
    let (large, small) = (echo("large").await, echo("small").await);
    let mut config = config(large.address);
    let of = |name: &str, engine: &Engine, models: &[&str]| {
        let upstream = Upstream::new(name, format!("http://{}", engine.address).parse().expect("an address"));
        Upstream { models: models.iter().map(ToString::to_string).collect(), ..upstream }
    };
    config.upstreams = vec![of("large", &large, &["big"]), of("small", &small, &["tiny"])];
    config.limits.look_bytes = 4096;
    (large, small, config)
}

async fn ask(proxy: &Running, fields: &str, body: &str) -> (u16, String) {
    let mut client = proxy.connect().await;
    let length = body.len();
    client
        .send(format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n{fields}content-length: {length}\r\n\r\n{body}"
        ))
        .await;
    let answer = client.answer().await;
    (answer.status, answer.text().to_owned())
}

#[tokio::test]
async fn the_model_in_the_body_chooses_the_engine_and_the_body_arrives_whole() {
    let (_large, _small, config) = engines().await;
    let proxy = start(config).await;
    let long = "x".repeat(3_000);
    for (body, expected) in [
        (r#"{"model":"big"}"#.to_owned(), "large"),
        (r#"{"model":"tiny"}"#.to_owned(), "small"),
        (format!(r#"{{"messages":["{long}"],"model":"tiny"}}"#), "small"),
        (
            format!(r#"{{"nested":{{"model":"big"}},"text":"\"model\":\"big\"","model":"tiny","rest":"{long}"}}"#),
            "small",
        ),
    ] {
        assert_eq!(ask(&proxy, "", &body).await, (200, format!("{expected} {}", body.len())));
    }
    proxy.is_empty().await;
}

/// Parsers take the last of several; the first chose the engine, so that another model was asked of it.
#[tokio::test]
async fn the_last_of_several_models_chooses_the_engine() {
    let (_large, _small, config) = engines().await;
    let proxy = start(config).await;
    let long = "x".repeat(3_000);
    for (body, expected) in [
        (r#"{"model":"big","model":"tiny"}"#.to_owned(), "small"),
        (r#"{"model":"tiny","stream":true,"mod\u0065l":"big"}"#.to_owned(), "large"),
        (format!(r#"{{"model":"big","messages":["{long}"],"model":"tiny"}}"#), "small"),
        (r#"{"model":"tiny","model":null}"#.to_owned(), "large"),
    ] {
        assert_eq!(ask(&proxy, "", &body).await, (200, format!("{expected} {}", body.len())), "{body}");
        // However it comes.
        let mut client = proxy.connect().await;
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", body.len());
        client.send(head).await;
        for piece in body.as_bytes().chunks(16) {
            client.send(piece).await;
            tokio::task::yield_now().await;
        }
        assert_eq!(client.answer().await.text(), format!("{expected} {}", body.len()), "{body}");
    }
}

#[tokio::test]
async fn unknown_models_and_the_list_of_models_have_a_stated_route() {
    let (_large, _small, mut config) = engines().await;
    let proxy = start(config.clone()).await;
    assert_eq!(ask(&proxy, "", r#"{"model":"other"}"#).await.1, "large 17", "the first by default");
    assert_eq!(proxy.connect().await.get("/v1/models").await.text(), "large 0");
    config.unknown_models = Fallback::Refuse;
    config.no_model = Fallback::Engine("small".to_owned());
    let proxy = start(config).await;
    let (status, text) = ask(&proxy, "", r#"{"model":"other"}"#).await;
    assert!(status == 404 && text.contains("the model other"), "{status} {text}");
    assert_eq!(proxy.connect().await.get("/v1/models").await.text(), "small 0");
}

/// Never a 413: a body beyond the look passes on unread.
#[tokio::test]
async fn a_body_beyond_the_look_goes_where_those_without_a_model_go() {
    let (_large, _small, config) = engines().await;
    let proxy = start(config).await;
    let body = format!(r#"{{"text":"{}","model":"tiny"}}"#, "x".repeat(300_000));
    assert_eq!(ask(&proxy, "", &body).await, (200, format!("large {}", body.len())));
    proxy.is_empty().await;
}

/// A byte a chunk would be kept as a hundred: what is read ahead is one piece, bounded by `look_bytes`.
#[tokio::test]
async fn what_is_read_ahead_is_kept_in_one_piece_however_it_came() {
    let engine = Engine::start(|mut peer, head| async move {
        let (mut body, mut buffer) = (head.split_once("\r\n\r\n").expect("a head").1.to_owned(), [0; 4096]);
        while !body.ends_with("0\r\n\r\n") {
            let length = tokio::io::AsyncReadExt::read(&mut peer.socket, &mut buffer).await.expect("the body");
            body += std::str::from_utf8(&buffer[..length]).expect("text");
        }
        peer.send(plain("text/plain", &body)).await;
        Some(peer)
    })
    .await;
    let mut config = config(engine.address);
    config.upstreams[0].models = vec!["tiny".to_owned()];
    let proxy = start(config).await;
    let mut client = proxy.connect().await;
    let document = r#"{"stream":true,"model":"tiny"}"#;
    let chunks: String = document.chars().map(|byte| format!("1\r\n{byte}\r\n")).collect();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    client.send(format!("{head}{chunks}0\r\n\r\n")).await;
    assert_eq!(client.answer().await.text(), format!("{:X}\r\n{document}\r\n0\r\n\r\n", document.len()));
}
