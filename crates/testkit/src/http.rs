//! As much of an HTTP/1.1 server as one agent on loopback needs: a request per connection, whole bodies.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::network::Network;

/// A request, read to its end.
pub(crate) struct Call {
    pub method: String,
    /// As sent, with the query.
    pub path: String,
    /// With names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The connection closes after the answer, which also ends a body of events.
pub(crate) struct Reply {
    pub status: u16,
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

/// A server on its own port, in its own network. It ends with this value.
pub(crate) struct Server {
    pub network: Network,
    pub address: SocketAddr,
    ending: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(answer: impl Fn(Call) -> Reply + Send + Sync + 'static) -> io::Result<Self> {
        let network = Network::closed();
        let listener = network.inside(|| TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let ending = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ending);
        let answer = Arc::new(answer);
        let listening = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Acquire) {
                    break;
                }
                let (Ok(stream), answer) = (stream, Arc::clone(&answer)) else { continue };
                // An agent that disconnects in the middle is no failure of the server.
                std::thread::spawn(move || serve(&stream, &*answer));
            }
        });
        Ok(Self { network, address, ending, listening: Some(listening) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        let woken = self.network.inside(|| TcpStream::connect(self.address)).is_ok();
        if let Some(listening) = self.listening.take().filter(|_| woken) {
            let _ = listening.join();
        }
    }
}

fn serve(stream: &TcpStream, answer: &dyn Fn(Call) -> Reply) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let call = read(&mut BufReader::new(stream))?;
    let silent = call.method == "HEAD";
    let Reply { status, content_type, body } = answer(call);
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status} \r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n", body.len())?;
    write!(stream, "connection: close\r\n\r\n")?;
    if !silent {
        stream.write_all(&body)?;
    }
    stream.flush()
}

fn read(from: &mut impl BufRead) -> io::Result<Call> {
    let first = line(from)?;
    let mut words = first.split(' ').map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let (mut length, mut chunked) = (0, false);
    let mut headers = Vec::new();
    loop {
        let header = line(from)?;
        let Some((name, value)) = header.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().map_err(io::Error::other)?,
            "transfer-encoding" => chunked = value.trim().eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        loop {
            let size = u64::from_str_radix(line(from)?.trim(), 16).map_err(io::Error::other)?;
            take(from, size, &mut body)?;
            line(from)?;
            if size == 0 {
                break;
            }
        }
    } else {
        take(from, length, &mut body)?;
    }
    Ok(Call { method, path, headers, body })
}

fn take(from: &mut impl BufRead, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
    match from.take(length).read_to_end(into)? as u64 == length {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    line.truncate(line.trim_end().len());
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(server: &Server, request: &str) -> String {
        let mut stream = server.network.inside(|| TcpStream::connect(server.address)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    #[test]
    fn a_body_is_whole_whether_it_came_with_a_length_or_in_chunks() {
        crate::needs_network!();
        let echo = |call: Call| Reply { status: 200, content_type: "text/plain", body: call.body };
        let server = Server::start(echo).unwrap();
        let by_length = ask(&server, "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
        let in_chunks =
            ask(&server, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n");
        for reply in [by_length, in_chunks] {
            assert!(reply.starts_with("HTTP/1.1 200 ") && reply.ends_with("\r\n\r\nhello"), "{reply}");
        }
        let head = ask(&server, "HEAD / HTTP/1.1\r\n\r\n");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
    }
}
