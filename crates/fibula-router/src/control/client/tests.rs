use std::os::unix::net::UnixListener;
use std::thread::{self, JoinHandle};

use super::*;

/// A router that gives one answer, and returns the question.
struct Router {
    socket: PathBuf,
    thread: JoinHandle<String>,
}

impl Router {
    fn new(name: &str, answer: &'static str) -> Self {
        let socket = std::env::temp_dir().join(format!("fibula-client-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = String::new();
            BufReader::new(&stream).read_line(&mut question).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            question
        });
        Self { socket, thread }
    }

    fn question(self) -> String {
        std::fs::remove_file(&self.socket).unwrap();
        self.thread.join().unwrap()
    }
}

fn listed(name: &str, answer: &'static str) -> (Vec<String>, Result<(), String>) {
    let (router, mut lines) = (Router::new(name, answer), Vec::new());
    let result = list_routes::<AskError>(&router.socket, &RoutesOf::default(), |route| {
        lines.push(route.line.clone());
        Ok(())
    });
    router.question();
    (lines, result.map_err(|error| error.to_string()))
}

#[test]
fn an_answer_keeps_its_line() {
    let line = r#"{"prefix":null,"next_hop":null,"later":1}"#;
    let router = Router::new("line", "{\"prefix\":null,\"next_hop\":null,\"later\":1}\n");
    let found = route_of(&router.socket, "red", "192.0.2.1".parse().unwrap(), true).unwrap();
    assert_eq!((found.line.as_str(), found.answer.prefix), (line, None));
    assert_eq!(router.question(), "get red 192.0.2.1 changes\n");
}

#[test]
fn other_answers_are_errors_that_say_what_is_missing() {
    let cases = [
        (
            "{\"threads\":1,\"vrfs\":[]}\n",
            "the router answered something else: missing field `ports`; is it of another version?",
        ),
        ("{\"error\":\"no question 'stats'\"}\n", "no question 'stats'"),
    ];
    for (at, (answer, message)) in cases.into_iter().enumerate() {
        let router = Router::new(&format!("other-{at}"), answer);
        assert_eq!(stats(&router.socket).unwrap_err().to_string(), message);
        assert_eq!(router.question(), "stats\n");
    }
    let router = Router::new("nothing", "");
    let error = feeds(&router.socket).unwrap_err().to_string();
    assert!(error.starts_with(&format!("no router answers at {}: ", router.socket.display())), "{error}");
    router.question();
    let error = neighbours(Path::new("/nonexistent/socket")).unwrap_err();
    assert!(matches!(error, AskError::NoAnswer(..)));
}

#[test]
fn a_router_that_is_busy_is_not_called_absent() {
    let socket = std::env::temp_dir().join(format!("fibula-client-{}-busy", std::process::id()));
    let _ = std::fs::remove_file(&socket);
    let _listener = UnixListener::bind(&socket).unwrap();
    let error = ask::<Stats>(&socket, "stats", Duration::from_millis(20)).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("the router at {} does not answer in time", socket.display())),
        "{error}"
    );
    std::fs::remove_file(&socket).unwrap();
}

#[test]
fn a_listing_ends_with_its_last_line() {
    const ROUTE: &str = r#"{"prefix":"10.0.0.0/8","next_hop":"blackhole"}"#;
    const WHOLE: &str = "{\"prefix\":\"10.0.0.0/8\",\"next_hop\":\"blackhole\"}\n{\"routes\":1}\n";
    assert_eq!(listed("whole", WHOLE), (vec![ROUTE.to_owned()], Ok(())));
    let (lines, result) = listed("cut", WHOLE.split_once('\n').unwrap().0);
    assert_eq!(lines, [ROUTE]);
    assert!(result.unwrap_err().contains("no router answers at"));
    let (lines, result) =
        listed("renamed", "{\"prefixes\":\"10.0.0.0/8\",\"next_hop\":null}\n{\"routes\":1}\n");
    assert!(lines.is_empty());
    assert!(result.unwrap_err().contains("missing field `prefix`"));
    let (lines, result) = listed("refused", "{\"error\":\"no feed 'x'\"}\n");
    assert_eq!((lines.len(), result), (0, Err("no feed 'x'".to_owned())));
}

#[test]
fn questions_have_their_words_in_order() {
    let prefix = Some("10.0.0.0/8".parse().unwrap());
    let all =
        RoutesOf { vrf: "red", prefix, covers: true, inside: true, feed: Some("my feed"), changes: true };
    assert_eq!(all.to_string(), "show red 10.0.0.0/8 covers inside changes feed=my feed");
    assert_eq!(RoutesOf { vrf: "red", ..RoutesOf::default() }.to_string(), "show red");
}
