//! Which parts of the sources are in the build that mutants are tried in.

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Lit, Meta, Token};

/// Whether an item, statement or arm with these attributes is in the build and belongs to the product. What hangs on a
/// feature is left out: it is chosen for measuring or for tests.
pub(super) fn is_built(attributes: &[Attribute]) -> bool {
    attributes.iter().all(|attribute| {
        if attribute.path().is_ident("test") {
            return false;
        }
        if !attribute.path().is_ident("cfg") {
            return true;
        }
        attribute.parse_args::<Meta>().ok().and_then(|condition| holds(&condition)) == Some(true)
    })
}

/// Whether a condition holds; `None` if that depends on a feature.
fn holds(condition: &Meta) -> Option<bool> {
    match condition {
        Meta::Path(name) => Some(["unix", "debug_assertions"].iter().any(|set| name.is_ident(set))),
        Meta::NameValue(pair) => {
            let Expr::Lit(value) = &pair.value else { return None };
            let Lit::Str(value) = &value.lit else { return None };
            match () {
                () if pair.path.is_ident("target_os") => Some(value.value() == "linux"),
                () if pair.path.is_ident("target_pointer_width") => Some(value.value() == "64"),
                () if pair.path.is_ident("target_arch") => Some(value.value() == std::env::consts::ARCH),
                () => None,
            }
        }
        Meta::List(list) => {
            let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
            let mut parts = parts.iter().map(holds);
            if list.path.is_ident("not") {
                parts.next()?.map(|holds| !holds)
            } else if list.path.is_ident("all") {
                parts
                    .try_fold(true, |so_far, part| match part {
                        Some(false) => Err(Some(false)),
                        Some(true) => Ok(so_far),
                        None => Err(None),
                    })
                    .map_or_else(|known| known, Some)
            } else if list.path.is_ident("any") {
                let all: Vec<_> = parts.collect();
                if all.contains(&Some(true)) {
                    Some(true)
                } else if all.contains(&None) {
                    None
                } else {
                    Some(false)
                }
            } else {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(attribute: &str) -> bool {
        let item: syn::ItemFn = syn::parse_str(&format!("{attribute} fn f() {{}}")).unwrap();
        is_built(&item.attrs)
    }

    #[test]
    fn the_half_for_production_is_built() {
        for yes in ["", "#[inline]", "#[cfg(not(loom))]", "#[cfg(not(any(loom, shuttle)))]", "#[cfg(unix)]"] {
            assert!(built(yes), "{yes}");
        }
        assert!(built("#[cfg(all(debug_assertions, not(any(loom, shuttle))))]"));
        assert!(built("#[cfg(target_os = \"linux\")]"));
    }

    #[test]
    fn tests_models_and_features_are_not() {
        for no in ["#[test]", "#[cfg(test)]", "#[cfg(loom)]", "#[cfg(any(loom, shuttle))]", "#[cfg(not(unix))]"] {
            assert!(!built(no), "{no}");
        }
        assert!(!built("#[cfg(feature = \"baselines\")]"));
        assert!(!built("#[cfg(not(feature = \"baselines\"))]"));
        assert!(!built("#[cfg(all(unix, feature = \"tracing\"))]"));
        assert!(!built("#[cfg(any(test, feature = \"tracing\"))]"));
    }
}
