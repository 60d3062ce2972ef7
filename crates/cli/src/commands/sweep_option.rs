//! The values of `--sweep`.

use crate::failure::{Failure, usage};
use imbrex_sim::experiment::{SWEEP_POINTS_MAX, Sweep, points};
use imbrex_stack::Setting;
use std::collections::BTreeMap;

/// What is swept: the values of each key.
pub type Swept = BTreeMap<String, Vec<toml::Value>>;

/// The values of `--sweep`.
pub fn swept_values(texts: &[String]) -> Result<Swept, Failure> {
    let mut swept = Swept::new();
    for text in texts {
        let (key, values) = key_and_values(text)?;
        if swept.insert(key.clone(), values).is_some() {
            return Err(usage(format!(
                "--sweep {text}: `{key}` is swept twice; accepted: a key once"
            )));
        }
    }
    Ok(swept)
}

/// What is swept over so many stacks: one point without any key where nothing is.
pub fn sweep(swept: &Swept, stacks: usize) -> Result<Sweep<'static>, Failure> {
    let runs = swept.values().map(Vec::len).fold(stacks, usize::saturating_mul);
    if runs > SWEEP_POINTS_MAX {
        return Err(usage(format!(
            "--sweep: {runs} runs of {stacks} systems; accepted: at most {SWEEP_POINTS_MAX}"
        )));
    }
    Ok(Sweep {
        points: points(swept),
        origin: "--sweep".to_string(),
        is_of_no_node: &|_| false,
        nobody: "no compared stack",
    })
}

fn key_and_values(text: &str) -> Result<(String, Vec<toml::Value>), Failure> {
    let wrong = |what: &str| {
        let accepted = "NODE.KEY=A,B,C, such as cache.capacity=1%,2%,5%";
        usage(format!("--sweep {text}: {what}; accepted: {accepted}"))
    };
    let (key, list) = text.split_once('=').ok_or_else(|| wrong("there are no values"))?;
    let key = key.trim();
    let mut values = Vec::new();
    for value in list.split(',').map(str::trim) {
        if value.is_empty() {
            return Err(wrong("a value is empty"));
        }
        let setting = Setting::parse(&format!("{key}={value}"));
        let Setting { value, .. } = setting.map_err(|_| wrong("the key is of no node"))?;
        if values.contains(&value) {
            return Err(wrong(&format!("{value} is there twice")));
        }
        values.push(value);
    }
    Ok((key.to_string(), values))
}
