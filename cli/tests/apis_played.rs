//! Every API once around: the load harness asks the scripted engine in the API's own way, the engine answers in it, and the
//! harness knows the end, the error and the break for what they are.
use std::time::Duration;

use heartline::api::Api;
use heartline_cli::load::{self, Prompt, Report, Shape, Streaming};
use heartline_cli::sim::{Delay, Engine, Script, Settings};
use http::{HeaderValue, Method, Uri};

/// Runs a few streams of an API against an engine of its own.
async fn played(api: Api, script: Script, stream: Streaming) -> Report {
    let none = Delay::fixed(Duration::ZERO);
    let settings = Settings {
        listen: ([127, 0, 0, 1], 0).into(),
        script,
        ttft: none,
        itl: none,
        tokens: 24,
        ..Settings::default()
    };
    let engine = Engine::bind(settings).await.unwrap();
    let address = engine.local_addr();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let engine = tokio::spawn(engine.run_until(async move {
        let _ = stopped.await; // a test that failed stops it too
    }));
    let mut prompt = Prompt::new(5, "m-1");
    prompt.stream = stream;
    let url: Uri = format!("http://{address}{}", prompt.path(api)).parse().unwrap();
    let mut settings = load::Settings::new(url);
    (settings.streams, settings.rate_per_second) = (4, 1_000);
    settings.shape = Shape::Complete(Duration::from_secs(10));
    settings.api = Some(api);
    if api != Api::EVENTS {
        settings.method = Method::POST;
        settings.headers.insert("content-type", HeaderValue::from_static("application/json"));
        settings.targets = prompt.targets(api);
    }
    let report = tokio::time::timeout(Duration::from_secs(20), load::run(settings, |_| {})).await;
    drop(stop);
    engine.await.unwrap();
    report.expect("the run ends on time").unwrap()
}

fn failed(report: &Report) -> Vec<(&str, u64)> {
    report.streams.failed.iter().map(|(kind, count)| (kind.as_str(), *count)).filter(|(_, count)| *count > 0).collect()
}

#[tokio::test]
async fn every_api_is_asked_answered_and_found_complete() {
    for &api in Api::ALL {
        let report = played(api, Script::Steady, Streaming::On).await;
        assert_eq!((report.streams.completed, failed(&report)), (4, vec![]), "{api}");
        let ends = if api.ends().is_empty() { 0 } else { 4 };
        assert_eq!(report.events.ends_seen, ends, "{api}");
        assert!(report.events.total >= 4 * 24, "{api}: {:?}", report.events);
        assert_eq!((report.events.ids_missing, report.events.ids_repeated), (0, 0), "{api}");
        if api != Api::EVENTS {
            let report = played(api, Script::Steady, Streaming::Off).await;
            assert_eq!((report.streams.completed, failed(&report)), (4, vec![]), "{api} as a document");
        }
    }
}

#[tokio::test]
async fn every_apis_own_error_is_found_in_its_stream() {
    for &api in Api::ALL {
        let report = played(api, Script::LateError, Streaming::On).await;
        // Of events alone nothing is known: a clean end is one.
        let expected = if api == Api::EVENTS { vec![] } else { vec![("error_in_stream", 4)] };
        assert_eq!(failed(&report), expected, "{api}");
    }
}

#[tokio::test]
async fn an_engine_that_breaks_off_is_never_taken_for_one_that_ended() {
    for &api in Api::ALL {
        for script in [Script::Disconnect, Script::DisconnectInside] {
            let report = played(api, script, Streaming::On).await;
            assert_eq!(report.streams.completed, 0, "{api} {script}: {:?}", report.streams);
        }
    }
}
