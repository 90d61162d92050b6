//! Text from elsewhere, made fit for a terminal.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

/// `text` with its control characters written out: a message can hold anything, and a terminal acts on
/// some of it. Also what turns the direction of writing around.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_dangerous) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match is_dangerous(character) {
            true => plain.extend(character.escape_default()),
            false => plain.push(character),
        }
    }
    Cow::Owned(plain)
}

fn is_dangerous(character: char) -> bool {
    let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns
}

/// The columns that `text` takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// As much of `text` as fits `columns`, with an ellipsis where it was cut.
pub(super) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    for character in text.chars() {
        kept.push(character);
        if width(&kept) >= columns {
            kept.pop();
            break;
        }
    }
    kept.push('…');
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_nothing_that_it_would_act_on() {
        assert_eq!(plain("é 💥 a b"), "é 💥 a b");
        assert_eq!(plain("a\u{1b}[2Jb\r\n\tc\u{7f}\u{9b}"), r"a\u{1b}[2Jb\r\n\tc\u{7f}\u{9b}");
        assert_eq!(plain("a\u{202e}b"), r"a\u{202e}b");
    }

    #[test]
    fn what_is_too_long_is_cut_where_it_fits() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
    }
}
