//! Who asks: the user, the group and the process that the kernel tells with a request.

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) pid: u32,
}

impl Caller {
    /// Whether the group is one of the caller's. The kernel tells its first group; the others are looked up. Of a
    /// caller that has gone, or that is in another namespace, they are not known.
    pub(crate) fn is_in(self, group: u32) -> bool {
        let others = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
            let groups = status.lines().find_map(|line| line.strip_prefix("Groups:"));
            groups.is_some_and(|groups| groups.split_whitespace().any(|other| other.parse() == Ok(group)))
        };
        self.gid == group || others()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_a_caller_are_looked_up() {
        let pid = std::process::id();
        for group in rustix::process::getgroups().unwrap() {
            assert!(Caller { uid: 1, gid: u32::MAX, pid }.is_in(group.as_raw()));
        }
        assert!(!Caller { uid: 1, gid: 5, pid }.is_in(u32::MAX - 1));
    }
}
