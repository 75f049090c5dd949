//! A program that answers requests in time, or is stopped.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The answer of a program: a line, and the bytes after it.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) line: String,
    pub(super) bytes: Vec<u8>,
}

/// A running program, with a thread for each of its three streams, so that neither a full pipe nor an empty one
/// blocks the caller.
pub(super) struct ChildProgram {
    child: Child,
    requests: Sender<Vec<u8>>,
    answers: Receiver<Answer>,
    last_words: Receiver<String>,
    limit: Duration,
}

/// The longest line that is read; no answer is longer.
const LINE_MAX: u64 = 4096;

/// The longest that a program may take to close its standard error after it has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl ChildProgram {
    pub(super) fn start(mut command: Command, limit: Duration) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            format!("{} does not start: {error}", command.get_program().to_string_lossy())
        })?;
        let (Some(mut input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("the program has no standard streams".to_owned());
        };
        let (requests, to_write) = channel::<Vec<u8>>();
        std::thread::spawn(move || {
            for request in to_write {
                if input.write_all(&request).and_then(|()| input.flush()).is_err() {
                    break;
                }
            }
        });
        let (to_read, answers) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(answer) = read(&mut output) {
                if to_read.send(answer).is_err() {
                    break;
                }
            }
        });
        let (said, last_words) = channel();
        std::thread::spawn(move || said.send(last_line(errors)));
        Ok(Self { child, requests, answers, last_words, limit })
    }

    /// Sends a request and waits for the answer. After an error the program has been stopped.
    pub(super) fn ask(&mut self, request: Vec<u8>) -> Result<Answer, String> {
        // If the program has ended, the missing answer shows it.
        let _ = self.requests.send(request);
        match self.answers.recv_timeout(self.limit) {
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => {
                self.stop();
                Err(format!("no answer for {} s", self.limit.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let words = self.last_words.recv_timeout(LAST_WORDS).unwrap_or_default();
                self.stop();
                Err(if words.is_empty() {
                    "the program ended".to_owned()
                } else {
                    format!("the program ended: {words}")
                })
            }
        }
    }

    fn stop(&mut self) {
        // Fails if the program has ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ChildProgram {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Reads the next answer; none at the end.
fn read(output: &mut impl BufRead) -> Option<Answer> {
    let mut line = Vec::new();
    output.take(LINE_MAX).read_until(b'\n', &mut line).ok()?;
    if line.pop() != Some(b'\n') {
        return None;
    }
    let line = String::from_utf8_lossy(&line).trim_end().to_owned();
    let count = line.strip_prefix("answers ").and_then(|count| count.parse::<u32>().ok()).unwrap_or(0);
    let mut bytes = Vec::new();
    output.take(u64::from(count) * 4).read_to_end(&mut bytes).ok()?;
    Some(Answer { line, bytes })
}

/// Returns the last line that is not empty, cut if it is too long.
fn last_line(stream: impl Read) -> String {
    let mut last = String::new();
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    while stream.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            text.trim().clone_into(&mut last);
        }
        line.clear();
    }
    last
}

/// Runs a command, which may take until `limit`, and returns its output. The error has the last line of its
/// standard error.
pub(in crate::rival) fn finished(mut command: Command, limit: Duration) -> Result<String, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| format!("{name} does not start: {error}"))?;
    let (mut output, errors) = (child.stdout.take(), child.stderr.take());
    let (printed, print) = channel();
    let (said, words) = channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // Output that cannot be read counts as none.
        let _ = output.as_mut().map(|output| output.read_to_end(&mut text));
        printed.send(String::from_utf8_lossy(&text).into_owned())
    });
    std::thread::spawn(move || said.send(errors.map(last_line).unwrap_or_default()));
    let end = Instant::now() + limit;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            other => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(match other {
                    Err(error) => format!("{name}: {error}"),
                    Ok(_) => format!("{name} did not end within {} s", limit.as_secs()),
                });
            }
        }
    };
    let words = words.recv_timeout(LAST_WORDS).unwrap_or_default();
    match status.success() {
        true => Ok(print.recv_timeout(LAST_WORDS).unwrap_or_default()),
        false => Err(format!("{name} failed: {words}")),
    }
}
