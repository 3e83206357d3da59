//! Results that a function may return in place of its own.

use syn::{GenericArgument, PathArguments, Type};

/// The last name of a path.
pub(super) fn last(path: &syn::Path) -> String {
    path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

/// Some values of a type, as Rust: none for a type that is not known.
pub(super) fn of(kind: &Type) -> Vec<String> {
    let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    match kind {
        Type::Tuple(tuple) if tuple.elems.is_empty() => texts(&["()"]),
        Type::Path(path) => match last(&path.path).as_str() {
            "bool" => texts(&["true", "false"]),
            "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => {
                texts(&["0", "1"])
            }
            "Vec" => texts(&["Vec::new()"]),
            "String" => texts(&["String::new()"]),
            "Result" => argument(path).map(of).unwrap_or_default().iter().map(|value| format!("Ok({value})")).collect(),
            "Option" => texts(&["None"]),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The first type between the angle brackets behind a path.
fn argument(path: &syn::TypePath) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(kind) => Some(kind),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_types_have_values() {
        let of = |text: &str| of(&syn::parse_str(text).unwrap());
        assert_eq!(of("bool"), ["true", "false"]);
        assert_eq!(of("Result<(), Error>"), ["Ok(())"]);
        assert_eq!(of("Result<Option<u64>>"), ["Ok(None)"]);
        assert_eq!(of("io::Result<usize>"), ["Ok(0)", "Ok(1)"]);
        assert!(of("&str").is_empty());
        assert!(of("Self").is_empty());
    }
}
