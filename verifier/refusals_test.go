// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func named(t *testing.T, name string) string {
	var file struct {
		Documents []struct{ Name, Payload string }
	}
	load(t, "documents", &file)
	for _, c := range file.Documents {
		if c.Name == name {
			return c.Payload
		}
	}
	t.Fatal(name)
	return ""
}

// TestTexts checks which characters a text may contain (spec 3.6).
func TestTexts(t *testing.T) {
	payload := named(t, "dense ldp")
	for text, allowed := range map[string]bool{
		"a": true, " ": true, strings.Repeat("😀", 4000): true, strings.Repeat("a", 4001): false, "": false,
		"a\u200bb": false, "a\u00adb": false, "a\u202eb": false, "\ue000": false, "\U0010fffd": false, "\ufffd": true,
		"a\u200db": false, "क\u094d\u200dष": true, "می\u200cخواهم": true, "👨\u200d👩": true, "👨\u200da": false,
		"a\u200d👩": false, "\u200dक": false, "क\u200d": false, "é\u200dé": true,
	} {
		problem := judge(edited(t, payload, "title.en", text, true))
		if (problem == nil) != allowed {
			t.Errorf("%+q: %v", text, problem)
		}
		if problem != nil && problem.Field != "title.en" {
			t.Errorf("%+q: field %s", text, problem.Field)
		}
	}
}

// TestMoreRefusals checks the code and field of faults that do not occur in the vectors.
func TestMoreRefusals(t *testing.T) {
	raw := func(text string) (value interface{}) {
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	pool := "blocks.0.components.0.pools.1."
	for _, c := range []struct{ document, path, value, want string }{
		{"agreement ldp", pool + "cover.0.0", `"G"`, "4 document_weights blocks[0].components[0].pools[1].cover[0]"},
		{"agreement ldp", pool + "cover.0.0", `"A"`, "4 document_weights blocks[0].components[0].pools[1].cover[0]"},
		{"agreement ldp", pool + "cover.0.0", `"01"`, "4 document_weights blocks[0].components[0].pools[1].cover[0]"},
		{"agreement ldp", pool + "cover.0.0", `1`, "4 document_weights blocks[0].components[0].pools[1].cover[0]"},
		{"agreement ldp", pool + "parts", `[2,1]`, "4 document_weights blocks[0].components[0].pools[1].parts"},
		{"agreement ldp", pool + "parts", `[1,0]`, "4 document_weights blocks[0].components[0].pools[1].parts"},
		{"agreement ldp", "blocks.0.design_prior", `[1,2]`, "4 document_schema blocks[0].design_prior"},
		{"dense ldp", "blocks.0.weights.0.0", `1.5`, "4 document_canonical "},
		{"dense ldp", "issued", `"2026-02-30T12:00:00Z"`, "4 document_schema issued"},
		{"dense ldp", "issued", `"2026-05-30T23:59:60Z"`, "4 document_schema issued"},
		{"dense ldp", "expires", `"2026-06-30T12:00:00Z"`, "4 document_schema expires"},
		{"dense ldp", "blocks.0.ceiling", `[12,2]`, "accepted"},
		{"dense ldp", "blocks.0.claims.0.level", `[12,2]`, "accepted"},
		{"dense ldp", "token", `{"kind":"invite","key":null}`, "accepted"},
		{"dense ldp", "token", `{"kind":"rsa-pss","key":"short"}`, "4 document_schema token.key"},
		{"dense ldp", "certificate", `1`, "4 document_schema certificate"},
		{"unary ldp", "blocks.0.flip", `140737488355328`, "4 document_weights blocks[0].flip"},
		{"unary ldp", "blocks.0.flip", `0`, "9 document_privacy blocks[0].ceiling"},
		{"subset ldp", "blocks.0.size", `4`, "4 document_weights blocks[0].size"},
		{"dense lip", "blocks.0.claims.0.prior.secrets", `["a","a","b"]`, "4 document_schema blocks[0].claims[0].prior.secrets"},
		{"dense lip", "blocks.0.claims.0.prior.tables", `[[[5,2,1,3],[0,0,0,0],[2,2,6,1]]]`, "9 document_privacy blocks[0].claims[0].prior.tables[0][1]"},
		{"dense srlip", "blocks.0.claims.0.attributes", `[2,3]`, "9 document_privacy blocks[0].claims[0].attributes"},
		{"dense rldp", "blocks.0.claims.0.lower_bounds.0", `[[4,5],[1,3]]`, "9 document_privacy blocks[0].claims[0].lower_bounds[0]"},
		{"dense dpv", "blocks.0.claims.0.level", `[2,1]`, "9 document_privacy blocks[0].claims[0].level"},
		{"dense dpv", "blocks.0.claims.0.sensitive", `"none"`, "4 document_schema blocks[0].claims[0].sensitive"},
		{"dense dp", "blocks.0.claims.0.delta", `[1,1]`, "9 document_privacy blocks[0].claims[0].delta"},
		{"dense metric-ldp", "blocks.0.claims.0.levels.0.0", `[1,1]`, "9 document_privacy blocks[0].claims[0].levels[0]"},
		{"dense metric-ldp", "blocks.0.claims.0.levels.0.1", `[1,2]`, "9 document_privacy blocks[0].claims[0].levels[0]"},
		{"dense alip", "blocks.0.claims.0.low_level", `null`, "accepted"},
		{"dense alip", "blocks.0.claims.0.low_level", `[1,2]`, "9 document_privacy blocks[0].claims[0].low_level"},
	} {
		if got := judge(edited(t, named(t, c.document), c.path, raw(c.value), true)).summary(); got != c.want {
			t.Errorf("%s, %s = %s: %s instead of %s", c.document, c.path, c.value, got, c.want)
		}
	}
}

// TestMoreRefusalsOfSources checks the names of sources and the order of the checks (spec 3.11).
func TestMoreRefusalsOfSources(t *testing.T) {
	var file struct {
		Documents []struct{ Name, Payload string }
	}
	load(t, "sources", &file)
	invite := map[string]interface{}{"kind": "invite", "key": nil}
	for _, c := range []struct {
		path  string
		value interface{}
		want  string
	}{
		{"token", []interface{}{"sources"}, "4 document_schema token"},
		{"token.kind", []interface{}{"sources"}, "4 document_schema token.key"},
		{"token.question", "", "4 document_schema token.question"},
		{"token.rules.class", []interface{}{}, "4 document_schema token.rules.class"},
		{"token.rules.", invite, "4 document_schema token.rules"},
		{"token.rules.a b", invite, "4 document_schema token.rules"},
		// All rules are read before the names are compared, in the order of their ids.
		{"token.rules", map[string]interface{}{"b": 1, "a": 2, "class": invite}, "4 document_schema token.rules.a"},
		{"token.rules", map[string]interface{}{"a": map[string]interface{}{"kind": "blind", "key": 1}}, "5 document_type token.rules.a.kind"},
	} {
		if got := judge(edited(t, file.Documents[0].Payload, c.path, c.value, true)).summary(); got != c.want {
			t.Errorf("%s = %v: %s instead of %s", c.path, c.value, got, c.want)
		}
	}
}

// TestPayloadsThatAreNoObjects checks that they count as documents of another type (step 5).
func TestPayloadsThatAreNoObjects(t *testing.T) {
	for _, payload := range []string{"[]", "1", "null", "{}", `"type"`} {
		if got := judge(payload).summary(); got != "5 document_type type" {
			t.Errorf("%s: %s", payload, got)
		}
		if problem := catch("", func() { parseKeys([]byte(payload)) }); problem == nil || problem.Code != "document_type" {
			t.Errorf("%s as keys: %v", payload, problem)
		}
	}
}

// TestPinOfALink checks that neither a source nor an invite code belongs to the pin (protocol 10).
func TestPinOfALink(t *testing.T) {
	for _, more := range []string{"", "&source=panel", "&invite=0123456789ABCDEF", "&source=panel&invite=0123456789ABCDEF&id=7"} {
		origin, pin := splitLink("https://collect.example/s/ab#sha256=cd" + more)
		if origin != "https://collect.example/s/ab" || pin != "sha256:cd" {
			t.Errorf("%s: %s %s", more, origin, pin)
		}
	}
}

// TestMoreQuestionsThanTheFormHas checks that such a document does not cause a crash.
func TestMoreQuestionsThanTheFormHas(t *testing.T) {
	payload := named(t, "agreement ldp")
	var document map[string]interface{}
	decoder := json.NewDecoder(strings.NewReader(payload))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		t.Fatal(err)
	}
	questions := document["blocks"].([]interface{})[0].(map[string]interface{})["questions"].([]interface{})
	for _, edit := range [][]interface{}{questions[:2], append(append([]interface{}{}, questions...), questions[0])} {
		got := judge(edited(t, payload, "blocks.0.questions", edit, true)).summary()
		if got != "4 document_weights blocks[0].choices" {
			t.Error(got)
		}
	}
}

// TestEnvelopesOfOtherShapes checks that such envelopes are refused instead of being read partially.
func TestEnvelopesOfOtherShapes(t *testing.T) {
	good := `{"payload":"e30=","payloadType":"` + surveyType + `","signatures":[{"keyid":"a","sig":"AA=="}]}`
	if problem := catch("", func() { parseEnvelope([]byte(good), surveyType) }); problem != nil {
		t.Fatal(problem)
	}
	for _, change := range [][2]string{
		{`"sig":"AA=="`, `"sig":"AA==","more":1`}, {`"keyid":"a",`, ``}, {`"keyid":"a"`, `"keyid":1`}, {`"sig":"AA=="`, `"sig":1`},
		{`"AA=="`, `"AB=="`}, {`"AA=="`, `"AA"`}, {`"e30="`, `"e3 0="`}, {`"e30="`, `1`}, {`[{`, `[1,{`}, {`{"payload"`, `{"a":1,"payload"`},
		{`"payload":"e30=",`, `"payload":"e30=","payload":"e30=",`}, {`[{"keyid":"a","sig":"AA=="}]`, `{}`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if problem := catch("", func() { parseEnvelope([]byte(bad), surveyType) }); problem == nil || problem.Code != "document_envelope" {
			t.Errorf("%s: %v", change[1], problem)
		}
	}
}

// TestAddresses checks which addresses may receive reports (spec 3.6).
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"https://collect.example": "", "https://COLLECT.example:8443/x#f": "", "HTTPS://collect.example:/x": "",
		"https://u:p@collect.example/x": "link", "https://collect.example:99999/x": "link", "https://[::1/x": "link",
		"ftp://collect.example/x": "insecure_transport", "http://collect.example/x": "insecure_transport",
		"//collect.example/x": "insecure_transport", "x": "insecure_transport", "https:///x": "insecure_transport",
		"http://127.0.0.1/x": "insecure_transport", "https://localhost/x": "insecure_transport",
		"https://[::1]/x": "insecure_transport", "https://collect.example./x": "document_host",
		"https://0.0.0.0/": "document_host", "http://a.localhost/x": "insecure_transport",
	} {
		d := &Document{collectURL: address}
		problem := catch("", func() { d.requireHost("https://collect.example") })
		if problem == nil && want != "" || problem != nil && problem.Code != want {
			t.Errorf("%s: %v instead of %q", address, problem, want)
		}
	}
	d := &Document{collectURL: "http://127.0.0.1:8000/x"}
	if problem := catch("", func() { d.requireHost("http://127.0.0.1:8000") }); problem != nil {
		t.Error(problem)
	}
}

// TestCertainSecret checks that dpv is refused if the sensitive secret is certain in a stratum, and only then.
func TestCertainSecret(t *testing.T) {
	choice := func(id string) interface{} {
		return map[string]interface{}{"id": id, "label": map[string]interface{}{"en": id}}
	}
	payload := edited(t, named(t, "dense dpv"), "strata", []interface{}{map[string]interface{}{
		"id": "region", "text": map[string]interface{}{"en": "region"}, "choices": []interface{}{choice("n"), choice("s")},
	}}, true)
	whole := `[[5,2,1,3],[1,4,2,2],[2,2,6,1]]`
	for table, want := range map[string]string{
		`[[0,0,0,0],[1,4,2,2],[0,0,0,0]]`: "9 document_privacy blocks[0].claims[0].prior",
		`[[1,4,2,2],[0,0,0,0],[0,0,0,0]]`: "accepted",
	} {
		var tables interface{}
		if err := json.Unmarshal([]byte("["+whole+","+table+"]"), &tables); err != nil {
			t.Fatal(err)
		}
		if got := judge(edited(t, payload, "blocks.0.claims.0.prior.tables", tables, true)).summary(); got != want {
			t.Errorf("%s: %s instead of %s", table, got, want)
		}
	}
}
