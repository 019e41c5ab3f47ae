// Package toolschema repairs the schemas of tools. Servers of tools describe the arguments of their tools in every form
// that JSON Schema has, and in forms that it does not have; providers accept only a part of it, and refuse a whole
// request because of one tool.
//
// [Repair] returns a schema that every provider accepts and that allows at least what the original allows. [SafeNames]
// replaces the names of arguments that providers refuse. What a model sends is checked against the original schema,
// with [CheckArguments].
package toolschema
