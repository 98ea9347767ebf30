// SPDX-License-Identifier: Apache-2.0

package main

import "math/big"

const (
	maxColumns = 4096
	maxJoint   = 256  // largest number of joint answers of a table, and of counts in a dense block
	maxAnswers = 1000 // largest number of choices of a question, and of joint answers of unary, subset and product blocks
)

// Mechanism is the law of one block's reports: Q(y|x) = weights[x][y] / 2^bits, row = truth (spec 1.1, 1.2).
type Mechanism struct {
	kind       string
	bits       uint
	answers    int
	factors    [][][]int64 // one table for dense, several for product: factors[i][x][y]
	keep, flip int64       // unary
	size       int         // subset
	inside     int64       // subset
	form       *Form       // agreement
}

// parameters lists the fields that each kind has in addition to those of all blocks.
var parameters = map[string][]string{
	"dense":     {"bits", "weights"},
	"unary":     {"bits", "answers", "keep", "flip"},
	"subset":    {"bits", "answers", "size", "inside"},
	"product":   {"bits", "factors"},
	"agreement": {"bits", "agree", "disagree", "choices", "parts", "components"},
}

// parseMechanism reads the parameters of a block with this number of joint answers (step 4).
func parseMechanism(block field, kind string, joint int) *Mechanism {
	block.code = "document_weights"
	m := &Mechanism{kind: kind, bits: uint(block.get("bits").whole(4, 48)), answers: joint}
	full := int64(1) << m.bits
	place := ""
	switch kind {
	case "dense":
		m.factors, place = [][][]int64{parseTable(block.get("weights"), full)}, "weights"
		m.answers = len(m.factors[0])
	case "product":
		factors := block.get("factors")
		if factors.kind != isList || len(factors.list) < 2 || len(factors.list) > 16 {
			factors.fail("a product has 2 to 16 factors")
		}
		m.answers, place = 1, "factors"
		for _, item := range factors.items(2, 16) {
			if !isTable(item) {
				factors.fail("expected a table of whole numbers")
			}
		}
		for _, item := range factors.items(2, 16) {
			item.path += ".weights"
			table := parseTable(item, full)
			m.factors = append(m.factors, table)
			if m.answers *= len(table); m.answers > maxAnswers {
				factors.fail("a product has at most %d joint answers", maxAnswers)
			}
		}
	case "unary":
		m.answers, place = int(block.get("answers").whole(2, maxAnswers)), "answers"
		m.keep, m.flip = block.get("keep").whole(0, full), block.get("flip").whole(0, full)
		if m.keep == m.flip {
			block.get("flip").fail("keep and flip must differ: otherwise the report reveals nothing")
		}
	case "subset":
		m.answers, place = int(block.get("answers").whole(2, maxAnswers)), "answers"
		m.size = int(block.get("size").whole(1, int64(m.answers-1)))
		m.inside = block.get("inside").whole(0, full)
	case "agreement":
		m.form = parseForm(block, full)
		return m
	}
	if m.answers != joint {
		block.get(place).fail("%d joint answers need a mechanism with as many answers", joint)
	}
	return m
}

func isTable(f field) bool {
	if f.kind != isList {
		return false
	}
	for _, row := range f.list {
		if row.kind != isList {
			return false
		}
	}
	return true
}

// parseTable reads rows of weights that each sum to full, without a column that is never sent.
func parseTable(f field, full int64) [][]int64 {
	if !isTable(f) {
		f.fail("expected a table of whole numbers")
	}
	if len(f.list) < 2 || len(f.list) > maxJoint {
		f.fail("a mechanism has 2 to %d rows", maxJoint)
	}
	columns := len(f.list[0].list)
	if columns < 1 || columns > maxColumns {
		f.fail("a mechanism has 1 to %d columns", maxColumns)
	}
	table := make([][]int64, len(f.list))
	sent := make([]bool, columns)
	for x, row := range f.items(2, maxJoint) {
		if len(row.list) != columns {
			row.fail("every row needs %d columns", columns)
		}
		sum := int64(0)
		table[x] = make([]int64, columns)
		for y, weight := range row.list {
			if weight.kind != isNumber || weight.number < 0 {
				row.fail("weights are whole numbers, zero or more")
			}
			if weight.number > full-sum {
				row.fail("the row does not sum to 2^bits")
			}
			table[x][y] = weight.number
			sum += weight.number
			sent[y] = sent[y] || weight.number > 0
		}
		if sum != full {
			row.fail("the row does not sum to 2^bits")
		}
	}
	for _, ever := range sent {
		if !ever {
			f.fail("a report that is never sent must not have a column")
		}
	}
	return table
}

// ceiling is the largest ratio max w / min w of a column; nil if it is infinite (spec 2.6).
func (m *Mechanism) ceiling() *big.Rat {
	switch m.kind {
	case "agreement":
		return big.NewRat(m.form.agree, m.form.disagree)
	case "unary", "subset":
		return m.sets().ceiling()
	}
	product := big.NewRat(1, 1)
	for _, table := range m.factors {
		worst := big.NewRat(1, 1)
		for y := range table[0] {
			low, high := table[0][y], table[0][y]
			for _, row := range table {
				if row[y] < low {
					low = row[y]
				} else if row[y] > high {
					high = row[y]
				}
			}
			if low == 0 {
				return nil
			}
			worst = larger(worst, big.NewRat(high, low))
		}
		product.Mul(product, worst)
	}
	return product
}

// eachColumn calls visit with every column w of a table or product, as whole numbers. The slice is reused.
func (m *Mechanism) eachColumn(visit func(w []*big.Int)) {
	w := make([]*big.Int, m.answers)
	for x := range w {
		w[x] = new(big.Int)
	}
	symbols := make([]int, len(m.factors))
	parts := make([][]*big.Int, len(m.factors)+1) // parts[i] contains the joint weights of the first i factors
	parts[0] = []*big.Int{big.NewInt(1)}
	for {
		for i, table := range m.factors {
			parts[i+1] = parts[i+1][:0]
			for _, before := range parts[i] {
				for _, row := range table {
					weight := big.NewInt(row[symbols[i]])
					parts[i+1] = append(parts[i+1], weight.Mul(weight, before))
				}
			}
		}
		for x, weight := range parts[len(m.factors)] {
			w[x] = weight
		}
		visit(w)
		i := len(symbols) - 1
		for ; i >= 0; i-- {
			if symbols[i]++; symbols[i] < len(m.factors[i][0]) {
				break
			}
			symbols[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// Sets describes the columns of unary and subset mechanisms up to a factor: in(side) for the answers of a set Y,
// out(side) for the others. The sets are all sets of one size, or, with size < 0, all sets.
type Sets struct {
	answers, size int
	in, out       *big.Int
	units         bool // all other columns are zero, constant, or have a single entry that is not zero
}

// sets returns the columns of the mechanism. With Y the set of a unary report and x the truth, Q(Y|x) is
// flip^|Y|·(D−flip)^(a−|Y|) times keep/flip if x ∈ Y, else times (D−keep)/(D−flip).
func (m *Mechanism) sets() Sets {
	full := int64(1) << m.bits
	product := func(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }
	if m.kind == "subset" {
		a, k := int64(m.answers), int64(m.size)
		in := new(big.Int).Mul(big.NewInt(m.inside), big.NewInt(a-k))
		return Sets{m.answers, m.size, in, product(full-m.inside, k), false}
	}
	units := m.flip == 0 || m.flip == full
	return Sets{m.answers, -1, product(m.keep, full-m.flip), product(m.flip, full-m.keep), units}
}

// ceiling is the largest ratio of two entries of a column, nil if infinite.
func (s Sets) ceiling() *big.Rat {
	if s.units || s.in.Sign() == 0 || s.out.Sign() == 0 {
		return nil
	}
	ratio := new(big.Rat).SetFrac(s.in, s.out)
	return larger(ratio, new(big.Rat).Inv(ratio))
}
