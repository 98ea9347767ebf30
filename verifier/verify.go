// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/big"
	"math/bits"
	"sort"
)

var one = big.NewRat(1, 1)

// verifyPrivacy checks every promise and every stated ceiling exactly (step 9).
func (d *Document) verifyPrivacy() {
	for _, b := range d.blocks {
		b.requireCeiling()
	}
	if units := d.work(); units > maxWork {
		refuse("document_work_limit", "blocks", "verification takes more than %d units of work", maxWork)
	}
	for _, b := range d.blocks {
		for _, c := range b.claims {
			c.requireShape(b.law)
			b.law.require(c)
		}
	}
}

// requireCeiling compares the stated ceiling with that of the mechanism; documents state a ceiling only if both terms
// are below 2^53.
func (b *Block) requireCeiling() {
	worst := b.law.ceiling()
	if worst != nil && (worst.Num().BitLen() > 53 || worst.Denom().BitLen() > 53) {
		worst = nil
	}
	if (worst == nil) != (b.ceiling == nil) || worst != nil && worst.Cmp(b.ceiling) != 0 {
		refuse("document_privacy", b.path+".ceiling", "the stated ceiling is not that of the mechanism")
	}
}

func (c *Claim) fail(name, format string, values ...interface{}) {
	refuse("document_privacy", c.path+"."+name, c.notion+": "+format, values...)
}

// requireShape checks that a promise is well-formed for a mechanism with this number of answers.
func (c *Claim) requireShape(m *Mechanism) {
	if m.form != nil {
		if c.notion != "ldp" {
			c.fail("notion", "a form can only promise ldp")
		}
		return
	}
	if c.notion == "dpv" && c.level.Cmp(one) > 0 {
		c.fail("level", "a probability is bounded by p/q ≤ 1")
	}
	if c.notion != "dpv" && c.level != nil && c.level.Cmp(one) < 0 {
		c.fail("level", "a level is a ratio p/q ≥ 1")
	}
	if c.low != nil && c.low.Cmp(one) < 0 {
		c.fail("low_level", "a level is a ratio p/q ≥ 1")
	}
	if c.notion == "dp" && c.delta.Cmp(one) >= 0 {
		c.fail("delta", "delta is less than 1")
	}
	if c.prior != nil && len(c.prior.tables[0][0]) != m.answers {
		c.fail("prior", "every row of the prior needs %d columns", m.answers)
	}
	if c.prior != nil {
		c.requireMass()
	}
	switch c.notion {
	case "srlip":
		product := int64(1)
		for _, size := range c.attributes {
			product *= size
		}
		if product != int64(m.answers) {
			c.fail("attributes", "the attributes' sizes must multiply to the number of answers")
		}
	case "rldp":
		for s, row := range c.bounds {
			sum := new(big.Rat)
			for _, bound := range row {
				sum.Add(sum, bound)
			}
			if len(row) != len(c.bounds[0]) || len(row)*len(c.bounds) != m.answers || sum.Cmp(one) > 0 {
				c.fail(fmt.Sprintf("lower_bounds[%d]", s), "one bound for each answer (s, u) is needed, and no row may sum to more than 1")
			}
		}
	case "metric-ldp":
		c.requireLevels(m.answers)
	}
}

// requireMass refuses secrets that occur in no stratum and, for dpv, a stratum in which the sensitive secret is certain.
func (c *Claim) requireMass() {
	occurs := make([]bool, len(c.prior.secrets))
	for z := range c.prior.tables {
		last, present := 0, 0
		for s, row := range c.prior.table(z) {
			if sumOf(row).Sign() > 0 {
				occurs[s], last = true, s
				present++
			}
		}
		if c.notion == "dpv" && present == 1 && last == c.sensitive {
			c.fail("prior", "the sensitive secret is certain in a stratum")
		}
	}
	for s, any := range occurs {
		if !any {
			c.fail(fmt.Sprintf("prior.tables[0][%d]", s), "a secret without mass cannot be protected")
		}
	}
}

func (c *Claim) requireLevels(answers int) {
	any := false
	for x, row := range c.levels {
		if len(c.levels) != answers {
			c.fail("levels", "a row for each answer is needed")
		}
		if len(row) != answers {
			c.fail(fmt.Sprintf("levels[%d]", x), "a row and a column for each answer are needed")
		}
		for z, level := range row {
			any = any || level != nil
			if level != nil && (x == z || level.Cmp(one) < 0) {
				c.fail(fmt.Sprintf("levels[%d]", x), "a level of a pair is null, as on the diagonal, or a ratio p/q ≥ 1")
			}
		}
	}
	if !any {
		c.fail("levels", "without a level for any pair nothing is promised")
	}
}

// require refuses the claim if a column breaks it (spec 2.3).
func (m *Mechanism) require(c *Claim) {
	switch c.notion {
	case "ldp":
		if worst := m.ceiling(); worst == nil || worst.Cmp(c.level) > 0 {
			c.broken("level")
		}
	case "dp":
		if m.excess(c).Cmp(c.delta) > 0 {
			c.broken("delta")
		}
	case "metric-ldp":
		m.requirePairs(c)
	case "rldp":
		if m.factors == nil {
			m.sets().requireRobust(c)
		} else {
			m.requireRobust(c)
		}
	default:
		for z := range c.prior.tables {
			if test := newLiftTest(c, z); m.factors == nil {
				m.sets().requireLift(test)
			} else {
				m.requireLift(test)
			}
		}
	}
}

func (c *Claim) broken(name string) {
	c.fail(name, "a report reveals more than this level; do not answer, and tell the publisher")
}

// LiftTest contains the averages that secret-ldp, lip, alip, srlip and dpv compare within one stratum: A_s = Σ_x
// w_x·N[s][x], in every cell (a combination x_J of known attributes; without attributes, all answers form one cell).
type LiftTest struct {
	*Claim
	rows   [][]int64    // N[s][x] of the secrets that occur in the stratum
	names  []int        // positions of these secrets in the prior
	counts [][]*big.Int // Σ_x N[s][x] in each cell; 1 for dpv, which compares sums instead of averages
	totals []*big.Int   // sums of counts over all secrets
}

func newLiftTest(c *Claim, z int) *LiftTest {
	t := &LiftTest{Claim: c}
	for s, row := range c.prior.table(z) {
		if sumOf(row).Sign() > 0 {
			t.rows, t.names = append(t.rows, row), append(t.names, s)
			t.counts = append(t.counts, t.cells(bigs(row)))
		}
	}
	if t.totals = sumRows(t.counts); c.notion == "dpv" {
		t.totals = bigs([]int64{1})
		for s := range t.counts {
			t.counts[s] = t.totals
		}
	}
	return t
}

// cells sums values over every subset of attributes: in cell (i_1, i_2, …), i_k is less than the size of attribute k if
// its value is known, and equal to the size if the attribute is summed over.
func (t *LiftTest) cells(values []*big.Int) []*big.Int {
	if len(t.attributes) == 0 {
		return []*big.Int{totalOf(values)}
	}
	inner := 1 // number of cells of the attributes after the current one
	for k := len(t.attributes) - 1; k >= 0; k-- {
		size := int(t.attributes[k])
		var out []*big.Int
		for start := 0; start < len(values); start += size * inner {
			group := values[start : start+size*inner]
			out = append(out, group...)
			for i := 0; i < inner; i++ {
				total := new(big.Int)
				for j := i; j < len(group); j += inner {
					total.Add(total, group[j])
				}
				out = append(out, total)
			}
		}
		values, inner = out, inner*(size+1)
	}
	return values
}

// eachSide visits the inequalities that compare one secret with all secrets: A_s/N_s ≤ level·T/N (up), T/N ≤
// level·A_s/N_s (not up).
func (t *LiftTest) eachSide(visit func(name string, level *big.Rat, s, cell int, up bool)) {
	for s, cells := range t.counts {
		for cell, count := range cells {
			low, lowName := t.level, "level"
			if t.notion == "alip" {
				low, lowName = t.low, "low_level"
			}
			if count.Sign() == 0 || t.notion == "dpv" && t.names[s] != t.sensitive {
				continue
			}
			if t.level != nil {
				visit("level", t.level, s, cell, true)
			}
			if low != nil && t.notion != "dpv" {
				visit(lowName, low, s, cell, false)
			}
		}
	}
}

// requireLift checks the claims of LiftTest column by column.
func (m *Mechanism) requireLift(t *LiftTest) {
	averages := make([][]*big.Int, len(t.rows))
	products := make([]*big.Int, m.answers)
	m.eachColumn(func(w []*big.Int) {
		for s, row := range t.rows {
			for x, count := range row {
				if products[x] = new(big.Int); count != 0 {
					products[x].Mul(w[x], big.NewInt(count))
				}
			}
			averages[s] = t.cells(products)
		}
		if t.notion == "secret-ldp" {
			high, low := 0, 0
			for s := range averages {
				if crossCmp(averages[s][0], t.counts[high][0], averages[high][0], t.counts[s][0]) > 0 {
					high = s
				}
				if crossCmp(averages[s][0], t.counts[low][0], averages[low][0], t.counts[s][0]) < 0 {
					low = s
				}
			}
			t.compare("level", t.level, averages[high][0], t.counts[high][0], averages[low][0], t.counts[low][0])
			return
		}
		sums := sumRows(averages)
		t.eachSide(func(name string, level *big.Rat, s, cell int, up bool) {
			if up {
				t.compare(name, level, averages[s][cell], t.counts[s][cell], sums[cell], t.totals[cell])
			} else {
				t.compare(name, level, sums[cell], t.totals[cell], averages[s][cell], t.counts[s][cell])
			}
		})
	})
}

// compare requires a/n ≤ level·b/k.
func (c *Claim) compare(name string, level *big.Rat, a, n, b, k *big.Int) {
	left := new(big.Int).Mul(a, k)
	right := new(big.Int).Mul(b, n)
	if left.Mul(left, level.Denom()).Cmp(right.Mul(right, level.Num())) > 0 {
		c.broken(name)
	}
}

// crossCmp compares a·b with c·d.
func crossCmp(a, b, c, d *big.Int) int {
	return new(big.Int).Mul(a, b).Cmp(new(big.Int).Mul(c, d))
}

// requireLift checks the same claims for sets: each is a linear inequality Σ coef_x·w_x ≤ 0, whose worst set is known.
func (sets Sets) requireLift(t *LiftTest) {
	columns := make([]int64, sets.answers)
	masks := make([]*big.Int, sets.answers)
	for x := range columns {
		masks[x] = new(big.Int).Lsh(big.NewInt(1), uint(x))
	}
	all := sumRows(append([][]*big.Int{bigs(columns)}, rowsOf(t.rows)...))
	members := t.cells(masks) // bit x of a cell's mask is 1 if answer x lies in the cell
	test := func(name string, level *big.Rat, a []*big.Int, n *big.Int, b []*big.Int, k, mask *big.Int) {
		left, right := new(big.Int).Mul(level.Denom(), k), new(big.Int).Mul(level.Num(), n)
		coefs := bigs(columns)
		for x := range coefs {
			if mask.Bit(x) == 1 {
				coefs[x].Sub(coefs[x].Mul(left, a[x]), new(big.Int).Mul(right, b[x]))
			}
		}
		if sets.breaks(coefs) {
			t.broken(name)
		}
	}
	if t.notion == "secret-ldp" {
		for s, row := range t.rows {
			for other := range t.rows {
				test("level", t.level, bigs(row), t.counts[s][0], bigs(t.rows[other]), t.counts[other][0], members[0])
			}
		}
		return
	}
	t.eachSide(func(name string, level *big.Rat, s, cell int, up bool) {
		if up {
			test(name, level, bigs(t.rows[s]), t.counts[s][cell], all, t.totals[cell], members[cell])
		} else {
			test(name, level, all, t.totals[cell], bigs(t.rows[s]), t.counts[s][cell], members[cell])
		}
	})
}

func rowsOf(rows [][]int64) [][]*big.Int {
	var out [][]*big.Int
	for _, row := range rows {
		out = append(out, bigs(row))
	}
	return out
}

// breaks reports whether a column w of the family has Σ coef_x·w_x > 0.
func (s Sets) breaks(coefs []*big.Int) bool {
	sum := new(big.Int)
	for _, coef := range coefs {
		if sum.Add(sum, coef); s.units && coef.Sign() > 0 {
			return true
		}
	}
	if s.units {
		return sum.Sign() > 0
	}
	// The column is out·1 + (in − out)·1_Y: Y contains the answers with the largest coefficients if in > out, else the
	// smallest.
	gain := new(big.Int).Sub(s.in, s.out)
	chosen := new(big.Int)
	if s.size < 0 {
		for _, coef := range coefs {
			if coef.Sign() == gain.Sign() {
				chosen.Add(chosen, coef)
			}
		}
	} else {
		order := append([]*big.Int(nil), coefs...)
		sort.Slice(order, func(i, j int) bool { return order[i].Cmp(order[j]) == gain.Sign() })
		for _, coef := range order[:s.size] {
			chosen.Add(chosen, coef)
		}
	}
	return sum.Mul(sum, s.out).Add(sum, chosen.Mul(chosen, gain)).Sign() > 0
}

// requirePairs checks metric-ldp: the largest ratio of two answers' entries is the product of the factors' largest
// ratios.
func (m *Mechanism) requirePairs(c *Claim) {
	worst := m.pairRatios()
	for x, row := range c.levels {
		for z, level := range row {
			if level == nil {
				continue
			}
			ratio := worst(x, z)
			if ratio == nil || ratio.Cmp(new(big.Rat).Mul(c.level, level)) > 0 {
				c.broken("level")
			}
		}
	}
}

// pairRatios returns the largest ratio w_x/w_z of a column, nil if it is infinite.
func (m *Mechanism) pairRatios() func(x, z int) *big.Rat {
	if m.factors == nil {
		ceiling := m.sets().ceiling()
		return func(x, z int) *big.Rat { return ceiling }
	}
	var tables [][][]*big.Rat
	for _, table := range m.factors {
		ratios := make([][]*big.Rat, len(table))
		for x := range table {
			for z := range table {
				ratios[x] = append(ratios[x], largest(table[x], table[z]))
			}
		}
		tables = append(tables, ratios)
	}
	return func(x, z int) *big.Rat {
		product := big.NewRat(1, 1)
		for i := len(tables) - 1; i >= 0; i-- {
			size := len(tables[i])
			ratio := tables[i][x%size][z%size]
			if ratio == nil {
				return nil
			}
			product.Mul(product, ratio)
			x, z = x/size, z/size
		}
		return product
	}
}

func largest(top, bottom []int64) *big.Rat {
	worst := new(big.Rat)
	for y, weight := range top {
		if weight == 0 {
			continue
		}
		if bottom[y] == 0 {
			return nil
		}
		worst = larger(worst, big.NewRat(weight, bottom[y]))
	}
	return worst
}

// requireRobust checks rldp for tables: answers are pairs (s, u); sup and inf are over the distributions with the lower
// bounds L.
func (m *Mechanism) requireRobust(c *Claim) {
	width := len(c.bounds[0])
	var bounds [][]*big.Int // L times the common denominator of its row; the last entry is the remaining mass
	var common []*big.Int
	for _, row := range c.bounds {
		scaled, denominator := scaleRow(row)
		bounds, common = append(bounds, scaled), append(common, denominator)
	}
	sups, infs := make([]*big.Int, len(bounds)), make([]*big.Int, len(bounds))
	m.eachColumn(func(w []*big.Int) {
		for s, row := range bounds {
			group := w[s*width : (s+1)*width]
			base, high, low := new(big.Int), group[0], group[0]
			for u, weight := range group {
				base.Add(base, new(big.Int).Mul(row[u], weight))
				if weight.Cmp(high) > 0 {
					high = weight
				}
				if weight.Cmp(low) < 0 {
					low = weight
				}
			}
			sups[s] = new(big.Int).Add(base, new(big.Int).Mul(row[width], high))
			infs[s] = base.Add(base, new(big.Int).Mul(row[width], low))
		}
		first, second := 0, -1 // the two largest suprema
		for s := 1; s < len(sups); s++ {
			if crossCmp(sups[s], common[first], sups[first], common[s]) > 0 {
				first, second = s, first
			} else if second < 0 || crossCmp(sups[s], common[second], sups[second], common[s]) > 0 {
				second = s
			}
		}
		for s := range infs {
			top := first
			if s == first && !c.diagonal {
				top = second
			}
			c.compare("level", c.level, sups[top], common[top], infs[s], common[s])
		}
	})
}

func scaleRow(row []*big.Rat) ([]*big.Int, *big.Int) {
	denominator := big.NewInt(1)
	for _, bound := range row {
		shared := new(big.Int).GCD(nil, nil, denominator, bound.Denom())
		denominator.Mul(denominator, new(big.Int).Div(bound.Denom(), shared))
	}
	left := new(big.Int).Set(denominator)
	var scaled []*big.Int
	for _, bound := range row {
		value := new(big.Int).Mul(bound.Num(), new(big.Int).Div(denominator, bound.Denom()))
		scaled = append(scaled, value)
		left.Sub(left, value)
	}
	return append(scaled, left), denominator
}

// requireRobust checks rldp for sets. The answers of the two groups in the set determine sup and inf. For given numbers
// of answers, the worst set contains those with the largest bounds of the upper group and the smallest bounds of the
// lower group.
func (s Sets) requireRobust(c *Claim) {
	if s.units {
		c.broken("level")
	}
	if s.in.Cmp(s.out) < 0 { // the complements have the same columns
		s.in, s.out = s.out, s.in
		if s.size >= 0 {
			s.size = s.answers - s.size
		}
	}
	width := len(c.bounds[0])
	in, out := new(big.Rat).SetInt(s.in), new(big.Rat).SetInt(s.out)
	var sups, own, infs [][]*big.Rat // by group, and by the number of the group's answers in the set
	for _, row := range c.bounds {
		order := append([]*big.Rat(nil), row...)
		sort.Slice(order, func(i, j int) bool { return order[i].Cmp(order[j]) > 0 })
		all := new(big.Rat)
		for _, bound := range order {
			all.Add(all, bound)
		}
		heavy, light := new(big.Rat), new(big.Rat) // sums of the largest and of the smallest bounds
		var sup, mine, inf []*big.Rat
		for i := 0; i <= width; i++ {
			left := new(big.Rat).Sub(one, all) // the mass that the bounds leave free goes to an extreme
			if i == 0 {
				left.SetInt64(0)
			}
			sup = append(sup, mix(new(big.Rat).Add(heavy, left), in, out))
			mine = append(mine, mix(new(big.Rat).Add(light, left), in, out))
			least := light
			if i == width {
				least = one
			}
			if inf = append(inf, mix(least, in, out)); i < width {
				heavy.Add(heavy, order[i])
				light = new(big.Rat).Add(light, order[width-1-i])
			}
			inf[i].Mul(inf[i], c.level)
		}
		sups, own, infs = append(sups, sup), append(own, mine), append(infs, inf)
	}
	for g := range sups {
		for h := range sups {
			for i := 0; i <= width; i++ {
				for j := 0; j <= width; j++ {
					taken, rest, sup := i+j, s.answers-2*width, sups[g][i]
					if g == h { // one group, so the same answers; q·sup − p·inf decreases in the bounds inside, as q ≤ p
						taken, rest, sup = i, s.answers-width, own[g][i]
					}
					if g == h && (!c.diagonal || i != j) || s.size >= 0 && (taken > s.size || s.size-taken > rest) {
						continue
					}
					if sup.Cmp(infs[h][j]) > 0 {
						c.broken("level")
					}
				}
			}
		}
	}
}

// mix returns share·in + (1 − share)·out.
func mix(share, in, out *big.Rat) *big.Rat {
	left := new(big.Rat).Mul(share, in)
	right := new(big.Rat).Sub(one, share)
	return left.Add(left, right.Mul(right, out))
}

func sumOf(row []int64) *big.Int { return totalOf(bigs(row)) }

func bigs(row []int64) []*big.Int {
	out := make([]*big.Int, len(row))
	for i, value := range row {
		out[i] = big.NewInt(value)
	}
	return out
}

func sumRows(rows [][]*big.Int) []*big.Int {
	out := make([]*big.Int, len(rows[0]))
	for i := range out {
		out[i] = new(big.Int)
		for _, row := range rows {
			out[i].Add(out[i], row[i])
		}
	}
	return out
}

// excess returns the least δ for the dp claim's level: the largest Σ_y max(0, Q(y|x) − E·Q(y|z)) over pairs of answers.
func (m *Mechanism) excess(c *Claim) *big.Rat {
	if m.kind == "dense" {
		return m.tableExcess(c.level.Num().Uint64(), c.level.Denom().Uint64())
	}
	worst := new(big.Rat)
	for _, law := range m.pairLaws() {
		sum := new(big.Rat)
		for _, pair := range law {
			term := new(big.Rat).Mul(c.level, pair[1])
			if term.Sub(pair[0], term).Sign() > 0 {
				sum.Add(sum, term)
			}
		}
		worst = larger(worst, sum)
	}
	return worst
}

// tableExcess returns the excess of a table at E = p/q; 128 bits suffice for the sum of 4,096 terms below 2^102.
func (m *Mechanism) tableExcess(p, q uint64) *big.Rat {
	var worst [2]uint64
	for x, row := range m.factors[0] {
		for z, other := range m.factors[0] {
			var sum [2]uint64
			for y := range row {
				high, low := bits.Mul64(q, uint64(row[y]))
				high2, low2 := bits.Mul64(p, uint64(other[y]))
				if low, borrow := bits.Sub64(low, low2, 0); x != z && (high > high2 || high == high2 && borrow == 0) {
					high, _ = bits.Sub64(high, high2, borrow)
					carry := uint64(0)
					sum[1], carry = bits.Add64(sum[1], low, 0)
					sum[0] += high + carry
				}
			}
			if sum[0] > worst[0] || sum[0] == worst[0] && sum[1] > worst[1] {
				worst = sum
			}
		}
	}
	total := new(big.Int).Lsh(new(big.Int).SetUint64(worst[0]), 64)
	total.Add(total, new(big.Int).SetUint64(worst[1]))
	return new(big.Rat).SetFrac(total, new(big.Int).Lsh(new(big.Int).SetUint64(q), m.bits))
}

// Law lists Q(y|x) and Q(y|z) of two answers, for classes of reports with equal ratios.
type Law [][2]*big.Rat

// pairLaws returns the laws of all pairs of answers, without repetitions.
func (m *Mechanism) pairLaws() []Law {
	if m.factors == nil {
		return []Law{m.setLaw()}
	}
	laws := []Law{{{one, one}}}
	for _, table := range m.factors {
		var own []Law
		full := big.NewInt(1 << m.bits)
		for x := range table {
			for z := range table {
				var law Law
				for y := range table[x] {
					law = append(law, [2]*big.Rat{new(big.Rat).SetFrac(big.NewInt(table[x][y]), full),
						new(big.Rat).SetFrac(big.NewInt(table[z][y]), full)})
				}
				if x != z || len(m.factors) > 1 {
					own = append(own, law.merged())
				}
			}
		}
		var out []Law
		for _, before := range laws {
			for _, after := range distinct(own) {
				out = append(out, before.times(after).merged())
			}
		}
		if laws = distinct(out); sizeOf(laws) > maxLaws {
			refuse("document_work_limit", "", "dp of this product takes too long to verify")
		}
	}
	return laws
}

const maxLaws = 1 << 20

func sizeOf(laws []Law) int {
	size := 0
	for _, law := range laws {
		size += len(law)
	}
	return size
}

func (law Law) times(other Law) Law {
	var out Law
	for _, a := range law {
		for _, b := range other {
			out = append(out, [2]*big.Rat{new(big.Rat).Mul(a[0], b[0]), new(big.Rat).Mul(a[1], b[1])})
		}
	}
	return out
}

// merged adds up the reports that have the same ratio, which does not change any excess.
func (law Law) merged() Law {
	sums := map[string][2]*big.Rat{}
	for _, pair := range law {
		key := "inf"
		if pair[1].Sign() > 0 {
			key = new(big.Rat).Quo(pair[0], pair[1]).String()
		}
		if sum, ok := sums[key]; ok {
			pair = [2]*big.Rat{new(big.Rat).Add(sum[0], pair[0]), new(big.Rat).Add(sum[1], pair[1])}
		}
		sums[key] = pair
	}
	keys := make([]string, 0, len(sums))
	for key := range sums {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var out Law
	for _, key := range keys {
		out = append(out, sums[key])
	}
	return out
}

func distinct(laws []Law) []Law {
	seen := map[string]bool{}
	var out []Law
	for _, law := range laws {
		key := fmt.Sprint(law)
		if !seen[key] {
			seen[key] = true
			out = append(out, law)
		}
	}
	return out
}

// setLaw returns the law of two answers under sets, by which of the two answers the set contains.
func (m *Mechanism) setLaw() Law {
	full := int64(1) << m.bits
	if m.kind == "unary" {
		keep, flip := big.NewRat(m.keep, full), big.NewRat(m.flip, full)
		miss, stay := new(big.Rat).Sub(one, keep), new(big.Rat).Sub(one, flip)
		mul := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
		return Law{{mul(keep, flip), mul(keep, flip)}, {mul(keep, stay), mul(flip, miss)},
			{mul(flip, miss), mul(keep, stay)}, {mul(stay, miss), mul(stay, miss)}}
	}
	// Subset: the weights differ only for sets with exactly one of the two answers. Of the sets with x, (a−k)/(a−1) lack
	// z; of the sets without x, k/(a−1) contain z.
	a, k := int64(m.answers), int64(m.size)
	inside := big.NewRat(m.inside, full)
	held := new(big.Rat).Mul(inside, big.NewRat(a-k, a-1))
	missed := new(big.Rat).Sub(one, inside)
	missed.Mul(missed, big.NewRat(k, a-1))
	rest := new(big.Rat).Sub(one, held)
	rest.Sub(rest, missed)
	return Law{{held, missed}, {missed, held}, {rest, rest}}
}
