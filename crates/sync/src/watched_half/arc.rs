//! A reference count on record: where it is cloned, and that it is dropped.

use std::any::type_name;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc as Plain;

/// A shared value, as `std::sync::Arc`. Its counts stand right before the value, as far before it as its alignment and
/// their size ask for.
pub struct Arc<T: ?Sized> {
    /// `None` only while it is being taken apart; it takes no more room than without.
    arc: Option<Plain<T>>,
}

/// A reference that does not keep the value.
pub struct Weak<T: ?Sized>(std::sync::Weak<T>);

/// The address of the counts.
fn counts<T: ?Sized>(arc: &Plain<T>) -> usize {
    let before = (2 * size_of::<usize>()).next_multiple_of(align_of_val(&**arc));
    Plain::as_ptr(arc).cast::<u8>().addr() - before
}

#[track_caller]
fn written<T: ?Sized>(arc: &Plain<T>) {
    super::written_at(counts(arc), type_name::<Arc<T>>());
}

impl<T> Arc<T> {
    /// A new value.
    pub fn new(value: T) -> Arc<T> {
        Plain::new(value).into()
    }

    /// The value, if this is the last reference.
    #[track_caller]
    pub fn into_inner(this: Arc<T>) -> Option<T> {
        written(this.plain());
        Plain::into_inner(Arc::into_plain(this))
    }

    /// The value, or the reference again if it is not the last one.
    ///
    /// # Errors
    /// The reference.
    #[track_caller]
    pub fn try_unwrap(this: Arc<T>) -> Result<T, Arc<T>> {
        written(this.plain());
        Plain::try_unwrap(Arc::into_plain(this)).map_err(Arc::from)
    }
}

impl<T: Clone> Arc<T> {
    /// The value, to be changed; cloned first if others refer to it.
    #[track_caller]
    pub fn make_mut(this: &mut Arc<T>) -> &mut T {
        written(this.plain());
        match &mut this.arc {
            Some(arc) => Plain::make_mut(arc),
            None => unreachable!("taken apart"),
        }
    }
}

impl<T: ?Sized> Arc<T> {
    fn plain(&self) -> &Plain<T> {
        match &self.arc {
            Some(arc) => arc,
            None => unreachable!("taken apart"),
        }
    }

    /// The reference as one that is on record no more.
    pub fn into_plain(mut this: Arc<T>) -> Plain<T> {
        match this.arc.take() {
            Some(arc) => arc,
            None => unreachable!("taken apart"),
        }
    }

    /// Whether both are the same value.
    pub fn ptr_eq(this: &Arc<T>, other: &Arc<T>) -> bool {
        Plain::ptr_eq(this.plain(), other.plain())
    }

    /// Where the value stands.
    pub fn as_ptr(this: &Arc<T>) -> *const T {
        Plain::as_ptr(this.plain())
    }

    /// References to the value.
    #[track_caller]
    pub fn strong_count(this: &Arc<T>) -> usize {
        super::read_at(counts(this.plain()), type_name::<Arc<T>>());
        Plain::strong_count(this.plain())
    }

    /// The value, to be changed, if this is the only reference.
    #[track_caller]
    pub fn get_mut(this: &mut Arc<T>) -> Option<&mut T> {
        written(this.plain());
        this.arc.as_mut().and_then(Plain::get_mut)
    }

    /// A reference that does not keep the value.
    #[track_caller]
    pub fn downgrade(this: &Arc<T>) -> Weak<T> {
        written(this.plain());
        Weak(Plain::downgrade(this.plain()))
    }
}

impl<T: ?Sized> Weak<T> {
    /// The value, if it is still there.
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        let arc = self.0.upgrade()?;
        written(&arc);
        Some(arc.into())
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    #[track_caller]
    fn clone(&self) -> Arc<T> {
        written(self.plain());
        self.plain().clone().into()
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    fn drop(&mut self) {
        if let Some(arc) = &self.arc {
            written(arc);
        }
    }
}

impl<T: ?Sized> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.plain()
    }
}

impl<T: ?Sized> From<Plain<T>> for Arc<T> {
    fn from(arc: Plain<T>) -> Arc<T> {
        Arc { arc: Some(arc) }
    }
}

impl<T: ?Sized> From<Box<T>> for Arc<T> {
    fn from(value: Box<T>) -> Arc<T> {
        Plain::<T>::from(value).into()
    }
}

impl<T> From<Vec<T>> for Arc<[T]> {
    fn from(values: Vec<T>) -> Arc<[T]> {
        Plain::<[T]>::from(values).into()
    }
}

impl<T: Default> Default for Arc<T> {
    fn default() -> Arc<T> {
        Arc::new(T::default())
    }
}

impl<T: ?Sized> AsRef<T> for Arc<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized> Borrow<T> for Arc<T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Arc<T> {
    fn eq(&self, other: &Arc<T>) -> bool {
        **self == **other
    }
}

impl<T: ?Sized + Eq> Eq for Arc<T> {}

impl<T: ?Sized + Hash> Hash for Arc<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
