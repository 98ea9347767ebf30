// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/big"
	"strings"
)

// Level bounds the information that a whole report reveals (protocol section 6). A nil ratio is infinite.
type Level struct {
	Cost    *big.Rat
	Secrets map[string]*SecretLevel
	Answers *big.Rat
}

// SecretLevel is the level of a report about one secret; the fields Strata… are for the public answers alone.
type SecretLevel struct {
	Level, Odds            *big.Rat
	StrataLift, StrataOdds *big.Rat
	values                 map[string]bool
	blocks                 map[*Block]bool
	priors                 []*Prior
}

// reportLevel returns the largest level of all views, figure by figure.
func (d *Document) reportLevel() *Level {
	l := d.views[0].level(d.blocks)
	for _, view := range d.views[1:] {
		next := view.level(d.blocks)
		l.Cost, l.Answers = either(l.Cost, next.Cost), either(l.Answers, next.Answers)
		for name, s := range l.Secrets {
			other := next.Secrets[name]
			s.Level, s.Odds = either(s.Level, other.Level), either(s.Odds, other.Odds)
			s.StrataLift, s.StrataOdds = either(s.StrataLift, other.StrataLift), either(s.StrataOdds, other.StrataOdds)
		}
	}
	return l
}

// either returns the larger ratio; nil is infinite.
func either(a, b *big.Rat) *big.Rat {
	if a == nil || b == nil {
		return nil
	}
	return larger(a, b)
}

// level multiplies levels: for each secret of all blocks, one block of the view uses its promise about the secret, all
// others their ceilings. A secret of which the view promises nothing has the level of the answers.
func (d *Document) level(all []*Block) *Level {
	l := &Level{Cost: big.NewRat(1, 1), Secrets: map[string]*SecretLevel{}}
	for _, b := range all {
		for _, c := range b.claims {
			if name, _ := c.about(); name != "" {
				l.Secrets[name] = &SecretLevel{values: map[string]bool{}, blocks: map[*Block]bool{}}
			}
		}
	}
	for _, b := range d.blocks {
		l.Cost = times(l.Cost, b.law.ceiling())
		for _, c := range b.claims {
			name, values := c.about()
			if name == "" {
				continue
			}
			if c.notion == "rldp" { // rldp names no values, so they cannot equal those of another block
				values = b.path
			}
			l.Secrets[name].values[values], l.Secrets[name].blocks[b] = true, true
			if c.prior != nil {
				l.Secrets[name].priors = append(l.Secrets[name].priors, c.prior)
			}
		}
	}
	l.Answers = l.Cost
	for name, s := range l.Secrets {
		d.levelOf(name, s, l.Cost)
	}
	return l
}

// about returns the secret of a promise and its values; rldp names no values.
func (c *Claim) about() (string, string) {
	switch {
	case c.prior != nil:
		return c.prior.secret, strings.Join(c.prior.secrets, ",")
	case c.notion == "rldp":
		return c.secret, ""
	}
	return "", ""
}

func (d *Document) levelOf(name string, s *SecretLevel, cost *big.Rat) {
	s.Level, s.Odds = cost, cost
	unit := d.unit(name)
	if len(s.values) == 1 || len(s.blocks) == 1 { // blocks with different values are about different secrets of this name
		for i, b := range d.blocks {
			others := big.NewRat(1, 1)
			for j, other := range d.blocks {
				if i != j {
					others = times(others, other.law.ceiling())
				}
			}
			if bound := b.promise(name, d, (*Claim).odds); bound != nil {
				s.Odds = smaller(s.Odds, times(others, bound))
			}
			if bound := b.promise(name, d, unit); bound != nil {
				s.Level = smaller(s.Level, times(others, bound))
			}
		}
	}
	s.Level = smaller(s.Level, s.Odds) // a bound on odds also bounds the lift
	s.StrataLift, s.StrataOdds = d.strataLevel(s)
}

// unit returns the bound for the unit of a secret's level: odds if every promise about the secret bounds odds, else
// lift.
func (d *Document) unit(name string) func(*Claim) *big.Rat {
	for _, b := range d.blocks {
		for _, c := range b.claims {
			if about, _ := c.about(); about == name && c.notion != "secret-ldp" && c.notion != "rldp" {
				return (*Claim).lift
			}
		}
	}
	return (*Claim).odds
}

// promise returns a block's bound: the smallest bound promised under each prior, and the largest of these over its
// priors.
func (b *Block) promise(name string, d *Document, bound func(*Claim) *big.Rat) *big.Rat {
	least := map[string]*big.Rat{}
	for _, c := range b.claims {
		about, _ := c.about()
		if about != name || len(d.strata) > 0 && (c.prior == nil || len(c.prior.tables) == 1) {
			continue
		}
		key := c.priorKey()
		least[key] = smaller(least[key], bound(c))
	}
	var largest *big.Rat
	for _, bound := range least {
		if bound == nil {
			return nil
		}
		largest = larger(largest, bound)
	}
	return largest
}

// odds returns a promise's bound on the odds, nil if there is none; ε-LIP changes odds by up to 2ε.
func (c *Claim) odds() *big.Rat {
	switch c.notion {
	case "secret-ldp", "rldp":
		return c.level
	case "lip", "srlip":
		return times(c.level, c.level)
	case "alip":
		return times(c.level, c.low)
	}
	return nil
}

// lift returns a promise's bound on the factor by which a report changes the probability of a value.
func (c *Claim) lift() *big.Rat {
	switch {
	case c.notion == "dpv" || c.notion == "alip" && (c.level == nil || c.low == nil):
		return nil
	case c.notion == "alip":
		return larger(c.level, c.low)
	}
	return c.level
}

// priorKey identifies a prior: two promises under the same prior both hold, so the smaller bound counts.
func (c *Claim) priorKey() string {
	if c.prior != nil {
		return fmt.Sprint(c.prior.tables)
	}
	return fmt.Sprint(c.bounds)
}

// strataLevel bounds the information in the public answers alone: the largest P(s|z)/P(s) or its inverse, and the
// largest ratio of two values' factors (whole_report.md, claim 5).
func (d *Document) strataLevel(s *SecretLevel) (*big.Rat, *big.Rat) {
	lift, odds := big.NewRat(1, 1), big.NewRat(1, 1)
	if len(d.strata) == 0 {
		return lift, odds
	}
	if len(s.priors) == 0 {
		return nil, nil
	}
	for _, p := range s.priors {
		if len(p.tables) == 1 {
			return nil, nil
		}
		sums := make([]*big.Int, len(p.secrets))
		var parts [][]*big.Int
		for z := range p.tables {
			var part []*big.Int
			for i, row := range p.table(z) {
				sum := sumOf(row)
				if part = append(part, sum); sums[i] == nil {
					sums[i] = new(big.Int)
				}
				sums[i].Add(sums[i], sum)
			}
			parts = append(parts, part)
		}
		all := totalOf(sums)
		for _, part := range parts {
			own := totalOf(part)
			var high, low *big.Rat
			for i, count := range part {
				if sums[i].Sign() == 0 {
					continue
				}
				if count.Sign() == 0 {
					return nil, nil
				}
				factor := new(big.Rat).SetFrac(new(big.Int).Mul(count, all), new(big.Int).Mul(own, sums[i]))
				high, low = larger(high, factor), smaller(low, factor)
			}
			lift = larger(larger(lift, high), new(big.Rat).Inv(low))
			odds = larger(odds, new(big.Rat).Quo(high, low))
		}
	}
	return lift, odds
}

func totalOf(values []*big.Int) *big.Int {
	sum := new(big.Int)
	for _, value := range values {
		sum.Add(sum, value)
	}
	return sum
}

// times multiplies two ratios; nil is infinite.
func times(a, b *big.Rat) *big.Rat {
	if a == nil || b == nil {
		return nil
	}
	return new(big.Rat).Mul(a, b)
}

// smaller returns the smaller ratio; nil is infinite.
func smaller(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && b.Cmp(a) < 0 {
		return b
	}
	return a
}

func larger(a, b *big.Rat) *big.Rat {
	if a == nil || b != nil && b.Cmp(a) > 0 {
		return b
	}
	return a
}

// nats returns the logarithm of a ratio as text, rounded up to four decimals; "inf" if it is infinite (or beyond 2^24
// as a ceiling).
func nats(ratio *big.Rat) string {
	if ratio == nil {
		return "inf"
	}
	// Binary search for the smallest k with ratio ≤ e^(k/10^4), with exact bounds of e^r.
	k := int64(0)
	for step := int64(1) << 40; step > 0; step /= 2 {
		if exceeds(ratio, k+step) {
			k += step
		}
	}
	if ratio.Cmp(one) > 0 {
		k++
	}
	return new(big.Rat).SetFrac64(k, 10000).FloatString(4)
}

// exceeds reports whether ratio > e^(k/10^4), with a lower bound of e^r by a Taylor series in whole numbers (spec 2.2).
func exceeds(ratio *big.Rat, k int64) bool {
	if k > 10000*int64(ratio.Num().BitLen()) {
		return false
	}
	halvings := 0
	r := big.NewRat(k, 10000)
	for r.Cmp(one) > 0 {
		r.Quo(r, big.NewRat(2, 1))
		halvings++
	}
	const precision = 400
	sum, term := new(big.Float).SetPrec(precision).SetInt64(1), new(big.Float).SetPrec(precision).SetInt64(1)
	step := new(big.Float).SetPrec(precision).SetRat(r)
	for n := int64(1); n <= 100; n++ {
		term.Mul(term, step).Quo(term, new(big.Float).SetInt64(n))
		sum.Add(sum, term)
	}
	for ; halvings > 0; halvings-- {
		sum.Mul(sum, sum)
	}
	return new(big.Float).SetPrec(precision).SetRat(ratio).Cmp(sum) > 0
}
