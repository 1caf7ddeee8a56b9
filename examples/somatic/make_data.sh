#!/bin/bash
# Makes reads of a tumour and a normal sample of each patient: lines "SITE BASE", always the same.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p data
echo sample,patient,type > samples.csv
for patient in P1 P2 P3 P4; do
  for type in tumour normal; do
    echo "$patient$type,$patient,$type" >> samples.csv
    awk -v seed="${patient#P}" -v type="$type" 'BEGIN {
      n = seed * 7919
      for (i = 0; i < 20000; ++i) {
        n = (n * 16807) % 2147483647
        site = n % 1000
        base = substr("ACGT", site % 4 + 1, 1)
        if (type == "tumour" && site % (97 + seed) == 0 && i % 3 == 0) base = "T"
        if (site % 211 == 0 && i % 2 == 0) base = "G"
        print "chr1:" site, base
      }
    }' > "data/$patient$type.txt"
  done
done
