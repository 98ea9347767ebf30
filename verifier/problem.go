// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// Problem is a refusal. Step is the step of protocol section 4 ("1" to "10") or the rule of
// section 3.1 ("K1" to "K7") that failed, Code and Field are those of the specification, and
// Detail says what is wrong and how to fix it. No detail repeats a text of the input.
type Problem struct {
	Step   string `json:"step"`
	Code   string `json:"code"`
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

func (p *Problem) Error() string {
	where := ""
	if p.Field != "" {
		where = " (field " + p.Field + ")"
	}
	step := ""
	if p.Step != "" {
		step = "step " + p.Step + ": "
	}
	return step + p.Code + where + ": " + p.Detail
}

// refuse panics with a Problem. Parsers consist of many conditions, each of which can end the parsing; catch converts
// the panic to an error at the end of a step.
func refuse(code, field, format string, values ...interface{}) {
	panic(&Problem{Code: code, Field: field, Detail: fmt.Sprintf(format, values...)})
}

// catch runs one step and returns its Problem, with the step's name, or nil.
func catch(step string, run func()) (problem *Problem) {
	defer func() {
		if failure := recover(); failure != nil {
			found, ok := failure.(*Problem)
			if !ok {
				panic(failure)
			}
			if found.Step == "" {
				found.Step = step
			}
			problem = found
		}
	}()
	run()
	return nil
}
