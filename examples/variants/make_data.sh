#!/bin/bash
# A genome of 100,000 bases and the reads of four samples, each with some hundred variants.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p data/samples
awk 'BEGIN {srand(1); print ">chr1"; for (i = 0; i < 1000; ++i) {line = ""; for (j = 0; j < 100; ++j)
  line = line substr("ACGT", 1 + int(rand() * 4), 1); print line}}' > data/genome.fa
bwa index data/genome.fa 2> /dev/null
seed=1
for sample in A B C D; do
  wgsim -S $((seed++)) -N 10000 -1 100 -e 0.01 data/genome.fa "data/samples/$sample.fastq" /dev/null > /dev/null 2>&1
done
