/** A benchmark run: options, workspace and comparisons. */
@NullMarked
package dev.nereid.benchmarks.run;

import org.jspecify.annotations.NullMarked;
