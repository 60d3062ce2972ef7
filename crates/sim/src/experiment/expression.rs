//! The little language in which `[[stated]]` says how a number is measured.
//!
//! Numbers, `+ - * /` with spaces around them, parentheses, and *quantities*: a system, the swept
//! values it is looked at (those left out are gone through one by one), and a key of its run in
//! the report, such as `lru[capacity=5 %].write_amplification.host`. A swept key may be given by
//! its last part. Members of a list in a report are found by their `name`. In an analysis the
//! system is called `trace`. `scale` alone is the factor by which the workload was divided.

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// The factor by which the workload was divided.
    Scale,
    /// Something measured.
    Quantity(Quantity),
    /// Two expressions and what is done with them.
    Binary(Box<Expression>, Operator, Box<Expression>),
}

/// What is done with two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// One key of the run of one system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Name of the stack, or `trace`.
    pub system: String,
    /// Swept keys and the values asked for.
    pub at: Vec<(String, String)>,
    /// Keys from the run down.
    pub path: Vec<String>,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str) -> Result<Expression, String> {
        let tokens = tokens(text)?;
        let mut rest = tokens.as_slice();
        let expression = sum(&mut rest)?;
        match rest.first() {
            None => Ok(expression),
            Some(token) => Err(format!("`{token}` where an operator is expected")),
        }
    }

    /// The value, each quantity and the scale being looked up; nothing when one of them is
    /// undefined, or on a division by zero.
    ///
    /// # Errors
    /// Those of the look-up.
    pub fn value(
        &self,
        look_up: &dyn Fn(&Expression) -> Result<Option<f64>, String>,
    ) -> Result<Option<f64>, String> {
        let Expression::Binary(left, operator, right) = self else {
            return match self {
                Expression::Number(number) => Ok(Some(*number)),
                other => look_up(other),
            };
        };
        let (Some(left), Some(right)) = (left.value(look_up)?, right.value(look_up)?) else {
            return Ok(None);
        };
        Ok(match operator {
            Operator::Add => Some(left + right),
            Operator::Subtract => Some(left - right),
            Operator::Multiply => Some(left * right),
            Operator::Divide => (right != 0.0).then_some(left / right),
        })
    }

    /// Every quantity in the expression.
    pub fn quantities(&self) -> Vec<&Quantity> {
        match self {
            Expression::Number(_) | Expression::Scale => vec![],
            Expression::Quantity(quantity) => vec![quantity],
            Expression::Binary(left, _, right) => {
                let mut all = left.quantities();
                all.extend(right.quantities());
                all
            }
        }
    }
}

/// Words and parentheses; a blank inside brackets does not end a word.
fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    let mut depth = 0u32;
    for c in text.chars() {
        let ends = depth == 0 && (c.is_whitespace() || c == '(' || c == ')');
        if ends {
            if !word.is_empty() {
                tokens.push(std::mem::take(&mut word));
            }
            if !c.is_whitespace() {
                tokens.push(c.to_string());
            }
            continue;
        }
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        word.push(c);
    }
    if depth > 0 {
        return Err("a `[` without its `]`".to_string());
    }
    if !word.is_empty() {
        tokens.push(word);
    }
    Ok(tokens)
}

fn sum(rest: &mut &[String]) -> Result<Expression, String> {
    chain(rest, product, |token| match token {
        "+" => Some(Operator::Add),
        "-" => Some(Operator::Subtract),
        _ => None,
    })
}

fn product(rest: &mut &[String]) -> Result<Expression, String> {
    chain(rest, operand, |token| match token {
        "*" => Some(Operator::Multiply),
        "/" => Some(Operator::Divide),
        _ => None,
    })
}

/// Operands with operators of one rank between them, from the left.
fn chain(
    rest: &mut &[String],
    operand: impl Fn(&mut &[String]) -> Result<Expression, String>,
    operator: impl Fn(&str) -> Option<Operator>,
) -> Result<Expression, String> {
    let mut left = operand(rest)?;
    while let Some(operator) = rest.first().and_then(|token| operator(token)) {
        *rest = &rest[1..];
        let right = operand(rest)?;
        left = Expression::Binary(Box::new(left), operator, Box::new(right));
    }
    Ok(left)
}

fn operand(rest: &mut &[String]) -> Result<Expression, String> {
    let Some((token, after)) = rest.split_first() else {
        return Err("it ends where a number or a quantity is expected".to_string());
    };
    *rest = after;
    if token == "(" {
        let inner = sum(rest)?;
        return match rest.split_first() {
            Some((token, after)) if token == ")" => {
                *rest = after;
                Ok(inner)
            }
            _ => Err("a `(` without its `)`".to_string()),
        };
    }
    if let Ok(number) = token.parse::<f64>() {
        return Ok(Expression::Number(number));
    }
    match token.as_str() {
        "scale" => Ok(Expression::Scale),
        _ => quantity(token).map(Expression::Quantity),
    }
}

/// Where a character stands that is in no further brackets: a swept value may be a list.
fn outside_brackets(text: &str, wanted: char) -> impl Iterator<Item = usize> {
    let mut depth = 0u32;
    text.char_indices().filter_map(move |(at, c)| {
        let is_outside = depth == 0;
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (is_outside && c == wanted).then_some(at)
    })
}

fn quantity(word: &str) -> Result<Quantity, String> {
    let wrong = || {
        format!(
            "`{word}` is no quantity; one is written SYSTEM.KEY or SYSTEM[SWEPT=VALUE, ...].KEY, such as \
             lru[capacity=5 %].write_amplification.host"
        )
    };
    let (system, at, path) = match word.split_once('[') {
        None => {
            let (system, path) = word.split_once('.').ok_or_else(wrong)?;
            (system, "", path)
        }
        Some((system, rest)) => {
            let end = outside_brackets(rest, ']').next().ok_or_else(wrong)?;
            (system, &rest[..end], rest[end + 1..].strip_prefix('.').ok_or_else(wrong)?)
        }
    };
    let commas = outside_brackets(at, ',').chain([at.len()]);
    let at = commas
        .scan(0, |from, comma| Some(&at[core::mem::replace(from, comma + 1)..comma]))
        .filter(|pair| !pair.trim().is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').ok_or_else(wrong)?;
            Ok((key.trim().to_string(), value.trim().to_string()))
        })
        .collect::<Result<Vec<_>, String>>()?;
    let path: Vec<String> = path.split('.').map(str::to_string).collect();
    if system.is_empty() || path.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok(Quantity { system: system.to_string(), at, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        let look_up = |expression: &Expression| {
            Ok(match expression {
                Expression::Scale => Some(4.0),
                Expression::Quantity(quantity) if quantity.system == "none" => None,
                Expression::Quantity(quantity) => Some(quantity.path.len() as f64),
                _ => unreachable!("only these are looked up"),
            })
        };
        Expression::parse(text).unwrap().value(&look_up).unwrap()
    }

    #[test]
    fn products_bind_closer_than_sums_and_chains_go_from_the_left() {
        assert_eq!(value("1 + 2 * 3 - 4 / 2 / 2"), Some(6.0));
        assert_eq!(value("(1 + 2) * 3"), Some(9.0));
        assert_eq!(value("a.b.c / d.e * scale"), Some(8.0));
        assert_eq!(value("none.x + 1"), None, "undefined stays undefined");
        assert_eq!(value("1 / (2 - 2)"), None);
    }

    #[test]
    fn a_quantity_names_system_swept_values_and_key() {
        let expression =
            Expression::parse("lru-band[capacity=5 %, cache.zone=2MiB].io_time_s.total");
        let Ok(Expression::Quantity(quantity)) = expression else {
            panic!("{expression:?}");
        };
        assert_eq!(quantity.system, "lru-band");
        assert_eq!(quantity.path, ["io_time_s", "total"]);
        let at = [("capacity", "5 %"), ("cache.zone", "2MiB")];
        assert_eq!(quantity.at, at.map(|(k, v)| (k.to_string(), v.to_string())));
        let list = Expression::parse("1 - at-ic[at_ic=[5.0, 2.0], idle_after=1 s].finish_s");
        let Ok(Expression::Binary(_, Operator::Subtract, list)) = list else { panic!("{list:?}") };
        let Expression::Quantity(quantity) = *list else { panic!("{list:?}") };
        let at = [("at_ic", "[5.0, 2.0]"), ("idle_after", "1 s")];
        assert_eq!(quantity.at, at.map(|(k, v)| (k.to_string(), v.to_string())));
        assert_eq!(quantity.path, ["finish_s"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            ("", "ends where"),
            ("1 +", "ends where"),
            ("1 2", "`2` where an operator"),
            ("(1 + 2", "without its `)`"),
            ("lru[a=1.x", "without its `]`"),
            ("lru", "`lru` is no quantity"),
            ("lru[5 %].x", "is no quantity"),
            ("lru..x", "is no quantity"),
        ] {
            let error = Expression::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
