// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	surveyType  = "application/vnd.frankly.survey+json"
	keysType    = "application/vnd.frankly.keys+json"
	maxEnvelope = maxPayload/3*4 + 16<<10 // base64 of a payload, and 16 KiB for everything else
	maxVersions = 1024
	tolerance   = 10 * time.Minute
)

func digestOf(payload []byte) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(payload))
}

// Role is a set of keys, threshold of which must sign. Keys are mapped by their ids.
type Role struct {
	keys      map[string]ed25519.PublicKey
	threshold int
}

func newRole(keys []string, threshold int) Role {
	role := Role{map[string]ed25519.PublicKey{}, threshold}
	for _, text := range keys {
		raw, _ := hex.DecodeString(text)
		id := sha256.Sum256(append([]byte("ed25519\x00"), raw...))
		role.keys[hex.EncodeToString(id[:])] = raw
	}
	return role
}

// Envelope is a DSSE envelope whose form is valid.
type Envelope struct {
	payload    []byte
	message    []byte // the signed bytes
	signatures [][2]string
}

// parseEnvelope reads an envelope of the expected type (steps 1 and 2).
func parseEnvelope(data []byte, wanted string) *Envelope {
	if len(data) > maxEnvelope {
		refuse("document_size", "", "the envelope has %d bytes; at most %d are allowed", len(data), maxEnvelope)
	}
	f := field{parseJSON(data, false, "document_envelope", 4), "", "document_envelope"}
	fail := func(detail string) { refuse("document_envelope", "", "%s; fetch the document again", detail) }
	if f.kind != isObject || len(f.keys) != 3 || !f.has("payload") || !f.has("payloadType") || !f.has("signatures") {
		fail("an envelope has payload, payloadType and signatures")
	}
	payload, kind, signatures := f.get("payload"), f.get("payloadType"), f.get("signatures")
	if payload.kind != isText || kind.kind != isText || signatures.kind != isList {
		fail("payload and payloadType are texts, signatures is a list")
	}
	if count := len(signatures.list); count < 1 || count > 32 {
		fail("an envelope has 1 to 32 signatures")
	}
	e := &Envelope{}
	for _, item := range signatures.list {
		id, sig := item.fields["keyid"], item.fields["sig"]
		if item.kind != isObject || len(item.keys) != 2 || id == nil || sig == nil || id.kind != isText || sig.kind != isText {
			fail("a signature has keyid and sig")
		}
		raw := decode(sig.text)
		if raw == nil {
			fail("a signature is not base64 in its canonical spelling")
		}
		e.signatures = append(e.signatures, [2]string{id.text, string(raw)})
	}
	if e.payload = decode(payload.text); e.payload == nil {
		fail("the payload is not base64 in its canonical spelling")
	}
	if kind.text != wanted {
		refuse("document_type", "payloadType", "expected an envelope of type %s", wanted)
	}
	if len(e.payload) > maxPayload {
		refuse("document_size", "", "the payload has more than %d bytes", maxPayload)
	}
	e.message = []byte(fmt.Sprintf("DSSEv1 %d %s %d ", len(wanted), wanted, len(e.payload)))
	e.message = append(e.message, e.payload...)
	return e
}

// decode returns the bytes of base64 text, nil if the text is not in its canonical spelling.
func decode(text string) []byte {
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(raw) != text {
		return nil
	}
	return raw
}

// requireSigned counts the distinct keys of a role that signed (step 3, K2, K4). Key ids in the envelope are only
// hints.
func (e *Envelope) requireSigned(role Role, code string) {
	if ids := map[string]bool{}; code != "" {
		for _, signature := range e.signatures {
			if ids[signature[0]] {
				refuse("document_signature", "signatures", "a key id occurs twice")
			}
			ids[signature[0]] = true
		}
	}
	signed := 0
	for id, key := range role.keys {
		for _, signature := range e.signatures {
			if signature[0] == id && len(signature[1]) == ed25519.SignatureSize &&
				ed25519.Verify(key, e.message, []byte(signature[1])) {
				signed++
			}
		}
	}
	if role.threshold < 1 || signed < role.threshold {
		refuse(code, "signatures", "%d of at least %d keys signed", signed, role.threshold)
	}
}

// smallOrder lists the y coordinates of the points whose order divides 8; anyone can forge signatures for them.
var smallOrder = map[string]bool{
	"0000000000000000000000000000000000000000000000000000000000000000": true,
	"0100000000000000000000000000000000000000000000000000000000000000": true,
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": true,
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05": true,
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a": true,
}

// publicKey reads an Ed25519 key in canonical form that is not of small order.
func (f field) publicKey() string {
	text := f.matches(hex64Pattern, "64 lower-case hex digits")
	raw, _ := hex.DecodeString(text)
	raw[31] &= 0x7f
	isCanonical := raw[31] != 0x7f || raw[0] < 0xed
	for _, b := range raw[1:31] {
		isCanonical = isCanonical || b != 0xff
	}
	if !isCanonical || smallOrder[hex.EncodeToString(raw)] {
		f.fail("this Ed25519 key is not canonical, or has small order, so that anyone can sign for it")
	}
	return text
}

// Keys is a keys document (protocol 3.1).
type Keys struct {
	version         int64
	issued, expires time.Time
	root, publisher Role
	log             *Log
	digest          string
}

// Log names a transparency log, its key and its witnesses.
type Log struct {
	name      string
	key       ed25519.PublicKey
	witnesses map[string]ed25519.PublicKey
	threshold int
}

func (f field) signer(fields ...string) string {
	f.object(append([]string{"scheme", "public"}, fields...))
	if scheme := f.get("scheme"); scheme.kind != isText || scheme.text != "ed25519" {
		refuse("document_type", scheme.path, "unknown scheme of keys: update the verifier")
	}
	return f.get("public").publicKey()
}

// parseKeys reads a keys document, in which no key has two roles.
func parseKeys(payload []byte) *Keys {
	f := field{parseCanonical(payload), "", "document_schema"}
	f.readType("frankly.keys/2")
	f.object([]string{"type", "version", "issued", "expires", "root", "publisher", "log"})
	k := &Keys{version: f.get("version").whole(1, maxNumber), digest: digestOf(payload)}
	k.issued, k.expires = f.get("issued").time(), f.get("expires").time()
	if !k.expires.After(k.issued) || k.expires.Sub(k.issued) > 400*day {
		f.get("expires").fail("times must be issued < expires ≤ issued + 400 days")
	}
	var roots, publishers []string
	read := func(f field, all *[]string) Role {
		f.object([]string{"keys", "threshold"})
		var keys []string
		for _, item := range f.get("keys").items(1, 32) {
			keys = append(keys, item.signer())
		}
		f.get("keys").unique(keys, "keys")
		*all = keys
		return newRole(keys, int(f.get("threshold").whole(1, int64(len(keys)))))
	}
	k.root, k.publisher = read(f.get("root"), &roots), read(f.get("publisher"), &publishers)
	if log := f.get("log"); log.kind != isNull {
		var own []string
		k.log = readLog(log, &own)
		log.unique(append(own, roots...), "keys of the log and of root")
		log.unique(append(own, publishers...), "keys of the log and of publishers")
	}
	return k
}

// signerName reads the name of a log or witness: no space, no plus sign, no control character.
func (f field) signerName() string {
	if f.kind != isText || f.text == "" || utf8.RuneCountInString(f.text) > 255 ||
		strings.IndexFunc(f.text, func(c rune) bool {
			return c <= ' ' || c == '+' || c == 0x7f || c == 0xfeff || unicode.IsSpace(c)
		}) >= 0 {
		f.fail("expected a name of 1 to 255 characters without spaces and plus signs")
	}
	return f.text
}

func readLog(f field, all *[]string) *Log {
	key := f.signer("name", "witnesses", "threshold")
	*all = append(*all, key)
	raw, _ := hex.DecodeString(key)
	log := &Log{name: f.get("name").signerName(), key: raw}
	log.witnesses = map[string]ed25519.PublicKey{}
	names := []string{log.name}
	for _, item := range f.get("witnesses").items(0, 32) {
		public := item.signer("name")
		raw, _ := hex.DecodeString(public)
		name := item.get("name").signerName()
		names, *all = append(names, name), append(*all, public)
		log.witnesses[name] = raw
	}
	f.get("witnesses").unique(names, "names")
	lowest := int64(0)
	if len(log.witnesses) > 0 {
		lowest = 1
	}
	log.threshold = int(f.get("threshold").whole(lowest, int64(len(log.witnesses))))
	return log
}

// proveChain verifies a chain of keys (K1 to K7). known contains the keys shipped with the app or accepted before, or
// is nil; knownRoot is their first root, or "" if it is not yet proven. proveChain returns the newest keys and the
// first root of the chain.
func proveChain(envelopes [][]byte, known []byte, knownRoot string, now time.Time) (*Keys, string) {
	total := 0
	for _, data := range envelopes {
		total += len(data)
	}
	var chain []*Keys
	check(catch("K5", func() {
		if len(envelopes) < 1 || len(envelopes) > maxVersions || total > maxPayload {
			refuse("document_keys", "chain", "a chain has 1 to %d versions and at most 4 MiB", maxVersions)
		}
	}))
	for i, data := range envelopes {
		var envelope *Envelope
		var keys *Keys
		check(catch("K1", func() {
			envelope = parseEnvelope(data, keysType)
			keys = parseKeys(envelope.payload)
		}))
		check(catch("K2", func() { envelope.requireSigned(keys.root, "document_signature") }))
		if i == 0 {
			check(catch("K5", func() {
				if keys.version != 1 {
					refuse("document_keys", "chain", "the chain must begin with version 1")
				}
			}))
		} else {
			before := chain[i-1]
			check(catch("K3", func() {
				if keys.version != before.version+1 {
					refuse("document_keys", "version", "versions must be consecutive")
				}
			}))
			check(catch("K4", func() { envelope.requireSigned(before.root, "document_keys") }))
		}
		chain = append(chain, keys)
	}
	if known != nil {
		check(catch("K6", func() { requireKnown(chain, known, knownRoot) }))
	}
	newest := chain[len(chain)-1]
	check(catch("K7", func() { requireTime(now, newest.issued, newest.expires, "expires", "expires") }))
	return newest, chain[0].digest
}

func requireKnown(chain []*Keys, known []byte, knownRoot string) {
	expected := parseKeys(parseEnvelope(known, keysType).payload)
	if knownRoot == "" && expected.version == 1 {
		knownRoot = expected.digest
	}
	if knownRoot != "" && knownRoot != chain[0].digest {
		refuse("document_keys", "chain", "this is another chain of keys than the known one")
	}
	if expected.version > int64(len(chain)) {
		refuse("document_version", "version", "the chain ends before the known keys: a rollback")
	}
	if chain[expected.version-1].digest != expected.digest {
		refuse("document_version", "version", "another document has the place of the known keys: an equivocation")
	}
}

// check panics with a problem if there is one.
func check(problem *Problem) {
	if problem != nil {
		panic(problem)
	}
}
