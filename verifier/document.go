// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/big"
	"strings"
	"time"
)

// Document is a survey whose form is valid (steps 4 and 5); its promises are not verified yet.
type Document struct {
	survey, digest string
	version        int64
	prev           string
	issued, opens  time.Time
	closes         time.Time
	languages      []string
	title          map[string]string
	collectURL     string
	strata         []*Question
	blocks         []*Block
	views          []*Document // of the arms; without arms, the document itself
}

// Block is one or more questions that are randomised together.
type Block struct {
	id        string
	questions []*Question
	law       *Mechanism
	claims    []*Claim
	prior     []int64
	ceiling   *big.Rat
	mechanism string
	path      string
}

// Question is a question with its choices; the other fields describe how it is answered (spec 3.5).
type Question struct {
	id      string
	choices []string
	roles   []string
	box     *Box
	askIf   string
	answers []string // the choices of question askIf for which this question is asked

	anchored bool   // all people's answers are known beforehand, or it is repeated
	repeats  string // id of the earlier question that this one asks a second time
}

// Box is one box of a question with boxes, any number of which can be ticked.
type Box struct {
	of, text, role string
}

const day = 24 * time.Hour

var documentFields = []string{"type", "survey", "version", "prev", "issued", "opens", "closes", "expires", "languages",
	"title", "consent", "collect_url", "min_reports", "release_every", "release_step", "strata", "token", "blocks"}

// parseDocument checks the form of a payload: canonical JSON, known fields and their types.
func parseDocument(payload []byte) *Document {
	f := field{parseCanonical(payload), "", "document_schema"}
	f.readType("frankly.survey/2")
	f.object(documentFields, "instructed", "arms")
	d := &Document{
		survey: f.get("survey").matches(hex32Pattern, "32 lower-case hex digits"), digest: digestOf(payload),
		version: f.get("version").whole(1, maxNumber),
	}
	d.readPredecessor(f.get("prev"))
	d.readTimes(f)
	d.readTexts(f)
	minimum := f.get("min_reports").whole(2, maxNumber)
	if every := f.get("release_every"); every.kind != isText || every.text != "day" && every.text != "hour" {
		every.fail("expected day or hour")
	}
	if step := f.get("release_step"); !step.isWhole(2, minimum) {
		step.fail("expected 2 to min_reports")
	}
	for _, item := range f.get("strata").items(0, 8) {
		d.strata = append(d.strata, d.readQuestion(item))
		item.requirePlain(3)
	}
	if f.has("instructed") {
		d.readItem(f.get("instructed"))
	}
	f.get("token").readToken()
	d.readBlocks(f.get("blocks"))
	d.views = []*Document{d}
	if f.has("arms") {
		d.readArms(f.get("arms"), f.get("strata"))
	}
	for _, view := range d.views {
		view.checkView(f)
	}
	return d
}

// readArms reads the versions of the survey of which a device draws one, and makes their views (spec 3.10).
func (d *Document) readArms(f, public field) {
	f.object([]string{"id", "arms"})
	f.get("id").id()
	arms, ids, sum := f.get("arms"), []string{}, int64(0)
	var strata, blocks [][]string
	for _, item := range arms.items(2, 8) {
		item.object([]string{"id", "chance", "strata", "blocks"})
		ids = append(ids, item.get("id").id())
		sum += item.get("chance").whole(1, 65535)
		strata = append(strata, item.get("strata").ids(0, 8))
		blocks = append(blocks, item.get("blocks").ids(0, 100))
	}
	if sum != 65536 {
		arms.fail("the chances of the arms do not sum to 65536")
	}
	arms.unique(ids, "ids")
	d.views = nil
	questions, seen := map[*Question]bool{}, map[*Block]bool{}
	for i, item := range arms.items(2, 8) {
		view := *d
		view.strata, view.blocks = nil, nil
		names := map[string]bool{}
		for _, q := range d.strata {
			if countOf(strata[i], q.id) == 1 {
				view.strata = append(view.strata, q)
				names[q.id], questions[q] = true, true
			}
		}
		if len(names) != len(strata[i]) {
			item.get("strata").fail("expected ids of public questions of the document, each once")
		}
		for _, id := range blocks[i] {
			for _, b := range d.blocks {
				if b.id == id {
					view.blocks = append(view.blocks, b)
					seen[b] = true
				}
			}
		}
		item.get("blocks").unique(blocks[i], "ids")
		if len(view.blocks) != len(blocks[i]) || len(blocks[i])+len(strata[i]) == 0 {
			item.get("blocks").fail("expected ids of blocks of the document, or a public question in the arm")
		}
		d.views = append(d.views, &view)
	}
	if len(questions) != len(d.strata) || len(seen) != len(d.blocks) {
		arms.fail("every public question and every block must be in an arm")
	}
	public.unique(idsOf(d.strata), "ids")
}

func idsOf(questions []*Question) (ids []string) {
	for _, q := range questions {
		ids = append(ids, q.id)
	}
	return ids
}

// checkView checks what a person is asked: in the whole document or, if it has arms, in one of them (spec 3.5 to 3.10).
func (d *Document) checkView(f field) {
	ids, names := idsOf(d.strata), strings.Join(idsOf(d.strata), " ")
	for _, name := range []string{"instructed", "arms"} {
		if f.has(name) {
			ids = append(ids, f.get(name).get("id").text)
		}
	}
	strata := 1
	for _, q := range d.strata {
		if strata <= 4096 {
			strata *= len(q.choices)
		}
	}
	unfit, beside := (*Prior)(nil), false // a promise rests on a prior, or a question has an anchor
	for _, block := range d.blocks {
		ids = append(ids, idsOf(block.questions)...)
		for _, question := range block.questions {
			beside = beside || question.anchored
		}
		for _, claim := range block.claims {
			beside = beside || claim.prior != nil || claim.notion == "rldp"
			if p := claim.prior; p != nil && len(p.tables) > 1 {
				if unfit == nil && (len(p.tables) != strata || p.strata != "" && p.strata != names) {
					unfit = p
				}
				p.strata = names // of the first arm that has the block; a later one with others is refused
			}
		}
	}
	f.get("blocks").unique(ids, "ids")
	d.checkRules()
	if unfit != nil {
		refuse(f.code, unfit.path, "expected one table, or one for each of the %d strata", strata)
	}
	if f.has("instructed") && beside {
		f.get("instructed").fail("beside an instructed item no promise may rest on a prior, and no question has an anchor")
	}
	if token := f.get("token"); token.has("rules") {
		d.checkSources(token.get("question"), token.get("rules"))
	}
}

// readItem reads the instructed item, a plain question that asks for one given choice (spec 3.8).
func (d *Document) readItem(f field) {
	f.object([]string{"id", "text", "choices", "answer"})
	item := &Question{id: f.get("id").id()}
	f.get("text").words(d.languages)
	d.readChoices(item, f.get("choices"))
	f.requirePlain(4)
	if answer := f.get("answer"); countOf(item.choices, answer.id()) != 1 {
		answer.fail("expected one of the item's choices")
	}
}

// readType checks the type before all other fields, because another type has other fields (step 5).
func (f field) readType(name string) {
	if value := f.fields["type"]; value == nil || value.kind != isText || value.text != name {
		refuse("document_type", "type", "expected a document of type %s: update the verifier", name)
	}
}

func (d *Document) readPredecessor(f field) {
	if f.kind != isNull {
		d.prev = f.matches(digestPattern, "sha256: and 64 hex digits")
	}
	if (d.version == 1) != (f.kind == isNull) {
		f.fail("the first version, and only the first, has no predecessor")
	}
}

// time reads a UTC time of whole seconds.
func (f field) time() time.Time {
	text := f.matches(timePattern, "a UTC time such as 2026-05-31T12:00:00Z")
	at, err := time.Parse("2006-01-02T15:04:05Z", text)
	if err != nil {
		f.fail("there is no such time")
	}
	return at
}

func (d *Document) readTimes(f field) {
	d.issued, d.opens, d.closes = f.get("issued").time(), f.get("opens").time(), f.get("closes").time()
	expires := f.get("expires").time()
	if d.opens.Before(d.issued) || !d.closes.After(d.opens) || expires.Before(d.closes) ||
		expires.Sub(d.issued) > 400*day {
		f.get("expires").fail("times must be issued ≤ opens < closes ≤ expires ≤ issued + 400 days")
	}
}

func (d *Document) readTexts(f field) {
	languages := f.get("languages")
	for _, item := range languages.items(1, 32) {
		d.languages = append(d.languages, item.matches(tongue, "a language tag such as en"))
	}
	languages.unique(d.languages, "languages")
	d.title = f.get("title").words(d.languages)
	if consent := f.get("consent"); consent.kind != isNull {
		consent.words(d.languages)
	}
	d.collectURL = f.get("collect_url").prose(2000)
}

// readToken reads the rule of the tokens: none, one for all reports, or one for each source (spec 3.11).
func (f field) readToken() {
	if kind := f.fields["kind"]; kind != nil && kind.text == "sources" {
		f.object([]string{"kind", "question", "rules"})
		f.get("question").id()
		rules := f.get("rules")
		if rules.kind != isObject {
			rules.fail("expected an object with a rule for each source")
		}
		for _, source := range rules.keys { // in the order of their ids, because the text is canonical
			rules.get(source).readTokenOfOne()
		}
	} else if f.kind != isNull {
		f.readTokenOfOne()
	}
}

func (f field) readTokenOfOne() {
	f.object([]string{"kind", "key"})
	kind, key := f.get("kind"), f.get("key")
	switch {
	case kind.kind == isText && kind.text == "invite":
		if key.kind != isNull {
			key.fail("a token of this kind has no key: null")
		}
	case kind.kind == isText && kind.text == "rsa-pss":
		if text := key.matches(rsaKey, "a public key in base64url"); len(text) < 64 || len(text) > 2000 {
			key.fail("expected 64 to 2000 characters")
		}
	default:
		refuse("document_type", kind.path, "unknown kind of token: update the verifier")
	}
}

// checkSources checks that the sources are the choices of a public question (spec 3.11).
func (d *Document) checkSources(question, rules field) {
	for _, q := range d.strata {
		for _, source := range q.choices {
			if q.id == question.text && (!rules.has(source) || len(rules.keys) != len(q.choices)) {
				rules.fail("expected a rule for each choice of the question, and no others")
			}
		}
	}
	if countOf(idsOf(d.strata), question.text) == 0 {
		question.fail("expected the id of a public question, in every arm")
	}
}

var blockFields = []string{"id", "questions", "kind", "claims", "design_prior", "ceiling", "mechanism", "certificate"}

func (d *Document) readBlocks(f field) {
	blockIDs := []string{}
	cells := int64(0)
	for _, item := range f.items(1, 100) {
		block := d.readBlock(item)
		d.blocks = append(d.blocks, block)
		blockIDs = append(blockIDs, block.id)
		cells += block.cells()
		if cells > maxPriorCells {
			f.fail("the priors have more than 2^21 counts; use fewer tables or answers")
		}
	}
	f.unique(blockIDs, "ids")
}

func (d *Document) readBlock(f field) *Block {
	own, isForm := blockFields, false
	if kind := f.fields["kind"]; kind != nil {
		more, known := parameters[kind.text]
		if kind.kind != isText || !known {
			refuse("document_type", f.path, "unknown kind of mechanism: update the verifier")
		}
		own, isForm = append(append([]string(nil), own...), more...), kind.text == "agreement"
	}
	others := []string{}
	if isForm {
		others = append(others, "ask")
	}
	f.object(own, others...)
	// Which questions a device asks changes neither the mechanism nor its level (spec 1.10).
	if f.has("ask") && (f.get("ask").kind != isText || f.get("ask").text != "drawn") {
		f.get("ask").fail("expected drawn, or no such field")
	}
	b := &Block{id: f.get("id").id(), path: f.path, mechanism: f.get("mechanism").id()}
	most, listed := 16, 1000
	if isForm {
		most, listed = 100, 2000
	}
	joint := 1
	sizes := []int{}
	for _, item := range f.get("questions").items(1, most) {
		question := d.readQuestion(item)
		b.questions = append(b.questions, question)
		sizes = append(sizes, len(question.choices))
		if joint *= len(question.choices); joint > maxAnswers && !isForm {
			f.get("questions").fail("a block has at most %d joint answers; split it", maxAnswers)
		}
		if isForm {
			joint = 2
		}
	}
	b.law = parseMechanism(f, f.get("kind").text, joint)
	expected := joint
	if isForm {
		expected = b.checkForm(f, sizes)
	}
	b.readPrior(f.get("design_prior"), listed, expected)
	claims := f.get("claims")
	for _, item := range claims.items(1, 16) {
		b.claims = append(b.claims, readClaim(item))
	}
	b.ceiling = f.get("ceiling").orNull(1)
	readCertificate(f.get("certificate"))
	return b
}

// checkForm checks that the questions of a form have the numbers of choices that its mechanism expects.
func (b *Block) checkForm(f field, sizes []int) int {
	total := 0
	for i, size := range sizes {
		total += size
		if i >= len(b.law.form.choices) || int64(size) != b.law.form.choices[i] {
			refuse("document_weights", f.path+".choices", "the form's questions have other numbers of choices")
		}
	}
	if len(sizes) != len(b.law.form.choices) {
		refuse("document_weights", f.path+".choices", "the form has another number of questions")
	}
	return total
}

func (b *Block) readPrior(f field, listed, expected int) {
	b.prior = f.wholes(2, listed, 0, maxNumber)
	fits := len(b.prior) == expected
	for _, count := range b.prior {
		fits = fits && count > 0
	}
	if !fits {
		f.fail("expected %d positive counts", expected)
	}
}

func readCertificate(f field) {
	if f.kind == isNull {
		return
	}
	f.object([]string{"objective", "value", "bound"})
	f.get("objective").id()
	f.get("value").prose(64)
	if bound := f.get("bound"); bound.kind != isNull {
		bound.prose(64)
	}
}

var roles = map[string]bool{"no_answer": true, "not_applicable": true}

func (f field) role() string {
	if f.kind != isText || !roles[f.text] {
		f.fail("expected no_answer or not_applicable")
	}
	return f.text
}

// requirePlain refuses a question in the clear with fields that only randomised questions have.
func (f field) requirePlain(keys int) {
	plain := len(f.keys) == keys
	for _, choice := range f.get("choices").list {
		plain = plain && len(choice.keys) == 2
	}
	if !plain {
		f.fail("a public question has plain choices only")
	}
}

func (d *Document) readQuestion(f field) *Question {
	f.object([]string{"id", "text", "choices"}, "box", "ask_if", "wanted", "anchor")
	q := &Question{id: f.get("id").id()}
	f.get("text").words(d.languages)
	choices := f.get("choices")
	d.readChoices(q, choices)
	if f.has("box") {
		box := f.get("box")
		box.object([]string{"of", "text", "label"}, "role")
		q.box = &Box{of: box.get("of").id(), text: joined(box.get("text").words(d.languages), d.languages)}
		box.get("label").words(d.languages)
		if box.has("role") {
			q.box.role = box.get("role").role()
		}
		if !strings.HasPrefix(q.id, q.box.of+"-") || len(q.id) == len(q.box.of)+1 {
			f.get("id").fail("the id of a box is that of its question, a hyphen and the box's id")
		}
		plain := len(q.choices) == 2 && q.choices[0] == "no" && q.choices[1] == "yes" && q.roles[0]+q.roles[1] == ""
		if !plain {
			choices.fail("the choices of a box are no and yes, without other fields")
		}
	}
	if f.has("ask_if") {
		rule := f.get("ask_if")
		rule.object([]string{"question", "choices"})
		q.askIf = rule.get("question").id()
		q.answers = rule.get("choices").ids(1, 63)
		rule.get("choices").unique(q.answers, "choices")
	}
	if f.has("wanted") {
		q.checkWanted(f.get("wanted"), choices)
	}
	if f.has("anchor") {
		q.checkAnchor(f.get("anchor"))
	}
	return q
}

// checkAnchor checks what is known beforehand of the answers (spec 3.9); only estimates use it.
func (q *Question) checkAnchor(f field) {
	q.anchored = true
	if f.has("repeats") {
		f.object([]string{"repeats"})
		if q.repeats = f.get("repeats").id(); q.box != nil || q.askIf != "" {
			f.fail("a question that is asked a second time is no box and has no rule")
		}
		return
	}
	f.object([]string{"counts", "source"})
	counts := f.get("counts").wholes(2, maxAnswers, 0, maxNumber)
	f.get("source").prose(4000)
	if q.box != nil || q.askIf != "" || countOf(q.roles, "") != len(q.choices) {
		f.fail("a question with an anchor is no box, has no rule and no choice with a role")
	}
	empty := true
	for _, count := range counts {
		empty = empty && count == 0
	}
	if empty || len(counts) != len(q.choices) {
		f.get("counts").fail("expected a count for each choice, not all 0")
	}
}

// checkWanted checks the figure for which a question is asked (spec 3.5); only estimates use it.
func (q *Question) checkWanted(f, choices field) {
	f.object([]string{"figure"}, "numbers")
	figure := f.get("figure").matches(figurePattern, "mean, distribution or contrast")
	if f.has("numbers") != (figure == "contrast") {
		f.fail("a contrast has numbers, and no other figure has")
	}
	numbers := len(q.choices)
	if f.has("numbers") {
		numbers = 0
		for _, item := range f.get("numbers").items(2, maxAnswers) {
			item.score()
			numbers++
		}
	}
	if q.box != nil || numbers != len(q.choices) {
		f.fail("a contrast has one number for each choice, and a box is asked for its share")
	}
	for i, item := range choices.items(2, maxAnswers) {
		if figure == "mean" && q.roles[i] == "" && !item.has("score") {
			f.fail("a mean needs a score in every choice without a role")
		}
	}
}

func joined(words map[string]string, languages []string) string {
	out := ""
	for _, language := range languages {
		out += words[language] + "\x00"
	}
	return out
}

// readChoices reads choices with their roles, ranges and scores (spec 3.5).
func (d *Document) readChoices(q *Question, f field) {
	ranges, scores, plain := 0, 0, 0
	last := int64(-maxNumber - 1)
	rising := true
	for _, item := range f.items(2, maxAnswers) {
		item.object([]string{"id", "label"}, "role", "from", "score")
		q.choices = append(q.choices, item.get("id").id())
		item.get("label").words(d.languages)
		role := ""
		if item.has("role") {
			role = item.get("role").role()
		}
		if item.has("from") {
			from := item.get("from").whole(-maxNumber, maxNumber)
			ranges++
			rising = rising && from > last && role == ""
			last = from
		}
		if item.has("score") {
			item.get("score").score()
			scores++
			rising = rising && role == ""
		}
		if role == "" {
			plain++
		}
		q.roles = append(q.roles, role)
	}
	f.unique(q.choices, "ids")
	if plain == 0 || countOf(q.roles, "no_answer") > 1 || countOf(q.roles, "not_applicable") > 1 {
		f.fail("each role occurs at most once, and at least one choice has none")
	}
	if !rising || ranges != 0 && ranges != plain || scores != 0 && scores != plain {
		f.fail("ranges and scores belong to every choice without a role or to none; ranges increase")
	}
}

func countOf(texts []string, wanted string) int {
	count := 0
	for _, text := range texts {
		if text == wanted {
			count++
		}
	}
	return count
}

// checkRules checks boxes and rules, which refer to other questions; it needs all questions of the document in order.
func (d *Document) checkRules() {
	var before []*Question
	groups := map[string][]*Question{}
	lastOf := ""
	for _, block := range d.blocks {
		for _, q := range block.questions {
			of := ""
			if q.box != nil {
				of = q.box.of
				if groups[of] != nil && lastOf != of {
					refuse("document_schema", of, "the boxes of a question must be neighbours")
				}
				groups[of] = append(groups[of], q)
			}
			lastOf = of
			if q.askIf != "" {
				checkRule(q, before)
			}
			if q.repeats != "" {
				checkRepeated(q, before)
			}
			before = append(before, q)
		}
	}
	for _, q := range before {
		if q.box != nil && groups[q.box.of][0] == q {
			checkBoxes(q.box.of, groups[q.box.of])
		}
		if q.box == nil && groups[q.id] != nil {
			refuse("document_schema", q.id, "a question and the question of boxes have the same id")
		}
	}
}

// checkRepeated checks that the question asked a second time has these choices and is asked of everybody (spec 3.9).
func checkRepeated(q *Question, before []*Question) {
	for _, first := range before {
		isSame := strings.Join(first.choices, ",") == strings.Join(q.choices, ",")
		if first.id == q.repeats && first.box == nil && first.askIf == "" && isSame {
			return
		}
	}
	refuse("document_schema", q.id, "expected an earlier question with the same choices")
}

func checkRule(q *Question, before []*Question) {
	for _, earlier := range before {
		if earlier.id != q.askIf {
			continue
		}
		for _, choice := range q.answers {
			if countOf(earlier.choices, choice) == 0 {
				refuse("document_schema", q.id, "the rule names a choice that its question does not have")
			}
		}
		if q.box == nil && countOf(q.roles, "not_applicable") == 0 {
			refuse("document_schema", q.id, "a question with a rule needs a choice of the role not_applicable")
		}
		return
	}
	refuse("document_schema", q.id, "the rule must name an earlier question of the document")
}

func checkBoxes(of string, boxes []*Question) {
	var given []string
	plain := 0
	for _, q := range boxes {
		rule := q.askIf + "\x00" + strings.Join(q.answers, ",")
		if first := boxes[0]; q.box.text != first.box.text || rule != first.askIf+"\x00"+strings.Join(first.answers, ",") {
			refuse("document_schema", of, "the boxes of a question have one text and one rule")
		}
		given = append(given, q.box.role)
		if q.box.role == "" {
			plain++
		}
	}
	skips := countOf(given, "not_applicable")
	if plain == 0 || skips > 1 || countOf(given, "no_answer") > 1 {
		refuse("document_schema", of, "each role occurs once at most, and at least one box has none")
	}
	if boxes[0].askIf != "" && skips == 0 {
		refuse("document_schema", of, "boxes with a rule need one of the role not_applicable")
	}
}
