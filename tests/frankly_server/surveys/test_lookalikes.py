# SPDX-License-Identifier: Apache-2.0
"""Confusable labels: refused, doubtful and distinct pairs, and label sets of many languages."""

from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import Any

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_protocol.questions import Choice, Question
from frankly_server.surveys.definition import SurveyDefinition, parse_value
from frankly_server.surveys.devices import expected_form, warnings_of
from frankly_server.surveys.editing import new_draft
from frankly_server.surveys.lookalikes import Lookalike, _forms, code_points, lookalikes, skeleton

from tests.frankly_server.surveys.samples import value
from tests.processes import output_of

AFFAIR = ("blocks", 0, "questions", 0)


def question(*labels: str | dict[str, str]) -> Question:
    """Return a question that the rules of survey files have not checked."""
    texts = [label if isinstance(label, dict) else {"en": label} for label in labels]
    choices = tuple(Choice(f"c{i}", text) for i, text in enumerate(texts))
    return Question("q", {"en": "?"}, choices)


def verdict(*labels: str) -> str:
    pairs = list(lookalikes(question(*labels)))
    return "refused" if any(p.is_refused for p in pairs) else "doubtful" if pairs else "distinct"


# Confusable pairs from UTS 39 and its data table.
EQUAL = [
    ("paypal", "p\u0430ypal"), ("scope", "\u0455\u0441\u043e\u0440\u0435"), ("toys-\u044f-us", "toys-\u1d19-us"),
    ("1i\u03bd\u0435", "live"), ("ljeto", "\u01c9eto"), ("s\u00f8s", "so\u0338s"),
    ("\U0001d52d\U0001d4b6\u1eff\U0001d561\U0001d552\u2113", "paypal"),
    ("O", "0"), ("l", "1"), ("l", "I"), ("l", "|"), ("rn", "m"), ("\u0399", "I"), ("\u05d5", "l"), ("\u0627", "\u0661"),
    ("\u304b\u3099", "\u304c"), ("\u516b", "\u30cf"), ("\u5de5", "\u30a8"), ("\u2019", "'"), ("\u201d", "''"),
    ("\u0131", "i"), ("\u00df", "\u03b2"), ("\u0410", "\u0391"), ("\uff21", "A"), ("\u30fb", "\u00b7"),
    ("a\u200bb", "ab"), ("a\ufe0fb", "ab"), ("e\u0323\u0301", "e\u0301\u0323"), ("\u212b", "\u00c5"),
    ("\u0435\u0301", "\u00e9"), ("\u0301\u034f\u0323", "\u0323\u0301"), ("\u2010", "-"), ("\u2013", "-"),
    ("\u2e2e", "\u061f"), ("\u2e1a\u0323", "-\u0308\u0323"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), EQUAL)
def test_the_skeletons_of_confusable_strings_are_equal(first: str, second: str) -> None:
    assert skeleton(first) == skeleton(second)
    assert skeleton(skeleton(first)) == skeleton(first)


SKELETONS = [
    ("\u0455\u0441\u043e\u0440\u0435", "scope"), ("modem", "rnodern"), ("O0", "OO"), ("\u01ab", "\u01ab"),
    ("\u00fc", "u\u0308"), ("\u03a9", "\u03a9"), ("\u4e00", "\u30fc"), ("\u05e1", "o"), ("1Il|", "llll"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SKELETONS)
def test_skeletons(text: str, expected: str) -> None:
    assert skeleton(text) == expected


REFUSED: dict[str, Sequence[str]] = {
    "Latin and Cyrillic": ("Yes", "\u0423es"),
    "Latin and Cyrillic of another case": ("yes", "\u0423ES"),
    "all Latin and all Cyrillic": ("scope", "\u0455\u0441\u043e\u0440\u0435"),
    "Cyrillic with one Latin letter": ("\u0414\u0430", "\u0414a"),
    "Greek": ("\u0391\u03b8\u03ae\u03bd\u03b1", "A\u03b8\u03ae\u03bd\u03b1"),
    "Greek question mark": ("what\u037e", "what;"),
    "Armenian": ("n\u0585", "no"),
    "the same letters at other places": ("a\u0430", "\u0430a"),
    "Han circle and Latin O": ("\u3007", "O"),
    "one pair of three": ("0", "O", "\u041e"),
    "full width": ("A1", "\uff21\uff11"),
    "mathematical": ("yes", "\U0001d432\U0001d41e\U0001d42c"),
    "micro sign": ("5 \u00b5g", "5 \u03bcg"),
    "ligature": ("o\ufb03ce", "office"),
    "no-break space": ("10 000", "10\u00a0000"),
    "blank Braille": ("Yes", "Yes\u2800"),
    "Hangul filler": ("\ub124", "\ub124\u3164"),
    "zero width": ("Yes", "Y\u200bes"),
    "zero-width joiner": ("\u00e9\u00e9", "\u00e9\u200d\u00e9"),
    "grapheme joiner": ("Yes", "Y\u034fes"),
    "soft hyphen": ("weekday", "week\u00adday"),
    "variation selector": ("\u2764", "\u2764\ufe0f"),
    "Han variation": ("\u8fbb", "\u8fbb\U000e0100"),
    "Mongolian variation": ("\u1820", "\u1820\u180b"),
    "a mark twice": ("caf\u00e9", "caf\u00e9\u0301"),
    "order of marks": ("e\u0323\u0301", "e\u0301\u0323"),
    "composition": ("caf\u00e9", "cafe\u0301"),
    "marks held apart": ("e\u0323\u0301", "e\u0301\u034f\u0323"),
    "case": ("No", "NO"),
}
DOUBTFUL: dict[str, Sequence[str]] = {
    "O and 0": ("Type O", "Type 0"),
    "l and 1": ("Option l", "Option 1"),
    "I and 1": ("Phase I", "Phase 1"),
    "rn and m": ("modern", "modem"),
    "apostrophes": ("Don't know", "Don\u2019t know"),
    "dashes": ("18-24", "18\u201324"),
    "Cyrillic \u0417 and 3": ("\u0417", "3"),
    "Cyrillic word and digit": ("\u041c\u041e", "\u041c0"),
    "Turkish \u0131 and i": ("s\u0131n\u0131r", "sinir"),
    "ligature \u0153": ("c\u0153ur", "coeur"),
    "Romanian comma and cedilla": ("\u0219i", "\u015fi"),
    "Kana and Han": ("\u30cf", "\u516b"),
    "Hiragana and Katakana": ("\u3078", "\u30d8"),
    "Hangul vowel and dash": ("\u3161", "\u30fc"),
    "Hangul vowel and Han": ("\u3161", "\u4e00"),
    "Arabic digit and letter": ("\u0661", "\u0627"),
    "Hebrew vav and final nun": ("\u05d5", "\u05df"),
    "Hebrew shin and sin": ("\u05e9\u05c1", "\u05e9\u05c2"),
    "Han of other lengths": ("\u571f", "\u58eb"),
    "Thai twice e": ("\u0e40\u0e40\u0e01\u0e48", "\u0e41\u0e01\u0e48"),
    "a Cyrillic word beside O and 0": ("0 \u0440\u0443\u0431. 0", "O \u0440\u0443\u0431. O"),
}
DISTINCT: dict[str, Sequence[str]] = {
    "accents": ("schon", "sch\u00f6n"),
    "tilde": ("a\u00f1o", "ano"),
    "Vietnamese tones": ("ma", "m\u00e1", "m\u00e0", "m\u1ea3", "m\u00e3", "m\u1ea1"),
    "Hebrew points": ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
    "Arabic vowel signs": ("\u0643\u062a\u0628", "\u0643\u064f\u062a\u0628"),
    "capitals alike in no case": ("\u0393", "Y"),
    "small letters alike in no case": ("\u041d\u0435\u0442", "Net"),
    "only capitals alike": ("\u041d\u0435\u0442", "HET"),
    "Greek Ni and Latin V": ("\u039d", "V"),
    "kana with and without dakuten": ("\u304b", "\u304c"),
    "German ss": ("Ma\u00dfe", "Masse2"),
    "skin tones": ("\U0001f44d\U0001f3fb", "\U0001f44d\U0001f3ff", "\U0001f44d"),
    "digits of two scripts": ("5", "\u0665"),
    "letters twice": ("bal", "ball"),
    "plus and minus": ("+1", "-1"),
}
VERDICTS = [
    (name, labels, expected)
    for expected, table in (("refused", REFUSED), ("doubtful", DOUBTFUL), ("distinct", DISTINCT))
    for name, labels in table.items()
]


@pytest.mark.parametrize(("name", "labels", "expected"), VERDICTS, ids=[v[0] for v in VERDICTS])
def test_verdicts(name: str, labels: Sequence[str], expected: str) -> None:
    assert verdict(*labels) == verdict(*reversed(labels)) == expected, name


# Real answer scales and lists, none of which is refused or causes a warning.
SETS: dict[str, Sequence[str]] = {
    "English": ["Yes", "No", "Don't know", "Prefer not to say", "Rather not say"],
    "English agreement": ["Strongly agree", "Agree", "Neither agree nor disagree", "Disagree", "Strongly disagree"],
    "English frequency": ["Never", "Once", "1–2 times", "3–5 times", "6–10 times", "More than 10 times"],
    "letters": list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "small letters": list("abcdefghijklmnopqrstuvwxyz"),
    "0 to 63": [str(n) for n in range(64)],
    "Roman numerals": ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"],
    "ages": ["0–17", "18–24", "25–34", "35–44", "45–54", "55–64", "65+"],
    "incomes": ["< €1,000", "€1,000–1,999", "€2,000–2,999", "€3,000–9,999", "≥ €10,000"],
    "blood groups": ["A+", "A−", "B+", "B−", "AB+", "AB−", "0+", "0−"],
    "sizes": ["XS", "S", "M", "L", "XL", "XXL", "3XL"],
    "signs": ["++", "+", "0", "−", "−−"],
    "stars": ["★", "★★", "★★★", "★★★★", "★★★★★"],
    "German": ["Ja", "Nein", "Weiß nicht", "Möchte ich nicht sagen", "Männlich", "Weiblich", "Divers"],
    "French": ["Oui", "Non", "Je ne sais pas", "Jamais", "Parfois", "Souvent", "Année", "Âgé", "Agréable"],
    "Spanish": ["Sí", "No", "Si", "No sabe", "No contesta", "Año", "Mes", "Día"],
    "Polish": ["Tak", "Nie", "Nie wiem", "Łódź", "Lódz", "Zawsze", "Często"],
    "Turkish": ["Evet", "Hayır", "Bilmiyorum", "Hiçbir zaman", "Bazen", "Her zaman", "İl", "Köy"],
    "Vietnamese": ["Có", "Không", "Không biết", "Luôn luôn", "Thỉnh thoảng", "Ba", "Bà", "Bá", "Bả", "Bã", "Bạ"],
    "Russian": ["Да", "Нет", "Не знаю", "Затрудняюсь ответить", "Никогда", "Иногда", "Часто", "Всё", "Все", "Москва"],
    "Russian letters": list("АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ"),
    "Ukrainian": ["Так", "Ні", "Не знаю", "Їжак", "Іноді", "Ґанок"],
    "Serbian in two scripts": ["Да / Da", "Не / Ne", "Не знам / Ne znam"],
    "Greek": ["Ναι", "Όχι", "Δεν ξέρω", "Ποτέ", "Μερικές φορές", "Πάντα", "Άνδρας", "Γυναίκα"],
    "Greek letters": list("ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ"),
    "Arabic": ["نعم", "لا", "لا أعرف", "أفضل عدم الإجابة", "أبدًا", "أحيانًا", "دائمًا", "ذكر", "أنثى"],
    "Arabic letters": list("ابتثجحخدذرزسشصضطظعغفقكلمنهوي"),
    "Arabic digits": [*"٠١٢٣٤٥٦٧٨٩", "١٠"],
    "Persian": ["بله", "خیر", "نمی‌دانم", "هرگز", "گاهی", "همیشه", "مرد", "زن"],
    "Persian digits": list("۰۱۲۳۴۵۶۷۸۹"),
    "Urdu": ["ہاں", "نہیں", "معلوم نہیں", "کبھی نہیں", "کبھی کبھار", "ہمیشہ"],
    "Hebrew": ["כן", "לא", "לא יודע/ת", "מעדיף/ה לא לענות", "אף פעם", "לפעמים", "תמיד", "זכר", "נקבה"],
    "Hebrew letters": list("אבגדהוזחטיכלמנסעפצקרשת"),
    "Hindi": ["हाँ", "नहीं", "पता नहीं", "कभी नहीं", "कभी-कभी", "हमेशा", "पुरुष", "महिला"],
    "Hindi letters": list("अआइईउऊऋएऐओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसह"),
    "Hindi digits": list("०१२३४५६७८९"),
    "Bengali": ["হ্যাঁ", "না", "জানি না", "কখনও না", "মাঝে মাঝে", "সবসময়"],
    "Tamil": ["ஆம்", "இல்லை", "தெரியாது", "ஒருபோதும் இல்லை", "சில நேரங்களில்", "எப்போதும்"],
    "Thai": ["ใช่", "ไม่ใช่", "ไม่ทราบ", "ไม่เคย", "บางครั้ง", "เสมอ", "ชาย", "หญิง", "ไม้", "ไหม"],
    "Thai digits": list("๐๑๒๓๔๕๖๗๘๙"),
    "Georgian": ["დიახ", "არა", "არ ვიცი", "არასოდეს", "ხანდახან", "ყოველთვის"],
    "Armenian": ["Այո", "Ոչ", "Չգիտեմ", "Երբեք", "Երբեմն", "Միշտ"],
    "Amharic": ["አዎ", "አይ", "አላውቅም", "በጭራሽ", "አንዳንድ ጊዜ", "ሁልጊዜ"],
    "Chinese": ["是", "否", "不知道", "不想回答", "从不", "偶尔", "经常", "总是", "男", "女", "未", "末", "日", "曰"],
    "weekdays": list("日月火水木金土"),
    "Chinese numerals": list("一二三四五六七八九十"),
    "Japanese": ["はい", "いいえ", "わからない", "答えたくない", "全くない", "時々", "いつも", "男", "女", "その他"],
    "Japanese marks": ["○", "△", "×", "◎"],
    "iroha": list("イロハニホヘト"),
    "hiragana": list("あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん"),
    "katakana": list("アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン"),
    "Korean": ["예", "아니요", "모르겠다", "응답하고 싶지 않다", "전혀 없다", "가끔", "자주", "항상", "남성", "여성"],
    "faces": ["😀", "🙂", "😐", "🙁", "😢", "😡"],
    "people": ["👩", "👨", "🧑", "👩‍🔬", "👨‍🔬", "👩‍👩‍👧", "👨‍👩‍👧‍👦"],
    "hearts": ["❤️", "🧡", "💛", "💚", "💙", "💜", "🖤"],
    "flags": ["🇩🇪", "🇫🇷", "🇬🇧", "🇯🇵", "🇺🇦", "🇮🇱", "🇸🇦"],
    "thumbs": ["👍", "👎", "👍🏽", "👍🏿", "👎🏿"],
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_label_sets_of_many_languages_pass(name: str) -> None:
    assert list(lookalikes(question(*SETS[name]))) == []


def test_every_language_of_a_label_is_compared() -> None:
    labels = {"en": "Yes", "ru": "\u0414\u0430"}, {"en": "No", "ru": "\u0414a"}
    [pair] = lookalikes(question(*labels))
    assert (pair.language, pair.is_refused) == ("ru", True)
    # Two labels that are the same in both languages count as one pair.
    assert len(list(lookalikes(question(*({"en": c, "de": c} for c in "O0"))))) == 1


def test_invisible_characters_are_named_by_code_point() -> None:
    assert (
        code_points("Yes", "\u0423es")
        == "“Yes” has U+0059 LATIN CAPITAL LETTER Y; “\u0423es” has U+0423 CYRILLIC CAPITAL LETTER U"
    )
    assert (
        code_points("\u2764", "\u2764\ufe0f") == "“\u2764\ufe0f” has U+FE0F VARIATION SELECTOR-16"
    )
    assert code_points("a\u0430", "\u0430a").count("U+") == 4
    assert code_points("abcdef", "\u0430bcdef").endswith("U+0430 CYRILLIC SMALL LETTER A")
    assert code_points("abcdef", "ghijkl").count(", …") == 2
    assert "…" not in code_points("abcd", "ghij")


def labelled(*labels: str) -> dict[tuple[Any, ...], Any]:
    """Return a change of the labels of the sample file's first question."""
    return {
        (*AFFAIR, "choices"): [
            {"id": f"c{i}", "label": {"en": label}} for i, label in enumerate(labels)
        ],
        ("blocks", 0, "mechanism"): "grr",
    }


def test_a_refusal_names_the_question_both_choices_and_the_difference() -> None:
    definition = parse_value(value(labelled("Yes", "\u0423es")))
    with pytest.raises(InvalidInput) as refused:
        expected_form(definition)
    assert (refused.value.code, refused.value.field) == (
        "choices_collide", "blocks[0].questions[0].choices",
    )  # fmt: skip
    for text in (
        "“Yes” and “\u0423es” of affair (en)",
        "U+0423 CYRILLIC",
        "U+0059 LATIN",
        "keyboard",
    ):
        assert text in refused.value.detail


def test_public_questions_are_compared_too() -> None:
    choices = labelled("A", "\u0410")[(*AFFAIR, "choices")]
    strata = [{"id": "region", "text": {"en": "Where?"}, "choices": choices}]
    with pytest.raises(InvalidInput) as refused:
        expected_form(parse_value(value({("strata",): strata})))
    assert refused.value.field == "strata[0].choices"


def test_choices_of_the_item_are_compared_too() -> None:
    draft = new_draft("T", "t", "en", "Ill?", ["No", "Yes"])

    def asked(*labels: str) -> SurveyDefinition:
        item: dict[str, Any] = {"id": "check", "text": {"en": "?"}, "answer": "c1"}
        item["choices"] = labelled(*labels)[(*AFFAIR, "choices")]
        return parse_value(draft | {"instructed": item})

    with pytest.raises(InvalidInput) as refused:
        expected_form(asked("A", "\u0410"))
    assert refused.value.field == "instructed.choices"
    form = expected_form(asked("Type O", "Type 0"))
    assert any("“Type O” and “Type 0” of check (en)" in line for line in warnings_of(form))


def test_doubtful_labels_are_a_warning() -> None:
    form = expected_form(parse_value(value(labelled("Type O", "Type 0", "Type A"))))
    [warning] = [line for line in warnings_of(form) if "look alike" in line]
    assert "“Type O” and “Type 0” of affair (en)" in warning
    assert "U+0030 DIGIT ZERO" in warning
    clear = expected_form(parse_value(value(labelled("Type 0", "Type A"))))
    assert not [line for line in warnings_of(clear) if "look alike" in line]


def test_labels_refused_by_the_rules_of_files_show_the_difference() -> None:
    with pytest.raises(InvalidInput, match=r"“cafe\u0301” has U\+0065 .*, U\+0301 COMBINING ACUTE"):
        parse_value(value(labelled("caf\u00e9", "cafe\u0301")))


def test_every_pair_of_a_question_is_compared() -> None:
    labels = ("O", "0", "\u041e", "\u039f")
    pairs = {(p.first, p.second): p.is_refused for p in lookalikes(question(*labels))}
    assert set(pairs) == set(combinations(labels, 2))
    assert [pair for pair, refused in pairs.items() if not refused] == [
        ("O", "0"), ("0", "\u041e"), ("0", "\u039f"),
    ]  # fmt: skip


def test_the_text_of_a_pair() -> None:
    pair = Lookalike("q", "en", "O", "0", is_refused=False)
    assert str(pair).startswith("the choices “O” and “0” of q (en) look alike: “O” has U+004F ")


def test_the_table_is_read_at_the_first_label_only() -> None:
    """The table is a megabyte of JSON, and most commands do not compare labels."""
    code = "import sys, frankly_server.surveys.lookalikes; print(*sys.modules)"
    printed = output_of(code)
    assert "frankly_server.surveys.lookalikes" in printed.split()
    assert "confusable_homoglyphs" not in printed


def test_the_pairs_are_those_that_share_a_form() -> None:
    """Compared with all pairs, on random labels of characters that look alike."""
    rng = Random(39)
    for _ in range(60):
        labels = ["".join(rng.choices("0OoОlI1aаﬁfi ", k=rng.randint(1, 3))) for _ in range(12)]
        question = Question(
            "q",
            {"en": "?"},
            tuple(Choice(f"c{i}", {"en": label}) for i, label in enumerate(labels)),
        )
        found = [(pair.first, pair.second) for pair in lookalikes(question)]
        assert found == list(
            dict.fromkeys(
                (a, b)
                for a, b in combinations(labels, 2)
                if any(x == y for x, y in zip(_forms(a), _forms(b), strict=True))
            )
        )
