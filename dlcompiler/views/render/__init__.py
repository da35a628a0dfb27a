"""Drawing of pictures, tables and HTML; it does not depend on schedules.

`scene` turns a picture, given as data, into SVG and a table; `html` and `markup` build HTML in
which every text is escaped; `text` prints tables for terminals, `page` a whole document. `boxes`,
`layered`, `colors` and `units` are the parts that pictures share.
"""
