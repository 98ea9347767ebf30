// SPDX-License-Identifier: Apache-2.0

package main

import "math/big"

const maxPriorCells = 1 << 21

// Claim is one promise of a block (spec 1.4). A nil level means that alip promises nothing on that side.
type Claim struct {
	notion     string
	level, low *big.Rat
	delta      *big.Rat
	prior      *Prior
	attributes []int64
	bounds     [][]*big.Rat
	diagonal   bool
	secret     string // only for rldp
	sensitive  int
	levels     [][]*big.Rat
	path       string
}

// Prior contains the counts N[z][s][x] of secrets s and answers x, in one table or one per stratum z.
type Prior struct {
	secret, path, strata string // path of the tables; ids of the public questions that they are of
	secrets              []string
	tables               [][][]int64 // one for all strata of a view, or one for each
}

// claimFields lists the fields of every notion besides "notion".
var claimFields = map[string][]string{
	"ldp": {"level"}, "dp": {"level", "delta"}, "secret-ldp": {"level", "prior"}, "lip": {"level", "prior"},
	"alip": {"level", "low_level", "prior"}, "srlip": {"level", "prior", "attributes"},
	"rldp": {"level", "lower_bounds", "diagonal", "secret", "source"}, "dpv": {"level", "prior", "sensitive"},
	"metric-ldp": {"level", "levels"},
}

func readClaim(f field) *Claim {
	own := []string{"notion"}
	if notion := f.fields["notion"]; notion != nil {
		more, known := claimFields[notion.text]
		if notion.kind != isText || !known {
			refuse("document_type", f.path, "unknown notion: update the verifier")
		}
		own = append(own, more...)
	}
	f.object(own)
	c := &Claim{notion: f.get("notion").text, path: f.path}
	level := f.get("level")
	if level.kind == isNull && c.notion != "alip" {
		level.fail("only alip may leave a level out")
	}
	c.level = level.orNull(1)
	switch c.notion {
	case "dp":
		c.delta = f.get("delta").ratio(0)
	case "alip":
		if c.low = f.get("low_level").orNull(1); c.low == nil && c.level == nil {
			level.fail("two infinite levels promise nothing")
		}
	case "rldp":
		c.readBounds(f)
	case "srlip":
		c.attributes = f.get("attributes").wholes(1, 8, 2, maxJoint)
	case "metric-ldp":
		for _, row := range f.get("levels").items(2, maxJoint) {
			var levels []*big.Rat
			for _, item := range row.items(2, maxJoint) {
				levels = append(levels, item.orNull(1))
			}
			c.levels = append(c.levels, levels)
		}
	}
	if f.has("prior") {
		c.prior = readPrior(f.get("prior"))
	}
	if c.notion == "dpv" {
		sensitive := f.get("sensitive")
		name := sensitive.id()
		c.sensitive = -1
		for s, secret := range c.prior.secrets {
			if secret == name {
				c.sensitive = s
			}
		}
		if c.sensitive < 0 {
			sensitive.fail("this is not one of the prior's secrets")
		}
	}
	return c
}

func (c *Claim) readBounds(f field) {
	for _, row := range f.get("lower_bounds").items(2, maxJoint) {
		var bounds []*big.Rat
		for _, item := range row.items(1, 128) {
			bounds = append(bounds, item.ratio(0))
		}
		c.bounds = append(c.bounds, bounds)
	}
	diagonal := f.get("diagonal")
	if diagonal.kind != isBool {
		diagonal.fail("expected true or false")
	}
	c.diagonal = diagonal.truth
	c.secret = f.get("secret").id()
	f.get("source").prose(4000)
}

// readPrior reads one table for all respondents, or one for each combination of public answers.
func readPrior(f field) *Prior {
	f.object([]string{"secret", "secrets", "tables", "source"})
	p := &Prior{secret: f.get("secret").id()}
	secrets := f.get("secrets")
	p.secrets = secrets.ids(2, maxJoint)
	secrets.unique(p.secrets, "ids")
	tables := f.get("tables")
	p.path = tables.path
	for _, item := range tables.items(1, 4096) {
		var table [][]int64
		for _, row := range item.items(1, maxJoint) {
			table = append(table, row.wholes(2, maxJoint, 0, maxNumber))
		}
		if rows := len(table); rows != len(p.secrets) && (rows != 1 || len(table[0]) != len(p.secrets)) {
			item.fail("expected %d rows, or one row if the answer is the secret", len(p.secrets))
		}
		p.tables = append(p.tables, table)
	}
	f.get("source").prose(4000)
	for z, item := range tables.items(1, 4096) {
		sum := int64(0)
		for _, row := range p.tables[z] {
			if len(row) != len(p.tables[0][0]) || len(p.tables[z]) != len(p.tables[0]) {
				item.fail("every row of every table must have as many columns as the first")
			}
			for _, count := range row {
				sum |= count
			}
		}
		if sum == 0 && len(p.tables) > 1 {
			item.fail("a stratum without any counts cannot be protected")
		}
	}
	p.requireSum(tables)
	return p
}

// requireSum refuses counts of several strata whose sum is not a number that every reader can hold.
func (p *Prior) requireSum(tables field) {
	for s := range p.tables[0] {
		for x := range p.tables[0][s] {
			sum := int64(0)
			for _, table := range p.tables {
				if sum += table[s][x]; sum > maxNumber {
					tables.fail("the counts of all strata must sum to less than 2^53")
				}
			}
		}
	}
}

// table returns N[s][x] of a stratum, with a row for every secret.
func (p *Prior) table(z int) [][]int64 {
	if len(p.tables[z]) > 1 {
		return p.tables[z]
	}
	row := p.tables[z][0]
	table := make([][]int64, len(row))
	for s := range table {
		table[s] = make([]int64, len(row))
		table[s][s] = row[s]
	}
	return table
}

// cells returns the number of counts in the priors, with a row for every secret in every stratum, plus the cells of a
// form.
func (b *Block) cells() int64 {
	cells := int64(0)
	if b.law.form != nil {
		cells = b.law.form.cells
	}
	for _, claim := range b.claims {
		if p := claim.prior; p != nil {
			cells += int64(len(p.tables)) * int64(len(p.secrets)) * int64(len(p.tables[0][0]))
		}
	}
	return cells
}
