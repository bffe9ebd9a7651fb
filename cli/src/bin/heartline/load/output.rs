//! The arguments of `heartline load` that say where the report goes, and in which forms.

use clap::Args;
use heartline_cli::load::Report;

use crate::json::{Destination, Writer};

/// Where the report goes besides the summary.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct OutputArgs {
    /// Write the report as JSON to a file, or to standard output with '-' (then nothing else goes there).
    #[arg(long, value_name = "FILE|-")]
    json: Option<Destination>,
    /// Write the figures as CSV, a name and a value a line.
    #[arg(long, value_name = "FILE|-")]
    csv: Option<Destination>,
    /// Write the distributions as an HdrHistogram log, for its viewers.
    #[arg(long, value_name = "FILE|-")]
    hdr: Option<Destination>,
    /// Write the report as one web page that needs nothing else.
    #[arg(long, value_name = "FILE|-")]
    html: Option<Destination>,
}

/// The files of one report, open before the run so that one that cannot be written is known before it.
#[derive(Debug)]
pub(crate) struct Output {
    json: Option<Writer>,
    csv: Option<Writer>,
    hdr: Option<Writer>,
    html: Option<Writer>,
}

impl OutputArgs {
    /// Opens the files.
    ///
    /// # Errors
    ///
    /// One line that names the file and the reason, or says that standard output is asked for twice.
    pub(crate) fn open(&self) -> Result<Output, String> {
        let on_stdout = self.all().filter(|destination| destination.is_stdout()).count();
        if on_stdout > 1 {
            return Err("only one report goes to standard output; write the others to files".to_owned());
        }
        let open = |destination: &Option<Destination>| destination.as_ref().map(Destination::open).transpose();
        Ok(Output { json: open(&self.json)?, csv: open(&self.csv)?, hdr: open(&self.hdr)?, html: open(&self.html)? })
    }

    /// Tells whether standard output belongs to one of the files.
    pub(crate) fn takes_stdout(&self) -> bool {
        self.all().any(Destination::is_stdout)
    }

    fn all(&self) -> impl Iterator<Item = &Destination> {
        [&self.json, &self.csv, &self.hdr, &self.html].into_iter().flatten()
    }
}

impl Output {
    /// Writes the report in each form asked for.
    ///
    /// # Errors
    ///
    /// One line with the reason.
    pub(crate) fn write(self, report: &Report) -> Result<(), String> {
        if let Some(writer) = self.json {
            writer.write(report)?;
        }
        if let Some(writer) = self.csv {
            writer.write_text(&report.to_csv())?;
        }
        if let Some(writer) = self.hdr {
            writer.write_text(&report.to_hdr_log().map_err(|error| error.to_string())?)?;
        }
        if let Some(writer) = self.html {
            writer.write_text(&report.to_html())?;
        }
        Ok(())
    }
}
