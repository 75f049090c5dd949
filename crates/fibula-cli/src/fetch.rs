//! Tables from the network, by curl.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::failure::Failure;

/// Returns the URL that a path is.
pub(crate) fn url(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let is_url = ["http://", "https://"]
        .iter()
        .any(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    is_url.then_some(text)
}

/// The body of a URL, while it arrives.
pub(crate) struct Fetched {
    curl: Child,
    out: ChildStdout,
    url: String,
}

impl Fetched {
    /// Starts curl, without a shell. It prints its own errors.
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let mut command = Command::new("curl");
        // A URL is never an option, and a redirection never leads to a file.
        command
            .args(["-fsSL", "--proto", "=http,https", "--", url])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::NotAvailable(format!("{url}: curl is needed to read it, and is not installed"))
            }
            _ => Failure::BadInput(format!("{url}: curl cannot be started: {error}")),
        };
        let mut curl = command.spawn().map_err(failed)?;
        match curl.stdout.take() {
            Some(out) => Ok(Self { curl, out, url: url.to_owned() }),
            None => Err(Failure::BadInput(format!("{url}: curl has no output"))),
        }
    }
}

impl Read for Fetched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.out.read(buffer)?;
        if count > 0 || buffer.is_empty() {
            return Ok(count);
        }
        let status = self.curl.wait()?;
        if status.success() {
            Ok(0)
        } else {
            Err(io::Error::other(format!("curl could not read {}: {status}", self.url)))
        }
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.curl.kill();
        let _ = self.curl.wait();
    }
}
