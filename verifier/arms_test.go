// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

// change is a path in a document, and the JSON of its new value.
type change struct{ path, value string }

func changed(t *testing.T, payload string, changes ...change) string {
	for _, c := range changes {
		var value interface{}
		decoder := json.NewDecoder(strings.NewReader(c.value))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		payload = edited(t, payload, c.path, value, true)
	}
	return payload
}

// blockOf returns the JSON of the only block of a document of the vectors.
func blockOf(t *testing.T, name string) string {
	var document struct{ Blocks []json.RawMessage }
	if err := json.Unmarshal([]byte(named(t, name)), &document); err != nil {
		t.Fatal(err)
	}
	return string(document.Blocks[0])
}

func publicQuestion(id string) string {
	return `{"id":"` + id + `","text":{"en":"?"},"choices":[{"id":"n","label":{"en":"n"}},{"id":"s","label":{"en":"s"}}]}`
}

const item = `{"id":"item","text":{"en":"?"},"choices":[{"id":"n","label":{"en":"n"}},{"id":"s","label":{"en":"s"}}],"answer":"n"}`

// split returns a document with two arms: the first asks region and dense-ldp, the second sex and unary-ldp, whose
// first question has the id of the other block's first question.
func split(t *testing.T) string {
	return changed(t, named(t, "dense ldp"),
		change{"blocks", "[" + blockOf(t, "dense ldp") + "," + blockOf(t, "unary ldp") + "]"},
		change{"blocks.1.questions.0.id", `"dense-ldp-a"`},
		change{"strata", "[" + publicQuestion("region") + "," + publicQuestion("sex") + "]"},
		change{"arms", `{"id":"arm","arms":[{"id":"a","chance":16384,"strata":["region"],"blocks":["dense-ldp"]},
			{"id":"b","chance":49152,"strata":["sex"],"blocks":["unary-ldp"]}]}`})
}

// TestRefusalsOfArms checks the code and field of the faults of spec 3.10, and what each arm may have of its own.
func TestRefusalsOfArms(t *testing.T) {
	const arms, first, second, wrong = "arms.arms", "arms.arms.0.", "arms.arms.1.", "4 document_schema "
	three := `[{"id":"a","chance":16384,"strata":["region"],"blocks":["dense-ldp"]},
		{"id":"b","chance":16384,"strata":["sex"],"blocks":["unary-ldp"]},{"id":"c","chance":32768,"strata":["sex"],"blocks":[]}]`
	rule := `{"question":"dense-ldp-b","choices":["no"]}`
	choices := `[{"id":"no","label":{"en":"no"}},{"id":"yes","label":{"en":"yes"},"role":"not_applicable"}]`
	lip, rldp := blockOf(t, "dense lip"), blockOf(t, "dense rldp")
	tables := `[[[5,2,1,3],[1,4,2,2],[2,2,6,1]],[[5,2,1,3],[1,4,2,2],[2,2,6,1]]]`
	four := changed(t, `[`+lip+`]`, change{"0.claims.0.prior.tables", tables[:len(tables)-1] + "," + tables[1:]})
	both := change{second + "strata", `["region","sex"]`}
	for name, c := range map[string]struct {
		want    string
		changes []change
	}{
		"two arms":                  {"accepted", nil},
		"null":                      {wrong + "arms", []change{{"arms", `null`}}},
		"more fields":               {wrong + "arms.more", []change{{"arms.more", `1`}}},
		"id of arms":                {wrong + "arms.id", []change{{"arms.id", `"A"`}}},
		"one arm":                   {wrong + arms, []change{{arms, `[]`}}},
		"more fields of an arm":     {wrong + "arms.arms[0].more", []change{{first + "more", `1`}}},
		"id of an arm":              {wrong + "arms.arms[1].id", []change{{second + "id", `""`}}},
		"no chance":                 {wrong + "arms.arms[0].chance", []change{{first + "chance", `0`}}},
		"the whole chance":          {wrong + "arms.arms[0].chance", []change{{first + "chance", `65536`}}},
		"another sum":               {wrong + arms, []change{{first + "chance", `16385`}}},
		"two arms of one id":        {wrong + arms, []change{{second + "id", `"a"`}}},
		"a sum before ids":          {wrong + arms, []change{{first + "chance", `1`}, {first + "blocks", `["x"]`}}},
		"an unknown public id":      {wrong + "arms.arms[1].strata", []change{{second + "strata", `["x"]`}}},
		"a public id twice":         {wrong + "arms.arms[1].strata", []change{{second + "strata", `["sex","sex"]`}}},
		"no list of public ids":     {wrong + "arms.arms[1].strata", []change{{second + "strata", `null`}}},
		"an unknown block":          {wrong + "arms.arms[0].blocks", []change{{first + "blocks", `["region"]`}}},
		"a block twice":             {wrong + "arms.arms[0].blocks", []change{{first + "blocks", `["dense-ldp","dense-ldp"]`}}},
		"an id that is no text":     {wrong + "arms.arms[0].blocks[0]", []change{{first + "blocks", `[1]`}}},
		"an arm that asks nothing":  {wrong + "arms.arms[0].blocks", []change{{first + "blocks", `[]`}, {first + "strata", `[]`}}},
		"a block in no arm":         {wrong + arms, []change{{first + "blocks", `[]`}}},
		"a public question in none": {wrong + arms, []change{{first + "strata", `[]`}}},
		"two public questions":      {wrong + "strata", []change{{"strata.1.id", `"region"`}, {second + "strata", `["region"]`}}},
		"the id of arms public":     {wrong + "blocks", []change{{"strata.1.id", `"arm"`}, {second + "strata", `["arm"]`}}},
		"the id of arms":            {wrong + "blocks", []change{{"blocks.1.questions.0.id", `"arm"`}}},
		"the id of arms, item":      {wrong + "blocks", []change{{"instructed", item}, {"instructed.id", `"arm"`}}},
		"one id in an arm":          {wrong + "blocks", []change{{first + "blocks", `["dense-ldp","unary-ldp"]`}}},
		"one id, public":            {wrong + "blocks", []change{{"blocks.1.questions.0.id", `"sex"`}}},
		"public in the other arm":   {"accepted", []change{{"blocks.1.questions.0.id", `"region"`}}},
		"two blocks of one id":      {wrong + "blocks", []change{{"blocks.1.id", `"dense-ldp"`}}},
		"three arms, one in clear":  {"accepted", []change{{arms, three}}},
		"blocks exchanged":          {"accepted", []change{{second + "blocks", `["dense-ldp"]`}, {first + "blocks", `["unary-ldp"]`}}},
		"an item":                   {"accepted", []change{{"instructed", item}}},
		"an item beside a prior": {wrong + "instructed", []change{{"blocks.1", lip},
			{second + "blocks", `["dense-lip"]`}, {"instructed", item}}},
		"an item beside rldp": {wrong + "instructed", []change{{"blocks.1", rldp},
			{second + "blocks", `["dense-rldp"]`}, {"instructed", item}}},
		"an item beside an anchor": {wrong + "instructed", []change{{"instructed", item},
			{"blocks.0.questions.1.anchor", `{"counts":[1,1],"source":"x"}`}}},
		"a rule": {"accepted", []change{{"blocks.1.questions.0.id", `"dense-ldp-b"`},
			{"blocks.1.questions.1.choices", choices}, {"blocks.1.questions.1.ask_if", rule}}},
		"a rule of the other arm": {wrong + "unary-ldp-b", []change{
			{"blocks.1.questions.1.choices", choices}, {"blocks.1.questions.1.ask_if", rule}}},
		"repeats of the arm": {"accepted", []change{{"blocks.1.questions.1.anchor", `{"repeats":"dense-ldp-a"}`}}},
		"repeats of the other": {wrong + "unary-ldp-b", []change{
			{"blocks.1.questions.1.anchor", `{"repeats":"dense-ldp-b"}`}}},
		"a table for each": {"accepted", []change{{"blocks.1", lip}, {"blocks.1.claims.0.prior.tables", tables},
			{second + "blocks", `["dense-lip"]`}}},
		"too few tables": {wrong + "blocks[1].claims[0].prior.tables", []change{{"blocks.1", lip},
			{"blocks.1.claims.0.prior.tables", tables}, {second + "blocks", `["dense-lip"]`}, both}},
		"four tables": {"accepted", []change{{"blocks.1", four[1 : len(four)-1]},
			{second + "blocks", `["dense-lip"]`}, both}},
		"tables of the document": {wrong + "blocks[1].claims[0].prior.tables", []change{
			{"blocks.1", four[1 : len(four)-1]}, {second + "blocks", `["dense-lip"]`}}},
		"tables of one arm of two": {wrong + "blocks[1].claims[0].prior.tables", []change{{"blocks.1", lip},
			{"blocks.1.claims.0.prior.tables", tables}, {second + "blocks", `["dense-lip"]`},
			{arms, strings.ReplaceAll(strings.Replace(three, `["sex"],"blocks":[]`, `[],"blocks":["dense-lip"]`, 1), "unary-ldp", "dense-lip")}}},
	} {
		if got := judge(changed(t, split(t), c.changes...)).summary(); got != c.want {
			t.Errorf("%s: %s instead of %s", name, got, c.want)
		}
	}
}

// TestLevelsOfArms checks that the level of a document is the largest of its arms, and that of one block in both.
func TestLevelsOfArms(t *testing.T) {
	lip, dpv := blockOf(t, "dense lip"), blockOf(t, "dense dpv")
	open := []change{{"strata", `[]`}, {"arms.arms.0.strata", `[]`}, {"arms.arms.1.strata", `[]`}}
	second := change{"arms.arms.1.blocks", `["dense-lip"]`}
	level := func(changes ...change) *Level {
		return parseDocument([]byte(changed(t, split(t), changes...))).reportLevel()
	}
	check := func(name, got, want string) {
		if got != want {
			t.Errorf("%s: %s instead of %s", name, got, want)
		}
	}
	l := level()
	check("cost", l.Cost.RatString()+" "+l.Answers.RatString(), "6 6")
	whole := edited(t, changed(t, split(t), change{"blocks.1.questions.0.id", `"x"`}), "arms", nil, false)
	check("without arms", parseDocument([]byte(whole)).reportLevel().Cost.RatString(), "26")
	alone := parseDocument([]byte(named(t, "dense lip"))).reportLevel().Secrets["secret"]
	// The first arm promises nothing about the secret: its report tells at most what it tells about the answers.
	s := level(append(open, change{"blocks.1", lip}, second)...).Secrets["secret"]
	check("one arm", s.Level.RatString()+" "+s.Odds.RatString()+" "+nats(s.StrataOdds), "6 6 0.0000")
	if alone.Level.Cmp(s.Level) >= 0 {
		t.Error("the promise has no effect")
	}
	check("one arm with strata", nats(level(change{"blocks.1", lip}, second).Secrets["secret"].StrataOdds), "inf")
	s = level(append(open, change{"blocks.0", dpv}, change{"arms.arms.0.blocks", `["dense-dpv"]`}, change{"blocks.1", lip}, second)...).Secrets["secret"]
	check("both arms", s.Odds.RatString(), "6")
	first := change{"arms.arms.0.blocks", `["dense-lip","dense-ldp"]`}
	s = level(append(open, change{"blocks.1", lip}, first, second)...).Secrets["secret"]
	check("a block more", s.Level.RatString(), new(big.Rat).Mul(alone.Level, big.NewRat(6, 1)).RatString())
	check("infinite", nats(either(nil, one))+nats(either(one, nil))+nats(either(one, one)), "infinf0.0000")
	answer := respond(map[string]interface{}{"document": split(t)})
	check("the answer", answer.Cost+" "+answer.Answers, "1.7918 1.7918")
}
