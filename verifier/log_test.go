// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"
	"time"
)

func signedHead(key ed25519.PrivateKey, name string, leaves [][]byte) string {
	body := fmt.Sprintf("%s\n%d\n%s\n", name, len(leaves), base64Of(treeRoot(leaves)))
	id := noteID(name, 1, key.Public().(ed25519.PublicKey))
	return body + "\n— " + name + " " + base64Of(append(id, ed25519.Sign(key, []byte(body))...)) + "\n"
}

func TestALogContinuesOrForks(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	log := &Log{name: "log.example", key: key.Public().(ed25519.PublicKey)}
	var leaves [][]byte
	for i := byte(0); i < 3; i++ {
		leaves = append(leaves, leafHash([]byte{i}))
	}
	now := time.Unix(1780000000, 0)
	old := signedHead(key, log.name, leaves[:2])
	head, _ := log.readCheckpoint(signedHead(key, log.name, leaves), now)
	proof := base64Of(leaves[2]) + "\n"
	run := func(previous, proof string, head Checkpoint) *Problem {
		return catch("", func() { log.requireContinued(previous, proof, head, now) })
	}
	if problem := run(old, proof, head); problem != nil {
		t.Error(problem)
	}
	forked, _ := log.readCheckpoint(signedHead(key, log.name, [][]byte{leaves[1], leaves[0], leaves[2]}), now)
	smaller, _ := log.readCheckpoint(signedHead(key, log.name, leaves[:1]), now)
	for name, problem := range map[string]*Problem{
		"a fork":            run(old, proof, forked),
		"a rollback":        run(old, "", smaller),
		"no proof":          run(old, "", head),
		"a false proof":     run(old, base64Of(leaves[0])+"\n", head),
		"no base64":         run(old, "x\n", head),
		"a stranger's head": run(strings.Replace(old, "log.example", "other.example", 1), proof, head),
		"an altered head":   run(strings.Replace(old, "\n2\n", "\n3\n", 1), proof, head),
	} {
		if problem == nil || problem.Step != "8.4" && problem.Step != "8.1" {
			t.Errorf("%s: %v", name, problem)
		}
	}
}
