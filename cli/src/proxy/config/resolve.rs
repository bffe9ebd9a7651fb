//! Puts flags, environment and file over one another and over the defaults, engine by engine, and has the outcome checked.
//! Called by `Config::load`.

use clap::builder::Resettable;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use toml::de::{DeTable, DeValue};

use super::check::{self, Problem, Table};
use super::{Config, Limits, Upstream};
use crate::values::{self, File, Layer};

/// The settings that flags and environment give, which go over those of a file. Part of the command's arguments.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Those of the proxy itself.
    proxy: Layer,
    /// Those that hold for every engine, or name the only one.
    engine: Layer,
}

impl Args for Overrides {
    fn augment_args(command: Command) -> Command {
        let [proxy, engine] = [arguments::<Config>(), arguments::<Upstream>()];
        // What is required may stand in the file. In the help they stand in the order of the fields, engines first.
        let in_order = |argument: Arg| argument.required(false).display_order(Resettable::Reset);
        command.args(engine.into_iter().chain(proxy).map(in_order))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Overrides {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let [proxy, engine] = [arguments::<Config>(), arguments::<Upstream>()];
        Ok(Self { proxy: Layer::given(&proxy, matches), engine: Layer::given(&engine, matches) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The arguments that define some settings.
fn arguments<T: Args>() -> Vec<Arg> {
    T::augment_args(Command::new("settings")).get_arguments().cloned().map(values::in_environment).collect()
}

/// Settings as they are written, table by table, before anything is read: those of a file, then all of them.
#[derive(Debug, Default)]
struct Document {
    /// The proxy's own, with its limits.
    proxy: Layer,
    /// What holds for every engine that does not say otherwise.
    defaults: Layer,
    /// Each engine, with the offset of its table.
    engines: Vec<(Layer, Option<usize>)>,
}

impl Document {
    fn of(file: &File) -> Result<Self, String> {
        let parsed = file.parse()?;
        let top = parsed.get_ref();
        let [mut proxy, limits, engine] = [arguments::<Config>(), arguments::<Limits>(), arguments::<Upstream>()];
        proxy.retain(|argument| !limits.iter().any(|limit| limit.get_id() == argument.get_id()));
        let mut document =
            Self { proxy: Layer::of_table(&proxy, top, file, &["limits", "defaults", "upstream"])?, ..Self::default() };
        if let Some((table, _)) = table(top, "limits", file)? {
            document.proxy = document.proxy.over(&Layer::of_table(&limits, table, file, &[])?);
        }
        if let Some((table, offset)) = table(top, "defaults", file)? {
            document.defaults = Layer::of_table(&engine, table, file, &[])?;
            if OWN.iter().any(|id| document.defaults.has(id)) {
                let message = "name, url, paths and models belong to one engine: set them under [[upstream]]";
                return Err(file.at(offset, message));
            }
        }
        let Some(engines) = top.get("upstream") else { return Ok(document) };
        let DeValue::Array(engines) = engines.get_ref() else {
            return Err(file.at(engines.span().start, "upstream is a list of engines: write [[upstream]]"));
        };
        for item in engines {
            let offset = item.span().start;
            let DeValue::Table(table) = item.get_ref() else {
                return Err(file.at(offset, "an upstream is a table: write [[upstream]] and its keys below"));
            };
            document.engines.push((Layer::of_table(&engine, table, file, &[])?, Some(offset)));
        }
        Ok(document)
    }

    /// Puts `given` over what the file says.
    fn below(mut self, given: &Overrides) -> Result<Self, String> {
        let many = self.engines.len();
        if many > 1 && OWN.iter().any(|id| given.engine.has(id)) {
            let flags = "--upstream, --name, --paths and --models";
            return Err(format!(
                "{flags} are of one engine and the file has {many}: leave them out, or change the file"
            ));
        }
        if many == 0 && given.engine.has("url") {
            self.engines.push((Layer::default(), None));
        }
        self.proxy = given.proxy.over(&self.proxy);
        for (index, (engine, _)) in self.engines.iter_mut().enumerate() {
            let own = given.engine.over(engine);
            let mut all = own.over(&self.defaults);
            if !own.has("ca") && own.text("url").is_some_and(|url| !url.starts_with("https:")) {
                all.remove("ca"); // a default for those that speak TLS
            }
            if index > 0 && !all.has("name") {
                all.set("name", &format!("engine-{}", index + 1));
            }
            *engine = all;
        }
        Ok(self)
    }

    fn read(&self, file: Option<&File>) -> Result<Config, String> {
        let refused = |layer: &Layer, refused| layer.refusal(&refused, file);
        let mut config: Config = self.proxy.read().map_err(|error| refused(&self.proxy, error))?;
        for (index, (engine, _)) in self.engines.iter().enumerate() {
            if !engine.has("url") {
                let problem =
                    Problem::of_engine(index, "url", "this upstream has no url: add url = \"http://127.0.0.1:23333\"");
                return Err(self.told(&problem, file));
            }
            let mut engine: Upstream = engine.read().map_err(|error| refused(engine, error))?;
            engine.paths = plain_paths(&engine.paths);
            config.upstreams.push(engine);
        }
        Ok(config)
    }

    /// The problem, with the place in front where the setting was written, or its table stands.
    fn told(&self, problem: &Problem, file: Option<&File>) -> String {
        let (layer, table) = match problem.table {
            Table::Proxy => (Some(&self.proxy), None),
            Table::Engine(index) => {
                let engine = self.engines.get(index);
                (engine.map(|(layer, _)| layer), engine.and_then(|(_, offset)| *offset))
            }
        };
        let message = &*problem.message;
        let of_key = layer.and_then(|layer| layer.told(problem.key, message, file));
        of_key.or_else(|| Some(file?.at(table?, message))).unwrap_or_else(|| message.to_owned())
    }
}

/// Puts `given` over the file and both over the defaults, and checks the outcome.
///
/// # Errors
///
/// One line: where, what is wrong, what to write.
pub(super) fn resolve(file: Option<&File>, given: &Overrides) -> Result<Config, String> {
    let document = file.map(Document::of).transpose()?.unwrap_or_default().below(given)?;
    let config = document.read(file)?;
    check::check(&config).map_err(|problem| document.told(&problem, file))?;
    Ok(config)
}

/// A table of the file, with its offset.
fn table<'a>(top: &'a DeTable<'a>, key: &str, file: &File) -> Result<Option<(&'a DeTable<'a>, usize)>, String> {
    let Some(value) = top.get(key) else { return Ok(None) };
    let offset = value.span().start;
    match value.get_ref() {
        DeValue::Table(table) => Ok(Some((table, offset))),
        _ => Err(file.at(offset, &format!("{key} is a table: write [{key}] and its keys below"))),
    }
}

/// `/v1/` means what `/v1` means, and `/` what no prefix means: every path.
fn plain_paths(paths: &[String]) -> Vec<String> {
    if paths.iter().any(|path| path == "/") {
        return Vec::new();
    }
    paths.iter().map(|path| path.strip_suffix('/').unwrap_or(path).to_owned()).collect()
}

/// What belongs to one engine and has no sense as a default for several.
const OWN: [&str; 4] = ["url", "name", "paths", "models"];
