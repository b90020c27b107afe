/** The sections of a benchmark run: one table of results each. */
@NullMarked
package dev.nereid.benchmarks.section;

import org.jspecify.annotations.NullMarked;
