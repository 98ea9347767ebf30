// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of canonical JSON (protocol section 2).
const (
	maxPayload = 4 << 20
	maxDepth   = 9
	maxNumber  = 1<<53 - 1
)

// Kinds of a JSON value. A real is a number that is not whole; documents contain none, but results do.
const (
	isNull = iota
	isBool
	isNumber
	isReal
	isText
	isList
	isObject
)

// Value is a JSON value. Whole numbers are stored exactly; keys are in the order of the text.
type Value struct {
	kind   int
	truth  bool
	number int64
	real   float64
	text   string
	list   []*Value
	keys   []string
	fields map[string]*Value
}

// reader reads JSON. If strict is set, it accepts only canonical JSON; otherwise it accepts RFC 8259 with spaces,
// escapes and reals, but still refuses duplicate names and invalid UTF-8.
type reader struct {
	data   []byte
	at     int
	strict bool
	code   string
	depth  int
}

// parseCanonical reads a payload, and refuses any form except the canonical one (step 4, K1).
func parseCanonical(data []byte) *Value {
	if len(data) > maxPayload {
		refuse("document_canonical", "", "the payload has %d bytes; at most %d are allowed", len(data), maxPayload)
	}
	return parseJSON(data, true, "document_canonical", maxDepth)
}

// parseJSON reads one JSON value, which must span all of data.
func parseJSON(data []byte, strict bool, code string, depth int) *Value {
	r := &reader{data: data, strict: strict, code: code, depth: depth}
	if !utf8.Valid(data) {
		r.fail("the text is not UTF-8; save it as UTF-8")
	}
	r.space()
	value := r.value(0)
	r.space()
	if r.at != len(data) {
		r.fail("there is more text after the end of the value; remove it")
	}
	return value
}

func (r *reader) fail(detail string) {
	refuse(r.code, "", "at byte %d: %s", r.at, detail)
}

func (r *reader) peek() byte {
	if r.at >= len(r.data) {
		r.fail("the text ends too early; it is cut off")
	}
	return r.data[r.at]
}

func (r *reader) space() {
	for !r.strict && r.at < len(r.data) {
		if c := r.data[r.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return
		}
		r.at++
	}
}

func (r *reader) word(word string) {
	if len(r.data)-r.at < len(word) || string(r.data[r.at:r.at+len(word)]) != word {
		r.fail("expected a JSON value without spaces before it")
	}
	r.at += len(word)
}

func (r *reader) value(depth int) *Value {
	switch c := r.peek(); c {
	case 'n':
		r.word("null")
		return &Value{}
	case 't':
		r.word("true")
		return &Value{kind: isBool, truth: true}
	case 'f':
		r.word("false")
		return &Value{kind: isBool}
	case '"':
		return &Value{kind: isText, text: r.string()}
	case '[', '{':
		if depth == r.depth {
			r.fail("too many levels; at most " + strconv.Itoa(r.depth) + " are allowed")
		}
		r.at++
		if c == '[' {
			return r.listOf(depth + 1)
		}
		return r.object(depth + 1)
	}
	return r.numeral()
}

func (r *reader) listOf(depth int) *Value {
	v := &Value{kind: isList}
	r.space()
	if r.peek() == ']' {
		r.at++
		return v
	}
	for {
		r.space()
		v.list = append(v.list, r.value(depth))
		if r.ends(']') {
			return v
		}
	}
}

func (r *reader) object(depth int) *Value {
	v := &Value{kind: isObject, fields: map[string]*Value{}}
	r.space()
	if r.peek() == '}' {
		r.at++
		return v
	}
	for {
		r.space()
		name := r.string()
		if _, twice := v.fields[name]; twice {
			r.fail("a name occurs twice in an object; remove one")
		}
		if n := len(v.keys); r.strict && (utf8.RuneCountInString(name) != len(name) || n > 0 && v.keys[n-1] > name) {
			r.fail("names must be ASCII and in ascending order; write the canonical form")
		}
		r.space()
		if r.peek() != ':' {
			r.fail("expected a colon after a name")
		}
		r.at++
		r.space()
		v.keys = append(v.keys, name)
		v.fields[name] = r.value(depth)
		if r.ends('}') {
			return v
		}
	}
}

// ends reads a comma, or the closing bracket of the list or object; it returns true for the bracket.
func (r *reader) ends(bracket byte) bool {
	r.space()
	c := r.peek()
	if c != ',' && c != bracket {
		r.fail("expected a comma or a closing bracket")
	}
	r.at++
	return c == bracket
}

func (r *reader) numeral() *Value {
	start := r.at
	if r.peek() == '-' {
		r.at++
	}
	first := r.at
	r.digits()
	if r.at-first > 1 && r.data[first] == '0' {
		r.fail("a number begins with a superfluous 0")
	}
	whole := r.at
	if r.at < len(r.data) && r.data[r.at] == '.' {
		r.at++
		r.digits()
	}
	if r.at < len(r.data) && (r.data[r.at] == 'e' || r.data[r.at] == 'E') {
		r.at++
		if c := r.peek(); c == '+' || c == '-' {
			r.at++
		}
		r.digits()
	}
	text := string(r.data[start:r.at])
	number, _ := strconv.ParseInt(text, 10, 64)
	if r.at > whole || text == "-0" || r.at-first > 16 || number > maxNumber || number < -maxNumber {
		real, err := strconv.ParseFloat(text, 64)
		if r.strict || err != nil {
			r.fail("only whole numbers below 2^53 are allowed")
		}
		return &Value{kind: isReal, real: real, text: text}
	}
	return &Value{kind: isNumber, number: number, real: float64(number)}
}

func (r *reader) digits() {
	start := r.at
	for r.at < len(r.data) && r.data[r.at] >= '0' && r.data[r.at] <= '9' {
		r.at++
	}
	if r.at == start {
		r.fail("expected a JSON value without spaces before it")
	}
}

// string reads a text. In canonical form, only quotes, backslashes and control characters are escaped, in the shortest
// way.
func (r *reader) string() string {
	if r.peek() != '"' {
		r.fail("expected a name in double quotes")
	}
	r.at++
	var out []byte
	for {
		c := r.peek()
		r.at++
		switch {
		case c == '"':
			return string(out)
		case c < 0x20:
			r.fail("a control character is not escaped")
		case c == '\\':
			out = utf8.AppendRune(out, r.escape())
		default:
			out = append(out, c)
		}
	}
}

func (r *reader) escape() rune {
	c := r.peek()
	r.at++
	short := map[byte]rune{'"': '"', '\\': '\\', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
	if found, ok := short[c]; ok {
		return found
	}
	if c == '/' && !r.strict {
		return '/'
	}
	if c != 'u' {
		r.fail("an escape sequence is not one of JSON's")
	}
	code := r.hex4()
	if r.strict {
		text := string(r.data[r.at-4 : r.at])
		named := code == '\b' || code == '\f' || code == '\n' || code == '\r' || code == '\t'
		if code >= 0x20 || named || !isLowerHex(text) {
			r.fail("an escape is not the shortest; write the canonical form")
		}
	}
	if utf16.IsSurrogate(code) {
		if r.at+6 > len(r.data) || r.data[r.at] != '\\' || r.data[r.at+1] != 'u' {
			r.fail("a surrogate stands alone")
		}
		r.at += 2
		if code = utf16.DecodeRune(code, r.hex4()); code == utf8.RuneError {
			r.fail("a surrogate stands alone")
		}
	}
	return code
}

func (r *reader) hex4() rune {
	if r.at+4 > len(r.data) {
		r.fail("the text ends too early; it is cut off")
	}
	code, err := strconv.ParseUint(string(r.data[r.at:r.at+4]), 16, 32)
	if err != nil {
		r.fail("an escape needs four hexadecimal digits")
	}
	r.at += 4
	return rune(code)
}

func isLowerHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }
