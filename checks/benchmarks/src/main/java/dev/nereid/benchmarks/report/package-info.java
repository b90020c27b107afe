/** Samples, figures and tables. */
@NullMarked
package dev.nereid.benchmarks.report;

import org.jspecify.annotations.NullMarked;
