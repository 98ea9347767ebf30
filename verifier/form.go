// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/big"
	"strconv"
)

// Form contains the parameters of the agreement kind (spec 1.10). Its level is agree/disagree if every cover is
// uniform. parseForm checks this, so verification needs no other figure.
type Form struct {
	agree, disagree int64
	choices         []int64
	parts           [][]int64
	components      []Component
	cells           int64
}

// Component is one way of drawing a report; the device draws the component first.
type Component struct {
	chance    int64
	threshold int64
	pools     []Pool
}

// Pool is a list of parts with the same number of answers; pick of them are drawn, each with a set of the cover.
type Pool struct {
	parts       []int64
	pick, score int64
	size        int64    // sets of one size; 0 if the sets are listed
	sets        []*Set   // listed sets
	answers     int64    // number of answers of each part
	count       *big.Int // number of sets
}

// Set is a listed set of a cover.
type Set struct {
	members *big.Int
	weight  int64
}

const (
	maxCoverSets = 4096
	maxCells     = 1 << 20
)

func parseForm(block field, full int64) *Form {
	form := &Form{agree: block.get("agree").whole(1, maxNumber), disagree: block.get("disagree").whole(1, maxNumber)}
	if form.agree < form.disagree {
		block.get("agree").fail("agree must be at least disagree")
	}
	form.choices = block.get("choices").wholes(1, 100, 2, 64)
	used := form.parseParts(block.get("parts"))
	components := block.get("components")
	sum := int64(0)
	for _, item := range components.items(1, 256) {
		component := form.parseComponent(item, full, used)
		sum += component.chance
		form.components = append(form.components, component)
	}
	if sum != full {
		components.fail("the chances of the components do not sum to 2^bits")
	}
	for part := range form.parts {
		if !used[part] {
			block.get("parts").fail("every part must be in a pool")
		}
		for _, question := range form.parts[part] {
			if question >= int64(len(form.choices)) {
				block.get("parts").fail("a part names a question that the form does not have")
			}
		}
	}
	form.countCells(components)
	return form
}

func (form *Form) parseParts(parts field) map[int]bool {
	covered, seen := map[int64]bool{}, map[string]bool{}
	for _, item := range parts.items(1, 400) {
		part := item.wholes(1, 4, 0, 99)
		key, answers := "", int64(1)
		for i, question := range part {
			if i > 0 && part[i-1] >= question {
				item.fail("the questions of a part must be in ascending order")
			}
			key += strconv.FormatInt(question, 10) + ","
			answers *= form.count(question)
			covered[question] = true
		}
		if answers > maxJoint {
			item.fail("a part has at most %d joint answers", maxJoint)
		}
		if seen[key] {
			parts.fail("two parts are equal")
		}
		seen[key] = true
		form.parts = append(form.parts, part)
	}
	for question := range form.choices {
		if !covered[int64(question)] {
			parts.fail("every question must be in a part")
		}
	}
	return map[int]bool{}
}

// count returns the number of a question's choices, 1 if the question does not exist; that is refused after the covers.
func (form *Form) count(question int64) int64 {
	if question >= int64(len(form.choices)) {
		return 1
	}
	return form.choices[question]
}

func (form *Form) parseComponent(item field, full int64, used map[int]bool) Component {
	item.objectExactly("chance", "threshold", "pools")
	component := Component{chance: item.get("chance").whole(1, full)}
	reach := int64(0)
	pools := item.get("pools")
	asked := map[int64]int{} // question -> pool
	for number, poolField := range pools.items(1, 100) {
		pool := form.parsePool(poolField)
		reach += pool.pick * pool.score
		for _, part := range pool.parts {
			used[int(part)] = true
			for _, question := range form.parts[part] {
				if before, twice := asked[question]; twice && (before != number || pool.pick > 1) {
					pools.fail("a question is in two parts that can be drawn together")
				}
				asked[question] = number
			}
		}
		component.pools = append(component.pools, pool)
	}
	component.threshold = item.get("threshold").whole(1, 800)
	if component.threshold > reach {
		item.get("threshold").fail("the threshold is above the largest score")
	}
	return component
}

func (form *Form) parsePool(item field) Pool {
	item.objectExactly("parts", "pick", "score", "cover")
	pool := Pool{parts: item.get("parts").wholes(1, 400, 0, int64(len(form.parts)-1))}
	for i, part := range pool.parts {
		answers := int64(1)
		for _, question := range form.parts[part] {
			answers *= form.count(question)
		}
		if i > 0 && pool.parts[i-1] >= part {
			item.get("parts").fail("the parts of a pool must be in ascending order")
		}
		if i > 0 && answers != pool.answers {
			item.get("parts").fail("the parts of a pool must have equally many answers")
		}
		pool.answers = answers
	}
	pool.pick = item.get("pick").whole(1, int64(len(pool.parts)))
	pool.score = item.get("score").whole(1, 8)
	form.parseCover(item.get("cover"), &pool)
	return pool
}

// parseCover checks that the sets contain every answer of a part with the same weight; the level depends on this.
func (form *Form) parseCover(cover field, pool *Pool) {
	if cover.kind != isList {
		pool.size = cover.whole(1, pool.answers-1)
		pool.count = new(big.Int).Binomial(pool.answers, pool.size)
		if pool.count.Cmp(big.NewInt(maxCoverSets)) > 0 {
			cover.fail("a cover has at most %d sets", maxCoverSets)
		}
		return
	}
	digits := int(pool.answers+3) / 4
	inside := make([]*big.Int, pool.answers)
	seen := map[string]bool{}
	for _, item := range cover.items(2, maxCoverSets) {
		pair := item.items(2, 2)
		text := pair[0].text
		if pair[0].kind != isText || len(text) != digits || !isLowerHex(text) {
			item.fail("a set is written as %d hexadecimal digits", digits)
		}
		set := &Set{new(big.Int), pair[1].whole(1, maxNumber)}
		set.members.SetString(text, 16)
		if set.members.BitLen() > int(pool.answers) {
			item.fail("a set contains an answer that the parts do not have")
		}
		size := 0
		for x := range inside {
			if set.members.Bit(x) == 1 {
				size++
				if inside[x] == nil {
					inside[x] = new(big.Int)
				}
				inside[x].Add(inside[x], big.NewInt(set.weight))
			}
		}
		if size == 0 || size == len(inside) {
			cover.fail("no set may be empty or full")
		}
		if seen[text] {
			cover.fail("a set is listed twice")
		}
		seen[text] = true
		pool.sets = append(pool.sets, set)
	}
	for _, weight := range inside {
		if weight == nil || weight.Cmp(inside[0]) != 0 {
			cover.fail("the sets do not cover every answer equally often")
		}
	}
	pool.count = big.NewInt(int64(len(pool.sets)))
}

// countCells limits the number of cells, which bounds the time to explain a form and to draw from it.
func (form *Form) countCells(components field) {
	for _, component := range form.components {
		slots := int64(0)
		for _, pool := range component.pools {
			slots += pool.pick
			choices := int64(0)
			for _, part := range pool.parts {
				if len(form.parts[part]) > 1 {
					for _, question := range form.parts[part] {
						choices += form.choices[question]
					}
				}
			}
			form.cells += pool.count.Int64() * (pool.answers + choices)
		}
		form.cells += 8 * slots * (component.threshold + 1)
	}
	if form.cells > maxCells {
		components.fail("the form has %d cells; at most %d are allowed", form.cells, maxCells)
	}
}
