use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use super::*;

/// Sends an answer to a client that asks to take over, and returns what the client makes of it, with the other end.
fn met<O: Send + 'static>(
    name: &str,
    answer: impl FnOnce(UnixStream) -> O + Send + 'static,
) -> (Result<Option<Predecessor>, TakeoverError>, O) {
    let path = std::env::temp_dir().join(format!("fibula-takeover-{name}-{}", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut question = [0; 9];
        stream.read_exact(&mut question).unwrap();
        assert_eq!(&question, b"takeover\n");
        answer(stream)
    });
    let met = Predecessor::meet(&path);
    std::fs::remove_file(&path).unwrap();
    (met, other.join().unwrap())
}

/// Returns which of the wishes comes next.
fn next(successor: &mut Successor) -> Wish {
    std::iter::repeat_with(|| successor.wish()).flatten().next().unwrap()
}

#[test]
fn each_item_comes_with_its_descriptor_and_wishes_are_heard() {
    // More descriptors than a message has.
    let folder = std::env::temp_dir().join(format!("fibula-takeover-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |number: u32| std::fs::File::create(folder.join(number.to_string())).unwrap();
    let given: Vec<(u32, OwnedFd)> = (0..100).map(|number| (number, file(number).into())).collect();
    let (predecessor, mut successor) = met("items", move |stream| {
        let given = given.iter().map(|(device, file)| (Given::Packets { device: *device }, file.as_fd()));
        Successor::offer(stream, &given.collect::<Vec<_>>()).unwrap()
    });
    assert_eq!(successor.process(), Some(std::process::id()));
    let mut predecessor = predecessor.unwrap().unwrap();
    assert_eq!(predecessor.process(), std::process::id());
    for device in (0..100).rev() {
        let item = Given::Packets { device };
        assert!(predecessor.has(&item));
        let file = std::fs::File::from(predecessor.take(&item).unwrap());
        let named = std::fs::metadata(folder.join(device.to_string())).unwrap();
        assert_eq!(file.metadata().unwrap().ino(), named.ino(), "{device}");
        assert!(!predecessor.has(&item) && predecessor.take(&item).is_none());
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(successor.wish(), None);
    let released = std::thread::spawn(move || {
        assert_eq!(next(&mut successor), Wish::Release);
        successor.released();
        assert_eq!(next(&mut successor), Wish::Done);
        assert_eq!(next(&mut successor), Wish::GivenUp, "the end of the connection");
    });
    predecessor.release().unwrap();
    predecessor.end();
    released.join().unwrap();
}

#[test]
fn a_successor_that_ends_or_is_not_understood_has_given_up() {
    for said in ["", "release", "relea\n", "done \n", &"x".repeat(1000)] {
        let (mut theirs, ours) = UnixStream::pair().unwrap();
        let mut successor = Successor::offer(ours, &[]).unwrap();
        theirs.write_all(said.as_bytes()).unwrap();
        drop(theirs);
        assert_eq!(next(&mut successor), Wish::GivenUp, "{said}");
    }
}

#[test]
fn a_router_that_does_not_offer_itself_is_not_taken_over() {
    let nowhere = std::env::temp_dir().join("fibula-takeover-nowhere");
    assert!(Predecessor::meet(&nowhere).unwrap().is_none());
    let answers = [
        ("old", r#"{"error":"no question 'takeover'"}"#, "its version has another way to be taken over"),
        ("busy", r#"{"error":"another one is taking it over"}"#, "another one is taking it over"),
        ("new", r#"{"protocol":2,"process":7,"items":[]}"#, "its version has another way"),
        ("else", r#"{"ports":[]}"#, "its version has another way"),
        (
            "short",
            r#"{"protocol":1,"process":7,"items":[{"kind":"control"}]}"#,
            "other descriptors than it said",
        ),
    ];
    for (name, line, expected) in answers {
        let (met, ()) = met(name, move |mut stream| writeln!(stream, "{line}").unwrap());
        let error = met.unwrap_err().to_string();
        assert!(error.starts_with("the router that runs is not taken over, and goes on: "), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    let (met, ()) = met("end", |_| ());
    assert!(matches!(met, Err(TakeoverError::Broken(..))), "{met:?}");
    let (met, ()) = self::met("long", |mut stream| _ = stream.write_all(&vec![b' '; LONGEST + 5000]));
    assert!(met.unwrap_err().to_string().contains("does not end"));
}
