// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"math/big"
)

const (
	precision  = 1200 // precision of the decoder's arithmetic, in bits
	agreement  = 1e-9 // largest accepted difference between a stated figure and ours; relative for figures above 1
	negligible = -800 // binary exponent below which a pivot counts as zero; the arithmetic's errors are below 2^-1000
)

// Decoder turns counts of a table's symbols into unbiased estimates: V = W(QᵀΓQ)⁻¹QᵀΓ (spec 8.1).
type Decoder struct {
	table   [][]*big.Int // weights[x][y], any common row sum
	gamma   []*big.Int
	chosen  []int // answers whose rows of the table are independent
	inverse [][]*big.Float
}

func newFloat() *big.Float { return new(big.Float).SetPrec(precision) }

func toFloat(value *big.Int) *big.Float { return newFloat().SetInt(value) }

// newDecoder weights symbols by Γ ≈ D₀⁻¹ of the design prior: round(2^64·max u/u_y), halves upwards.
func newDecoder(table [][]*big.Int, prior []int64) *Decoder {
	d := &Decoder{table: table}
	var u []*big.Int
	largest := new(big.Int)
	for y := range table[0] {
		sum := new(big.Int)
		for x := range table {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(prior[x]), table[x][y]))
		}
		if u = append(u, sum); sum.Cmp(largest) > 0 {
			largest = sum
		}
	}
	for _, mass := range u {
		top := new(big.Int).Lsh(largest, 65)
		d.gamma = append(d.gamma, top.Add(top, mass).Div(top, new(big.Int).Lsh(mass, 1)))
	}
	d.invert()
	return d
}

// invert chooses answers with independent rows and inverts their part of QᵀΓQ by Gauss and Jordan.
func (d *Decoder) invert() {
	n := len(d.table)
	var sizes []int              // binary exponents of the diagonal before the elimination
	m := make([][]*big.Float, n) // QᵀΓQ, with the identity to its right
	for x := range m {
		for z := 0; z < n; z++ {
			sum := new(big.Int)
			for y, g := range d.gamma {
				term := new(big.Int).Mul(d.table[x][y], d.table[z][y])
				sum.Add(sum, term.Mul(term, g))
			}
			m[x] = append(m[x], toFloat(sum))
		}
		for z := 0; z < n; z++ {
			m[x] = append(m[x], newFloat())
		}
		m[x][n+x].SetInt64(1)
		sizes = append(sizes, m[x][x].MantExp(nil))
	}
	for k := 0; k < n; k++ {
		pivot := newFloat().Set(m[k][k])
		if pivot.Sign() == 0 || pivot.MantExp(nil)-sizes[k] < negligible {
			continue // the row of answer k depends on the chosen rows
		}
		d.chosen = append(d.chosen, k)
		inverse := newFloat().Quo(toFloat(big.NewInt(1)), pivot)
		for j := range m[k] {
			m[k][j].Mul(m[k][j], inverse)
		}
		for x := range m {
			if x == k || m[x][k].Sign() == 0 {
				continue
			}
			factor := newFloat().Set(m[x][k])
			for j := range m[x] {
				m[x][j].Sub(m[x][j], newFloat().Mul(factor, m[k][j]))
			}
		}
	}
	for _, x := range d.chosen {
		var row []*big.Float
		for _, z := range d.chosen {
			row = append(row, m[x][n+z])
		}
		d.inverse = append(d.inverse, row)
	}
}

// row returns the scores of the symbols for the target Σ w_x·p_x, nil if it cannot be estimated.
func (d *Decoder) row(w []int64) []*big.Float {
	scores := make([]*big.Float, len(d.gamma))
	full := totalOf(d.table[0])
	for y := range scores {
		scores[y] = newFloat()
	}
	for i := range d.chosen {
		z := newFloat()
		for j, x := range d.chosen {
			z.Add(z, newFloat().Mul(d.inverse[i][j], newFloat().SetInt64(w[x])))
		}
		for y, g := range d.gamma {
			term := new(big.Int).Mul(d.table[d.chosen[i]][y], g)
			scores[y].Add(scores[y], newFloat().Mul(z, toFloat(term.Mul(term, full))))
		}
	}
	for x := range d.table { // every answer must decode to its target weight
		sum := newFloat()
		for y := range scores {
			sum.Add(sum, newFloat().Mul(scores[y], toFloat(d.table[x][y])))
		}
		sum.Quo(sum, toFloat(full)).Sub(sum, newFloat().SetInt64(w[x]))
		if sum.Sign() != 0 && sum.MantExp(nil) >= -300 {
			return nil
		}
	}
	return scores
}

// Moments are the mean of a target's scores over n reports, and the mean of their squares.
type Moments struct {
	n            float64
	mean, square float64
}

// momentsOfTable sums scores over the counts of symbols.
func momentsOfTable(scores []*big.Float, counts []float64) Moments {
	n, mean, square := newFloat(), newFloat(), newFloat()
	for y, score := range scores {
		count := newFloat().SetFloat64(counts[y])
		n.Add(n, count)
		term := newFloat().Mul(score, count)
		mean.Add(mean, term)
		square.Add(square, newFloat().Mul(term, score))
	}
	if n.Sign() == 0 {
		return Moments{}
	}
	total, _ := n.Float64()
	m, _ := mean.Quo(mean, n).Float64()
	s, _ := square.Quo(square, n).Float64()
	return Moments{total, m, s}
}

// momentsOfSets decodes sets: b_x = (1[x in set] − q0)/(q1 − q0), d_x = b_x + (1 − Σ b)/a (estimator.md, claim 12). A target
// Σ w_x·d_x is w̄ + Σ (w_x − w̄)·b_x, whose square needs the counts of pairs.
func momentsOfSets(w []float64, inside, outside float64, pairs [][]float64, n float64) Moments {
	average, gap := 0.0, inside-outside
	for _, weight := range w {
		average += weight / float64(len(w))
	}
	mean, square := average, 0.0
	for x := range w {
		u := (w[x] - average) / gap
		mean += u * (pairs[x][x]/n - outside)
		for z := range w {
			v := (w[z] - average) / gap
			both := pairs[x][z]/n - outside*(pairs[x][x]+pairs[z][z])/n + outside*outside
			square += u * v * both
		}
	}
	// square is E[(d − w̄)²]
	return Moments{n, mean, square + 2*average*mean - average*average}
}

// Part contains the questions that one mechanism randomises in one document, with their counts (spec 8.11).
type Part struct {
	document, block string
	questions       []string
	choices         [][]string
	value           *Value
}

func (v *Value) at(name string) *Value {
	if found := v.fields[name]; found != nil {
		return found
	}
	refuse("counts_invalid", name, "this field is needed; fetch result and counts again")
	return nil
}

func readParts(counts *Value) []*Part {
	var parts []*Part
	for _, item := range counts.at("parts").list {
		p := &Part{document: item.at("document").text, block: item.at("block").text, value: item}
		for _, question := range item.at("questions").list {
			p.questions = append(p.questions, question.at("id").text)
			var ids []string
			for _, choice := range question.at("choices").list {
				ids = append(ids, choice.at("id").text)
			}
			p.choices = append(p.choices, ids)
		}
		parts = append(parts, p)
	}
	return parts
}

// whole reads a whole number of any size.
func (v *Value) whole() *big.Int {
	if v.kind == isNumber {
		return big.NewInt(v.number)
	}
	value, ok := new(big.Int).SetString(v.text, 10)
	if !ok {
		refuse("counts_invalid", "parts", "expected whole numbers; fetch the counts again")
	}
	return value
}

func (v *Value) reals() []float64 {
	var out []float64
	for _, item := range v.list {
		out = append(out, item.real)
	}
	return out
}

// requireLaw checks that the mechanism of the counts is that of the signed document.
func (p *Part) requireLaw(d *Document) {
	for _, b := range d.blocks {
		if b.id != p.block || b.law.form != nil {
			continue
		}
		for i, factor := range p.value.at("factors").list {
			isSame := true
			if b.law.factors == nil {
				q1, q0 := b.law.containment()
				isSame = factor.ratio("inside").Cmp(q1) == 0 && factor.ratio("outside").Cmp(q0) == 0
			} else if isSame = i < len(b.law.factors); isSame {
				table := b.law.factors[i]
				for x, row := range factor.at("weights").list {
					for y, weight := range row.list {
						isSame = isSame && x < len(table) && y < len(table[x]) && weight.number == table[x][y]
					}
				}
			}
			if !isSame {
				refuse("counts_invalid", "parts.factors", "the counts are of another mechanism than the document's")
			}
		}
		return
	}
}

func (v *Value) ratio(name string) *big.Rat {
	pair := v.at(name)
	if len(pair.list) != 2 || pair.list[1].whole().Sign() <= 0 {
		refuse("counts_invalid", name, "expected a ratio of two whole numbers")
	}
	return new(big.Rat).SetFrac(pair.list[0].whole(), pair.list[1].whole())
}

// containment returns the probabilities that a set contains the true answer, and that it contains another answer.
func (m *Mechanism) containment() (*big.Rat, *big.Rat) {
	full := int64(1) << m.bits
	if m.kind == "unary" {
		return big.NewRat(m.keep, full), big.NewRat(m.flip, full)
	}
	q1 := big.NewRat(m.inside, full)
	q0 := new(big.Rat).Sub(big.NewRat(int64(m.size), 1), q1)
	return q1, q0.Quo(q0, big.NewRat(int64(m.answers-1), 1))
}

// moments decodes the share of one choice of a question from a stratum's counts; nil if the share is not identifiable.
func (p *Part) moments(question, choice int, stratum *Value) *Moments {
	factors := p.value.at("factors").list
	first := 0
	for i, factor := range factors { // each factor belongs to some consecutive questions
		answers, last := 1, first
		for prior := len(factor.at("design_prior").list); last < len(p.choices) && answers < prior; last++ {
			answers *= len(p.choices[last])
		}
		if question >= last {
			first = last
			continue
		}
		w := make([]int64, answers)
		for x := range w {
			rest := x
			for q := last - 1; q >= first; q-- {
				if q == question && rest%len(p.choices[q]) == choice {
					w[x] = 1
				}
				rest /= len(p.choices[q])
			}
		}
		if p.value.at("kind").text == "sets" {
			weights := make([]float64, answers)
			for x := range w {
				weights[x] = float64(w[x])
			}
			var pairs [][]float64
			for _, row := range stratum.at("pairs").list {
				pairs = append(pairs, row.reals())
			}
			q1, _ := factor.ratio("inside").Float64()
			q0, _ := factor.ratio("outside").Float64()
			m := momentsOfSets(weights, q1, q0, pairs, stratum.at("n").real)
			return &m
		}
		scores := p.decoder(i, factor).row(w)
		if scores == nil {
			return nil
		}
		m := momentsOfTable(scores, marginal(stratum.at("counts").reals(), factors, i))
		return &m
	}
	refuse("counts_invalid", "parts.factors", "the factors do not fit the questions")
	return nil
}

var decoders = map[*Value]*Decoder{}

func (p *Part) decoder(i int, factor *Value) *Decoder {
	if decoders[factor] == nil {
		var table [][]*big.Int
		for _, row := range factor.at("weights").list {
			var weights []*big.Int
			for _, weight := range row.list {
				weights = append(weights, weight.whole())
			}
			table = append(table, weights)
		}
		var prior []int64
		for _, count := range factor.at("design_prior").list {
			prior = append(prior, count.number)
		}
		decoders[factor] = newDecoder(table, prior)
	}
	return decoders[factor]
}

// marginal sums counts of joint symbols (row-major, the last factor fastest) over all factors except one.
func marginal(counts []float64, factors []*Value, wanted int) []float64 {
	inner, size := 1, 0
	for i := len(factors) - 1; i >= wanted; i-- {
		columns := len(factors[i].at("weights").list[0].list)
		if i == wanted {
			size = columns
		} else {
			inner *= columns
		}
	}
	out := make([]float64, size)
	for y, count := range counts {
		out[y/inner%size] += count
	}
	return out
}

// Checked lists the number of figures compared in a result, and the skipped ones.
type Checked struct {
	Figures int      `json:"figures"`
	Skipped []string `json:"skipped"`
}

// checkResult recomputes the shares of a result from counts: estimates, standard errors, and normal margins.
func checkResult(result, counts *Value, documents map[string]*Document) *Checked {
	parts, done := readParts(counts), &Checked{}
	for _, p := range parts {
		if d := documents[p.document]; d != nil {
			p.requireLaw(d)
		} else {
			done.Skipped = append(done.Skipped, "mechanism of "+p.block+": its document is missing")
		}
	}
	request := result.at("inputs").at("request")
	targets := request.at("targets")
	// A question that is wanted for its mean, distribution or contrast has fewer or other rows than choices.
	plain := targets.kind == isText && (targets.text == "shares" || targets.text == "wanted") &&
		result.at("percent").kind == isNull && result.at("weights").text == "respondents"
	for _, q := range result.at("questions").list {
		name := q.at("id").text
		if q.at("status").text != "ok" {
			continue // too few reports, so there are no figures
		}
		if !plain {
			done.Skipped = append(done.Skipped, name+": only shares of all respondents are recomputed")
			continue
		}
		for i, row := range q.at("rows").list {
			done.checkRow(result, q, row, i, parts)
		}
	}
	return done
}

func (done *Checked) checkRow(result, q, row *Value, i int, parts []*Part) {
	name := q.at("id").text + "." + row.at("choice").text
	used := map[string]bool{}
	for _, digest := range row.at("documents").list {
		used[digest.text] = true
	}
	smallest := map[string]*Part{} // for each document, the part with the fewest questions that contains this one
	for _, p := range parts {
		if p.block == q.at("block").text && used[p.document] && indexOf(p.questions, q.at("id").text) >= 0 {
			if best := smallest[p.document]; best == nil || len(p.questions) < len(best.questions) {
				smallest[p.document] = p
			}
		}
	}
	var moments []*Moments
	n := 0.0
	for _, p := range parts {
		question := indexOf(p.questions, q.at("id").text)
		if smallest[p.document] != p {
			continue
		}
		for _, stratum := range p.value.at("strata").list {
			if !sameGroup(stratum.at("by"), q.at("by")) {
				continue
			}
			choice := indexOf(p.choices[question], row.at("choice").text)
			if choice < 0 || len(q.at("rows").list) != len(p.choices[question]) {
				done.Skipped = append(done.Skipped, name+": not a choice of the counts' question")
				return
			}
			m := p.moments(question, choice, stratum)
			if m == nil || m.n < 2 {
				done.Skipped = append(done.Skipped, name+": cannot be estimated from these reports")
				return
			}
			moments, n = append(moments, m), n+m.n
		}
	}
	if n == 0 || n != row.at("n").real {
		done.Skipped = append(done.Skipped, fmt.Sprintf("%s: the counts have %v reports, the result %v", name, n, row.at("n").real))
		return
	}
	mean, variance, privacy := 0.0, 0.0, 0.0
	for _, m := range moments { // versions are decoded separately and weighted by their reports
		share := m.n / n
		mean += share * m.mean
		variance += share * share * (m.square - m.mean*m.mean) / (m.n - 1)
		privacy += share * share * (m.square - m.mean) / m.n
	}
	place := "questions." + name
	done.compare(place+".estimate", row.at("estimate"), mean)
	if result.at("census").truth || result.at("population").kind != isNull {
		done.Skipped = append(done.Skipped, name+": errors of a census or a finite population are not recomputed")
		return
	}
	se := math.Sqrt(math.Max(variance, 0))
	done.compare(place+".se", row.at("se"), se)
	if privacy > 0 && privacy <= variance {
		done.compare(place+".se_privacy", row.at("se_privacy"), math.Sqrt(privacy))
		done.compare(place+".se_sampling", row.at("se_sampling"), math.Sqrt(variance-privacy))
	}
	if row.at("method").text == "clt" {
		margin := math.Sqrt2 * math.Erfinv(row.at("level").real) * se
		done.compare(place+".margin", row.at("margin"), margin)
		done.compare(place+".low", row.at("low"), mean-margin)
		done.compare(place+".high", row.at("high"), mean+margin)
	}
}

func (done *Checked) compare(place string, stated *Value, ours float64) {
	known := stated.kind == isNumber || stated.kind == isReal
	if !known || math.Abs(stated.real-ours) > agreement*math.Max(1, math.Abs(ours)) {
		refuse("counts_invalid", place, "the result states %v, the counts give %v", stated.real, ours)
	}
	done.Figures++
}

func indexOf(texts []string, wanted string) int {
	for i, text := range texts {
		if text == wanted {
			return i
		}
	}
	return -1
}

// sameGroup reports whether a stratum has the public answers of a result's group; null stands for all respondents.
func sameGroup(stratum, group *Value) bool {
	if len(stratum.keys) != len(group.keys) {
		return false
	}
	for _, name := range stratum.keys {
		if other := group.fields[name]; other == nil || other.text != stratum.fields[name].text {
			return false
		}
	}
	return true
}
