//! The part of JSON Schema that `docs/schema/report.schema.json` uses.

use serde_json::Value;

/// Checks `value` against `schema`, whose `$ref`s point into `root`; gives every violation.
///
/// Panics on a keyword it does not know: a schema must not promise what nothing checks.
pub fn violations(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    const ANNOTATIONS: [&str; 6] = ["$schema", "$id", "$defs", "title", "description", "$comment"];
    let mut found = vec![];
    let rules = schema.as_object().unwrap_or_else(|| panic!("{path}: a schema is an object"));
    for (keyword, rule) in rules {
        let mut fail = |what: String| found.push(format!("{path}: {what}"));
        match keyword.as_str() {
            name if ANNOTATIONS.contains(&name) => {}
            "$ref" => {
                let pointer = rule.as_str().and_then(|r| r.strip_prefix('#')).expect("local $ref");
                let target = root.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
                found.extend(violations(root, target, value, path));
            }
            "type" => {
                let names = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                if !names.iter().any(|name| is_type(name.as_str().unwrap(), value)) {
                    fail(format!("{value} is not {rule}"));
                }
            }
            "const" if value != rule => fail(format!("{value} is not {rule}")),
            "const" => {}
            "enum" if !rule.as_array().unwrap().contains(value) => {
                fail(format!("{value} is none of {rule}"));
            }
            "enum" => {}
            "minimum" => {
                if value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()) {
                    fail(format!("{value} is less than {rule}"));
                }
            }
            "maximum" => {
                if value.as_f64().is_some_and(|number| number > rule.as_f64().unwrap()) {
                    fail(format!("{value} is more than {rule}"));
                }
            }
            "maxItems" => {
                if value.as_array().is_some_and(|items| items.len() as u64 > rule.as_u64().unwrap())
                {
                    fail(format!("more than {rule} items"));
                }
            }
            "required" => {
                for name in rule.as_array().unwrap() {
                    if value.as_object().is_some_and(|o| !o.contains_key(name.as_str().unwrap())) {
                        fail(format!("no {name}"));
                    }
                }
            }
            "if" => {
                let branch = match violations(root, rule, value, path).is_empty() {
                    true => rules.get("then"),
                    false => rules.get("else"),
                };
                if let Some(branch) = branch {
                    found.extend(violations(root, branch, value, path));
                }
            }
            // Judged with their `if`.
            "then" | "else" if rules.contains_key("if") => {}
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(violations(root, rule, item, &format!("{path}[{i}]")));
                }
            }
            "properties" => {
                for (name, rule) in rule.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        found.extend(violations(root, rule, member, &format!("{path}.{name}")));
                    }
                }
            }
            "additionalProperties" => {
                let known = rules.get("properties").and_then(Value::as_object);
                for (name, member) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.contains_key(name)) {
                        continue;
                    }
                    match rule {
                        Value::Bool(true) => {}
                        Value::Bool(false) => found.push(format!("{path}: unknown key {name}")),
                        rule => {
                            found.extend(violations(root, rule, member, &format!("{path}.{name}")));
                        }
                    }
                }
            }
            other => panic!("{path}: the schema uses {other}, which nothing checks"),
        }
    }
    found
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no type {other}"),
    }
}
