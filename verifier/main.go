// SPDX-License-Identifier: Apache-2.0

// Command frankly-verify checks the public data of a Frankly server: survey documents, chains of keys, log proofs and
// results. It was written only from docs/spec, docs/protocol.md and the test vectors. README.md describes its use.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Exit codes (spec 1.9).
const (
	exitUsage   = 2
	exitInput   = 3
	exitRefused = 6
)

const usage = `frankly-verify checks what a Frankly server publishes.

  frankly-verify document [--chain FILE] [--known FILE] [--link URL] [--proof FILE] [--now TIME] FILE
  frankly-verify keys [--known FILE] [--now TIME] FILE
  frankly-verify log --chain FILE --digest DIGEST [--previous FILE --consistency FILE] [--now TIME] FILE
  frankly-verify result --counts FILE [--document FILE]… FILE
  frankly-verify batch < requests

FILE is the body of a response of the server: of /v1/surveys/ID/document, /v1/keys/chain, /v1/log/proof/DIGEST or
/v1/surveys/ID/estimates. Without --chain, signatures are not checked. batch reads one JSON request a line.
Exit codes: 0 valid, 2 usage, 3 a file cannot be read, 6 refused.
`

type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error { *l = append(*l, text); return nil }

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(exitUsage)
	}
	if os.Args[1] == "batch" {
		batch(os.Stdin, os.Stdout)
		return
	}
	os.Exit(run(os.Args[1], os.Args[2:], os.Stdout, os.Stderr))
}

// run executes one command and returns the exit code.
func run(command string, arguments []string, out, errors io.Writer) int {
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	flags.SetOutput(errors)
	flags.Usage = func() { fmt.Fprint(errors, usage) }
	names := map[string]*string{}
	for _, name := range []string{"chain", "known", "link", "proof", "now", "digest", "counts", "previous", "consistency"} {
		names[name] = flags.String(name, "", "")
	}
	var documents list
	flags.Var(&documents, "document", "")
	if flags.Parse(arguments) != nil {
		return exitUsage
	}
	known := map[string]bool{"document": true, "keys": true, "log": true, "result": true}
	if flags.NArg() != 1 || !known[command] {
		fmt.Fprint(errors, usage)
		return exitUsage
	}
	request := map[string]interface{}{"now": *names["now"], "digest": *names["digest"]}
	input := func(name, path string) bool {
		if path == "" {
			return true
		}
		data, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintf(errors, "%v\n", err)
			return false
		}
		request[name] = string(data)
		return true
	}
	okay := input(command, flags.Arg(0))
	for _, name := range []string{"chain", "known", "proof", "counts", "previous", "consistency"} {
		okay = okay && input(name, *names[name])
	}
	var payloads []string
	for _, path := range documents {
		okay = okay && input("one", path)
		payloads = append(payloads, fmt.Sprint(request["one"]))
	}
	if !okay {
		return exitInput
	}
	if origin, pin := splitLink(*names["link"]); origin != "" {
		request["origin"], request["pin"] = origin, pin
	}
	delete(request, "one")
	request["documents"] = payloads
	answer := respond(request)
	text, _ := json.MarshalIndent(answer, "", "  ")
	if answer.Problem != nil {
		fmt.Fprintf(errors, "%v\n%s\n", answer.Problem, text)
		return exitRefused
	}
	fmt.Fprintf(out, "%s\n", text)
	return 0
}

// splitLink returns the origin of a link and its pin, without the source and invite code that may follow.
func splitLink(link string) (string, string) {
	origin, pin, _ := strings.Cut(link, "#")
	pin, _, _ = strings.Cut(pin, "&")
	return origin, strings.Replace(pin, "sha256=", "sha256:", 1)
}

// Answer is the output for one request.
type Answer struct {
	Valid    bool              `json:"valid"`
	Problem  *Problem          `json:"problem,omitempty"`
	Digest   string            `json:"digest,omitempty"`
	Version  int64             `json:"version,omitempty"`
	Root     string            `json:"first_root,omitempty"`
	Work     int64             `json:"work,omitempty"`
	Cost     string            `json:"cost,omitempty"`
	Answers  string            `json:"answers,omitempty"`
	Secrets  map[string]Figure `json:"secrets,omitempty"`
	Result   *Checked          `json:"result,omitempty"`
	Size     uint64            `json:"log_size,omitempty"`
	Verified []string          `json:"verified,omitempty"`
}

// Figure is a level in nats, rounded up.
type Figure struct {
	Level      string `json:"level"`
	Odds       string `json:"odds"`
	StrataOdds string `json:"strata_odds"`
}

// batch answers one JSON request per line; an invalid request does not stop it.
func batch(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	writer := bufio.NewWriter(out)
	defer writer.Flush()
	for lines.Scan() {
		var request map[string]interface{}
		answer := &Answer{}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			answer.Problem = &Problem{Code: "json_invalid", Detail: "a request is a JSON object in one line"}
		} else {
			answer = respond(request)
		}
		text, _ := json.Marshal(answer)
		writer.Write(append(text, '\n'))
	}
}

// respond runs a request of the command line or of a batch line; its texts are the contents of the files.
func respond(request map[string]interface{}) *Answer {
	answer := &Answer{}
	answer.Problem = catch("", func() {
		now := time.Now().UTC()
		if text := textOf(request, "now"); text != "" {
			at, err := time.Parse("2006-01-02T15:04:05Z", text)
			if err != nil {
				refuse("usage", "now", "expected a UTC time such as 2026-05-31T12:00:00Z")
			}
			now = at
		}
		var keys *Keys
		if chain := textOf(request, "chain") + textOf(request, "keys"); chain != "" {
			keys, answer.Root = readChain(chain, textOf(request, "known"), now)
			answer.note("the chain of keys (K1 to K7)")
		}
		switch {
		case textOf(request, "document") != "":
			answer.document(request, keys, now)
		case textOf(request, "log") != "":
			if keys == nil || keys.log == nil {
				refuse("usage", "chain", "a log proof needs a chain of keys that names a log")
			}
			head := keys.log.requireLogged(textOf(request, "digest"), textOf(request, "log"), now)
			answer.Size = head.size
			answer.note("the log proof (8.1 to 8.3)")
			if previous := textOf(request, "previous"); previous != "" {
				keys.log.requireContinued(previous, textOf(request, "consistency"), head, now)
				answer.note("that the log continues the previous head (8.4)")
			}
		case textOf(request, "result") != "":
			answer.result(request)
		case keys != nil:
			answer.Version, answer.Digest = keys.version, keys.digest
		default:
			refuse("usage", "", "a request has document, keys, log or result")
		}
	})
	answer.Valid = answer.Problem == nil
	return answer
}

func (answer *Answer) note(what string) { answer.Verified = append(answer.Verified, what) }

func textOf(request map[string]interface{}, name string) string {
	text, _ := request[name].(string)
	return text
}

// readChain reads the body of /v1/keys/chain, or a single envelope of version 1.
func readChain(body, known string, now time.Time) (*Keys, string) {
	var file *Value
	check(catch("K1", func() { file = parseJSON([]byte(body), false, "document_envelope", 4) }))
	envelopes := [][]byte{[]byte(body)}
	if chain := file.fields["chain"]; chain != nil {
		envelopes = nil
		for _, item := range chain.list {
			envelopes = append(envelopes, decode(item.text))
		}
	}
	var before []byte
	if known != "" {
		before = []byte(known)
	}
	return proveChain(envelopes, before, "", now)
}

// document verifies an envelope by steps 1 to 9, or a bare payload by steps 4, 5 and 9.
func (answer *Answer) document(request map[string]interface{}, keys *Keys, now time.Time) {
	body := textOf(request, "document")
	var d *Document
	if keys == nil {
		check(stepOf(catch("4", func() {
			payload := []byte(body)
			if strings.Contains(body, `"payloadType"`) {
				payload = parseEnvelope(payload, surveyType).payload
			}
			d = parseDocument(payload)
			d.requireHost(textOf(request, "origin"))
		}), "document_type", "5"))
		check(catch("9", d.verifyPrivacy))
		answer.note("form and promises (steps 4, 5 and 9); signatures were not checked: give --chain")
	} else {
		r := &Request{envelope: []byte(body), publisher: keys.publisher, log: keys.log, now: now,
			origin: textOf(request, "origin"), pin: textOf(request, "pin"), proof: textOf(request, "proof")}
		if before, ok := request["remembered"].(map[string]interface{}); ok {
			version, _ := before["version"].(float64)
			r.remembered = &Remembered{int64(version), textOf(before, "digest")}
		}
		d = accept(r)
		answer.note("size, signatures, form, time and promises (steps 1 to 7 and 9)")
		if r.pin != "" {
			answer.note("the pin (step 8)")
		}
		if r.proof != "" {
			answer.note("the log proof (8.1 to 8.3)")
		}
	}
	answer.Digest, answer.Version, answer.Work = d.digest, d.version, d.work()
	level := d.reportLevel()
	answer.Cost, answer.Answers = nats(level.Cost), nats(level.Answers)
	answer.Secrets = map[string]Figure{}
	for name, s := range level.Secrets {
		answer.Secrets[name] = Figure{nats(s.Level), nats(s.Odds), nats(s.StrataOdds)}
	}
}

// result recomputes a result from counts.
func (answer *Answer) result(request map[string]interface{}) {
	documents := map[string]*Document{}
	bodies, _ := request["documents"].([]string)
	if more, ok := request["documents"].([]interface{}); ok {
		for _, item := range more {
			bodies = append(bodies, fmt.Sprint(item))
		}
	}
	for _, body := range bodies {
		payload := []byte(body)
		if strings.Contains(body, `"payloadType"`) {
			payload = parseEnvelope(payload, surveyType).payload
		}
		d := parseDocument(payload)
		documents[d.digest] = d
	}
	result := parseJSON([]byte(textOf(request, "result")), false, "json_invalid", 20)
	counts := parseJSON([]byte(textOf(request, "counts")), false, "json_invalid", 20)
	answer.Result = checkResult(result, counts, documents)
	answer.note("the figures of the result against its counts")
}
