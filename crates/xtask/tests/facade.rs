//! Two promises to users of the crate `f2fs`: its root has every type that a signature there names, and a variant or an
//! option more is no breaking change.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{Visit, visit_type_path};
use syn::{Attribute, Fields, ImplItem, Item, ReturnType, TraitBound, TypePath, UseTree, Visibility};

/// The crates whose types stand at the root.
const FACADE: [&str; 2] = ["files", "volume"];
/// The crates that users reach through it.
const REACHED: [&str; 9] = ["files", "volume", "check", "device", "uring", "pmem", "nat", "segment", "extent"];

/// Public enums of which every variant is to be handled, and why.
const CLOSED: [(&str, &str); 14] = [
    ("segment::Change", "each of them is handled"),
    ("files::FileKind", "the kinds that the mode of an inode can state"),
    ("volume::Need", "who changes a volume has to do what it needs"),
    ("volume::Synced", "a sync that has to be a checkpoint must not be taken for one that is done"),
    ("volume::Place", "the places that a node or an inode has for an address"),
    ("device::Operation", "a device does all of them"),
    ("device::Op", "a device does all of them"),
    ("device::ZoneState", "the states of a standard"),
    ("segment::Phase", "the states of a segment: one that is overlooked loses blocks"),
    ("segment::Class", "the two kinds of allocations"),
    ("segment::NodeLog", "the node logs of the format"),
    ("segment::AllocType", "what the format has"),
    ("segment::Gap", "a plan writes, moves or leaves each of them"),
    ("extent::Mode", "shared or exclusive"),
];
const CLOSED_TOO: [(&str, &str); 4] = [
    ("device::ZoneChange", "the commands of a standard: a device does all of them"),
    ("segment::Choice", "a plan is carried out as a whole"),
    ("segment::Card", "the cards of one publication"),
    ("segment::Interior", "the pieces of a cost function, which has an end on both sides"),
];
/// Structs with public fields that are plain values, and no options or reports: those who use them name all of their
/// fields.
const VALUES: [(&str, &str); 17] = [
    ("files::DeviceNumber", "a pair of numbers"),
    ("files::Time", "a pair of numbers"),
    ("volume::Target", "a value between crates"),
    ("volume::Piece", "a value between crates"),
    ("volume::Slot", "a node and a number in it"),
    ("volume::NewNode", "a value between crates"),
    ("device::Request", "what back ends and wrappers take apart"),
    ("device::Completion", "what back ends and wrappers put together"),
    ("nat::NatBlockWrite", "a write that the owner must do"),
    ("nat::NatFlush", "all of it has to be written"),
    ("nat::NatEntry", "an entry of the format"),
    ("segment::Run", "a pair of numbers"),
    ("segment::SegmentFlush", "all of it has to be written"),
    ("segment::LogState", "a position that the owner keeps"),
    ("segment::SitBlockWrite", "a write that the owner must do"),
    ("extent::Run", "a pair of numbers"),
    ("extent::CachedRun", "a pair of numbers"),
];
const VALUES_TOO: [(&str, &str); 3] = [
    ("segment::SegmentInfo", "an entry of the format"),
    ("segment::Victim", "what its owner gives back"),
    ("segment::Outcome", "numbers of a simulation"),
];

/// The names of the standard library in signatures.
const STANDARD: &str = "Option Result Vec BTreeSet Box String str Path PathBuf AsRef Into Iterator IntoIterator Range Duration NonZeroUsize \
    Arc Fn FnMut FnOnce Send Sync Formatter Self Item IntoIter Error Debug SystemTime ErrorKind From \
    u8 u16 u32 u64 usize i8 i16 i32 i64 isize bool f64 char dyn Default Ordering Future";

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn parsed(krate: &str) -> Vec<syn::File> {
    let (mut folders, mut files) = (vec![crates().join(krate).join("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !name.contains("tests") {
                files.push(syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap());
            }
        }
    }
    files
}

/// The names that a root re-exports from files of its own and from other crates: public name, and name where it comes
/// from.
fn exports(krate: &str) -> BTreeMap<String, String> {
    fn collect(tree: &UseTree, all: &mut BTreeMap<String, String>) {
        match tree {
            UseTree::Path(path) => collect(&path.tree, all),
            UseTree::Name(name) => drop(all.insert(name.ident.to_string(), name.ident.to_string())),
            UseTree::Rename(name) => drop(all.insert(name.rename.to_string(), name.ident.to_string())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, all)),
            UseTree::Glob(_) => panic!("a glob hides what is exported"),
        }
    }
    let root = syn::parse_file(&fs::read_to_string(crates().join(krate).join("src/lib.rs")).unwrap()).unwrap();
    let mut all = BTreeMap::new();
    for item in &root.items {
        match item {
            Item::Use(used) if matches!(used.vis, Visibility::Public(_)) => collect(&used.tree, &mut all),
            Item::Struct(item) if matches!(item.vis, Visibility::Public(_)) => {
                all.insert(item.ident.to_string(), item.ident.to_string());
            }
            _ => {}
        }
    }
    all
}

/// The types and traits that a piece of a signature names.
#[derive(Default)]
struct Named {
    names: BTreeSet<String>,
    generics: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Named {
    fn visit_type_path(&mut self, path: &'ast TypePath) {
        // Of `T::Item` only `T` is a name of its own.
        if path.qself.is_none() {
            self.names.insert(path.path.segments.last().unwrap().ident.to_string());
        }
        visit_type_path(self, path);
    }

    fn visit_trait_bound(&mut self, bound: &'ast TraitBound) {
        self.names.insert(bound.path.segments.last().unwrap().ident.to_string());
        syn::visit::visit_trait_bound(self, bound);
    }

    fn visit_generics(&mut self, generics: &'ast syn::Generics) {
        self.generics.extend(generics.type_params().map(|param| param.ident.to_string()));
        syn::visit::visit_generics(self, generics);
    }
}

impl Named {
    fn fields(&mut self, fields: &Fields, all: bool) {
        for field in fields {
            if all || matches!(field.vis, Visibility::Public(_)) {
                self.visit_type(&field.ty);
            }
        }
    }

    fn item(&mut self, item: &ImplItem, of_trait: bool) {
        match item {
            ImplItem::Fn(function) if matches!(function.vis, Visibility::Public(_)) => {
                self.visit_generics(&function.sig.generics);
                for input in &function.sig.inputs {
                    self.visit_fn_arg(input);
                }
                if let ReturnType::Type(_, returned) = &function.sig.output {
                    self.visit_type(returned);
                }
            }
            ImplItem::Const(constant) if matches!(constant.vis, Visibility::Public(_)) => self.visit_type(&constant.ty),
            ImplItem::Type(associated) if of_trait => self.visit_type(&associated.ty),
            _ => {}
        }
    }
}

/// The names in the signatures of each type of a crate, by the type.
fn signatures(krate: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let hidden = |attributes: &[Attribute]| {
        attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && quoted(attribute).contains("test"))
    };
    for file in parsed(krate) {
        for item in &file.items {
            let mut named = Named::default();
            let owner = match item {
                Item::Struct(item) => {
                    named.visit_generics(&item.generics);
                    named.fields(&item.fields, false);
                    item.ident.to_string()
                }
                Item::Enum(item) => {
                    named.visit_generics(&item.generics);
                    item.variants.iter().for_each(|variant| named.fields(&variant.fields, true));
                    item.ident.to_string()
                }
                Item::Impl(item) if !hidden(&item.attrs) => {
                    let mut owner = Named::default();
                    owner.visit_type(&item.self_ty);
                    let syn::Type::Path(path) = &*item.self_ty else { continue };
                    named.visit_generics(&item.generics);
                    item.items.iter().for_each(|part| named.item(part, item.trait_.is_some()));
                    path.path.segments.last().unwrap().ident.to_string()
                }
                _ => continue,
            };
            all.entry(owner).or_default().extend(named.names.difference(&named.generics).cloned());
        }
    }
    all
}

fn quoted(attribute: &Attribute) -> String {
    match &attribute.meta {
        syn::Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    }
}

/// The types that the root lacks.
fn missing(root: &BTreeMap<String, String>) -> BTreeSet<String> {
    let standard: BTreeSet<&str> = STANDARD.split_whitespace().collect();
    let mut missing = BTreeSet::new();
    for krate in FACADE {
        for (owner, names) in signatures(krate) {
            if !root.values().any(|name| *name == owner) {
                continue;
            }
            for name in names {
                if !standard.contains(name.as_str()) && !root.values().any(|exported| *exported == name) {
                    missing.insert(format!("{krate}::{owner} names {name}"));
                }
            }
        }
    }
    missing
}

#[test]
fn the_root_has_what_its_signatures_name() {
    let root = exports("f2fs");
    assert!(root.len() > 50 && root.contains_key("FileSystem"), "{root:?}");
    assert_eq!(missing(&root), BTreeSet::new());
    // And a missing one is seen, in a method, in a field, in an iterator, and in a variant.
    for (name, owner) in [
        ("CheckpointReport", "files::FileSystem"),
        ("Allocation", "volume::VolumeOptions"),
        ("DirEntry", "files::ReadDir"),
        ("BadEntry", "files::FsError"),
    ] {
        let mut less = root.clone();
        less.remove(name).unwrap();
        let seen = missing(&less);
        assert!(seen.contains(&format!("{owner} names {name}")), "{name}: {seen:?}");
    }
}

#[test]
fn what_may_grow_says_so() {
    let listed = |lists: &[&[(&str, &str)]]| -> BTreeSet<String> {
        lists.iter().flat_map(|list| list.iter()).map(|(name, _)| (*name).to_owned()).collect()
    };
    let closed = listed(&[&CLOSED, &CLOSED_TOO]);
    let values = listed(&[&VALUES, &VALUES_TOO]);
    let (mut growing, mut used) = (0, BTreeSet::new());
    for krate in REACHED {
        let mut items: Vec<Item> = parsed(krate).into_iter().flat_map(|file| file.items).collect();
        while let Some(item) = items.pop() {
            let (attributes, visible, name, list) = match &item {
                Item::Mod(module) => {
                    items.extend(module.content.iter().flat_map(|(_, items)| items.clone()));
                    continue;
                }
                Item::Enum(item) => (&item.attrs, &item.vis, item.ident.to_string(), &closed),
                Item::Struct(item)
                    if item
                        .fields
                        .iter()
                        .any(|field| field.ident.is_some() && matches!(field.vis, Visibility::Public(_))) =>
                {
                    (&item.attrs, &item.vis, item.ident.to_string(), &values)
                }
                _ => continue,
            };
            if !matches!(visible, Visibility::Public(_)) {
                continue;
            }
            let name = format!("{krate}::{name}");
            let says_so = attributes.iter().any(|attribute| attribute.path().is_ident("non_exhaustive"));
            growing += usize::from(says_so);
            if list.contains(&name) {
                assert!(!says_so, "{name} is listed as closed");
                used.insert(name);
            } else {
                assert!(says_so, "{name} is not `non_exhaustive`, and not listed with a reason");
            }
        }
    }
    assert_eq!(used, closed.union(&values).cloned().collect(), "the lists have what there is");
    assert!(growing > 50, "{growing}");
}
