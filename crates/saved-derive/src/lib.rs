//! `#[derive(Saved)]` and `#[derive(SavedValue)]`: how a type goes to a state file and comes back.
//!
//! Both write all fields in their order, so that no field is ever forgotten: one whose type cannot be saved does not
//! compile until it is marked with `#[saved(keep)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, GenericParam, Ident, parse_macro_input};

/// A value that is made anew from what was saved. Every field is one too.
#[proc_macro_derive(SavedValue)]
pub fn saved_value(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand_value(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// A thing that was built as it was when it was saved, and takes back its state in place.
///
/// `#[saved(keep)]` leaves a field as it was built: it is a setting. `#[saved(inner)]` is for a box of
/// which the content takes back its state in place, `#[saved(each)]` for a field of which each item does, as many as
/// there were. `#[saved(absent)]` is for what a stack at rest has none of: where there is some, nothing is saved.
#[proc_macro_derive(Saved, attributes(saved))]
pub fn saved(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand_saved(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// One shape of a type: the type itself, or a variant of an enum.
struct Shape<'a> {
    path: TokenStream,
    name: String,
    fields: &'a Fields,
}

impl Shape<'_> {
    /// Names for the fields.
    fn names(&self) -> Vec<Ident> {
        (0..self.fields.len()).map(|number| format_ident!("field_{number}")).collect()
    }

    /// The shape with a word for each field, as a pattern or as an expression.
    fn with(&self, words: &[TokenStream]) -> TokenStream {
        let path = &self.path;
        match self.fields {
            Fields::Unit => quote!(#path),
            Fields::Unnamed(_) => quote!(#path(#(#words),*)),
            Fields::Named(fields) => {
                let names = fields.named.iter().map(|field| &field.ident);
                quote!(#path { #(#names: #words),* })
            }
        }
    }
}

fn shapes(input: &DeriveInput) -> Result<Vec<Shape<'_>>, Error> {
    match &input.data {
        Data::Struct(data) => {
            let name = input.ident.to_string();
            Ok(vec![Shape { path: quote!(Self), name, fields: &data.fields }])
        }
        Data::Enum(data) => Ok(data
            .variants
            .iter()
            .map(|variant| {
                let ident = &variant.ident;
                let name = format!("{}::{ident}", input.ident);
                Shape { path: quote!(Self::#ident), name, fields: &variant.fields }
            })
            .collect()),
        Data::Union(data) => Err(Error::new(data.union_token.span, "a union cannot be saved")),
    }
}

/// An enum says first which of its variants it is.
fn is_enum(input: &DeriveInput) -> bool {
    matches!(input.data, Data::Enum(_))
}

fn expand_value(input: &DeriveInput) -> Result<TokenStream, Error> {
    let (mut puts, mut takes) = (Vec::new(), Vec::new());
    for (number, shape) in (0u64..).zip(shapes(input)?) {
        let names = shape.names();
        let words: Vec<_> = names.iter().map(|name| quote!(#name)).collect();
        let pattern = shape.with(&words);
        let number_put = is_enum(input).then(|| quote!(to.put_u64(#number);));
        puts.push(quote!(#pattern => {
            #number_put
            #(::imbrex_core::saved::SavedValue::put_into(#names, to);)*
        }));
        let take = quote!(::imbrex_core::saved::SavedValue::take_from(from)?);
        let made = shape.with(&vec![take; names.len()]);
        takes.push(match is_enum(input) {
            true => quote!(#number => #made,),
            false => made,
        });
    }
    let name = input.ident.to_string();
    let taken = match is_enum(input) {
        true => quote!(match from.take_u64()? {
            #(#takes)*
            other => return Err(from.no_variant(#name, other)),
        }),
        false => quote!(#(#takes)*),
    };
    let ident = &input.ident;
    let (impl_generics, type_generics, where_clause) = bounded(input);
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::imbrex_core::saved::SavedValue for #ident #type_generics #where_clause {
            fn put_into(&self, to: &mut ::imbrex_core::saved::SavedWriter) {
                let _ = &to;
                match self { #(#puts)* }
            }
            fn take_from(
                from: &mut ::imbrex_core::saved::SavedReader<'_>,
            ) -> Result<Self, ::imbrex_core::state::StateError> {
                let _ = &from;
                Ok(#taken)
            }
        }
    })
}

/// What becomes of a field.
enum Way {
    Saved,
    Kept,
    Inner,
    Each,
    Absent,
}

fn way_of(field: &Field) -> Result<Way, Error> {
    let mut way = Way::Saved;
    for attribute in field.attrs.iter().filter(|it| it.path().is_ident("saved")) {
        attribute.parse_nested_meta(|meta| {
            way = match meta.path.get_ident().map(Ident::to_string).as_deref() {
                Some("keep") => Way::Kept,
                Some("inner") => Way::Inner,
                Some("each") => Way::Each,
                Some("absent") => Way::Absent,
                _ => return Err(meta.error("accepted: keep, inner, each, absent")),
            };
            Ok(())
        })?;
    }
    Ok(way)
}

fn expand_saved(input: &DeriveInput) -> Result<TokenStream, Error> {
    let (mut saves, mut loads) = (Vec::new(), Vec::new());
    for (number, shape) in (0u64..).zip(shapes(input)?) {
        let names = shape.names();
        let (mut words, mut save, mut load) = (Vec::new(), Vec::new(), Vec::new());
        for (name, field) in names.iter().zip(shape.fields) {
            let span = field.ty.span();
            match way_of(field)? {
                Way::Kept => words.push(quote!(_)),
                Way::Saved => {
                    words.push(quote!(#name));
                    save.push(
                        quote_spanned!(span=> ::imbrex_core::saved::Saved::save_into(#name, to);),
                    );
                    load.push(quote_spanned!(span=> ::imbrex_core::saved::Saved::load_from(#name, from)?;));
                }
                Way::Inner => {
                    words.push(quote!(#name));
                    save.push(quote_spanned!(span=> ::imbrex_core::saved::Saved::save_into(&**#name, to);));
                    load.push(quote_spanned!(span=> ::imbrex_core::saved::Saved::load_from(&mut **#name, from)?;));
                }
                Way::Absent => {
                    words.push(quote!(#name));
                    let what = match &field.ident {
                        Some(ident) => format!("{}.{ident}", shape.name),
                        None => shape.name.clone(),
                    };
                    save.push(quote_spanned!(span=> if #name.iter().next().is_some() {
                        to.refuse(#what);
                    }));
                    load.push(quote!(let _ = #name;));
                }
                Way::Each => {
                    words.push(quote!(#name));
                    save.push(quote_spanned!(span=> {
                        to.put_u64(#name.iter().count() as u64);
                        for item in #name.iter() {
                            item.save_into(to);
                        }
                    }));
                    load.push(quote_spanned!(span=> {
                        from.take_count(#name.iter().count() as u64)?;
                        for item in #name.iter_mut() {
                            item.load_from(from)?;
                        }
                    }));
                }
            }
        }
        let pattern = shape.with(&words);
        let name = &shape.name;
        let number_save = is_enum(input).then(|| quote!(to.put_u64(#number);));
        let number_load = is_enum(input).then(|| quote!(from.take_variant(#name, #number)?;));
        saves.push(quote!(#pattern => { #number_save #(#save)* }));
        loads.push(quote!(#pattern => { #number_load #(#load)* }));
    }
    let ident = &input.ident;
    let (impl_generics, type_generics, where_clause) = bounded(input);
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::imbrex_core::saved::Saved for #ident #type_generics #where_clause {
            fn save_into(&self, to: &mut ::imbrex_core::saved::SavedWriter) {
                #[allow(unused_imports)]
                use ::imbrex_core::saved::Saved as _;
                let _ = &to;
                match self { #(#saves)* }
            }
            fn load_from(
                &mut self,
                from: &mut ::imbrex_core::saved::SavedReader<'_>,
            ) -> Result<(), ::imbrex_core::state::StateError> {
                #[allow(unused_imports)]
                use ::imbrex_core::saved::Saved as _;
                let _ = &from;
                match self { #(#loads)* }
                Ok(())
            }
        }
    })
}

/// The generics of a type, each of its types a value.
fn bounded(input: &DeriveInput) -> (TokenStream, TokenStream, TokenStream) {
    let mut generics = input.generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.bounds.push(syn::parse_quote!(::imbrex_core::saved::SavedValue));
        }
    }
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let (_, type_generics, _) = input.generics.split_for_impl();
    (quote!(#impl_generics), quote!(#type_generics), quote!(#where_clause))
}
