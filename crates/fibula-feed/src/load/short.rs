//! The calls of [`Loader`] in the short forms that tests use.

use std::io::{self, Read};
use std::path::Path;

use super::{LoadError, LoadOptions, LoadedRoutes, Loader, Progress, Report, Source};
use crate::event::Event;

type Tell<'a> = &'a mut dyn FnMut(Progress);

pub(crate) fn load(
    path: impl AsRef<Path>,
    options: &LoadOptions,
    progress: Tell<'_>,
) -> Result<LoadedRoutes, LoadError> {
    Loader::new(options.clone()).on_progress(progress).load(path.as_ref())
}

pub(crate) fn load_all(
    paths: &[impl AsRef<Path>],
    options: &LoadOptions,
    progress: Tell<'_>,
) -> Result<LoadedRoutes, LoadError> {
    Loader::new(options.clone()).on_progress(progress).load(paths)
}

pub(crate) fn load_reader(
    name: &str,
    input: impl Read,
    options: &LoadOptions,
    progress: Tell<'_>,
) -> Result<LoadedRoutes, LoadError> {
    Loader::new(options.clone()).on_progress(progress).load(Source::reader(name, input))
}

pub(crate) fn survey(
    path: impl AsRef<Path>,
    options: &LoadOptions,
    progress: Tell<'_>,
) -> Result<Report, LoadError> {
    let reports = Loader::new(options.clone()).on_progress(progress).survey(path.as_ref());
    reports.map(|mut reports| reports.remove(0))
}

pub(crate) fn survey_reader(
    name: &str,
    input: impl Read,
    options: &LoadOptions,
    progress: Tell<'_>,
) -> Result<Report, LoadError> {
    let reports = Loader::new(options.clone()).on_progress(progress).survey(Source::reader(name, input));
    reports.map(|mut reports| reports.remove(0))
}

pub(crate) fn events_reader(
    name: &str,
    input: impl Read,
    options: &LoadOptions,
    each: &mut (dyn FnMut(Event) -> io::Result<()> + Send),
    progress: Tell<'_>,
) -> Result<Report, LoadError> {
    let reports =
        Loader::new(options.clone()).on_progress(progress).events(Source::reader(name, input), each);
    reports.map(|mut reports| reports.remove(0))
}

pub(crate) fn events(
    path: impl AsRef<Path>,
    options: &LoadOptions,
    each: &mut (dyn FnMut(Event) -> io::Result<()> + Send),
    progress: Tell<'_>,
) -> Result<Report, LoadError> {
    let reports = Loader::new(options.clone()).on_progress(progress).events(path.as_ref(), each);
    reports.map(|mut reports| reports.remove(0))
}
