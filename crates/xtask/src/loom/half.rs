//! The two kinds of models: loom's, which try every schedule, and shuttle's larger scenarios, which try many random
//! ones.

/// The half of `f2fs-sync` that a model is built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    Loom,
    Shuttle,
}

impl Half {
    /// The `--cfg` that chooses it. The names of its test files begin with the same word and an underscore.
    pub(super) fn name(self) -> &'static str {
        match self {
            Half::Loom => "loom",
            Half::Shuttle => "shuttle",
        }
    }

    /// Whether this is a test file of it, given without the ending.
    pub(super) fn owns(self, file: &str) -> bool {
        file.strip_prefix(self.name()).is_some_and(|rest| rest.starts_with('_'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_one_half() {
        assert!(Half::Loom.owns("loom_gate") && !Half::Shuttle.owns("loom_gate"));
        assert!(Half::Shuttle.owns("shuttle_locks") && !Half::Loom.owns("shuttle_locks"));
        assert!(!Half::Loom.owns("loomed"));
    }
}
