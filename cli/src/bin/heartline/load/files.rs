//! Reads the result files that `load --json` wrote, for `merge` and `compare`.

use std::fs;
use std::path::Path;

use heartline_cli::load::Report;

/// Reads one report; the log of a pod will do, since the report is one line of it.
///
/// # Errors
///
/// One line that names the file and what is wrong with it.
pub(crate) fn read(path: &Path) -> Result<Report, String> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("{name} cannot be read: {error}"))?;
    let line = text.lines().rfind(|line| line.starts_with("{\"streams\"")).unwrap_or(&text);
    serde_json::from_str(line)
        .map_err(|error| format!("{name} is no report of this version of heartline load: {error}"))
}
