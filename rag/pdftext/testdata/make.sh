#!/usr/bin/env bash
# Makes the PDF files of this directory with the programs that people use. You need pdflatex, and typst, reportlab and weasyprint from PyPI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
pdflatex -interaction=batchmode latex.tex
rm -f latex.aux latex.log
python3 -c 'import typst; typst.compile("typst.typ", output="typst.pdf", timestamp=0)'
python3 reportlab.py
python3 weasyprint.py
