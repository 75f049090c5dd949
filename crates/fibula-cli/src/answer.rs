//! The answer of a command that prints little: to standard output, or to a file.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::Failure;
use crate::options::{Format, OutputArgs};
use crate::output::Output;

/// Where an answer goes, and in which format.
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    form: OutputArgs,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl AnswerArgs {
    pub(crate) fn format(&self) -> Format {
        self.form.format()
    }

    /// Checks that the file can be written and is none of the inputs.
    pub(crate) fn open<'a>(&self, inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<Answer, Failure> {
        Answer::new(self.output.as_deref(), inputs)
    }
}

/// An answer that is being written. It is complete after [`finish`](Self::finish).
pub(crate) enum Answer {
    Stdout(BufWriter<anstream::Stdout>),
    /// A file takes its place when all is known that will be in it.
    File(Output, Vec<u8>),
}

impl Answer {
    /// Checks a file as [`Output::new`] does; standard output for `None` and `-`.
    pub(crate) fn new<'a>(
        path: Option<&Path>,
        inputs: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Result<Self, Failure> {
        Ok(match path.filter(|path| path.as_os_str() != "-") {
            None => Self::Stdout(BufWriter::new(anstream::stdout())),
            Some(path) => Self::File(Output::new(Some(path), inputs)?, Vec::new()),
        })
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Stdout(mut out) => Ok(out.flush()?),
            // Colours are for terminals.
            Self::File(output, bytes) => output.write(|out| {
                let mut plain = anstream::adapter::strip_bytes(&bytes);
                plain.try_for_each(|part| Ok(out.write_all(part)?))
            }),
        }
    }
}

impl Write for Answer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(_, buffer) => buffer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(..) => Ok(()),
        }
    }
}
