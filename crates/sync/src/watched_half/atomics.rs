//! The standard atomics, with their reads and writes on record. A compare-and-swap that fails counts as well: it takes
//! the line away from its holder.

use std::fmt;
use std::sync::atomic::{self as standard, Ordering};

/// The two ways to compare and swap.
macro_rules! exchanges {
    ($value:ty, $($operation:ident: $doc:literal, $error:literal);*) => {
        $(
            #[doc = $doc]
            ///
            /// # Errors
            ///
            #[doc = $error]
            #[track_caller]
            pub fn $operation(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.written();
                self.value.$operation(current, new, success, failure)
            }
        )*
    };
}

/// The methods that all atomics have.
macro_rules! atomic {
    ($(#[$doc:meta])* $name:ident $(<$type:ident>)?, $value:ty, $what:literal) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name $(<$type>)? {
            value: standard::$name $(<$type>)?,
        }

        impl $(<$type>)? $name $(<$type>)? {
            /// An atomic with this value.
            pub const fn new(value: $value) -> Self {
                Self { value: standard::$name::new(value) }
            }

            /// The value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                super::read(self, $what);
                self.value.load(order)
            }

            /// Changes the value.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                self.written();
                self.value.store(value, order);
            }

            /// Changes the value; what it was.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.written();
                self.value.swap(value, order)
            }

            exchanges!(
                $value,
                compare_exchange: "Changes the value if it is `current`; what it was.", "The value, if it is another one.";
                compare_exchange_weak: "As `compare_exchange`; may fail for no reason.",
                    "The value, if it is another one, or for no reason."
            );

            /// Changes the value as `change` says, as often as others come between; what it was.
            ///
            /// # Errors
            ///
            /// The value, if `change` wants none.
            #[track_caller]
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                mut change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut old = self.load(fetch);
                while let Some(new) = change(old) {
                    // Each try takes the line away from its holder.
                    match self.compare_exchange_weak(old, new, set, fetch) {
                        Ok(old) => return Ok(old),
                        Err(now) => old = now,
                    }
                }
                Err(old)
            }

            /// The value, without synchronization.
            pub fn get_mut(&mut self) -> &mut $value {
                self.value.get_mut()
            }

            /// The value.
            pub fn into_inner(self) -> $value {
                self.value.into_inner()
            }

            #[track_caller]
            fn written(&self) {
                super::written(self, $what);
            }
        }

        impl $(<$type>)? fmt::Debug for $name $(<$type>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.value.fmt(f)
            }
        }

        impl $(<$type>)? Default for $name $(<$type>)? {
            fn default() -> Self {
                Self { value: Default::default() }
            }
        }

        impl $(<$type>)? From<$value> for $name $(<$type>)? {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }
    };
}

/// The operations that give the old value.
macro_rules! operations {
    ($name:ident, $value:ty, $($operation:ident: $doc:literal),*) => {
        impl $name {
            $(
                #[doc = $doc]
                #[track_caller]
                pub fn $operation(&self, value: $value, order: Ordering) -> $value {
                    self.written();
                    self.value.$operation(value, order)
                }
            )*
        }
    };
}

/// An integer, with all of its operations.
macro_rules! integer {
    ($($name:ident: $value:ty, $what:literal;)*) => {$(
        atomic!(#[doc = concat!("An atomic `", stringify!($value), "`.")] $name, $value, $what);
        operations!(
            $name,
            $value,
            fetch_add: "Adds; the value before.",
            fetch_sub: "Subtracts; the value before.",
            fetch_and: "Bitwise and; the value before.",
            fetch_nand: "Bitwise nand; the value before.",
            fetch_or: "Bitwise or; the value before.",
            fetch_xor: "Bitwise exclusive or; the value before.",
            fetch_max: "The greater of both; the value before.",
            fetch_min: "The lesser of both; the value before."
        );
    )*};
}

integer! {
    AtomicI8: i8, "AtomicI8";
    AtomicI16: i16, "AtomicI16";
    AtomicI32: i32, "AtomicI32";
    AtomicI64: i64, "AtomicI64";
    AtomicIsize: isize, "AtomicIsize";
    AtomicU8: u8, "AtomicU8";
    AtomicU16: u16, "AtomicU16";
    AtomicU32: u32, "AtomicU32";
    AtomicU64: u64, "AtomicU64";
    AtomicUsize: usize, "AtomicUsize";
}

atomic!(
    /// An atomic `bool`.
    AtomicBool,
    bool,
    "AtomicBool"
);
operations!(
    AtomicBool,
    bool,
    fetch_and: "And; the value before.",
    fetch_nand: "Nand; the value before.",
    fetch_or: "Or; the value before.",
    fetch_xor: "Exclusive or; the value before."
);

atomic!(
    /// An atomic pointer.
    AtomicPtr<T>,
    *mut T,
    "AtomicPtr"
);
