// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var decimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,15})$`)

const witnessAge = 30 * day

func logFail(format string, values ...interface{}) { refuse("document_log", "", format, values...) }

func leafHash(entry []byte) []byte {
	sum := sha256.Sum256(append([]byte{0}, entry...))
	return sum[:]
}

func nodeHash(left, right []byte) []byte {
	sum := sha256.Sum256(append(append([]byte{1}, left...), right...))
	return sum[:]
}

// treeRoot returns the root of an RFC 6962 tree of leaf hashes.
func treeRoot(leaves [][]byte) []byte {
	switch n := len(leaves); n {
	case 0:
		sum := sha256.Sum256(nil)
		return sum[:]
	case 1:
		return leaves[0]
	default:
		split := 1 << (bits.Len(uint(n-1)) - 1)
		return nodeHash(treeRoot(leaves[:split]), treeRoot(leaves[split:]))
	}
}

// requireInclusion verifies a path as in RFC 9162, section 2.1.3.2.
func requireInclusion(leaf []byte, index, size uint64, path [][]byte, root []byte) {
	if index >= size {
		logFail("the index is beyond the tree")
	}
	fn, sn, r := index, size-1, leaf
	for _, p := range path {
		if sn == 0 {
			logFail("the path is too long")
		}
		if fn&1 == 1 || fn == sn {
			r = nodeHash(p, r)
			for fn&1 == 0 && fn != 0 {
				fn, sn = fn>>1, sn>>1
			}
		} else {
			r = nodeHash(r, p)
		}
		fn, sn = fn>>1, sn>>1
	}
	if sn != 0 || !bytes.Equal(r, root) {
		logFail("the path does not lead to the checkpoint's root")
	}
}

// requireConsistency verifies that the old tree is a prefix of the new one, as in RFC 9162, section 2.1.4.2.
func requireConsistency(old, new uint64, oldRoot, newRoot []byte, proof [][]byte) {
	if old > new {
		logFail("the tree has become smaller: a rollback")
	}
	if old == new || old == 0 {
		if len(proof) != 0 {
			logFail("no proof is needed here")
		}
		if old == new && !bytes.Equal(oldRoot, newRoot) || old == 0 && !bytes.Equal(oldRoot, treeRoot(nil)) {
			logFail("two trees of one size have different roots: a fork")
		}
		return
	}
	if old&(old-1) == 0 {
		proof = append([][]byte{oldRoot}, proof...)
	}
	if len(proof) == 0 {
		logFail("the proof is empty")
	}
	fn, sn := old-1, new-1
	for fn&1 == 1 {
		fn, sn = fn>>1, sn>>1
	}
	fr, sr := proof[0], proof[0]
	for _, c := range proof[1:] {
		if sn == 0 {
			logFail("the proof is too long")
		}
		if fn&1 == 1 || fn == sn {
			fr, sr = nodeHash(c, fr), nodeHash(c, sr)
			for fn&1 == 0 && fn != 0 {
				fn, sn = fn>>1, sn>>1
			}
		} else {
			sr = nodeHash(sr, c)
		}
		fn, sn = fn>>1, sn>>1
	}
	if sn != 0 || !bytes.Equal(fr, oldRoot) || !bytes.Equal(sr, newRoot) {
		logFail("the old tree is not a prefix of the new one: a fork")
	}
}

// Checkpoint is a signed head of the log.
type Checkpoint struct {
	size uint64
	root []byte
}

// openCheckpoint verifies the signatures of the log (8.1) and of enough witnesses (8.2).
func (log *Log) openCheckpoint(note string, now time.Time) Checkpoint {
	head, seen := log.readCheckpoint(note, now)
	check(catch("8.2", func() {
		if log.threshold < 1 || seen < log.threshold {
			logFail("%d witnesses signed the checkpoint in the last 30 days; at least %d are needed", seen, log.threshold)
		}
	}))
	return head
}

// readCheckpoint verifies the log's signature, and counts the witnesses that signed recently.
func (log *Log) readCheckpoint(note string, now time.Time) (head Checkpoint, witnesses int) {
	seen := map[string]bool{}
	check(catch("8.1", func() {
		body, marks, isWhole := strings.Cut(note, "\n\n")
		lines := strings.Split(body, "\n")
		if !isWhole || len(lines) != 3 || !strings.HasSuffix(note, "\n") {
			logFail("a checkpoint has three lines, an empty one and signatures")
		}
		size, err := strconv.ParseUint(lines[1], 10, 53)
		if head.size, head.root = size, decode(lines[2]); err != nil || !decimal.MatchString(lines[1]) || len(head.root) != 32 {
			logFail("the checkpoint's size or root is malformed")
		}
		if lines[0] != log.name {
			logFail("this is a checkpoint of another log")
		}
		body += "\n"
		signed := false
		for _, line := range strings.Split(strings.TrimSuffix(marks, "\n"), "\n") {
			words := strings.Split(line, " ")
			if len(words) != 3 || words[0] != "—" {
				logFail("a signature line is malformed")
			}
			raw := decode(words[2])
			if raw == nil || len(raw) < 5 {
				logFail("a signature line is malformed")
			}
			key, isWitness := log.witnesses[words[1]]
			switch {
			case words[1] == log.name && bytes.Equal(raw[:4], noteID(words[1], 1, log.key)):
				if len(raw) != 68 || !ed25519.Verify(log.key, []byte(body), raw[4:]) {
					logFail("the log's signature is invalid")
				}
				signed = true
			case isWitness && bytes.Equal(raw[:4], noteID(words[1], 4, key)):
				if len(raw) != 76 {
					logFail("a witness's signature is malformed")
				}
				at := binary.BigEndian.Uint64(raw[4:12])
				text := fmt.Sprintf("cosignature/v1\ntime %d\n%s", at, body)
				if !ed25519.Verify(key, []byte(text), raw[12:]) {
					logFail("a witness's signature is invalid, which makes the whole note invalid")
				}
				age := now.Sub(time.Unix(int64(at&(1<<40-1)), 0))
				if at < 1<<40 && age <= witnessAge && age >= -tolerance {
					seen[words[1]] = true
				}
			}
		}
		if !signed {
			logFail("the log named in the keys did not sign this checkpoint")
		}
	}))
	return head, len(seen)
}

func noteID(name string, kind byte, key []byte) []byte {
	sum := sha256.Sum256(append(append([]byte(name+"\n"), kind), key...))
	return sum[:4]
}

// requireLogged verifies the proof that a document is in the log (8.1 to 8.3), and returns the checkpoint.
func (log *Log) requireLogged(digest, proof string, now time.Time) Checkpoint {
	var index uint64
	var path [][]byte
	var note string
	check(catch("8.1", func() {
		parts := strings.SplitN(proof, "\n\n", 2)
		lines := strings.Split(parts[0], "\n")
		if len(parts) != 2 || len(lines) < 2 || lines[0] != "c2sp.org/tlog-proof@v1" || len(lines) > 66 {
			logFail("expected a proof that begins with c2sp.org/tlog-proof@v1")
		}
		text := strings.TrimPrefix(lines[1], "index ")
		if text == lines[1] || !decimal.MatchString(text) {
			logFail("the second line of a proof is the index")
		}
		index, _ = strconv.ParseUint(text, 10, 64)
		path, note = hashesOf(lines[2:]), parts[1]
	}))
	head := log.openCheckpoint(note, now)
	check(catch("8.3", func() {
		entry, _ := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
		requireInclusion(leafHash(entry), index, head.size, path, head.root)
	}))
	return head
}

func hashesOf(lines []string) (hashes [][]byte) {
	for _, line := range lines {
		if hashes = append(hashes, decode(line)); len(decode(line)) != 32 {
			logFail("a line of the proof is not the base64 of a hash")
		}
	}
	return hashes
}

// requireContinued verifies that a head extends an older one, with the body of /v1/log/consistency (8.4).
func (log *Log) requireContinued(previous, proof string, head Checkpoint, now time.Time) {
	check(catch("8.4", func() {
		old, _ := log.readCheckpoint(previous, now)
		var hashes [][]byte
		if proof != "" {
			hashes = hashesOf(strings.Split(strings.TrimSuffix(proof, "\n"), "\n"))
		}
		requireConsistency(old.size, head.size, old.root, head.root, hashes)
	}))
}
