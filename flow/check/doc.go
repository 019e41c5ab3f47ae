// Package check finds what is wrong with a graph.yaml before it runs: the validator of the file format
// ([ValidateFile]), the proof that every placeholder has a value on every path ([ProvePlaceholders]), and advice about
// what is allowed but probably a mistake ([AdviseFile]). Each is a function of a file and of what the host knows
// ([Context]).
package check
