"""Drawing: scenes, HTML and SVG by construction, colours, layouts, tables, units."""
