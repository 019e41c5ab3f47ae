// Package language is what an editor asks about the files of agents: what is wrong with them, what can be written at a
// place, what a name means, where it is written, and how it gets another name. A [Workspace] has the texts that an
// editor has not saved; what is found there is what raddle check finds. It runs nothing, and reads only files of agents.
package language
