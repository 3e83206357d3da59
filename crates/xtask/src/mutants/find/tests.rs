use super::*;

/// What can be done wrong in a source.
fn whats(source: &str) -> Vec<String> {
    find(source).unwrap().sites.iter().flat_map(|site| &site.wrongs).map(|wrong| wrong.what.clone()).collect()
}

#[test]
fn operators_are_replaced() {
    assert_eq!(
        whats("impl A<'_> { fn f(&self) -> T { self.a < 1 } }"),
        ["replace < with <= in A::f", "replace < with >= in A::f"]
    );
    assert_eq!(whats("fn f() { a += 1; }"), ["leave out a += 1 in f", "replace += with -= in f"]);
    assert_eq!(whats("fn f() -> T { !a }"), ["delete ! in f"]);
}

#[test]
fn conditions_are_turned_round() {
    assert_eq!(whats("fn f() { if a.b() { c(); } }"), ["negate a.b() in f", "leave out c() in f"]);
    assert_eq!(whats("fn f() { if let A = b && c() {} }"), ["negate c() in f"]);
    assert_eq!(whats("fn f() -> T { match a { B if c => d, _ => e } }"), ["negate c in f"]);
}

#[test]
fn results_are_replaced() {
    assert_eq!(whats("fn f() -> bool { g(1) }"), ["return true in f", "return false in f"]);
    assert_eq!(whats("fn f() -> bool { true }"), ["return false in f"]);
    assert_eq!(whats("fn f() { let a = 1; g(a) }"), ["return at once in f", "leave out g(a) in f"]);
}

#[test]
fn what_the_compiler_computes_and_what_is_switched_stays() {
    assert!(whats("const A: u32 = 1 + 1; const fn f() -> u32 { 1 + 1 }").is_empty());
    assert!(whats("fn f() -> [u8; 1 + 1] { [0; 1 + 1] }").is_empty());
    assert!(whats("fn f() { protocol_step!(\"one\", a()); }").is_empty());
    assert!(whats("#[cfg(test)] mod tests { fn f() { a(); } }").is_empty());
    assert!(whats("impl Debug for A { fn fmt(&self) -> bool { a() } }").is_empty());
}

#[test]
fn modules_of_the_build_are_named() {
    assert_eq!(find("mod a; #[cfg(test)] mod b; mod c { mod d; } #[cfg(loom)] mod e;").unwrap().modules, ["a", "d"]);
}
