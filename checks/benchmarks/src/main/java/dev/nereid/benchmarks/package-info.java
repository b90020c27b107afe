/**
 * Benchmarks of the assembled server beside the ceilings that bound it.
 *
 * <p>Starting points: {@link dev.nereid.benchmarks.Main}, which reads the command line, and {@link
 * dev.nereid.benchmarks.run.Section}, the sections of a run. A {@link dev.nereid.benchmarks.run.CeilingComparison} puts
 * a {@link dev.nereid.benchmarks.run.Workload} and its ceilings under load in turn. Every server under load is a
 * separate process; the ceilings run with the options of the server's JVM.
 */
@NullMarked
package dev.nereid.benchmarks;

import org.jspecify.annotations.NullMarked;
