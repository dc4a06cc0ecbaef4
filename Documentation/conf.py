# SPDX-License-Identifier: GPL-2.0
"""How Sphinx makes the documentation into web pages (make htmldocs)."""
import pathlib
import re

project = "rust_rdma_cm"
copyright = "the authors of rust_rdma_cm, GPL-2.0"
extensions = ["myst_parser", "sphinx.ext.graphviz"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
nitpicky = True
highlight_language = "none"

graphviz_output_format = "svg"
html_theme = "alabaster"
html_theme_options = {"page_width": "1240px", "body_max_width": "none", "fixed_sidebar": True}
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_copy_source = False

# The pages that are files at the top of the tree, and where the links in these lead.
TOP = {"overview": "README.md", "contributing": "CONTRIBUTING.md"}
LINKS = (
    (r"\]\(Documentation/([\w/.-]*)\)", r"](\1)"),
    (r"\]\(README\.md\)", "](overview.md)"),
    (r"\]\(CONTRIBUTING\.md\)", "](contributing.md)"),
    (r"\[([^]]*)\]\((?:COPYING|MAINTAINERS)\)", r"\1"),
)


def read_top(app, name, content):
    if name in TOP:
        content[0] = (pathlib.Path(app.srcdir).parent / TOP[name]).read_text(encoding="utf-8")
        for pattern, replacement in LINKS:
            content[0] = re.sub(pattern, replacement, content[0])


def setup(app):
    app.connect("source-read", read_top)
