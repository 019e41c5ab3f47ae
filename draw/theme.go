package draw

// A Theme is the set of colours of a picture.
type Theme string

// The themes. The zero value is Light.
const (
	Light Theme = "light"
	Dark  Theme = "dark"
	Auto  Theme = "auto" // an SVG follows the page that shows it; a PNG is dark
)

// Themes returns the names of the themes.
func Themes() []string { return []string{string(Light), string(Dark), string(Auto)} }

// Colours of what a run did not reach.
const (
	unreachedLine = "#c3ccd6"
	unreachedInk  = "#94a3b8"
)

// darkColors are the colours of the dark theme, by those of the light one.
// The colours of nodes keep their families in both themes: violet is a model on a light page and on
// a dark one.
var darkColors = map[string]string{
	"#f3f0ff": "#2b2547", "#7c5cdb": "#a78bfa", "#fbeefc": "#3a2340", "#b14fc5": "#e08af0",
	"#eaf7ef": "#1b3427", "#3a9464": "#5cc98b", "#fff6e0": "#3a2f14", "#d1930f": "#f0b93c",
	"#fff1e6": "#3d2a1b", "#db7a2b": "#f59e58", "#e9f4fd": "#1b2f40", "#3384c4": "#62b0ee",
	"#e6f7f7": "#173434", "#21918f": "#4cc4c1", "#f4f6f9": "#252c37", "#64748b": "#9aa8ba",
	"#eceff3": "#2a323e", "#475569": "#a5b2c3", "#ffffff": "#12161c", "#7c8a9c": "#8695a8",
	"#1e293b": "#e6ebf2", "#334155": "#c3ccd8", "#f7f9fb": "#181d25", "#b6c2d1": "#3f4a59",
	"#4f5fc4": "#8f9bf5", "#0f7b72": "#4fc3b8", "#d13438": "#ff7b7e", "#55637a": "#93a1b5",
	unreachedLine: "#39424f", unreachedInk: "#6b7785",
}

// colorIn returns a colour of the light theme in a theme.
// A colour that the dark theme does not replace stays as it is.
func (t Theme) colorIn(color string) string {
	if dark, ok := darkColors[color]; ok && (t == Dark || t == Auto) {
		return dark
	}
	return color
}
