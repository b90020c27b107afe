/**
 * Measures the assembled server from outside, beside the ceilings that bound it.
 *
 * <p>Starting points: {@link dev.nereid.benchmarks.Main}, which reads the command line, and
 * {@link dev.nereid.benchmarks.Section}, the things that can be measured. A {@link dev.nereid.benchmarks.Contest} puts
 * a {@link dev.nereid.benchmarks.Contender} and its ceilings under load in turn. Every server under load is a process
 * of its own; the ceilings run with the options of the server's JVM.
 */
@NullMarked
package dev.nereid.benchmarks;

import org.jspecify.annotations.NullMarked;
