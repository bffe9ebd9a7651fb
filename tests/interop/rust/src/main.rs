//! The Rust clients, each as a function from a place and a model to what the client decodes. Started by `interop.py` as
//! `heartline-interop CLIENT`; jobs and results are those of `python/drivers.py`.

use std::error::Error;
use std::io::{BufRead, Write};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use async_openai::config::OpenAIConfig;
use eventsource_client::{Client as _, ClientBuilder, ReconnectOptions, SSE};
use eventsource_stream::Eventsource;
use futures::{FutureExt, Stream, StreamExt, future, stream};
use launchdarkly_sdk_transport::HyperTransport;
use reqwest_eventsource::{Error as SourceError, Event, RequestBuilderExt};
use serde_json::{Value, json};

const AT_ONCE: usize = 24;
const SECONDS: u64 = 25;

type Fault = Box<dyn Error + Send + Sync>;
type Objects = Pin<Box<dyn Stream<Item = Result<Value, Fault>> + Send>>;

/// Where and what to ask.
struct Job {
    base: String,
    api: String,
    model: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let client = std::env::args().nth(1).expect("the client's name");
    let jobs = std::io::stdin().lock().lines().map(|line| {
        let job: Value = serde_json::from_str(&line.expect("a line")).expect("a job");
        let text = |name: &str| job[name].as_str().expect("a text").to_owned();
        (job["id"].clone(), Job { base: text("base"), api: text("api"), model: text("model") })
    });
    let jobs: Vec<_> = jobs.collect();
    let results = stream::iter(jobs).map(|(id, job)| run(&client, id, job)).buffer_unordered(AT_ONCE);
    results.for_each(|result| future::ready(writeln!(std::io::stdout(), "{result}").expect("standard output"))).await;
}

/// Does one job; what ends it early is a part of its result.
async fn run(client: &str, id: Value, job: Job) -> Value {
    let mut objects = Vec::new();
    let whole = async {
        let mut stream = match client {
            "async_openai" => openai(job).await?,
            "reqwest_eventsource" => reqwest_eventsource(job)?,
            "eventsource_client" => eventsource_client(job)?,
            "eventsource_stream" => events(job).await?,
            _ => return Err(format!("no client {client}").into()),
        };
        while let Some(object) = stream.next().await {
            objects.push(object?);
        }
        Ok::<_, Fault>(())
    };
    // One of these clients panics at a byte order mark.
    let ended = tokio::time::timeout(Duration::from_secs(SECONDS), AssertUnwindSafe(whole).catch_unwind()).await;
    let error = match ended {
        Ok(Ok(Ok(()))) => None,
        Ok(Ok(Err(error))) => Some(error.to_string().chars().take(300).collect()),
        Ok(Err(_)) => Some("panic".to_owned()),
        Err(_) => Some("no end in time".to_owned()),
    };
    json!({ "id": id, "objects": objects, "error": error })
}

async fn openai(Job { base, api, model }: Job) -> Result<Objects, Fault> {
    let config = OpenAIConfig::new().with_api_base(format!("{base}/v1")).with_api_key("x");
    let client = async_openai::Client::with_config(config);
    Ok(match &*api {
        "chat" => objects(client.chat().create_stream(request(asked(&model))?).await?),
        "completions" => {
            objects(client.completions().create_stream(request(json!({"model": model, "prompt": "hello"}))?).await?)
        }
        "responses" => {
            objects(client.responses().create_stream(request(json!({"model": model, "input": "hello"}))?).await?)
        }
        _ => {
            let mut asked = asked(&model);
            asked["stream"] = Value::Bool(false);
            let answer = client.chat().create(request(asked)?).await?;
            stream::once(future::ready(serde_json::to_value(answer).map_err(Into::into))).boxed()
        }
    })
}

fn reqwest_eventsource(job: Job) -> Result<Objects, Fault> {
    let mut source = target(&job).eventsource()?;
    source.set_retry_policy(Box::new(reqwest_eventsource::retry::Never));
    Ok(source
        .take_while(|event| future::ready(!matches!(event, Err(SourceError::StreamEnded))))
        .filter_map(|event| {
            future::ready(match event {
                Ok(Event::Open) => None,
                Ok(Event::Message(it)) => Some(Ok(json!([it.event, it.data, it.id]))),
                Err(error) => Some(Err(error.into())),
            })
        })
        .boxed())
}

fn eventsource_client(job: Job) -> Result<Objects, Fault> {
    let transport = HyperTransport::builder().build_http()?;
    let (url, body) = place(&job);
    let mut builder = ClientBuilder::for_url(&url)?.reconnect(ReconnectOptions::reconnect(false).build());
    if let Some(body) = body {
        builder = builder.method("POST".to_owned()).header("content-type", "application/json")?.body(body.to_string());
    }
    let stream = builder.build_with_transport(transport).stream();
    Ok(stream
        .take_while(|event| future::ready(!matches!(event, Err(eventsource_client::Error::Eof))))
        .filter_map(|event| {
            future::ready(match event {
                Ok(SSE::Event(it)) => Some(Ok(json!([it.event_type, it.data, it.id, it.retry]))),
                Ok(_) => None,
                Err(error) => Some(Err(error.into())),
            })
        })
        .boxed())
}

async fn events(job: Job) -> Result<Objects, Fault> {
    let answer = target(&job).send().await?;
    let events = answer.bytes_stream().eventsource();
    Ok(events.map(|event| event.map(|it| json!([it.event, it.data, it.id])).map_err(Into::into)).boxed())
}

fn objects<T, E>(stream: impl Stream<Item = Result<T, E>> + Send + 'static) -> Objects
where
    T: serde::Serialize,
    E: Into<Fault>,
{
    stream.map(|object| serde_json::to_value(object.map_err(Into::into)?).map_err(Into::into)).boxed()
}

fn request<T: serde::de::DeserializeOwned>(asked: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(asked)
}

fn asked(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "hello"}], "stream": true})
}

/// How a client that knows no API asks for a stream: the URL, and a body if it is a `POST`.
fn place(Job { base, api, model }: &Job) -> (String, Option<Value>) {
    if api == "events" {
        let url = format!("{base}/events/{model}");
        return (url.strip_suffix("/-").unwrap_or(&url).to_owned(), None);
    }
    (format!("{base}/v1/chat/completions"), Some(asked(model)))
}

fn target(job: &Job) -> reqwest_old::RequestBuilder {
    let client = reqwest_old::Client::new();
    match place(job) {
        (url, None) => client.get(url),
        (url, Some(body)) => client.post(url).json(&body),
    }
}
