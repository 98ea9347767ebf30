// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Request contains all inputs to the acceptance of a survey document (protocol section 4).
type Request struct {
	envelope   []byte
	publisher  Role
	log        *Log
	origin     string // origin of the link, such as https://collect.example; "" if unknown
	pin        string
	proof      string
	remembered *Remembered
	now        time.Time
}

// Remembered is the last accepted version of the survey.
type Remembered struct {
	version int64
	digest  string
}

// accept runs steps 1 to 9 and returns the document, or panics with the first Problem.
func accept(r *Request) *Document {
	var envelope *Envelope
	check(stepOf(catch("2", func() { envelope = parseEnvelope(r.envelope, surveyType) }), "document_size", "1"))
	check(catch("3", func() { envelope.requireSigned(r.publisher, "document_signature") }))
	var d *Document
	check(stepOf(catch("4", func() {
		d = parseDocument(envelope.payload)
		d.requireHost(r.origin)
	}), "document_type", "5"))
	check(catch("6", func() { requireTime(r.now, d.opens, d.closes, "opens", "closes") }))
	check(catch("7", func() { d.requireNewer(r.remembered) }))
	check(catch("8", func() { d.requirePublic(r) }))
	check(catch("9", d.verifyPrivacy))
	return d
}

// stepOf sets the step of a problem if the problem has the given code.
func stepOf(problem *Problem, code, step string) *Problem {
	if problem != nil && problem.Code == code {
		problem.Step = step
	}
	return problem
}

// address contains the parts of a URL that determine its destination.
type address struct {
	scheme, host string
}

// parseAddress splits a URL strictly, because reports are sent to it.
func parseAddress(text string) address {
	fail := func(code, detail string) {
		refuse(code, "collect_url", "%s; an address is such as https://collect.example/path", detail)
	}
	colon := strings.Index(text, "://")
	if colon < 0 {
		fail("insecure_transport", "this is not an https address")
	}
	authority := text[colon+3:]
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority = authority[:end]
	}
	if strings.Contains(authority, "@") {
		fail("link", "an address must not contain a user name")
	}
	host, port := authority, ""
	if close := strings.Index(authority, "]"); strings.HasPrefix(authority, "[") {
		if close < 0 {
			fail("link", "a bracket is not closed")
		}
		host, port = authority[1:close], strings.TrimPrefix(authority[close+1:], ":")
	} else if cut := strings.LastIndex(authority, ":"); cut >= 0 {
		host, port = authority[:cut], authority[cut+1:]
	}
	if number, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || number > 65535) {
		fail("link", "the port is not a number below 65536")
	}
	if host == "" {
		fail("insecure_transport", "the host is missing")
	}
	return address{strings.ToLower(text[:colon]), strings.ToLower(host)}
}

// isLocal reports whether an address is that of the device itself.
func (a address) isLocal() bool {
	return a.host == "localhost" || a.host == "::1" || loopback.MatchString(a.host)
}

var loopback = regexp.MustCompile(`^127\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}$`)

// requireHost checks that reports go to the link's host, and to the device itself only if the link is local too.
func (d *Document) requireHost(origin string) {
	if origin == "" {
		return
	}
	link, target := parseAddress(origin), parseAddress(d.collectURL)
	switch {
	case target.scheme != "https" && !(target.scheme == "http" && target.isLocal()):
		refuse("insecure_transport", "collect_url", "reports must go to an https address")
	case target.isLocal() && !link.isLocal():
		refuse("insecure_transport", "collect_url", "reports would go to this machine, but the link does not")
	case target.host != link.host:
		refuse("document_host", "collect_url", "reports would go to another host than the link's")
	}
}

// requireTime refuses a time outside a window, and names the field of the end that is passed.
func requireTime(now, from, to time.Time, first, last string) {
	name := last
	if now.Before(from.Add(-tolerance)) {
		name = first
	} else if !now.After(to.Add(tolerance)) {
		return
	}
	refuse("document_window", name, "valid from %s to %s; the time is %s", from.Format(time.RFC3339),
		to.Format(time.RFC3339), now.Format(time.RFC3339))
}

func (d *Document) requireNewer(before *Remembered) {
	if before == nil {
		return
	}
	if d.version < before.version {
		refuse("document_version", "version", "version %d was accepted before: a rollback", before.version)
	}
	if d.version == before.version && d.digest != before.digest {
		refuse("document_version", "version", "two documents have this version: keep both as evidence")
	}
}

// requirePublic checks the pin, and the log's proof if there is one.
func (d *Document) requirePublic(r *Request) {
	if r.pin != "" && r.pin != d.digest {
		refuse("document_pin", "digest", "the link names another document")
	}
	if r.proof == "" {
		return
	}
	if r.log == nil {
		refuse("document_log", "log", "the keys name no log; omit the proof, or fetch the newest keys")
	}
	r.log.requireLogged(d.digest, r.proof, r.now)
}
