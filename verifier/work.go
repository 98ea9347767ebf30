// SPDX-License-Identifier: Apache-2.0

package main

import "math/big"

const maxWork = 1_000_000_000

// work estimates the time of verification from sizes alone (spec 2.7), so that every implementation refuses the same
// documents.
func (d *Document) work() int64 {
	total := int64(0)
	for _, b := range d.blocks {
		total += 100_000 + b.law.columnWork()
		for _, c := range b.claims {
			if c.prior == nil {
				total += b.law.claimWork(c, 0)
				continue
			}
			for z := range c.prior.tables {
				if total += b.law.claimWork(c, z); total > maxWork {
					return total
				}
			}
		}
	}
	return total
}

// columnWork returns the work for the largest ratio in a column, factor by factor; for sets and forms it is a formula.
func (m *Mechanism) columnWork() int64 {
	work := int64(0)
	for _, table := range m.factors {
		work += int64(len(table[0])) * (1500 + 80*int64(len(table)))
	}
	return work
}

func (m *Mechanism) claimWork(c *Claim, z int) int64 {
	const base = 100_000
	a := int64(m.answers)
	if m.form != nil {
		return base
	}
	words := (int64(m.bits)*int64(len(m.factors)) + 63) / 64 // words of a joint weight
	columns := int64(1)
	for _, table := range m.factors {
		if columns *= int64(len(table[0])); columns > maxWork {
			return maxWork + 1
		}
	}
	switch c.notion {
	case "ldp":
		return base + m.columnWork()
	case "dp":
		work := int64(base)
		for _, table := range m.factors {
			rows := int64(len(table))
			work += rows * rows * (5000 + 120*int64(len(table[0])))
			if len(m.factors) > 1 {
				work += rows * rows * 1880 * int64(len(table[0]))
			}
		}
		if len(m.factors) > 1 && work <= maxWork {
			ratios := int64(1)
			for _, table := range m.factors {
				if ratios *= likelihoods(table); ratios > maxWork {
					return ratios
				}
			}
			work += 650 * (words + 3) * ratios
		}
		return work
	case "metric-ldp":
		pairs := int64(0)
		for _, row := range c.levels {
			for _, level := range row {
				if level != nil {
					pairs++
				}
			}
		}
		if m.factors == nil {
			return base + 3000*a*a
		}
		return base + 3000*a*a + columns*(160*a+800*pairs)*(words+3)/4
	case "rldp":
		secrets := int64(len(c.bounds))
		if m.factors == nil {
			return base + 1200*a + 2000*secrets + 40*a*a
		}
		column := 24*(words+4)*(words+4) + (812+3*words)*secrets + (262+3*words)*a + m.joining(words)
		return base + (1200+300*words)*a + columns*column
	}
	return base + m.liftWork(c, z, words, columns)
}

// likelihoods returns the number of distinct ratios of two entries of a column.
func likelihoods(table [][]int64) int64 {
	seen := map[string]bool{}
	for x, row := range table {
		for z, other := range table {
			for y := range row {
				switch {
				case x == z || row[y] == 0 && other[y] == 0:
				case other[y] == 0:
					seen["inf"] = true
				default:
					seen[big.NewRat(row[y], other[y]).String()] = true
				}
			}
		}
	}
	return int64(len(seen))
}

// joining returns the work for computing a column from its factors.
func (m *Mechanism) joining(words int64) int64 {
	if len(m.factors) == 1 {
		return 40 * int64(m.answers)
	}
	return 160 * int64(m.answers) * (words + 3) / 4
}

// liftWork returns the work for the notions that compare averages, in one stratum.
func (m *Mechanism) liftWork(c *Claim, z int, words, columns int64) int64 {
	a := int64(m.answers)
	rows, filled := int64(0), int64(0)
	for _, row := range c.prior.table(z) {
		if sumOf(row).Sign() > 0 {
			rows++
		}
		for _, count := range row {
			if count > 0 {
				filled++
			}
		}
	}
	cells, members := int64(1), a // numbers of cells, and of answers in all cells together
	for _, size := range c.attributes {
		cells, members = cells*(size+1), members*2
	}
	work := 100 * rows * a
	if m.factors == nil {
		one, sides := int64(8000), int64(2)
		if m.kind == "subset" {
			one += 240 * a
		}
		switch c.notion {
		case "secret-ldp":
			return work + 51_200*a + rows*(rows-1)*(8000+1600*a)
		case "dpv":
			return work + 52_800*a
		}
		return work + 102_400*a + sides*rows*(one*cells+1600*members)
	}
	compared, each := rows, int64(760)
	if c.notion == "dpv" {
		compared, filled = 2, filled*2/rows
	}
	if c.notion == "srlip" {
		each = 920
	}
	column := ((3200*cells+each*cells*compared)*(words+3)+80*filled*(words+3))/4 + 8*compared*a + m.joining(words)
	return work + columns*column
}
