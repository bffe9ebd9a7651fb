//! `heartline sim`: a scripted inference engine that speaks the real APIs.

use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use heartline::api::Api;
use heartline_cli::sim::{Delay, Engine, Heartbeat, LineEnd, Script, Settings, TOKENS_MAX, WaitMode};
use heartline_cli::values;

use crate::exit;
use crate::interrupt::interrupted;
use crate::resolve::Host;

/// Serve a scripted inference engine that speaks the APIs of OpenAI, Anthropic, Ollama, Gemini and others.
#[derive(Debug, Args)]
#[command(after_help = "\
Delays are fixed or drawn: 2s, uniform:1s..3s, exp:20ms (mean), lognormal:20ms,0.5 (median, sigma).

Paths: those of every API of --api, as its clients ask them, /v1/models, /events, and / for a stream of
--api. A query overrides the arguments for one request:
ttft, itl, prefill, stall, tokens, script, wait, seed, line_end, bom=on|off, ids=on|off.

Examples:
  heartline sim
      first token after 2s, then 64 tokens 20ms apart
  heartline sim --script cliff --prefill 40ms
      a burst: each request waits for those before it
  heartline sim --script hang --heartbeat newline --interval 30s
      silent for ever, kept alive
  heartline sim --ttft uniform:1s..3s --itl exp:20ms
      drawn delays, the same for the same --seed
  curl -N 'localhost:8900/?ttft=5s&tokens=8&script=stall&stall=10s'
      one request on terms of its own")]
pub(crate) struct SimArgs {
    /// Address to listen on; port 0 takes any free one, printed as 'listening on http://ADDR'.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8900", value_parser = values::socket)]
    listen: SocketAddr,
    /// API that / answers in: openai-chat, openai-completions, responses, anthropic, ollama, ollama-generate, gemini,
    /// llama-cpp, sglang, tgi, triton or events. All are served at their own paths.
    #[arg(long, value_name = "API", default_value = "openai-chat")]
    api: Api,
    /// What happens to a request: steady, cliff, stall, torn, late-error, hang, disconnect or disconnect-inside.
    #[arg(long, value_name = "SCRIPT", default_value = "steady")]
    script: Script,
    /// Time to the first token; the cliff has its prefill instead.
    #[arg(long, value_name = "DELAY", default_value = "2s")]
    ttft: Delay,
    /// Time between tokens.
    #[arg(long, value_name = "DELAY", default_value = "20ms")]
    itl: Delay,
    /// Time the cliff works on one request alone before its first token.
    #[arg(long, value_name = "DELAY", default_value = "40ms")]
    prefill: Delay,
    /// Silence that the stall adds after half of the tokens.
    #[arg(long, value_name = "DELAY", default_value = "30s")]
    stall: Delay,
    /// Tokens in an answer.
    #[arg(long, value_name = "COUNT", default_value = "64", value_parser = tokens)]
    tokens: u32,
    /// When headers are sent: usual (a stream's at once), at-once or first-token.
    #[arg(long, value_name = "WHEN", default_value = "usual")]
    wait: WaitMode,
    /// Heartbeats to embed: off, auto, newline, newline-between, comment, block:TEXT, event:NAME or ping.
    #[arg(long, value_name = "FORM", default_value = "off")]
    heartbeat: Heartbeat,
    /// Send heartbeats into JSON answers that are not streamed, too.
    #[arg(long)]
    heartbeat_json: bool,
    /// Time between heartbeats.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    interval: Duration,
    /// Makes text, cuts and drawn delays; the same seed gives the same bytes.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// How lines end: lf, crlf, cr or mixed. Without it LF, or drawn by the torn script.
    #[arg(long, value_name = "END")]
    line_end: Option<LineEnd>,
    /// Begin event streams with a byte order mark.
    #[arg(long)]
    bom: bool,
    /// Give the events of /events an id.
    #[arg(long)]
    ids: bool,
    /// How long streams may go on after SIGINT or SIGTERM; a second signal ends them at once.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = values::duration)]
    grace: Duration,
}

/// Serves until a signal comes.
pub(crate) async fn run(args: SimArgs, _host: &Host) -> ExitCode {
    let engine = match Engine::bind(args.settings()).await {
        Ok(engine) => engine,
        Err(error) => return exit::fail(exit::USAGE, &error),
    };
    // Whoever started this process reads the line to learn the port; one that reads nothing is no reason to stop.
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "listening on http://{}", engine.local_addr()).and_then(|()| stdout.flush());
    let twice = async {
        interrupted().await;
        interrupted().await;
    };
    tokio::select! {
        () = engine.run_until(interrupted()) => ExitCode::from(exit::PASS),
        () = twice => ExitCode::from(exit::INTERRUPTED),
    }
}

impl SimArgs {
    fn settings(self) -> Settings {
        Settings {
            listen: self.listen,
            api: self.api,
            script: self.script,
            ttft: self.ttft,
            itl: self.itl,
            prefill: self.prefill,
            stall: self.stall,
            tokens: self.tokens,
            wait_headers: self.wait,
            heartbeat: self.heartbeat,
            heartbeat_json: self.heartbeat_json,
            interval: self.interval,
            seed: self.seed,
            line_end: self.line_end,
            bom: self.bom.then_some(true),
            ids: self.ids,
            grace: self.grace,
        }
    }
}

/// Parses a count of tokens.
fn tokens(text: &str) -> Result<u32, String> {
    let tokens = values::number(text)?;
    if tokens <= TOKENS_MAX { Ok(tokens) } else { Err(format!("{text:?} tokens are more than {TOKENS_MAX} at most")) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        sim: SimArgs,
    }

    fn settings(line: &str) -> Result<Settings, String> {
        let parsed = Alone::try_parse_from(["sim"].into_iter().chain(line.split_whitespace()));
        parsed.map(|alone| alone.sim.settings()).map_err(|error| error.to_string())
    }

    #[test]
    fn no_argument_gives_the_default_settings() {
        assert_eq!(format!("{:?}", settings("").unwrap()), format!("{:?}", Settings::default()));
    }

    #[test]
    fn every_argument_reaches_its_setting() {
        let settings = settings(
            "--listen 127.0.0.1:0 --api ollama --script torn --ttft uniform:1s..3s --itl exp:20ms --prefill 1s --stall 9s \
             --tokens 1k --wait first-token --heartbeat auto --heartbeat-json --interval 5s --seed 7 --line-end mixed --bom \
             --ids --grace 2s",
        )
        .unwrap();
        assert_eq!(settings.listen.port(), 0);
        assert_eq!((settings.api, settings.script), (Api::OLLAMA, Script::Torn));
        assert_eq!(settings.ttft.to_string(), "uniform:1s..3s");
        assert_eq!(settings.itl.to_string(), "exp:20ms");
        assert_eq!((settings.prefill.to_string(), settings.stall.to_string()), ("1s".to_owned(), "9s".to_owned()));
        assert_eq!((settings.tokens, settings.seed), (1_000, 7));
        assert_eq!(settings.wait_headers, WaitMode::FirstToken);
        assert_eq!((settings.heartbeat, settings.heartbeat_json), (Heartbeat::Auto, true));
        assert_eq!(settings.interval, Duration::from_secs(5));
        assert_eq!((settings.line_end, settings.bom, settings.ids), (Some(LineEnd::Mixed), Some(true), true));
        assert_eq!(settings.grace, Duration::from_secs(2));
    }

    #[test]
    fn a_bad_argument_is_answered_with_what_fits() {
        for (line, reason) in [
            ("--script boom", "write one of: steady"),
            ("--ttft soon", "uniform:1s..3s"),
            ("--heartbeat beep", "newline"),
            ("--tokens 2m", "1000000 at most"),
        ] {
            let message = settings(line).unwrap_err();
            assert!(message.contains(reason), "{line}: {message}");
        }
    }
}
