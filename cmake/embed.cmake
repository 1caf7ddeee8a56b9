# Writes the file IN as a C++ raw string literal to OUT.
file(READ ${IN} TEXT)
file(WRITE ${OUT} "R\"text(${TEXT})text\"\n")
