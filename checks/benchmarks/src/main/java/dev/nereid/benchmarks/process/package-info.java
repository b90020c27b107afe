/** Servers and ceilings under load, as separate processes. */
@NullMarked
package dev.nereid.benchmarks.process;

import org.jspecify.annotations.NullMarked;
