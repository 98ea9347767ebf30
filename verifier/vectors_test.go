// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const folder = "../tests/vectors/"

// load reads a file of vectors with encoding/json, so that our reader is not tested with itself.
func load(t *testing.T, name string, into interface{}) {
	t.Helper()
	data, err := os.ReadFile(folder + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		t.Fatal(err)
	}
}

func at(text string) time.Time {
	when, err := time.Parse("2006-01-02T15:04:05Z", text)
	if err != nil {
		panic(err)
	}
	return when
}

func text(pointer *string) string {
	if pointer == nil {
		return ""
	}
	return *pointer
}

func (p *Problem) summary() string {
	if p == nil {
		return "accepted"
	}
	return p.Step + " " + p.Code + " " + p.Field
}

func expected(step, code, field *string) string {
	if code == nil {
		return "accepted"
	}
	return text(step) + " " + text(code) + " " + text(field)
}

func bytesOf(t *testing.T, encoded string) []byte {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func hashes(texts []string) (out [][]byte) {
	for _, text := range texts {
		raw, _ := hex.DecodeString(text)
		out = append(out, raw)
	}
	return out
}

func TestCanonical(t *testing.T) {
	var file struct {
		Good []struct{ Text, Digest string }
		Bad  []struct{ Name, Base64, Code string }
	}
	load(t, "canonical", &file)
	for _, c := range file.Good {
		if problem := catch("", func() { parseCanonical([]byte(c.Text)) }); problem != nil || digestOf([]byte(c.Text)) != c.Digest {
			t.Errorf("%.40s: %v", c.Text, problem)
		}
	}
	for _, c := range file.Bad {
		data := bytesOf(t, c.Base64)
		if problem := catch("", func() { parseCanonical(data) }); problem == nil || problem.Code != c.Code {
			t.Errorf("%s: %v", c.Name, problem)
		}
	}
}

func TestEnvelopes(t *testing.T) {
	var file struct {
		PublicKeys map[string]string `json:"public_keys"`
		Pae        struct {
			Payload string `json:"payload_base64"`
			Message string `json:"message_hex"`
		}
		Cases []struct {
			Name, Envelope string
			Trusted        []string
			Threshold      int
			Payload        *string `json:"payload_base64"`
			Code           *string
		}
	}
	load(t, "envelopes", &file)
	for _, c := range file.Cases {
		var keys []string
		for _, name := range c.Trusted {
			keys = append(keys, file.PublicKeys[name])
		}
		var e *Envelope
		problem := catch("", func() {
			e = parseEnvelope([]byte(c.Envelope), surveyType)
			e.requireSigned(newRole(keys, c.Threshold), "document_signature")
		})
		if problem != nil && problem.Code != text(c.Code) || problem == nil && c.Code != nil {
			t.Errorf("%s: %v instead of %s", c.Name, problem, text(c.Code))
		}
		if problem == nil && base64Of(e.payload) != text(c.Payload) {
			t.Errorf("%s: another payload", c.Name)
		}
		if problem == nil && text(c.Payload) == file.Pae.Payload && hex.EncodeToString(e.message) != file.Pae.Message {
			t.Errorf("%s: another message is signed", c.Name)
		}
	}
}

func TestKeys(t *testing.T) {
	var file struct {
		Cases []struct {
			Name      string
			Known     *string
			KnownRoot *string `json:"known_root"`
			Chain     []string
			Now       string
			Version   *int64
			FirstRoot *string `json:"first_root"`
			Step      *string
			Code      *string
			Field     *string
		}
	}
	load(t, "keys", &file)
	for _, c := range file.Cases {
		var chain [][]byte
		for _, envelope := range c.Chain {
			chain = append(chain, []byte(envelope))
		}
		var known []byte
		if c.Known != nil {
			known = []byte(*c.Known)
		}
		var newest *Keys
		root := ""
		problem := catch("", func() { newest, root = proveChain(chain, known, text(c.KnownRoot), at(c.Now)) })
		if problem.summary() != expected(c.Step, c.Code, c.Field) {
			t.Errorf("%s: %v instead of %s", c.Name, problem, expected(c.Step, c.Code, c.Field))
		}
		if problem == nil && (newest.version != *c.Version || root != *c.FirstRoot) {
			t.Errorf("%s: version %d, root %s", c.Name, newest.version, root)
		}
	}
}

func TestLog(t *testing.T) {
	type part struct {
		Name, Leaf, Root string
		Index, Size      uint64
		Path             []string
		Old, New         uint64
		OldRoot          string `json:"old_root"`
		NewRoot          string `json:"new_root"`
		Proof            []string
	}
	var file struct {
		Entries, Leaves, Roots []string
		Inclusion, Consistency []part
		Documents              struct {
			Log   json.RawMessage
			Now   string
			Cases []struct {
				Name, Digest string
				Proof        *string
				Step, Code   *string
			}
		}
	}
	load(t, "log", &file)
	var bad struct {
		Inclusion   []part `json:"inclusion_bad"`
		Consistency []part `json:"consistency_bad"`
	}
	load(t, "log", &bad)
	leaves := hashes(file.Leaves)
	for i, entry := range hashes(file.Entries) {
		if hex.EncodeToString(leafHash(entry)) != file.Leaves[i] {
			t.Errorf("leaf %d", i)
		}
	}
	for size, root := range file.Roots {
		if hex.EncodeToString(treeRoot(leaves[:size])) != root {
			t.Errorf("root of %d", size)
		}
	}
	root := func(text string) []byte { return hashes([]string{text})[0] }
	for _, c := range file.Inclusion {
		if p := catch("", func() { requireInclusion(leaves[c.Index], c.Index, c.Size, hashes(c.Path), root(file.Roots[c.Size])) }); p != nil {
			t.Errorf("%d of %d: %v", c.Index, c.Size, p)
		}
	}
	for _, c := range bad.Inclusion {
		if catch("", func() { requireInclusion(root(c.Leaf), c.Index, c.Size, hashes(c.Path), root(c.Root)) }) == nil {
			t.Errorf("accepted: %s", c.Name)
		}
	}
	for _, c := range file.Consistency {
		if p := catch("", func() {
			requireConsistency(c.Old, c.New, root(file.Roots[c.Old]), root(file.Roots[c.New]), hashes(c.Proof))
		}); p != nil {
			t.Errorf("%d to %d: %v", c.Old, c.New, p)
		}
	}
	for _, c := range bad.Consistency {
		if catch("", func() { requireConsistency(c.Old, c.New, root(c.OldRoot), root(c.NewRoot), hashes(c.Proof)) }) == nil {
			t.Errorf("accepted: %s", c.Name)
		}
	}
	var all []string
	log := readLog(field{parseJSON(file.Documents.Log, false, "document_schema", 9), "log", "document_schema"}, &all)
	for _, c := range file.Documents.Cases {
		problem := catch("", func() { log.requireLogged(c.Digest, text(c.Proof), at(file.Documents.Now)) })
		if problem.summary() != strings.TrimRight(expected(c.Step, c.Code, nil), "") {
			t.Errorf("%s: %v instead of %s %s", c.Name, problem, text(c.Step), text(c.Code))
		}
	}
}

func TestAcceptance(t *testing.T) {
	var file struct {
		Publisher struct {
			Keys      []string `json:"public_keys"`
			Threshold int
		}
		Origin string
		Cases  []struct {
			Name       string
			Envelope   *string
			Pin        *string
			Remembered *struct {
				Version int64
				Digest  string
			}
			Now         string
			Step        *json.Number
			Code, Field *string
		}
	}
	load(t, "acceptance", &file)
	for _, c := range file.Cases {
		r := &Request{publisher: newRole(file.Publisher.Keys, file.Publisher.Threshold), origin: file.Origin,
			pin: text(c.Pin), now: at(c.Now)}
		if r.envelope = []byte(strings.Repeat(" ", 6<<20)); c.Envelope != nil {
			r.envelope = []byte(*c.Envelope)
		}
		if c.Remembered != nil {
			r.remembered = &Remembered{c.Remembered.Version, c.Remembered.Digest}
		}
		problem := catch("", func() { accept(r) })
		var step *string
		if c.Step != nil {
			step = (*string)(c.Step)
		}
		if problem.summary() != expected(step, c.Code, c.Field) {
			t.Errorf("%s: %v instead of %s", c.Name, problem, expected(step, c.Code, c.Field))
		}
	}
}

func TestDocumentsAndPrivacy(t *testing.T) {
	var good struct {
		Documents []struct{ Name, Digest, Payload string }
	}
	load(t, "documents", &good)
	payloads := map[string]string{}
	for _, c := range good.Documents {
		payloads[c.Name] = c.Payload
		if problem := judge(c.Payload); problem != nil {
			t.Errorf("%s: %v", c.Name, problem)
		}
	}
	var bad struct {
		Documents []struct {
			Name, Path, Digest string
			Value              interface{}
			Step               int
			Code, Field        string
		}
	}
	load(t, "privacy", &bad)
	for _, c := range bad.Documents {
		payload := edited(t, payloads[c.Name], c.Path, c.Value, true)
		if digestOf([]byte(payload)) != c.Digest {
			t.Fatalf("%s: the edit gives another document", c.Name)
		}
		if got, want := judge(payload).summary(), fmt.Sprintf("%d %s %s", c.Step, c.Code, c.Field); got != want {
			t.Errorf("%s: %s instead of %s", c.Name, got, want)
		}
	}
}

func TestFaultsOfAnswers(t *testing.T) {
	var file struct {
		Payload string
		Faults  []map[string]interface{}
	}
	load(t, "answers", &file)
	if problem := judge(file.Payload); problem != nil {
		t.Fatal(problem)
	}
	for _, c := range file.Faults {
		value, has := c["value"]
		payload := edited(t, file.Payload, c["path"].(string), value, has)
		want := fmt.Sprintf("%v %v %v", c["step"], c["code"], c["field"])
		if got := judge(payload).summary(); got != want {
			t.Errorf("%v = %v: %s instead of %s", c["path"], value, got, want)
		}
	}
}

func TestDocumentsThatAskWhatIsDrawn(t *testing.T) {
	testFaults(t, "plans")
}

func TestSources(t *testing.T) {
	testFaults(t, "sources")
}

// testFaults runs a file with accepted documents and edits of them that are refused.
func testFaults(t *testing.T, name string) {
	var file struct {
		Documents []struct{ Name, Payload string }
		Faults    []map[string]interface{}
	}
	load(t, name, &file)
	payloads := map[string]string{}
	for _, c := range file.Documents {
		payloads[c.Name] = c.Payload
		if problem := judge(c.Payload); problem != nil {
			t.Errorf("%s: %v", c.Name, problem)
		}
	}
	for _, c := range file.Faults {
		value, has := c["value"]
		payload := edited(t, payloads[c["document"].(string)], c["path"].(string), value, has)
		want := fmt.Sprintf("%v %v %v", c["step"], c["code"], c["field"])
		if got := judge(payload).summary(); got != want {
			t.Errorf("%v: %s instead of %s", c, got, want)
		}
	}
}

func base64Of(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

// judge runs steps 4, 5 and 9 on a payload.
func judge(payload string) *Problem {
	return catch("", func() {
		var d *Document
		check(stepOf(catch("4", func() { d = parseDocument([]byte(payload)) }), "document_type", "5"))
		check(catch("9", d.verifyPrivacy))
	})
}

// edited returns the canonical payload with one value changed, or removed.
func edited(t *testing.T, payload, path string, value interface{}, keep bool) string {
	decoder := json.NewDecoder(strings.NewReader(payload))
	decoder.UseNumber()
	var root interface{}
	if err := decoder.Decode(&root); err != nil {
		t.Fatal(err)
	}
	names := strings.Split(path, ".")
	place := root
	for _, name := range names[:len(names)-1] {
		if list, ok := place.([]interface{}); ok {
			i, _ := strconv.Atoi(name)
			place = list[i]
		} else {
			place = place.(map[string]interface{})[name]
		}
	}
	last := names[len(names)-1]
	switch holder := place.(type) {
	case []interface{}:
		i, _ := strconv.Atoi(last)
		holder[i] = value
	case map[string]interface{}:
		if holder[last] = value; !keep {
			delete(holder, last)
		}
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(root); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
