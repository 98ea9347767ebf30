// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"strings"
	"testing"
)

// TestEstimates decodes every case of the vectors, which contain unbiased estimates as fractions.
func TestEstimates(t *testing.T) {
	var file struct {
		Cases []struct {
			Mechanism   map[string]interface{}
			DesignPrior []int64 `json:"design_prior"`
			Targets     [][]int64
			Counts      interface{}
			Unbiased    [][]jsonNumber
		}
	}
	load(t, "estimates", &file)
	for i, c := range file.Cases {
		text := fmt.Sprint(c.Mechanism["kind"])
		switch text {
		case "dense":
			var table [][]*big.Int
			for _, row := range c.Mechanism["weights"].([]interface{}) {
				var weights []*big.Int
				for _, weight := range row.([]interface{}) {
					value, _ := new(big.Int).SetString(fmt.Sprint(weight), 10)
					weights = append(weights, value)
				}
				table = append(table, weights)
			}
			prior := c.DesignPrior
			if prior == nil {
				prior = make([]int64, len(table))
				for x := range prior {
					prior[x] = 1
				}
			}
			decoder := newDecoder(table, prior)
			counts := numbersOf(c.Counts)
			for r, w := range targets(c.Targets, len(table)) {
				scores := decoder.row(w)
				if scores == nil || c.Unbiased[r] == nil {
					if scores != nil || c.Unbiased[r] != nil {
						t.Errorf("case %d, target %d: identifiable in only one of the two", i, r)
					}
					continue
				}
				compareFraction(t, i, momentsOfTable(scores, counts).mean, c.Unbiased[r])
			}
		case "unary", "subset":
			answers := int(numberOf(c.Mechanism["answers"]))
			m := &Mechanism{kind: text, bits: uint(numberOf(c.Mechanism["bits"])), answers: answers}
			if text == "unary" {
				m.keep, m.flip = int64(numberOf(c.Mechanism["keep"])), int64(numberOf(c.Mechanism["flip"]))
			} else {
				m.size, m.inside = int(numberOf(c.Mechanism["size"])), int64(numberOf(c.Mechanism["inside"]))
			}
			pairs, n := pairsOf(c.Counts.(map[string]interface{}), answers)
			q1, q0 := m.containment()
			inside, _ := q1.Float64()
			outside, _ := q0.Float64()
			for r, w := range targets(c.Targets, answers) {
				var weights []float64
				for _, weight := range w {
					weights = append(weights, float64(weight))
				}
				compareFraction(t, i, momentsOfSets(weights, inside, outside, pairs, n).mean, c.Unbiased[r])
			}
		}
	}
}

type jsonNumber = interface{}

func numberOf(value interface{}) float64 {
	number, _ := new(big.Rat).SetString(fmt.Sprint(value))
	out, _ := number.Float64()
	return out
}

func numbersOf(value interface{}) (out []float64) {
	for _, item := range value.([]interface{}) {
		out = append(out, numberOf(item))
	}
	return out
}

func targets(given [][]int64, answers int) [][]int64 {
	if given != nil {
		return given
	}
	for x := 0; x < answers; x++ {
		row := make([]int64, answers)
		row[x] = 1
		given = append(given, row)
	}
	return given
}

func pairsOf(counts map[string]interface{}, answers int) ([][]float64, float64) {
	pairs := make([][]float64, answers)
	for x := range pairs {
		pairs[x] = make([]float64, answers)
	}
	n := 0.0
	for set, count := range counts {
		members, _ := new(big.Int).SetString(set, 16)
		n += numberOf(count)
		for x := range pairs {
			for z := range pairs {
				if members.Bit(x) == 1 && members.Bit(z) == 1 {
					pairs[x][z] += numberOf(count)
				}
			}
		}
	}
	return pairs, n
}

func compareFraction(t *testing.T, i int, got float64, fraction []jsonNumber) {
	t.Helper()
	want := numberOf(fraction[0]) / numberOf(fraction[1])
	if math.Abs(got-want) > 1e-12*math.Max(1, math.Abs(want)) {
		t.Errorf("case %d: %v instead of %v", i, got, want)
	}
}

// A naive implementation for small mechanisms that lists every column.
func listed(m *Mechanism) (columns [][]*big.Int) {
	if m.factors != nil {
		m.eachColumn(func(w []*big.Int) {
			column := make([]*big.Int, len(w))
			for x := range w {
				column[x] = new(big.Int).Set(w[x])
			}
			columns = append(columns, column)
		})
		return columns
	}
	full := int64(1) << m.bits
	for set := 0; set < 1<<m.answers; set++ {
		column := make([]*big.Int, m.answers)
		size := 0
		for x := range column {
			size += set >> x & 1
			column[x] = big.NewInt(1)
			if m.kind == "subset" { // up to the factor 1/(C(a−1, k−1)·C(a−1, k)), which is the same for all
				a, k := int64(m.answers-1), int64(m.size)
				column[x].Mul(big.NewInt(m.inside), new(big.Int).Binomial(a, k))
				if set>>x&1 == 0 {
					column[x].Mul(big.NewInt(full-m.inside), new(big.Int).Binomial(a, k-1))
				}
				continue
			}
			for z := range column {
				chance := m.flip
				if z == x {
					chance = m.keep
				}
				if set>>z&1 == 0 {
					chance = full - chance
				}
				column[x].Mul(column[x], big.NewInt(chance))
			}
		}
		if m.kind != "subset" || size == m.size {
			columns = append(columns, column)
		}
	}
	return columns
}

// holds evaluates a claim by the definitions of spec 1.3 and 1.4, with rational numbers and all columns.
func holds(m *Mechanism, c *Claim) bool {
	for _, w := range listed(m) {
		mean := func(weights []*big.Rat) *big.Rat {
			sum, mass := new(big.Rat), new(big.Rat)
			for x, weight := range weights {
				sum.Add(sum, new(big.Rat).Mul(weight, new(big.Rat).SetInt(w[x])))
				mass.Add(mass, weight)
			}
			if mass.Sign() == 0 {
				return nil
			}
			return sum.Quo(sum, mass)
		}
		under := func(a, b []*big.Rat, level *big.Rat) bool {
			top, bottom := mean(a), mean(b)
			return top == nil || bottom == nil || top.Cmp(bottom.Mul(bottom, level)) <= 0
		}
		if c.notion == "rldp" {
			for s := range c.bounds {
				for z := range c.bounds {
					for _, a := range corners(c.bounds, s) {
						for _, b := range corners(c.bounds, z) {
							if (s != z || c.diagonal) && !under(a, b, c.level) {
								return false
							}
						}
					}
				}
			}
			continue
		}
		sizes := c.attributes
		if c.notion != "srlip" {
			sizes = []int64{int64(m.answers)}
		}
		for _, cell := range cellsOf(sizes, c.notion == "srlip") {
			rows := [][]*big.Rat{}
			all := make([]*big.Rat, m.answers)
			for x := range all {
				all[x] = new(big.Rat)
			}
			for _, row := range c.prior.tables[0] {
				var weights []*big.Rat
				for x, count := range row {
					weight := new(big.Rat)
					if cell[x] {
						weight.SetInt64(count)
					}
					weights = append(weights, weight)
					all[x].Add(all[x], weight)
				}
				rows = append(rows, weights)
			}
			for s, row := range rows {
				for z, other := range rows {
					if c.notion == "secret-ldp" && s != z && !under(row, other, c.level) {
						return false
					}
				}
				low := c.level
				if c.notion == "alip" {
					low = c.low
				}
				if c.notion != "secret-ldp" && (!under(row, all, c.level) || !under(all, row, low)) {
					return false
				}
			}
		}
	}
	return true
}

// corners returns the extreme distributions of D_s: the bounds, with the remaining mass on one value.
func corners(bounds [][]*big.Rat, s int) (out [][]*big.Rat) {
	width := len(bounds[s])
	for extra := 0; extra < width; extra++ {
		weights := make([]*big.Rat, width*len(bounds))
		left := big.NewRat(1, 1)
		for x := range weights {
			weights[x] = new(big.Rat)
			if x/width == s {
				weights[x].Set(bounds[s][x%width])
				left.Sub(left, bounds[s][x%width])
			}
		}
		weights[s*width+extra].Add(weights[s*width+extra], left)
		out = append(out, weights)
	}
	return out
}

// cellsOf lists the answers of every cell: all answers, or with known attributes those of every x_J.
func cellsOf(sizes []int64, known bool) (out []map[int]bool) {
	answers := 1
	for _, size := range sizes {
		answers *= int(size)
	}
	digits := func(x int) (d []int) {
		for k := len(sizes) - 1; k >= 0; k-- {
			d = append([]int{x % int(sizes[k])}, d...)
			x /= int(sizes[k])
		}
		return d
	}
	for subset := 0; subset < 1<<len(sizes); subset++ {
		if !known && subset > 0 {
			break
		}
		for example := 0; example < answers; example++ {
			cell := map[int]bool{}
			for x := 0; x < answers; x++ {
				same := true
				for k, digit := range digits(x) {
					same = same && (subset>>k&1 == 0 || digit == digits(example)[k])
				}
				cell[x] = same
			}
			out = append(out, cell)
		}
	}
	return out
}

func randomMechanism(r *rand.Rand) *Mechanism {
	m := &Mechanism{bits: 8, answers: 4}
	full := int64(256)
	switch r.Intn(4) {
	case 0:
		m.kind, m.keep, m.flip = "unary", r.Int63n(full+1), r.Int63n(full+1)
		if r.Intn(3) > 0 {
			m.keep, m.flip = 1+r.Int63n(full-1), 1+r.Int63n(full-1)
		}
	case 1:
		m.kind, m.size, m.inside = "subset", 1+r.Intn(3), r.Int63n(full+1)
	case 2:
		m.kind, m.factors = "dense", [][][]int64{randomTable(r, 4, 1+r.Intn(4))}
	default:
		m.kind = "product"
		m.factors = [][][]int64{randomTable(r, 2, 2), randomTable(r, 2, 1+r.Intn(3))}
	}
	return m
}

func randomTable(r *rand.Rand, rows, columns int) [][]int64 {
	table := make([][]int64, rows)
	for x := range table {
		left := int64(256)
		for y := 0; y < columns-1; y++ {
			part := r.Int63n(left/2 + 1)
			table[x] = append(table[x], part)
			left -= part
		}
		table[x] = append(table[x], left)
	}
	return table
}

func randomClaim(r *rand.Rand) *Claim {
	level := big.NewRat(100+r.Int63n(300), 100)
	notions := []string{"secret-ldp", "lip", "alip", "srlip", "rldp"}
	c := &Claim{notion: notions[r.Intn(len(notions))], level: level, low: big.NewRat(100+r.Int63n(300), 100)}
	if c.notion == "rldp" {
		c.diagonal = r.Intn(2) == 0
		for s := 0; s < 2; s++ {
			a := r.Int63n(10)
			c.bounds = append(c.bounds, []*big.Rat{big.NewRat(a, 10), big.NewRat(r.Int63n(11-a), 10)})
		}
		return c
	}
	table := [][]int64{}
	for s := 0; s < 2+r.Intn(2); s++ {
		table = append(table, []int64{1 + r.Int63n(5), r.Int63n(5), r.Int63n(5), r.Int63n(5)})
	}
	c.prior = &Prior{secrets: make([]string, len(table)), tables: [][][]int64{table}}
	if c.notion == "srlip" {
		c.attributes = []int64{2, 2}
	}
	return c
}

// TestClaimsAgainstDefinitions compares the verifier with the definitions, column by column and corner by corner.
func TestClaimsAgainstDefinitions(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	kept := 0
	for i := 0; i < 2000; i++ {
		m, c := randomMechanism(r), randomClaim(r)
		want := holds(m, c)
		if got := catch("", func() { m.require(c) }) == nil; got != want {
			t.Fatalf("%s under %s at %v: %v instead of %v: %+v", c.notion, m.kind, c.level, got, want, m)
		}
		if want {
			kept++
		}
	}
	if kept < 200 || kept > 1800 {
		t.Errorf("%d of 2000 hold: the cases are not a meaningful test", kept)
	}
}

// TestExcess compares δ with its definition over all columns and pairs of answers.
func TestExcess(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for i := 0; i < 500; i++ {
		m := randomMechanism(r)
		c := &Claim{notion: "dp", level: big.NewRat(100+r.Int63n(300), 100)}
		worst := new(big.Rat)
		columns := listed(m)
		for x := 0; x < m.answers; x++ {
			total := new(big.Rat)
			for _, w := range columns {
				total.Add(total, new(big.Rat).SetInt(w[x]))
			}
			for z := 0; z < m.answers; z++ {
				sum := new(big.Rat)
				for _, w := range columns {
					term := new(big.Rat).Mul(c.level, new(big.Rat).SetInt(w[z]))
					if term.Sub(new(big.Rat).SetInt(w[x]), term).Sign() > 0 {
						sum.Add(sum, term)
					}
				}
				if sum.Quo(sum, total); sum.Cmp(worst) > 0 {
					worst = sum
				}
			}
		}
		if got := m.excess(c); got.Cmp(worst) != 0 {
			t.Fatalf("%s: %v instead of %v", m.kind, got, worst)
		}
	}
}

// TestNats compares rounded logarithms with floats, which are accurate enough away from the rounding steps.
func TestNats(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for i := 0; i < 200; i++ {
		ratio := big.NewRat(1+r.Int63n(1<<40), 1+r.Int63n(1<<20))
		if ratio.Cmp(one) < 0 {
			ratio.Inv(ratio)
		}
		value, _ := ratio.Float64()
		want := fmt.Sprintf("%.4f", math.Ceil(math.Log(value)*1e4)/1e4)
		if got := nats(ratio); got != want {
			t.Errorf("ln %v: %s instead of %s", ratio, got, want)
		}
	}
	if nats(nil) != "inf" || nats(one) != "0.0000" {
		t.Error("inf and 0")
	}
}

// TestNothingPanics checks that damaged payloads and envelopes are refused or accepted without a crash.
func TestNothingPanics(t *testing.T) {
	var file struct {
		Documents []struct{ Name, Payload string }
	}
	load(t, "documents", &file)
	r := rand.New(rand.NewSource(4))
	for i := 0; i < 600; i++ {
		data := []byte(file.Documents[r.Intn(len(file.Documents))].Payload)
		for edits := r.Intn(3) + 1; edits > 0; edits-- {
			at := r.Intn(len(data))
			switch r.Intn(3) {
			case 0:
				data[at] = byte(r.Intn(256))
			case 1:
				data = append(data[:at], data[at+1:]...)
			default:
				data = append(data[:at], append([]byte(`[{"1,9`)[r.Intn(5):][:1], data[at:]...)...)
			}
		}
		respond(map[string]interface{}{"document": string(data)})
		respond(map[string]interface{}{"keys": string(data), "document": "{}"})
		respond(map[string]interface{}{"result": string(data), "counts": string(data)})
	}
	if answer := respond(map[string]interface{}{"document": strings.Repeat("[", 1<<20)}); answer.Valid {
		t.Error("deep lists are accepted")
	}
}
