package guide

import (
	"strings"
	"testing"
)

func TestTopics(t *testing.T) {
	if len(ListTopics()) < 15 {
		t.Errorf("there are %d guides", len(ListTopics()))
	}
	for _, topic := range ListTopics() {
		if !strings.HasPrefix(topic.Text, "# "+topic.Title+"\n") || topic.Title == "" || len(topic.Title) > 60 {
			t.Errorf("%s has the title %q: begin the file with a heading of one short line", topic.Name, topic.Title)
		}
		if found := FindTopic(topic.Name); found == nil || found.Text != topic.Text {
			t.Errorf("%s is not found", topic.Name)
		}
	}
	if FindTopic("graph-files.md") != nil {
		t.Error("a topic has no extension")
	}
}
