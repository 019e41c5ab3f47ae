package team

import "testing"

// An agent that is cancelled may be in the middle of a call: it changes nothing,
// and may spawn no agent.
func TestCallsOfACancelledAgent(t *testing.T) {
	s := newState(map[string]string{"helper": ""}, map[string]Spawn{"": {Max: 4, Depth: 3}, "helper": {Max: 4, Depth: 3}})
	m := s.addMember(lead, "helper", "help", "k")
	if out := s.applyEntry(entry{Op: opCancel, By: lead, ID: m.id}); out.refused {
		t.Fatal(out.result)
	}
	ops := []op{opSpawn, opCollect, opCancel, opCreate, opComplete, opFail, opSend, opInbox, opEscalate, opReply, opGiveUp}
	for _, o := range ops {
		e := entry{Op: o, By: m.id, ID: "1", Agent: "helper", Text: "x", Task: &newTask{Subject: "x", Agent: "helper", Prompt: "x"}}
		if out := s.checkRules(e); out.refused {
			t.Errorf("%s has no reason of its own: %v", o, out.result)
		}
		if out := s.applyEntry(e); !out.refused {
			t.Errorf("%s was done: %v", o, out.result)
		}
	}
	if r := s.spawnRule(m.id); r.Max != 0 || r.Only == nil || len(s.childrenOf(m.id)) != 0 {
		t.Errorf("it may still spawn: %+v", r)
	}
}
