//! A network that contains only this machine's loopback device.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// For programs that must not reach the outside world. Namespaces belong to threads, so the rest of the test process
/// keeps its network, and everything started inside stays inside.
///
/// A test that wants one begins with [`needs_network!`](crate::needs_network). If the system still refuses one, the
/// machine's own network takes its place, is listed as such, and [`Network::is_closed`] says so: whoever starts a
/// program there has to isolate it in another way.
pub struct Network {
    namespace: Option<File>,
}

impl Network {
    /// A closed network, or the machine's own if the system refuses one.
    pub fn closed() -> Self {
        let namespace = on_another_thread(make_namespace);
        if let Err(refused) = &namespace {
            crate::not_run(
                "programs in a network without a world",
                &format!(
                    "it is refused here ({refused}); they ran in this machine's, with a proxy that answers nothing"
                ),
            );
        }
        Self { namespace: namespace.ok() }
    }

    /// Whether the system lets this process have one.
    pub(crate) fn can_be_closed() -> bool {
        on_another_thread(make_namespace).is_ok()
    }

    /// Whether the outside world is unreachable from inside.
    pub fn is_closed(&self) -> bool {
        self.namespace.is_some()
    }

    /// Runs `act` inside: sockets bound and programs started there belong to this network.
    pub fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let Some(namespace) = &self.namespace else { return act() };
        on_another_thread(|| {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(std::os::fd::AsFd::as_fd(namespace), kind)
                .expect("who made a network may enter it");
            act()
        })
    }
}

/// A thread cannot be trusted to return from another namespace, so each visit has its own thread.
fn on_another_thread<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let result = std::thread::scope(|scope| scope.spawn(act).join());
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[allow(unsafe_code, reason = "rustix calls it unsafe for file tables, which this leaves alone")]
fn make_namespace() -> std::io::Result<File> {
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    switch_loopback_on()?;
    File::open("/proc/thread-self/ns/net")
}

/// A new network has a loopback device, but it is down and has no address.
#[allow(unsafe_code, reason = "no crate here has a safe form of this request")]
fn switch_loopback_on() -> std::io::Result<()> {
    let any = UdpSocket::bind("0.0.0.0:0")?;
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    let flags = libc::__c_anonymous_ifr_ifru { ifru_flags: libc::IFF_UP as libc::c_short };
    let request = libc::ifreq { ifr_name: name, ifr_ifru: flags };
    // The kernel only reads the name and the flags.
    match unsafe { libc::ioctl(any.as_raw_fd(), libc::SIOCSIFFLAGS, &request) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_listens_inside_is_reached_from_inside_and_the_world_is_not() {
        crate::needs_network!();
        let network = Network::closed();
        if !network.is_closed() {
            return;
        }
        let listener = network.inside(|| TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        assert!(network.inside(|| TcpStream::connect(address)).is_ok());
        assert!(TcpStream::connect(address).is_err(), "it is reached from outside");
        // An address for documentation: nothing answers there, and inside there is not even a route.
        let world = network.inside(|| TcpStream::connect("192.0.2.1:80"));
        assert_eq!(world.unwrap_err().kind(), std::io::ErrorKind::NetworkUnreachable);
    }
}
