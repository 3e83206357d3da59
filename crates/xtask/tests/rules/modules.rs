//! The modules of a crate: where each stands, and which other ones its code names.
//!
//! A path counts wherever it stands: in a `use`, in a signature, in a body, in the words of a macro. It is followed
//! through the names that modules pass on (`pub use`) to the module that has the item. What this does not see is a call
//! of a method: a type's methods may stand in several modules, and a call names none of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{Visit, visit_item, visit_macro, visit_path};
use syn::{Attribute, Item, ItemUse, Macro, Meta, UseTree};

/// A module by its number; the root has 0.
type Number = usize;
/// A path in its segments.
type Segments = Vec<String>;

struct Module {
    /// `directory::page`; empty for the root.
    name: String,
    parent: Option<Number>,
    children: BTreeMap<String, Number>,
    /// The names that a `use` brings in, and what they stand for.
    imports: BTreeMap<String, Segments>,
    globs: Vec<Segments>,
    /// The paths in its code that begin with `crate`, `self` or `super`.
    paths: Vec<Segments>,
}

/// The modules of one crate, its tests and models aside.
pub(crate) struct Modules(Vec<Module>);

/// That code of one module names something of another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    pub(crate) by: String,
    pub(crate) of: String,
    pub(crate) path: String,
}

impl Modules {
    /// The modules of the crate in this folder.
    pub(crate) fn of(folder: &Path) -> Self {
        let source = folder.join("src");
        let file = syn::parse_file(&fs::read_to_string(source.join("lib.rs")).unwrap()).unwrap();
        let mut modules = Self(Vec::new());
        modules.add(None, String::new(), &file.items, Some(&source));
        modules
    }

    /// Adds a module and those below it; `folder` has the files of its children.
    fn add(&mut self, parent: Option<Number>, name: String, items: &[Item], folder: Option<&PathBuf>) -> Number {
        let number = self.0.len();
        let empty = (BTreeMap::new(), BTreeMap::new(), Vec::new(), Vec::new());
        let (children, imports, globs, paths) = empty;
        self.0.push(Module { name, parent, children, imports, globs, paths });
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            if let Item::Mod(module) = item {
                let ident = module.ident.to_string();
                if matches!(&*ident, "tests" | "models") {
                    continue;
                }
                let prefix = &self.0[number].name;
                let full = if prefix.is_empty() { ident.clone() } else { format!("{prefix}::{ident}") };
                let below = folder.map(|folder| folder.join(&ident));
                let child = match (&module.content, &below) {
                    (Some((_, items)), _) => self.add(Some(number), full, items, below.as_ref()),
                    (None, Some(below)) => {
                        let text = fs::read_to_string(below.with_extension("rs"));
                        let text = text.or_else(|_| fs::read_to_string(below.join("mod.rs"))).unwrap();
                        self.add(Some(number), full, &syn::parse_file(&text).unwrap().items, Some(below))
                    }
                    (None, None) => unreachable!("a module without a file in a text"),
                };
                self.0[number].children.insert(ident, child);
            } else {
                Paths(&mut self.0[number]).visit_item(item);
            }
        }
        number
    }

    /// The module that has what a path names, seen from `from`; `None` if it is of another crate.
    fn resolve(&self, from: Number, path: &[String], depth: usize) -> Option<Number> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match &**first {
            "crate" => 0,
            "self" => from,
            "super" => self.0[from].parent?,
            _ => {
                rest = path;
                self.0[from]
                    .children
                    .contains_key(first)
                    .then_some(from)
                    .or_else(|| self.0[from].imports.contains_key(first).then_some(from))?
            }
        };
        while let Some((first, below)) = rest.split_first() {
            let module = &self.0[at];
            if first == "super" {
                at = module.parent?;
            } else if let Some(child) = module.children.get(first) {
                at = *child;
            } else if let Some(import) = module.imports.get(first).filter(|_| depth < 16) {
                let whole: Segments = import.iter().chain(below).cloned().collect();
                return self.resolve(at, &whole, depth + 1).or(Some(at));
            } else {
                return Some(at);
            }
            rest = below;
        }
        Some(at)
    }

    fn ancestors(&self, number: Number) -> Vec<Number> {
        let mut all = vec![number];
        while let Some(parent) = self.0[all[all.len() - 1]].parent {
            all.push(parent);
        }
        all.reverse();
        all
    }

    /// The uses between modules that stand beside each other, each by the module below which they stand. A module and
    /// those below it are one noun: what they name of each other is left out, and counts for the module where it leads
    /// outwards.
    fn uses(&self) -> BTreeMap<Number, BTreeMap<(Number, Number), BTreeSet<Use>>> {
        let mut all: BTreeMap<_, BTreeMap<_, BTreeSet<_>>> = BTreeMap::new();
        for (by, module) in self.0.iter().enumerate() {
            for path in module.paths.iter().chain(&module.globs) {
                let Some(of) = self.resolve(by, path, 0) else { continue };
                let (from, to) = (self.ancestors(by), self.ancestors(of));
                let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
                    let (by, of) = (module.name.clone(), self.0[of].name.clone());
                    let found = Use { by, of, path: path.join("::") };
                    all.entry(from[common - 1]).or_default().entry((*a, *b)).or_default().insert(found);
                }
            }
        }
        all
    }

    /// Sets of modules beside each other each of which needs all others, with the uses that close the circle.
    pub(crate) fn circles(&self) -> Vec<(BTreeSet<String>, BTreeSet<Use>)> {
        let mut found = Vec::new();
        for uses in self.uses().values() {
            let members: BTreeSet<Number> = uses.keys().map(|(a, _)| *a).collect();
            let reached = |from: Number| {
                let mut reached = BTreeSet::new();
                let mut waiting = vec![from];
                while let Some(at) = waiting.pop() {
                    let next = uses.keys().filter(|(a, _)| *a == at).map(|(_, b)| *b);
                    waiting.extend(next.filter(|b| reached.insert(*b)));
                }
                reached
            };
            let reach: BTreeMap<Number, BTreeSet<Number>> = members.iter().map(|a| (*a, reached(*a))).collect();
            let meet =
                |a: &Number, b: &Number| reach[a].contains(b) && reach.get(b).is_some_and(|from| from.contains(a));
            let circles: BTreeSet<BTreeSet<Number>> = members
                .iter()
                .filter(|a| reach[a].contains(a))
                .map(|a| members.iter().copied().filter(|b| meet(a, b)).collect())
                .collect();
            for circle in circles {
                let within = uses.iter().filter(|((a, b), _)| circle.contains(a) && circle.contains(b));
                let because = within.flat_map(|(_, because)| because.iter().cloned()).collect();
                found.push((circle.iter().map(|number| self.0[*number].name.clone()).collect(), because));
            }
        }
        found
    }
}

/// Puts down what the code of one module names.
struct Paths<'m>(&'m mut Module);

impl Paths<'_> {
    fn note(&mut self, path: Segments) {
        if matches!(path.first().map(|first| &**first), Some("crate" | "self" | "super")) {
            self.0.paths.push(path);
        }
    }

    fn import(&mut self, mut before: Segments, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(before, &path.tree);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(before.clone(), tree)),
            UseTree::Glob(_) => self.0.globs.push(before),
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                if name != "self" {
                    before.push(name);
                }
                let known_as = before[before.len() - 1].clone();
                self.0.imports.insert(known_as, before.clone());
                self.note(before);
            }
            UseTree::Rename(rename) => {
                before.push(rename.ident.to_string());
                self.0.imports.insert(rename.rename.to_string(), before.clone());
                self.note(before);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.import(Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.note(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let words = call.tokens.to_string();
        let words: Vec<&str> = words.split_whitespace().collect();
        for at in 0..words.len() {
            if matches!(words[at], "crate" | "self" | "super") && words.get(at + 1) == Some(&"::") {
                let rest = words[at..].split(|word| *word == "::").map(|part| part[0]);
                let joined = words[at..].iter().skip(1).step_by(2).take_while(|word| **word == "::").count();
                self.note(rest.take(joined + 1).map(str::to_owned).collect());
            }
        }
        visit_macro(self, call);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => {
            list.path.is_ident("cfg") && {
                let condition = list.tokens.to_string();
                condition.contains("test") && !condition.contains("not (test")
            }
        }
        _ => false,
    })
}

/// The circles of a crate that is written down here: modules by their names, with their text.
fn circles_of(modules: &[(&str, &str)]) -> Vec<(BTreeSet<String>, BTreeSet<Use>)> {
    let text: String = modules.iter().map(|(name, text)| format!("mod {name} {{ {text} }}\n")).collect();
    let mut all = Modules(Vec::new());
    all.add(None, String::new(), &syn::parse_file(&text).unwrap().items, None);
    all.circles()
}

#[test]
fn circles_are_found() {
    let names = |modules: &[(&str, &str)]| -> Vec<String> {
        let found = circles_of(modules).into_iter();
        found.map(|(circle, _)| circle.into_iter().collect::<Vec<_>>().join(" ")).collect()
    };
    let lower = ("low", "pub struct Low;");
    assert!(names(&[lower, ("high", "use crate::low::Low; mod part { use super::super::low::Low; }")]).is_empty());
    assert_eq!(names(&[("a", "use crate::b::B;"), ("b", "pub struct B(crate::a::A);")]), ["a b"]);
    assert_eq!(names(&[("a", "use super::b::{self};"), ("b", "fn f() { g!(crate::a::A) }")]), ["a b"], "in a macro");
    assert_eq!(names(&[("a", "mod x { use crate::b::*; }"), ("b", "use crate::a::A;")]), ["a b"], "below, by a glob");
    let three =
        [("a", "use crate::b::B;"), ("b", "use crate::c::C;"), ("c", "use crate::a::A;"), ("d", "use crate::a::A;")];
    assert_eq!(names(&three), ["a b c"]);
    assert_eq!(names(&[("a", "mod x { use super::y::Y; } mod y { use crate::a::x::X; }")]), ["a::x a::y"]);
    let passed_on = [("a", "pub use crate::b::B;"), ("b", "use crate::c::A;"), ("c", "pub use crate::a::A;")];
    assert_eq!(names(&passed_on), ["a b"], "through the module that passes the name on");
    let tests =
        [("a", "#[cfg(test)] mod t { use crate::b::B; } #[cfg(test)] use crate::b::B;"), ("b", "use crate::a::A;")];
    assert!(names(&tests).is_empty(), "tests look at what they like");
}
