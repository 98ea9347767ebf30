// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/big"
	"regexp"
	"sort"
	"strconv"
	"unicode/utf8"
)

// field is a value with its path, such as blocks[0].bits, and the problem code for refusing it.
type field struct {
	*Value
	path string
	code string
}

var (
	idPattern     = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	digestPattern = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	hex32Pattern  = regexp.MustCompile(`^[0-9a-f]{32}$`)
	hex64Pattern  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	timePattern   = regexp.MustCompile(`^2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`)
	rsaKey        = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	scorePattern  = regexp.MustCompile(`^-?([1-9][0-9]{0,8}|0)(\.[0-9]{0,5}[1-9])?$`)
	figurePattern = regexp.MustCompile(`^(mean|distribution|contrast)$`)
	tongue        = regexp.MustCompile(`^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)
)

func (f field) fail(format string, values ...interface{}) {
	refuse(f.code, f.path, format, values...)
}

func (f field) join(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

// get returns a member, and refuses a missing one. Usually, object has already checked that the member exists.
func (f field) get(name string) field {
	value, ok := f.fields[name]
	if !ok {
		refuse(f.code, f.join(name), "this field is needed")
	}
	return field{value, f.join(name), f.code}
}

func (f field) has(name string) bool { return f.fields[name] != nil }

// object checks that f is an object with all needed members, optionally some of the others, and no further members.
func (f field) object(needed []string, others ...string) {
	if f.kind != isObject {
		f.fail("expected a JSON object")
	}
	known := map[string]bool{}
	for _, name := range others {
		known[name] = true
	}
	names := append([]string(nil), f.keys...)
	for _, name := range needed {
		known[name] = true
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if f.get(name); !known[name] {
			refuse(f.code, f.join(name), "this field is not known; remove it, or update the verifier")
		}
	}
}

// objectExactly is object for parameters of forms, where refusals name the object instead of the member.
func (f field) objectExactly(names ...string) {
	if problem := catch("", func() { f.object(names) }); problem != nil {
		f.fail("expected exactly the fields of spec 1.10")
	}
}

// items returns the entries of a list of low to high entries.
func (f field) items(low, high int) []field {
	if f.kind != isList || len(f.list) < low || len(f.list) > high {
		f.fail("expected a list of %d to %d entries", low, high)
	}
	items := make([]field, len(f.list))
	for i, value := range f.list {
		items[i] = field{value, f.path + "[" + strconv.Itoa(i) + "]", f.code}
	}
	return items
}

func (f field) isWhole(low, high int64) bool {
	return f.kind == isNumber && f.number >= low && f.number <= high
}

func (f field) whole(low, high int64) int64 {
	if !f.isWhole(low, high) {
		f.fail("expected a whole number from %d to %d", low, high)
	}
	return f.number
}

func (f field) wholes(low, high int, least, most int64) []int64 {
	var out []int64
	for _, item := range f.items(low, high) {
		out = append(out, item.whole(least, most))
	}
	return out
}

func (f field) matches(pattern *regexp.Regexp, what string) string {
	if f.kind != isText || !pattern.MatchString(f.text) {
		f.fail("expected %s", what)
	}
	return f.text
}

// score checks a number written as its shortest decimal text.
func (f field) score() {
	if f.matches(scorePattern, "a decimal such as -1.5") == "-0" {
		f.fail("expected 0")
	}
}

func (f field) id() string { return f.matches(idPattern, "an id of a-z, 0-9, - and _") }

func (f field) ids(low, high int) (ids []string) {
	for _, item := range f.items(low, high) {
		ids = append(ids, item.id())
	}
	return ids
}

// unique refuses a list that contains two equal texts.
func (f field) unique(texts []string, what string) {
	seen := map[string]bool{}
	for _, text := range texts {
		if seen[text] {
			f.fail("two %s are equal; each may occur once", what)
		}
		seen[text] = true
	}
}

// words checks an object with a text in each of the document's languages.
func (f field) words(languages []string) map[string]string {
	f.object(languages)
	texts := map[string]string{}
	for _, language := range languages {
		texts[language] = f.get(language).prose(4000)
	}
	return texts
}

// unsafe lists the first and last characters of the ranges that no text may contain (spec 3.6): control characters,
// line separators, characters that reverse or hide text, and private-use characters.
var unsafe = [][2]rune{
	{0x00, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x600, 0x605}, {0x61c, 0x61c}, {0x6dd, 0x6dd}, {0x70f, 0x70f},
	{0x890, 0x891}, {0x8e2, 0x8e2}, {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x2064},
	{0x2066, 0x206f}, {0xe000, 0xf8ff}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0x110bd, 0x110bd},
	{0x110cd, 0x110cd}, {0x13430, 0x13438}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001},
	{0xe0020, 0xe007f}, {0xf0000, 0xffffd}, {0x100000, 0x10fffd},
}

// isUnsafe reports whether the i-th character cannot be shown safely. Some scripts need the two joiners U+200C and
// U+200D, so they are allowed between two characters that are not ASCII.
func isUnsafe(text []rune, i int) bool {
	if c := text[i]; c == 0x200c || c == 0x200d {
		return i == 0 || i+1 == len(text) || text[i-1] < 0x80 || text[i+1] < 0x80
	}
	for _, part := range unsafe {
		if part[0] <= text[i] && text[i] <= part[1] {
			return true
		}
	}
	return false
}

// prose checks and returns a text of 1 to most characters that can be shown safely.
func (f field) prose(most int) string {
	if f.kind != isText || f.text == "" || utf8.RuneCountInString(f.text) > most {
		f.fail("expected a text of 1 to %d characters", most)
	}
	letters := []rune(f.text)
	for i, c := range letters {
		if isUnsafe(letters, i) {
			f.fail("the text contains U+%04X, which cannot be shown safely; remove it", c)
		}
	}
	return f.text
}

// ratio reads [p, q] with p from low and q from 1, both below 2^53.
func (f field) ratio(low int64) *big.Rat {
	if f.kind != isList || len(f.list) != 2 {
		f.fail("expected a ratio of two whole numbers")
	}
	parts := f.items(2, 2)
	return big.NewRat(parts[0].whole(low, maxNumber), parts[1].whole(1, maxNumber))
}

// orNull reads an optional ratio.
func (f field) orNull(low int64) *big.Rat {
	if f.kind == isNull {
		return nil
	}
	return f.ratio(low)
}
